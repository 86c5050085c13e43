"""Flows: per-destination draws of origins whose drawing is the mechanism, and the whole-grid noise."""
