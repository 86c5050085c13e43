"""What a codebook states of a table -> a draft of a schema, which says what is not stated."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gibbous.core.column_texts import LABEL, LENGTHS, tidy_text
from gibbous.core.errors import UsageError
from gibbous.core.schema import Column, ColumnKind, Level, Schema, Source, Unit
from gibbous.read.edges import calendar, day_format
from gibbous.read.infer import describe, parse_days
from gibbous.read.schema_write import pair, schema_toml

MAX_LEVELS = 10_000
MAX_VARIABLES = 2_000
_Columns = TypeVar("_Columns", bound=Sized)
_YEARS = 5 * 366  # days: longer spans have bins by year
_UNSTATED = (
    "left out (ignore): the codebook states no levels and no bounds. Give the data too (the facts are "
    "then inferred), or finish its block at the end of this file."
)
_UNIT = 'kind = "undeclared"  # "row", or "person" with column and max_rows'
_OPEN = """
# Begun, and left open by what was imported. Where levels, or lower and upper, are public knowledge, state
# them in a block, remove its signs #, and take the name out of ignore."""


@dataclass(frozen=True, slots=True)
class Variable:
    """What a codebook states of one column; what it leaves open is empty or None.

    Attributes:
        name: as in the data.
        levels, labels: values that can occur, and (level, what it means).
        ordered: whether the levels are in order.
        lower, upper: bounds, of numbers or (`date`) proleptic ordinals of days.
        cuts: inner cut points.
        integer, date, clamp: of values within bounds.
        missing: whether a value can be absent; where nobody says, it can.
        texts: label, description, measured_in and note, as they stand in the codebook.
        inferred: facts that a tool read off data.
        remark: what the author of the schema should know; follows the note of a column left out, too.
        why_not: why the column is left out, if it is.
        kind: of a column without levels and bounds, as far as its type says: "numeric" or "date".
        whole: the column, where a tool states all of it.
    """

    name: str
    levels: tuple[Level, ...] = ()
    labels: tuple[tuple[Level, str], ...] = ()
    ordered: bool = False
    lower: float | None = None
    upper: float | None = None
    cuts: tuple[float, ...] = ()
    integer: bool = False
    date: bool = False
    clamp: bool = False
    missing: bool | None = None
    texts: tuple[tuple[str, object], ...] = ()
    inferred: tuple[str, ...] = ()
    remark: str = ""
    why_not: str = ""
    kind: str = ""
    whole: Column | None = None

    def public_texts(self) -> dict[str, Any]:
        """The texts as a column takes them."""
        given = dict(self.texts)
        return {key: tidy_text(given.get(key), most) for key, most in LENGTHS.items()}

    def column(self) -> Column | None:
        """The column, if levels or bounds are stated; UsageError if they contradict themselves."""
        if self.whole is not None:
            return self.whole
        missing = self.missing is not False
        sources: tuple[tuple[str, Source], ...] = tuple((f, "inferred") for f in self.inferred)
        if self.levels:
            kind: ColumnKind = "ordinal" if self.ordered else "nominal"
            if len(self.levels) == 2 and not self.ordered:
                kind = "binary"
            tidy = ((level, tidy_text(label, LABEL)) for level, label in self.labels)
            named = tuple((level, label) for level, label in tidy if label)
            facts: dict[str, Any] = {"levels": self.levels, "level_labels": named}
            return Column(
                self.name, kind, missing=missing, sources=sources, **facts, **self.public_texts()
            )
        if self.lower is None or self.upper is None:
            return None
        facts = {"edges": self._edges(self.lower, self.upper), "clamp": self.clamp}
        facts["integer"] = self.integer and not self.date
        kind = "date" if self.date else "numeric"
        return Column(
            self.name, kind, missing=missing, sources=sources, **facts, **self.public_texts()
        )

    def _edges(self, lower: float, upper: float) -> tuple[float, ...]:
        """Bounds and cuts that are stated: of numbers, the bins between bounds are bought later."""
        if self.cuts or lower >= upper or not self.date:
            return (lower, *self.cuts, upper)
        by = "year" if upper - lower > _YEARS else "month"
        return calendar(int(lower), int(upper), by)


@dataclass(frozen=True, slots=True)
class Codebook:
    """What a file states of a table.

    Attributes:
        variables: in the order of the file.
        unit: the privacy unit, if it is stated.
        name, description: of the data set.
        remarks: name -> sentence, of columns that are known and are not variables (identifiers).
    """

    variables: tuple[Variable, ...]
    unit: Unit | None = None
    name: object = ""
    description: object = ""
    remarks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """The draft of a schema that a file states.

    Attributes:
        schema: columns whose facts are stated; None where no column's are.
        notes: column name -> why it was left out, or what to check.
        left_open: columns that are known, and whose facts are not.
    """

    schema: Schema | None
    notes: dict[str, str]
    left_open: tuple[Variable, ...]

    def toml(self) -> str:
        """The draft as a schema file, with its review list and blocks that are begun."""
        if self.schema is None:
            ignore = pair("ignore", list(self.notes))
            text = "\n".join(['format = "gibbous-schema/1"', ignore, "", "[unit]", _UNIT, ""])
        else:
            text = schema_toml(self.schema, notes=self.notes)
        return text + "\n".join([_OPEN, *map(_block, self.left_open), ""] if self.left_open else [])


