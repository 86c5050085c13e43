"""Inference: estimates and intervals from synthetic sets, by combining rules."""
