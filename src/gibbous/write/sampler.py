"""Rows from public tables: the one sampler behind `Release.sample`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.release import Sampler
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import Tables
from gibbous.encode.column_types import fitting
from gibbous.read.fields import listed, shown
from gibbous.write.partial import drawn_seed

if TYPE_CHECKING:
    import polars as pl

    from gibbous.encode.ruled_rows import Ruled

EXACT = 2**53  # whole numbers below it are kept as they are


def sampler_of(tables: Tables | None, receipt: Mapping[str, Any]) -> Sampler | None:
    """What draws further rows of a release, with the types of its columns; None without tables."""
    if tables is None:
        return None
    return partial(draw, types=types_of(receipt, tables.schema))


def types_of(receipt: Mapping[str, Any], schema: Schema) -> tuple[tuple[str, str], ...]:
    """Types of the columns of a release that are those of its input, as its certificate says."""
    return fitting(schema, receipt["files"].get("types", {}))


def draw(
    tables: Tables,
    rows: int,
    seed: int | None,
    given: Any = None,
    set_index: int = 0,
    types: tuple[tuple[str, str], ...] = (),
) -> pl.DataFrame:
    """Draw rows from public tables: post-processing, no cost; see `Release.sample`.

    The seed of a release gives its sets again; sets count from 0; types: see `decode`.

    Raises:
        UsageError: these tables cannot be drawn from given some columns, or given is unusable.
        SchemaMismatch: a given value is outside the schema.
    """
    from gibbous.encode.decode import decode
    from gibbous.sampling.sample import sample

    start = drawn_seed() if seed is None else seed
    if given is None:
        found = sample(tables, rows, seed=start, set_index=set_index)
        return decode(found, seed=start, set_index=set_index, types=types)
    known = encoded(tables.schema, _frame(given, rows))
    found = drawn(tables, known, seed=start, set_index=set_index).codes
    return decode(found, seed=start, set_index=set_index, types=types)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Given:
    """Values of some columns, one a row: codes and, of binned columns, the numbers themselves.

    Attributes:
        codes: by position in the schema, each (rows,).
        numbers: ((position, float64 (rows,)), ...) of numeric and date columns.
        rows: how many.
    """

    codes: dict[int, np.ndarray]
    numbers: tuple[tuple[int, np.ndarray], ...]
    rows: int


def encoded(schema: Schema, frame: pl.DataFrame) -> Given:
    """Some columns of a release, values as `read.source` gives them, in the terms of its schema.

    Raises:
        SchemaMismatch: a value is outside the schema, or missing where the column has none.
        UsageError: a column that the schema does not have; a whole number beyond 2^53.
    """
    from gibbous.encode.encode import Encoder

    part = part_of(schema, frame.columns)
    binned = tuple(at for at, column in enumerate(part) if column.binned)
    encoder = Encoder(part, frame.height, numbers=binned)
    encoder.add(frame.select(part.names))
    found = encoder.finish()
    places = [schema.index(column.name) for column in part]
    for at, numbers in found.numbers:
        if part.columns[at].integer and numbers.size and np.abs(numbers).max() >= EXACT:
            raise unusable(
                f"whole numbers beyond 2^53 in column {shown(part.columns[at].name)}",
                "Whole numbers below 2^53 are kept as they are.",
                "Leave the column out: it is drawn then.",
            )
    return Given(
        {place: found.by_column[at] for at, place in enumerate(places)},
        tuple((places[at], numbers) for at, numbers in found.numbers),
        frame.height,
    )


def drawn(
    tables: Tables, given: Given, *, seed: int, set_index: int = 0, threads: int | None = None
) -> Ruled:
    """Rows, which keep the rules, whose given columns are as given, and whose others go with them.

    Raises:
        UsageError: these tables, without a log-linear model, cannot be drawn from; a given row leaves
            nothing possible.
    """
    from gibbous.encode.ruled_rows import ruled
    from gibbous.sampling.sample import prepared, sample

    # What is given may break a rule: the rows are drawn without them, and made to keep them.
    schema = tables.schema
    source = prepared(replace(tables, schema=replace(schema, rules=())), set_index)
    found = sample(
        source, given.rows, seed=seed, set_index=set_index, threads=threads, given=given.codes
    )
    found = replace(found, schema=schema, numbers=given.numbers)
    return ruled(found, seed=seed, set_index=set_index, fixed=frozenset(given.codes))


def part_of(schema: Schema, names: Sequence[str]) -> Schema:
    """The schema of some columns alone, in its own order; UsageError for one that it does not have."""
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise unusable(
            f"columns that the release does not have: {listed(unknown)}",
            f"Its columns are {listed(schema.names)}.",
            "Remove or rename them where they are given.",
        )
    columns = tuple(column for column in schema if column.name in set(names))
    return replace(schema, columns=columns, impossible=(), rules=(), unit=Unit(), ignore=())


def _frame(given: Any, rows: int) -> pl.DataFrame:
    """Given values as a frame of `rows` rows."""
    import polars as pl

    from gibbous.read.frames import from_frame, series_of

    if isinstance(given, dict):
        series = []
        for name, values in given.items():
            if isinstance(values, str | bytes) or not hasattr(type(values), "__len__"):
                values = [values] * rows
            if isinstance(values, Mapping | Set) or getattr(values, "ndim", 1) != 1:
                raise _misfit(f"a {type(values).__name__} in column {shown(name)}")
            series.append(series_of(str(name), values))
        if {len(one) for one in series} - {rows}:
            raise _misfit("a column of another number of values")
        given = pl.DataFrame(series)
    frame = from_frame(given, max_columns=1 << 20, skip=frozenset())
    if frame.height != rows or not frame.width:
        raise _misfit(f"{frame.width} columns of {frame.height} rows")
    return frame


def unusable(what: str, allowed: str, fix: str) -> UsageError:
    """The error for given columns that cannot be used."""
    return UsageError("GIVEN", f"Rows were asked for given {what}.", allowed, fix)


def _misfit(what: str) -> UsageError:
    return unusable(
        what,
        "given has at least one column, with one value for all rows or one for each row asked for.",
        "Pass a dictionary from column name to value, or a frame of as many rows.",
    )
