"""Counting in a database: codes in a DuckDB file of this run; one expression of tally for every backend."""
