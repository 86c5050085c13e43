"""Rows from public tables: the one sampler behind `Release.sample`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import Tables

if TYPE_CHECKING:
    import polars as pl


def draw(
    tables: Tables, rows: int, seed: int | None, given: Any = None, set_index: int = 0
) -> pl.DataFrame:
    """Draw rows from public tables: post-processing, no cost.

    Args:
        rows: number of rows, >= 0.
        seed: sampling seed; the seed of a release gives its sets again. None draws one.
        given: columns with values that are not drawn: see `Release.sample`.
        set_index: which set, from 0.
    Raises:
        UsageError: these tables cannot be drawn from given some columns, or given is unusable.
        SchemaMismatch: a given value is outside the schema.
    """
    from gibbous.encode.decode import decode
    from gibbous.synthesize.sample import sample
    from gibbous.write.package import drawn_seed

    start = drawn_seed() if seed is None else seed
    if given is None:
        found = sample(tables, rows, seed=start, set_index=set_index)
        return decode(found, seed=start, set_index=set_index)
    frame = _frame(given, rows)
    codes = given_codes(tables.schema, frame)
    some = sample(tables, rows, seed=start, set_index=set_index, given=codes)
    drawn = decode(some, seed=start, set_index=set_index)
    # A given value is kept as it is: the code of a bin would come back as any value of the bin.
    kept = [frame.get_column(name).cast(drawn.schema[name], strict=False) for name in frame.columns]
    whole = [one for one in kept if not one.null_count() or one.name in _nullable(tables.schema)]
    return drawn.with_columns(whole)


def given_codes(schema: Schema, frame: pl.DataFrame) -> dict[int, np.ndarray]:
    """Codes of given columns, by position in the schema, each (rows,).

    Raises:
        SchemaMismatch: a value is outside the schema.
    """
    from gibbous.encode.encode import encode

    columns = tuple(schema[name] for name in frame.columns)
    part = replace(schema, columns=columns, impossible=(), unit=Unit(), ignore=())
    codes = encode(frame, part).by_column
    return {schema.index(name): codes[at] for at, name in enumerate(frame.columns)}


def _nullable(schema: Schema) -> frozenset[str]:
    return frozenset(column.name for column in schema if column.missing)


def _frame(given: Any, rows: int) -> pl.DataFrame:
    """Given values as a frame of `rows` rows."""
    import polars as pl

    from gibbous.read.frames import from_frame

    if isinstance(given, dict):
        series = []
        for name, values in given.items():
            many = isinstance(values, list | tuple | np.ndarray | pl.Series)
            series.append(pl.Series(str(name), values if many else [values] * rows))
        if {len(one) for one in series} - {rows}:
            raise _unusable("a column of another number of values")
        given = pl.DataFrame(series)
    frame = from_frame(given, max_columns=1 << 20, skip=frozenset())
    if frame.height != rows or not frame.width:
        raise _unusable(f"{frame.width} columns of {frame.height} rows")
    return frame


def _unusable(what: str) -> UsageError:
    return UsageError(
        "GIVEN",
        f"Rows were asked for given {what}.",
        "given has at least one column, with one value for all rows or one for each row asked for.",
        "Pass a dictionary from column name to value, or a frame of as many rows.",
    )
