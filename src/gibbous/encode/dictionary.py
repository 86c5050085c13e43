"""Text columns of a frame -> dictionaries of their declared levels, looked up once for all that follows."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gibbous.core.schema import Schema
from gibbous.encode.levels import accepted


def dictionaries(schema: Schema) -> dict[str, pl.Enum]:
    """For each column of levels, the texts that stand for one."""
    return {c.name: pl.Enum(list(accepted(c).known.text)) for c in schema if not c.binned}


def coded(frame: pl.DataFrame, known: Mapping[str, pl.Enum]) -> pl.DataFrame:
    """Replace text columns by dictionaries where every text is known; the values are the same.

    Args:
        frame: any columns.
        known: name -> its dictionary, from `dictionaries`.
    """
    found = []
    for name, dtype in frame.schema.items():
        if dtype == pl.String and name in known:
            column = frame.get_column(name)
            short = column.cast(known[name], strict=False)
            if short.null_count() == column.null_count():
                found.append(short)
    return frame.with_columns(found) if found else frame
