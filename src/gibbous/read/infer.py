"""Data -> a draft schema in which every fact is marked inferred, with notes on what to review.

A draft is read off the confidential data: it is for the operator's eyes, and a claim of differential
privacy over any of its facts is refused until the fact is declared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

import polars as pl

from gibbous.core.boundary import guarded
from gibbous.core.errors import InputRejected, SchemaMismatch
from gibbous.core.keywords import answering
from gibbous.core.schema import Column, ColumnKind, Schema
from gibbous.read.draft_notes import remark
from gibbous.read.edges import all_inferred, calendar, equal_width
from gibbous.read.schema_write import schema_toml
from gibbous.read.source import ReadOptions, name_of, usable_columns
from gibbous.read.text_forms import FEW, NUMBER, as_missing, day_forms, nothings, number_form

MAX_LEVELS = 10_000
BINS = 1
_EPOCH, _EXACT = 719_163, 2**53
_WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
_WHOLE_LEVEL = r"^(0|-?[1-9][0-9]*)(\.0+)?$"  # what a level that is a whole number takes
_PADDED, _ISO = r"^-?0[0-9]", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_SLASHED = r"^([0-9]{1,2}[/.-]){2}[0-9]{2,4}$|^[0-9]{4}([/.-][0-9]{1,2}){2}$"
_LONG_WHOLE = r"^[+-]?[0-9]{19,}$"
_UNUSABLE = (
    "left out (ignore): its type is not read (times of day, durations, lists, bytes, mixed values). "
    "Make it text, whole numbers, floats or days, and draft again."
)
_TRUTH = {"True", "true", "TRUE", "False", "false", "FALSE"}
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


@guarded
@answering
def infer_schema(
    source: Any, *, options: ReadOptions | None = None, null: str = "", bins: int = BINS
) -> Schema:
    """Propose a schema from data; every fact in it is marked `inferred`.

    Args:
        source: a path or a frame, as for `read_columns`; or the address of a table, as for `read_slices`.
        options: how files are read.
        null: the text that means missing in CSV.
        bins: bins of a numeric column; 1 leaves it with bounds alone, so that bins are bought.
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
    """Propose a schema from data, with notes; arguments and errors as `infer_schema`.

    Text is read by all its values: whole numbers without leading zeros, numbers, ISO days, true and
    false; anything else is nominal. Whole numbers with at most 20 values become levels. Columns that
    look like identifiers or free text are not guessed: they go to `ignore`, with a note.
    """
    frame, unusable = usable_columns(source, options)
    if null:
        text = [pl.col(n) for n, t in frame.schema.items() if t == pl.String]
        frame = frame.with_columns(pl.when(c != pl.lit(null)).then(c) for c in text)
    if frame.height == 0 and frame.columns:
        raise InputRejected(
            "NOROWS",
            "The input has a header and no rows.",
            "A draft is read off rows.",
            "Write the schema by hand: no data are needed for a declared one.",
        )
    columns: list[Column] = []
    left, notes = list(unusable), dict.fromkeys(unusable, _UNUSABLE)
    for name in frame.columns:
        described = describe(frame[name], bins=bins, null=null)
        if isinstance(described, Column):
            columns.append(described)
            described = remark(columns[-1], frame[name], null)
        else:
            left.append(name)
        notes |= {name: described} if described else {}
    if not columns:
        raise SchemaMismatch(
            "NOCOLUMNS",
            "No column of the input can be described: all look like identifiers or free text, or "
            "are of a type that is not read.",
            "A schema has at least one column.",
            "Write it by hand, or group the values before.",
        )
    return Draft(Schema(tuple(columns), None, (), null, tuple(left), name_of(source)), notes)


def describe(values: pl.Series, *, bins: int = BINS, null: str = "") -> Column | str:
    """Describe one column with every fact inferred, or say in a sentence why it is left out.

    Args:
        values: the column; missing is null.
        null: the text that counted as missing, for the sentences.
    """
    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    distinct = values.drop_nulls().unique()
    missing = values.null_count() > 0
    if distinct.is_empty():
        return "left out (ignore): every value is missing. Describe it by hand if it is needed."
    if values.dtype == pl.String:
        return _text(values, distinct, missing, bins, null)
    if values.dtype == pl.Boolean:
        return _levels(values.name, [False, True], missing)
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        return _days(values.name, distinct, missing)
    if values.dtype.is_integer():
        return _whole(values, distinct, missing, bins)
    real = distinct.cast(pl.Float64)
    return _number(values.cast(pl.Float64), real, missing, bins, whole_levels=True)


