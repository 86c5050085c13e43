"""Risk: what an intruder learns from the synthetic table."""
