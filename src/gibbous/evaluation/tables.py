"""Two tables under one schema, as codes and as typed values: what every metric is a function of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import InputRejected, SchemaMismatch, UsageError
from gibbous.core.recode import Edges, recoded
from gibbous.core.release import Release
from gibbous.core.schema import Schema, Unit
from gibbous.core.stream import stream_key, uniforms, words

if TYPE_CHECKING:
    import polars as pl

REFERENCES = ("bootstrap", "holdout", "independent")
BINS = 16  # of a column with bounds alone
_STREAM = 0x6576616C  # "eval": apart from the streams that drew the rows themselves


@dataclass(frozen=True, eq=False, repr=False)
class Side:
    """One table.

    Attributes:
        codes: (rows, columns) under the schema.
        frame: the columns of the schema in order with typed values: numbers as Float64 or Int64, days
            as Date, levels as the schema spells them, null for missing.
        read: as they were read, the columns of which the schema may have moved cells, or that are numbers;
            None for drawn rows.
    """

    codes: Codes
    frame: pl.DataFrame = field(repr=False)
    read: pl.DataFrame | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<Side of {self.rows} rows>"

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.codes.rows

    @property
    def schema(self) -> Schema:
        """The schema."""
        return self.codes.schema

    def take(self, places: np.ndarray) -> Side:
        """The rows at these places, in that order; a place may come twice."""
        values = np.asfortranarray(self.codes.values[places])
        read = None if self.read is None else self.read[places]
        return Side(replace(self.codes, values=values), self.frame[places], read)

    @cached_property
    def numbers(self) -> np.ndarray:
        """float64 (rows, columns): numbers as they are, days as ordinals, levels as codes; NaN missing.

        Levels of ordinal columns are evenly spaced by this; nominal columns have no order: encode
        them for anything that would use one.
        """
        out = np.empty((len(self.schema), self.rows))
        for index, column in enumerate(self.schema):
            if column.binned:
                out[index] = self._of(index)
                continue
            out[index] = codes = self.codes.by_column[index]
            if column.missing_code is not None:
                out[index][codes == column.missing_code] = np.nan
        return out.T

    def cuts(self) -> dict[int, Edges]:
        """Bins for columns with bounds alone, by position: up to BINS with about as many rows each.

        One bin would show nothing of the numbers in it. A value that many rows have is a bin of its own.
        """
        bound = {name for rule in self.schema.impossible for name, _ in rule.where}
        found = {}
        for index, column in enumerate(self.schema):
            if len(column.edges) != 2 or column.name in bound:
                continue
            values = np.sort(self._of(index))
            values = values[: len(values) - int(np.isnan(values).sum())]
            if not len(values):
                continue
            parts = np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf")
            heaps = np.unique(parts[1:][parts[1:] == parts[:-1]])
            after = values[np.minimum(np.searchsorted(values, heaps, "right"), len(values) - 1)]
            low, high = column.edges
            inner = [float(cut) for cut in np.union1d(parts, after) if low < cut < high]
            found[index] = Edges((low, *inner, high))
        return found

    def cut(self, changes: Mapping[int, Edges]) -> Side:
        """The same table in other bins."""
        if not changes:
            return self
        numbers = tuple((at, np.nan_to_num(self._of(at))) for at in changes)
        codes = recoded(replace(self.codes, numbers=numbers), changes)
        return Side(replace(codes, numbers=()), self.frame, self.read)

    def _of(self, index: int) -> np.ndarray:
        """Numbers or ordinals of a column of bins, float64 (rows,), NaN missing."""
        import polars as pl

        from gibbous.encode.bins import EPOCH

        series, column = self.frame[self.schema.names[index]], self.schema.columns[index]
        if column.kind == "date":
            series = series.cast(pl.Int32) + EPOCH
        return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Subject:
    """What one evaluation compares.

    Attributes:
        schema: with the row as unit: an identifier is not a column to evaluate.
        real: the confidential records.
        sets: the synthetic sets, at least one.
        holdout: records of the same population that no synthesizer saw; None without.
        references: which of the references findings are read beside; a study, which has them as
            tables of their own, takes none.
    """

    schema: Schema
    real: Side
    sets: tuple[Side, ...]
    holdout: Side | None = None
    seed: int = 0
    references: tuple[str, ...] = REFERENCES
    _kept: dict[str, Side] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Subject: {self.real.rows} records, {len(self.sets)} synthetic sets>"

    def reference(self, name: str) -> Side | None:
        """A table to read the synthetic one beside; as many rows as the first set.

        Args:
            name: "bootstrap", "holdout" or "independent".
        Returns:
            The table; None for "holdout" where there is none, and where it is not wanted.
        """
        if name not in self.references and name in REFERENCES:
            return None
        if name == "holdout":
            return self.holdout
        if name not in self._kept:
            self._kept[name] = self._made(name)
        return self._kept[name]

    def _made(self, name: str) -> Side:
        rows, real = self.sets[0].rows, self.real
        if name == "bootstrap":
            return real.take(resampled(real.rows, rows, self.seed, 1))
        if name == "independent":
            return independent(real.take(resampled(real.rows, rows, self.seed, 2)), self.seed)
        raise ValueError(f"references are {REFERENCES}")


def subject(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    holdout: Any = None,
    seed: int = 0,
    options: Any = None,
) -> Subject:
    """Read what is to be compared; arguments as for `gibbous.evaluate`.

    Raises:
        UsageError: there is no synthetic set, or a table has no rows.
        InputRejected, SchemaMismatch: a file is not what it says, or does not fit the schema.
    """
    declared = plain(Schema.load(schema) if isinstance(schema, str | Path) else schema)
    sources = [
        table
        for source in opened(synthetic)
        for table in (source.sets if isinstance(source, Release) else (source,))
    ]
    sides = [_read("synthetic", table, declared, options) for table in sources]
    if not sides:
        raise UsageError("NOSETS", "There is no synthetic set.", "At least one.", "Give one.")
    records = _read("real", real, declared, options)
    spare = None if holdout is None else _read("holdout", holdout, declared, options)
    known = [("real", records), *(("synthetic", one) for one in sides), ("holdout", spare)]
    for name, table in known:
        if table is not None and table.rows == 0:
            raise UsageError(
                "NOROWS",
                f"The {name} table has no rows.",
                "A comparison needs at least one row on each side.",
                "Give a table with rows.",
            )
    changes = records.cuts()
    spare = None if spare is None else spare.cut(changes)
    records = records.cut(changes)
    return Subject(records.schema, records, tuple(s.cut(changes) for s in sides), spare, seed)


def _read(which: str, source: Any, schema: Schema, options: Any) -> Side:
    try:
        return side(source, schema, options=options)
    except (InputRejected, SchemaMismatch) as error:
        wrong = f"The {which} table cannot be compared. {error.wrong}"
        raise type(error)(error.name, wrong, error.allowed, error.fix, state=error.state) from None


def plain(schema: Schema) -> Schema:
    """The same schema with the row as unit, so that tables with and without identifier fit it."""
    unit = schema.unit
    person = (unit.column,) if unit and unit.column else ()
    return replace(schema, unit=Unit(), ignore=(*schema.ignore, *person))


def side(source: Any, schema: Schema, *, options: Any = None) -> Side:
    """Read one table; errors as of `read_columns` and `encode`."""
    from gibbous.encode.cell_text import lenient
    from gibbous.encode.encode import encode
    from gibbous.read.source import read_columns

    frame = read_columns(source, schema=schema, options=options)
    codes = encode(frame, schema)
    changed = [c.name for c in schema if c.binned or lenient(c) or type(c.levels[0]) is int]
    return Side(codes, typed(frame, codes), frame.select(changed) if changed else None)


def typed(frame: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    """The columns of the schema with values of their kinds, whatever types the file had."""
    import polars as pl

    from gibbous.encode.levels import output_labels

    series = []
    for index, column in enumerate(codes.schema):
        if not column.binned:
            places = pl.Series(np.ascontiguousarray(codes.by_column[index]))
            series.append(output_labels(column).gather(places).alias(column.name))
            continue
        values = frame[column.name]
        if column.kind == "date":
            if values.dtype == pl.String:
                values = values.str.to_date(column.date_format or "%Y-%m-%d", strict=False)
            series.append(values.cast(pl.Date))
            continue
        values = values.cast(pl.Float64, strict=False).fill_nan(None)
        values = values.clip(float(column.edges[0]), float(column.edges[-1]))
        series.append(values)
    return pl.DataFrame(series)


def independent(table: Side, seed: int) -> Side:
    """The same margins without any association: each column permuted on its own."""
    import polars as pl

    orders = [permutation(table.rows, seed, 3, j) for j in range(len(table.schema))]
    places = dict(zip(table.schema.names, orders, strict=True))

    def permuted(frame: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame([column[places[column.name]] for column in frame])

    values = np.stack([c[o] for c, o in zip(table.codes.by_column, orders, strict=True)]).T
    read = None if table.read is None else permuted(table.read)
    return Side(replace(table.codes, values=values), permuted(table.frame), read)


def opened(source: Any) -> list[Any]:
    """All tables of a path, a frame, a release or a sequence of these; folders become releases.

    A release stays whole, so that its schema can be compared before a row of it is read.
    """
    if isinstance(source, list | tuple):
        return [table for part in source for table in opened(part)]
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        from gibbous.write.load import load

        return [load(Path(source))]
    return [source]


def resampled(rows: int, size: int, seed: int, *stream: int) -> np.ndarray:
    """`size` row numbers drawn with replacement: int64 (size,)."""
    places = uniforms(stream_key(seed, _STREAM, 0, *stream), 0, size) * rows
    return np.minimum(places.astype(np.int64), max(rows - 1, 0))


def permutation(rows: int, seed: int, *stream: int) -> np.ndarray:
    """A random order of the row numbers: int64 (rows,)."""
    return np.asarray(np.argsort(words(stream_key(seed, _STREAM, 1, *stream), 0, rows)))


def sampled(rows: int, size: int, seed: int, *stream: int) -> np.ndarray:
    """At most `size` different row numbers, in increasing order: int64."""
    if size >= rows:
        return np.arange(rows)
    return np.sort(permutation(rows, seed, *stream)[:size])


def number(seed: int, *stream: int) -> int:
    """A seed for a library that takes a whole number: 0 <= it < 2^31."""
    return stream_key(seed, _STREAM, 2, *stream) >> 33


def values_of(codes: Codes, needed: Sequence[str], seed: int) -> pl.DataFrame:
    """The needed columns of drawn rows with their values."""
    from gibbous.encode.decode import decode

    schema = codes.schema
    places = [schema.index(name) for name in schema.names if name in needed]
    part = replace(
        schema, columns=tuple(schema.columns[p] for p in places), impossible=(), rules=()
    )
    numbers = tuple((places.index(at), known) for at, known in codes.numbers if at in places)
    drawn = Codes(part, codes.values[:, places], numbers=numbers)
    return typed(decode(drawn, seed=seed), drawn)
