"""Rows from a cell model: fit (noisy sums in), parameters (of one set), rows (out)."""
