"""Which conditionals are counted: joint, margins, hashed contexts, locality-sensitive hashes, chosen networks."""
