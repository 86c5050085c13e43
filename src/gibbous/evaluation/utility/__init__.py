"""Utility: what an analysis of the synthetic table gets wrong."""
