"""A source -> its columns that can be read, and the names of those whose type no column holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.read.frames import from_frame
from gibbous.read.parquet import read_parquet
from gibbous.read.source import ReadOptions, probe, read_columns
from gibbous.read.years import check_years

if TYPE_CHECKING:
    import polars as pl


def usable_columns(source: Any, options: ReadOptions | None) -> tuple[pl.DataFrame, list[str]]:
    """Read a source as `read_columns` does; columns of other types are left out, not refused.

    Args:
        source: a path or a frame.
        options: how files are read.
    Returns:
        The frame, and the names of the columns that it lacks, in order.
    Raises:
        InputRejected, SchemaMismatch, ResourceLimit: as `read_columns`, types aside.
    """
    options = options or ReadOptions()
    if not isinstance(source, str | os.PathLike):
        names = _names(source)
        frame = from_frame(source, max_columns=options.max_columns, skip=frozenset(names))
    else:
        seen = probe(source, options=options)
        names = list(seen.names)
        if seen.kind == "csv":
            return read_columns(source, options=options), []
        frame = read_parquet(Path(source), options, skip=frozenset(names))
    check_years(frame)
    return frame, [name for name in names if name not in frame.columns]


def _names(frame: Any) -> list[str]:
    """Column names of a pandas, polars or pyarrow frame; none of anything else."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(getattr(frame, "schema", None), "names"):
        return list(frame.schema.names)
    return [name for name in getattr(frame, "columns", ()) if isinstance(name, str)]
