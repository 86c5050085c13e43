"""One file of a synthetic set against its schema: names, order, types, levels, bounds, number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError
from gibbous.core.schema import Schema
from gibbous.disintegrate.writer import guard, guarded_name
from gibbous.encode.encode import encode
from gibbous.write.files import rejected
from gibbous.write.parquet_guard import guarded_slices, metadata

if TYPE_CHECKING:
    import polars as pl

SLICE = 1 << 18  # rows: those of a row group that `write_files` makes
_ANY = 1 << 40


def check_set(
    path: Path, schema: Schema, rows: int, *, at_once: int = SLICE
) -> Iterator[tuple[Codes, pl.DataFrame]]:
    """Read one Parquet file of a set.

    Args:
        schema: with a row unit and no ignored columns.
        rows: what the certificate says.
        at_once: rows that are in memory at a time.
    Yields:
        Codes and frame of slices of the rows; one slice without rows of an empty file.
    Raises:
        ModelRejected: something is outside the schema.
    """
    info = metadata(path)
    if tuple(info.columns) != schema.names:
        raise rejected("COLUMNS", f"{path.name} does not have the columns of the schema in order")
    if info.rows != rows:
        raise rejected("ROWS", f"{path.name} does not have {rows:,} rows")
    for frame in guarded_slices(path, at_once):
        yield _codes(frame, schema, path.name), frame


def check_csv(path: Path, schema: Schema, frame: pl.DataFrame, codes: Codes, *, raw: bool) -> None:
    """Compare a CSV set with the Parquet set beside it.

    Raises:
        ModelRejected: it holds something else.
    """
    import polars as pl

    shown = frame if raw else guard(frame)[0]
    names = [name if raw else guarded_name(name) for name in schema.names]
    try:
        found = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        found = pl.DataFrame()
    if found.columns != names or found.height != frame.height:
        raise rejected("CSV", f"{path.name} does not have the columns and rows of its Parquet file")
    for index, column in enumerate(schema):
        text, wanted = found.to_series(index).fill_null(""), shown.to_series(index)
        if column.binned:
            empty = pl.when(pl.first() == schema.null).then(None).otherwise(pl.first())
            values = text.to_frame().select(empty.alias(column.name))
            one = Schema((column,), null=schema.null)
            same = np.array_equal(
                _codes(values, one, path.name).values[:, 0], codes.by_column[index]
            )
        else:
            written = wanted.cast(pl.String).fill_null(schema.null)
            same = bool((text == written).all())
        if not same:
            raise rejected(
                "CSV", f"{path.name} differs from its Parquet file in column {index + 1}"
            )


def _codes(frame: pl.DataFrame, schema: Schema, name: str) -> Codes:
    try:
        found = encode(frame, schema, max_levels=_ANY)
    except GibbousError as error:
        why = error.wrong.rstrip(".")
    else:
        return Codes(schema, found.values)
    raise rejected("SCHEMA", f"{name} does not fit its schema ({why})")
