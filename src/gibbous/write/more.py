"""Rows from public tables: the one sampler behind `Release.sample`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gibbous.core.tables import Tables

if TYPE_CHECKING:
    import polars as pl


def draw(tables: Tables, rows: int, seed: int | None) -> pl.DataFrame:
    """Draw rows from public tables: post-processing, no cost.

    Args:
        rows: number of rows, >= 0.
        seed: sampling seed; the seed of a release gives its first set again. None draws one.
    """
    from gibbous.encode.decode import decode
    from gibbous.synthesize.sample import sample
    from gibbous.write.package import drawn_seed

    start = drawn_seed() if seed is None else seed
    return decode(sample(tables, rows, seed=start), seed=start)