def _text(
    values: pl.Series, distinct: pl.Series, missing: bool, bins: int, null: str
) -> Column | str:
    words = set(distinct.head(len(_TRUTH) + 1).to_list())
    if words <= _TRUTH and len({w.lower() for w in words}) == 2:
        return _levels(values.name, [False, True], missing)
    padded = distinct.str.contains(_PADDED).any() and not distinct.str.contains(r"^-?0\.").any()
    if not padded and distinct.str.contains(NUMBER).all():
        found = _written_number(values, distinct, missing, bins)
        if found is not None:
            return found
    return (
        _written_days(values.name, distinct, missing)
        or _but_for_nothing(values, distinct, bins, null)
        or _nominal(values, distinct, missing)
    )


def _written_number(
    values: pl.Series, distinct: pl.Series, missing: bool, bins: int
) -> Column | str | None:
    if distinct.str.contains(_WHOLE).all():
        if len(distinct) > FEW and day_forms(distinct).forms == ("%Y%m%d",):
            return _written_days(values.name, distinct, missing)
        return _whole(values.cast(pl.Int64), distinct.cast(pl.Int64), missing, bins)
    real = distinct.cast(pl.Float64)
    if not real.is_finite().all() or distinct.str.contains(_LONG_WHOLE).any():
        return None  # so many digits are an identifier, and floats would join some
    plain = bool(distinct.str.contains(_WHOLE_LEVEL).all())
    return _number(values.cast(pl.Float64), real, missing, bins, whole_levels=plain)


def _written_days(name: str, distinct: pl.Series, missing: bool) -> Column | str | None:
    """Days in ISO form or another; None where the values are not days, or few in a form of doubt."""
    if distinct.str.contains(_ISO).all():
        days = distinct.str.to_date("%Y-%m-%d", strict=False)
        if days.null_count() == 0:
            return _days(name, days, missing)
    written, few = day_forms(distinct), len(distinct) <= FEW
    if len(written.forms) == 1 and (not few or written.forms[0].startswith("%Y-%m-%d")):
        return _days(name, distinct.str.to_date(written.forms[0]), missing, written.forms[0])
    if few or not (written.forms or written.fault):
        return None
    if written.fault:
        return f"left out (ignore): {written.fault}"
    forms = " and ".join(map(repr, written.forms))
    return (
        f"left out (ignore): looks like days, and all values fit {forms}: the order is never "
        "guessed. Describe it with kind = 'date', bounds and the format that is right."
    )


def _but_for_nothing(values: pl.Series, distinct: pl.Series, bins: int, null: str) -> str | None:
    """What to say of numbers or days among which a word stands for missing."""
    absent = nothings(distinct)
    if not absent or len(distinct) <= FEW:
        return None
    described = describe(values.filter(~values.is_in(absent)), bins=bins, null=null)
    if not isinstance(described, Column) or not described.binned:
        return None
    what = "days" if described.kind == "date" else "numbers"
    return (
        f"left out (ignore): looks like {what}, but for a word. {as_missing(absent, null)} "
        "Otherwise list its levels."
    )


def _nominal(values: pl.Series, distinct: pl.Series, missing: bool) -> Column | str:
    count, rows = len(distinct), len(values) - values.null_count()
    if count > FEW and distinct.str.contains(_SLASHED).all():
        return (
            "left out (ignore): looks like days, and fits no usual format in all rows. Correct the "
            "others, or describe it with kind = 'date', bounds and format (such as '%d/%m/%Y')."
        )
    form = number_form(distinct) if count > FEW else None
    if form:
        return (
            f"left out (ignore): looks like numbers written {form.how}, which are not read. Write "
            f"them {form.plain} and draft again; if they are codes, list them as levels."
        )
    if count > FEW and (count > 0.9 * rows or _IDENTIFIER.search(values.name)):
        return (
            "left out (ignore): looks like an identifier or free text. If it names persons, "
            "declare it in [unit]; otherwise group its values publicly, or leave it out."
        ) + _repeats(values.name, count, rows)
    lengths = distinct.str.len_chars()
    if count > MAX_LEVELS or (count > FEW and float(cast(float, lengths.mean())) > _LONG_TEXT):
        return (
            f"left out (ignore): {count:,} different texts. Group them publicly to at most "
            f"{MAX_LEVELS:,} levels, or leave it out."
        )
    return _levels(values.name, sorted(distinct.to_list()), missing)


