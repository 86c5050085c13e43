"""Names and types of the columns of an input, where somebody says that they are public."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl

from gibbous.core.column import Level
from gibbous.read.csv_file import ReadOptions
from gibbous.read.frames import from_frame
from gibbous.read.parquet import parquet_types
from gibbous.read.source import probe


def public_names(source: Any, options: ReadOptions | None = None) -> tuple[str, ...]:
    """The header of a file or a frame, as `probe` reads it."""
    return probe(source, options=options).names


def public_types(
    source: Any, options: ReadOptions | None = None
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[Level, ...]]]:
    """Numeric columns, columns of days, and levels by column, by the types of a Parquet file or a frame.

    Floats are numbers and days are days. Booleans, enumerations and categories of pandas state their
    levels. Whole numbers may be codes and texts may be anything, so they state nothing; text files
    have no types. No cell is looked at; what is raised is that of `probe`.
    """
    options = options or ReadOptions()
    if isinstance(source, str | os.PathLike):
        if probe(source, options=options).kind == "csv":
            return (), (), {}
        types = parquet_types(Path(source), options)
    else:
        frame = from_frame(source, max_columns=options.max_columns, skip=frozenset())
        types = dict(frame.schema)
    levels = {name: _levels(kind) for name, kind in types.items()} | _categories(source)
    return (
        tuple(name for name, kind in types.items() if kind.is_float()),
        tuple(name for name, kind in types.items() if kind == pl.Date),
        {name: told for name, told in levels.items() if told},
    )


def _levels(kind: pl.DataType) -> tuple[Level, ...]:
    if isinstance(kind, pl.Enum):
        return tuple(kind.categories.to_list())
    return ("false", "true") if kind == pl.Boolean else ()


def _categories(source: Any) -> dict[str, tuple[Level, ...]]:
    """Categories of a pandas frame, where they are texts."""
    if type(source).__module__.partition(".")[0] != "pandas":
        return {}
    told = {
        name: tuple(kind.categories)
        for name, kind in source.dtypes.items()
        if hasattr(kind, "categories")
    }
    return {name: levels for name, levels in told.items() if all(type(v) is str for v in levels)}
