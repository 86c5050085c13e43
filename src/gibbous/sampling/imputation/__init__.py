"""Imputation: each column's regression on the others, fitted to records, and rows drawn from it."""