def _block(variable: Variable) -> str:
    """A column in comments: its texts, and what is to be stated."""
    known = {"name": variable.name, "kind": variable.kind or "nominal"} | variable.public_texts()
    lines = ["[[column]]", *(pair(key, value) for key, value in known.items() if value)]
    lines += ["lower =", "upper ="] if variable.kind else ["levels ="]
    return "\n".join(["", *(f"# {line}" for line in "\n".join(lines).splitlines())])


def draft_of(codebook: Codebook, data: Any = None) -> Imported:
    """The schema that a codebook of one table states.

    Args:
        data: records (path or frame): what is not stated is read off them and marked inferred.
    Returns:
        Columns whose facts are stated, others in `ignore`; a note for each thing to look at.
    Raises:
        UsageError: it describes too many columns, or one of them in contradictions.
    """
    drafts = drafts_of(data, {})
    columns: list[Column] = []
    notes, left = dict(codebook.remarks), [name for name, _ in codebook.remarks]
    left_open: list[Variable] = []
    for variable in codebook.variables:
        column = None if variable.why_not else variable.column()
        if column is None and not variable.why_not and variable.name in drafts:
            column = replace(drafts[variable.name], **variable.public_texts())
        if column is not None and column.size > MAX_LEVELS:
            column = None
            variable = replace(variable, why_not=f"left out (ignore): over {MAX_LEVELS:,} levels.")
        if column is None:
            left.append(variable.name)
            left_open += [] if variable.why_not else [variable]
        else:
            columns.append(column)
        why = (variable.why_not or _UNSTATED) if column is None else ""
        note = " ".join(part for part in (why, variable.remark) if part)
        notes |= {variable.name: note} if note else {}
    known = {column.name for column in columns} | set(left)
    person = codebook.unit.column if codebook.unit else None
    for name in drafts:
        if name not in known and name != person:
            left.append(name)
            notes[name] = "left out (ignore): the codebook does not name it."
    return Imported(_schema(codebook, columns, left), notes, tuple(left_open))


def drafts_of(data: Any, forms: Mapping[str, object]) -> dict[str, Column]:
    """Columns read off a path or frame, every fact inferred; none of None.

    `forms` maps a column to the strptime format of its days in text, where one is stated.
    """
    if data is None:
        return {}
    from gibbous.read.source import read_columns

    frame = read_columns(data)
    drafts = {}
    for name in frame.columns:
        form = forms.get(name)
        form = form if isinstance(form, str) and form != "%Y-%m-%d" and day_format(form) else None
        draft = describe(parse_days(frame[name], form) if form else frame[name])
        if isinstance(draft, Column):
            dated = form and draft.kind == "date"
            drafts[name] = replace(draft, date_format=form) if dated else draft
    return drafts


def plain_level(value: object) -> Level | None:
    """A value as a level: whole floats as whole numbers; None for what is not a level."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if value - value == 0 else None
    return value if isinstance(value, str | int) else None


def levels_of_texts(texts: list[str]) -> list[Level]:
    """Texts as levels: whole numbers if each is written as one (no leading zeros), else texts."""
    plain = all(t.lstrip("-").isdecimal() and t.isascii() and len(t) < 20 for t in texts)
    if texts and plain and all(str(int(t)) == t for t in texts):
        return [int(t) for t in texts]
    return list(texts)


def few(columns: _Columns) -> _Columns:
    """Columns that a file lists, as they are; UsageError, before they are looked at, if too many."""
    if len(columns) > MAX_VARIABLES:
        words = f"describes {len(columns):,} columns"
        raise unsound(words, "codebook", f"At most {MAX_VARIABLES:,}")
    return columns


def unsound(what: str, name: str, allowed: str) -> UsageError:
    """The error for a codebook that is not what it should be."""
    return UsageError(
        "CODEBOOK",
        f"The {name} {what}.",
        f"{allowed}.",
        "Correct the file, or start from gibbous schema infer.",
    )


def _schema(codebook: Codebook, columns: list[Column], left: list[str]) -> Schema | None:
    few([*columns, *left])
    if not columns:
        return None
    person = codebook.unit.column if codebook.unit else None
    ignore = tuple(dict.fromkeys(name for name in left if name != person))
    name = tidy_text(codebook.name, LENGTHS["label"]) or ""
    about = tidy_text(codebook.description, LENGTHS["description"]) or ""
    return Schema(tuple(columns), codebook.unit, (), "", ignore, name, about)
