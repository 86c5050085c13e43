"""Spark: records are validated, encoded and counted where they lie; only counts leave the executors."""