def _number(
    values: pl.Series, distinct: pl.Series, missing: bool, bins: int, *, whole_levels: bool
) -> Column | str:
    """Numbers; those without a fraction are whole however they are written: 3.0 is 3.

    Args:
        values, distinct: float64; `distinct` may hold a number twice.
        whole_levels: whether levels that are whole numbers take the values as they are written.
    """
    distinct = distinct.unique()
    exact = distinct.is_finite().all() and (distinct.abs() < _EXACT).all()
    whole = exact and bool((distinct == distinct.round()).all())
    few = len(distinct) <= FEW
    if not whole or (few and not whole_levels and len(distinct) == 1):
        return _real(values.name, distinct, missing, bins)
    integers = distinct.cast(pl.Int64)
    if few and not whole_levels:
        low, high = int(cast(int, integers.min())), int(cast(int, integers.max()))
        edges = equal_width(low, high, min(bins, high - low), whole=True)
        return _binned(values.name, edges, missing, integer=True)
    # An identifier is not written with a point; a count that was read as a float is.
    return _whole(values.cast(pl.Int64), integers, missing, bins, pointed=True)


def _whole(
    values: pl.Series, distinct: pl.Series, missing: bool, bins: int, *, pointed: bool = False
) -> Column | str:
    count, rows = len(distinct), len(values) - values.null_count()
    named = _IDENTIFIER.search(values.name)
    alone = count == rows and not pointed
    if count > FEW and (alone or (named and count > 0.3 * rows)):
        return (
            "left out (ignore): looks like an identifier. If it names persons, declare it in "
            "[unit]; if it is a measurement, describe it with kind = 'numeric' and public bounds."
        ) + _repeats(values.name, count, rows)
    numbers = sorted(distinct.to_list())
    if count <= FEW or numbers[-1] >= 2**63:
        return _levels(values.name, numbers, missing, ordered=True)
    edges = equal_width(numbers[0], numbers[-1], min(bins, numbers[-1] - numbers[0]), whole=True)
    return _binned(values.name, edges, missing, integer=True)


def _repeats(name: str, count: int, rows: int) -> str:
    """What follows for the privacy unit, where an identifier by name is there more than once."""
    if count == rows or not _IDENTIFIER.search(name):
        return ""
    return " It repeats: with kind = 'row' one row is protected, not all rows of a person."


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


def _days(name: str, distinct: pl.Series, missing: bool, form: str | None = None) -> Column | str:
    days = distinct.dt.date() if isinstance(distinct.dtype, pl.Datetime) else distinct
    if not (days.cast(distinct.dtype) == distinct).all():
        return "left out (ignore): has times of day. Convert it to days, or group it."
    ordinals = days.to_physical().cast(pl.Int64) + _EPOCH
    low, high = int(cast(int, ordinals.min())), int(cast(int, ordinals.max()))
    if high - low > 62:
        edges = calendar(low, high, "year" if high - low > 5 * 366 else "month")
    else:
        edges = equal_width(low, high, max(1, min(BINS, high - low)), whole=True)
    sources = all_inferred(binned=True)
    return Column(name, "date", edges=edges, missing=missing, date_format=form, sources=sources)


def _levels(name: str, levels: list[Any], missing: bool, *, ordered: bool = False) -> Column:
    kind: ColumnKind = "binary" if len(levels) == 2 else "ordinal" if ordered else "nominal"
    sources = all_inferred(binned=False)
    return Column(name, kind, tuple(levels), missing=missing, sources=sources)


def _binned(name: str, edges: tuple[float, ...], missing: bool, **form: Any) -> Column:
    sources = all_inferred(binned=True)
    return Column(name, "numeric", edges=edges, missing=missing, sources=sources, **form)


def parse_days(values: pl.Series, form: str) -> pl.Series:
    """Text in a declared form as days; what is not in that form leaves the column as it is."""
    if values.dtype != pl.String:
        return values
    days = values.str.to_date(form, strict=False)
    return days if days.null_count() == values.null_count() else values
