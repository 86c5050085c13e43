"""Data -> a draft schema in which every fact is marked inferred, with notes on what to review.

A draft is read off the confidential data: it is for the operator's eyes, and a claim of differential
privacy over any of its facts is refused until the fact is declared.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl

from gibbous.core.errors import InputRejected, SchemaMismatch
from gibbous.core.schema import Column, Level, Schema, Source
from gibbous.read.schema_columns import calendar, equal_width, facts
from gibbous.read.schema_write import schema_toml
from gibbous.read.source import ReadOptions, read_columns

MAX_LEVELS = 10_000
FEW = 20
BINS = 16
_EPOCH = 719_163
_WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
_PADDED = r"^-?0[0-9]"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_SLASHED = r"^[0-9]{1,4}[/.-][0-9]{1,2}[/.-][0-9]{1,4}$"
_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|uuid|guid|key|nbr|ssn|mrn)$|^(id|key)([_\W]|$)", re.I)
_LONG_TEXT = 40


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposed schema, and what its author should look at.

    Attributes:
        schema: every fact `inferred`, the privacy unit undeclared.
        notes: column name -> why it was left out, or what to check.
    """

    schema: Schema
    notes: dict[str, str] = field(default_factory=dict)

    def toml(self) -> str:
        """The draft as a schema file with its review list."""
        return schema_toml(self.schema, notes=self.notes)


def infer_schema(
    source: Any, *, options: ReadOptions | None = None, null: str = "", bins: int = BINS
) -> Schema:
    """Propose a schema from data; every fact in it is marked `inferred`.

    Args:
        source: a path or a frame, as for `read_columns`.
        options: how files are read.
        null: the text that means missing in CSV.
        bins: bins of a numeric column.
    Returns:
        The schema of `propose`.
    Guarantee:
        None: the draft shows values of the data. Keep it confidential until it is reviewed.
    Raises:
        InputRejected: no rows, or a fault of the file.
        SchemaMismatch: no column can be described.
    """
    return propose(source, options=options, null=null, bins=bins).schema


def propose(
    source: Any, *, options: ReadOptions | None = None, null: str = "", bins: int = BINS
) -> Draft:
    """Propose a schema from data, with notes.

    Text is read by all its values: whole numbers without leading zeros, numbers, ISO days, true and
    false; anything else is nominal. Whole numbers with at most 20 values become levels. Columns that
    look like identifiers or free text are not guessed: they go to `ignore`, with a note.

    Args:
        source, options, null, bins: as `infer_schema`.
    Raises:
        InputRejected, SchemaMismatch: as `infer_schema`.
    """
    frame = read_columns(source, options=options)
    if null:
        text = [pl.col(n) for n, t in frame.schema.items() if t == pl.String]
        frame = frame.with_columns(pl.when(c != pl.lit(null)).then(c) for c in text)
    if frame.height == 0:
        raise InputRejected(
            "NOROWS",
            "The input has a header and no rows.",
            "A draft is read off rows.",
            "Write the schema by hand: no data are needed for a declared one.",
        )
    columns: list[Column] = []
    notes: dict[str, str] = {}
    for name in frame.columns:
        found = describe(frame[name], bins=bins)
        if isinstance(found, Column):
            columns.append(found)
        else:
            notes[name] = found
    if not columns:
        raise SchemaMismatch(
            "NOCOLUMNS",
            "No column of the input can be described: all look like identifiers or free text.",
            "A schema has at least one column.",
            "Write it by hand, or group the values before.",
        )
    stem = Path(source).name.partition(".")[0] if isinstance(source, str | os.PathLike) else ""
    return Draft(Schema(tuple(columns), None, (), null, tuple(notes), stem), notes)


def describe(values: pl.Series, *, bins: int = BINS) -> Column | str:
    """Describe one column, or say why it is left out.

    Args:
        values: the column.
        bins: bins of a numeric column.
    Returns:
        A column with every fact inferred, or a sentence.
    """
    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    distinct = values.drop_nulls().unique()
    missing = values.null_count() > 0
    if distinct.is_empty():
        return "left out (ignore): every value is missing. Describe it by hand if it is needed."
    if values.dtype == pl.String:
        return _text(values, distinct, missing, bins)
    if values.dtype == pl.Boolean:
        return _levels(values.name, [False, True], missing)
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        return _days(values.name, distinct, missing)
    if values.dtype.is_integer():
        return _whole(values, distinct, missing, bins)
    return _real(values.name, distinct.cast(pl.Float64), missing, bins)


