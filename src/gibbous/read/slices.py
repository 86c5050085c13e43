"""A frame -> its rows in slices, so that what is made of them on the way stays small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

SLICE = 1 << 18
"""Rows a slice: few enough for the cache, many enough that calls into polars cost nothing."""


def row_slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """All rows in order; at least one slice, which is empty for an empty frame.

    Whether days with a time of day count as days is decided over all rows of a column, so that a
    frame with such a column stays whole.
    """
    if whole_only(frame.dtypes):
        yield frame
        return
    for start in range(0, max(1, frame.height), SLICE):
        yield frame.slice(start, SLICE)


def whole_only(dtypes: Iterable[pl.DataType]) -> bool:
    """Whether a type among these is read for all rows at once."""
    import polars as pl

    return any(isinstance(dtype, pl.Datetime) for dtype in dtypes)
