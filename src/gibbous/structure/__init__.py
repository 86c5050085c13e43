"""Which conditionals are counted: joint, margins, hashed, locality-sensitive, chosen."""
