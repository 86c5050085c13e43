"""A frame -> its rows in slices, so that what is made of them on the way stays small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gibbous.core.errors import ResourceLimit

if TYPE_CHECKING:
    import polars as pl

SLICE = 1 << 18
"""Rows a slice: few enough for the cache, many enough that calls into polars cost nothing."""


def row_slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """All rows in order; at least one slice, which is empty for an empty frame."""
    for start in range(0, max(1, frame.height), SLICE):
        yield frame.slice(start, SLICE)


def gathered(slices: Iterable[pl.DataFrame], most: int) -> pl.DataFrame:
    """All slices, at least one, as one frame; ResourceLimit beyond `most` bytes in memory."""
    import polars as pl

    parts: list[pl.DataFrame] = []
    held = 0
    for part in slices:
        held += int(part.estimated_size())
        if held > most:
            raise ResourceLimit(
                "TOOLARGE",
                f"The table takes more than {most:,} bytes.",
                "What is read whole fits into the limit.",
                "Pass a view with a sample of its rows, or buy the facts: they are read in slices.",
            )
        parts.append(part)
    return pl.concat(parts)
