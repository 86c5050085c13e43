"""A source -> its columns that can be read, and the names of those whose type no column holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.read.conform import check_header
from gibbous.read.frames import frame_names, from_frame
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
        InputRejected, SchemaMismatch, ResourceLimit: as `read_columns`, types aside; and names that
            look like a record.
    """
    options = options or ReadOptions()
    if not isinstance(source, str | os.PathLike):
        names = frame_names(source)
        frame = from_frame(source, max_columns=options.max_columns, skip=frozenset(names))
    else:
        seen = probe(source, options=options)
        names = list(seen.names)
        if seen.kind == "csv":
            frame = read_columns(source, options=options)
        else:
            frame = read_parquet(Path(source), options, skip=frozenset(names))
    check_header(names, frame)
    check_years(frame)
    return frame, [name for name in names if name not in frame.columns]