def _text(values: pl.Series, distinct: pl.Series, missing: bool, bins: int) -> Column | str:
    name, words = values.name, set(distinct.head(3).to_list())
    if len(distinct) == 2 and words in ({"True", "False"}, {"true", "false"}, {"TRUE", "FALSE"}):
        return _levels(name, [False, True], missing)
    padded = distinct.str.contains(_PADDED).any() and not distinct.str.contains(r"^-?0\.").any()
    if not padded and distinct.str.contains(_WHOLE).all():
        return _whole(values.cast(pl.Int64), distinct.cast(pl.Int64), missing, bins)
    if not padded and distinct.str.contains(_NUMBER).all():
        real = distinct.cast(pl.Float64)
        if real.is_finite().all():
            return _real(name, real, missing, bins)
    if distinct.str.contains(_ISO).all():
        days = distinct.str.to_date("%Y-%m-%d", strict=False)
        if days.null_count() == 0:
            return _days(name, days, missing)
    return _nominal(values, distinct, missing)


def _nominal(values: pl.Series, distinct: pl.Series, missing: bool) -> Column | str:
    count, rows = len(distinct), len(values) - values.null_count()
    if count > FEW and distinct.str.contains(_SLASHED).all():
        return (
            "left out (ignore): looks like days in a form that is not ISO. Describe it with kind = "
            '"date", bounds and format (for example "%d/%m/%Y"); the order is never guessed.'
        )
    if count > FEW and (count > 0.9 * rows or _IDENTIFIER.search(values.name)):
        return (
            "left out (ignore): looks like an identifier or free text. If it names persons, "
            "declare it in [unit]; otherwise group its values publicly, or leave it out."
        )
    lengths = distinct.str.len_chars()
    if count > MAX_LEVELS or (count > FEW and float(cast(float, lengths.mean())) > _LONG_TEXT):
        return (
            f"left out (ignore): {count:,} different texts. Group them publicly to at most "
            f"{MAX_LEVELS:,} levels, or leave it out."
        )
    return _levels(values.name, sorted(distinct.to_list()), missing)


def _whole(values: pl.Series, distinct: pl.Series, missing: bool, bins: int) -> Column | str:
    count, rows = len(distinct), len(values) - values.null_count()
    named = _IDENTIFIER.search(values.name)
    if count > FEW and (count == rows or (named and count > 0.3 * rows)):
        return (
            "left out (ignore): looks like an identifier. If it names persons, declare it in "
            '[unit]; if it is a measurement, describe it with kind = "numeric" and public bounds.'
        )
    numbers = sorted(distinct.to_list())
    if count <= FEW or numbers[-1] >= 2**63:
        return _levels(values.name, numbers, missing, ordered=True)
    edges = equal_width(numbers[0], numbers[-1], min(bins, numbers[-1] - numbers[0]), whole=True)
    return _binned(values.name, edges, missing, integer=True)


def _real(name: str, distinct: pl.Series, missing: bool, bins: int) -> Column | str:
    if not distinct.is_finite().all():
        return (
            "left out (ignore): holds infinities or nan. Make them missing, or describe it by hand."
        )
    low, high = float(cast(float, distinct.min())), float(cast(float, distinct.max()))
    if low == high:
        return _levels(name, [low], missing)
    places = [d for d in range(7) if (distinct.round(d) == distinct).all()]
    edges = equal_width(low, high, bins, whole=False)
    if any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        return _levels(name, sorted(distinct.to_list()), missing, ordered=True)
    return _binned(name, edges, missing, decimals=places[0] if places else None)


def _days(name: str, distinct: pl.Series, missing: bool) -> Column | str:
    days = distinct.dt.date() if isinstance(distinct.dtype, pl.Datetime) else distinct
    if not (days.cast(distinct.dtype) == distinct).all():
        return "left out (ignore): has times of day. Convert it to days, or group it."
    ordinals = days.to_physical().cast(pl.Int64) + _EPOCH
    low, high = int(cast(int, ordinals.min())), int(cast(int, ordinals.max()))
    if high - low > 62:
        edges = calendar(low, high, "year" if high - low > 5 * 366 else "month")
    else:
        edges = equal_width(low, high, max(1, min(BINS, high - low)), whole=True)
    return Column(name, "date", edges=edges, missing=missing, sources=_sources(binned=True))


def _levels(name: str, levels: list[Any], missing: bool, *, ordered: bool = False) -> Column:
    kind = "binary" if len(levels) == 2 else "ordinal" if ordered else "nominal"
    found = cast(tuple[Level, ...], tuple(levels))
    return Column(name, cast(Any, kind), found, missing=missing, sources=_sources(binned=False))


def _binned(
    name: str,
    edges: tuple[float, ...],
    missing: bool,
    *,
    integer: bool = False,
    decimals: int | None = None,
) -> Column:
    return Column(
        name,
        "numeric",
        edges=edges,
        integer=integer,
        decimals=decimals,
        missing=missing,
        sources=_sources(binned=True),
    )


def parse_days(values: pl.Series, form: str) -> pl.Series:
    """Text in a declared form as days; what is not in that form leaves the column as it is."""
    if values.dtype != pl.String:
        return values
    days = values.str.to_date(form, strict=False)
    return days if days.null_count() == values.null_count() else values


def _sources(*, binned: bool) -> tuple[tuple[str, Source], ...]:
    source: Source = "inferred"
    return tuple((fact, source) for fact in facts(binned))
