"""Evaluate: how good, how risky; every metric a Finding beside what other tables would score."""
