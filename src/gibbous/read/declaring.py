"""Facts that somebody declares of a column -> the schema file with them, its other lines untouched."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gibbous.core.documents import toml
from gibbous.core.errors import UsageError
from gibbous.core.schema import Column, Level, Schema
from gibbous.read.edges import facts as facts_of
from gibbous.read.fields import listed, nearest, shown
from gibbous.read.metadata.codebook import levels_of_texts
from gibbous.read.schema_columns import as_day
from gibbous.read.schema_file import parse_schema
from gibbous.read.schema_write import pair, schema_json

_COLUMN = re.compile(r"\s*\[\[\s*column\s*\]\]\s*(#.*)?")
_HEADER = re.compile(r"\s*\[\[?[^\]\[,=\"']+\]\]?\s*(#.*)?")
_INNER = re.compile(r"\s*\[\s*column\s*\.\s*(\w+)\s*\]\s*(#.*)?")
_SHAPE = ("bins", "cuts", "by", "steps", "weights")
_OF_LEVELS = ("levels", "labels", "other")
_OF_BOUNDS = ("lower", "upper", "clamp", "integer", "decimals", "format", *_SHAPE)
_TEXTS = ("label", "description", "measured_in", "note")


@dataclass(frozen=True, slots=True)
class Declared:
    """What somebody declares of one column; None and empty leave things as they are.

    Attributes:
        kind: of the column.
        levels, labels: all values that can occur; (level, what it means).
        lower, upper: bounds, as text: numbers, or ISO days.
        bins: of equal width.
        cuts: between bins, as text, in place of `bins`.
        other: label of a level for all further values; "" for none.
        missing: whether a value can be absent.
        clamp: whether values beyond the bounds become the bound.
        texts: label, description, measured_in, note.
        inferred: of these, the facts that were read off data.
    """

    kind: str | None = None
    levels: tuple[Level, ...] = ()
    labels: tuple[tuple[Level, str], ...] = ()
    lower: str | None = None
    upper: str | None = None
    bins: int | None = None
    cuts: tuple[str, ...] = ()
    other: str | None = None
    missing: bool | None = None
    texts: tuple[tuple[str, str], ...] = ()
    inferred: tuple[str, ...] = ()
    clamp: bool | None = None

    def named(self) -> tuple[str, ...]:
        """The facts that it declares."""
        bounds = self.lower is not None or self.upper is not None
        given = {
            "kind": self.kind is not None,
            "levels": bool(self.levels) or self.other is not None,
            "bounds": bounds,
            "bins": self.bins is not None or bool(self.cuts) or bounds,
            "missing": self.missing is not None,
        }
        return tuple(fact for fact, was in given.items() if was)


def declared_of(column: Column) -> Declared:
    """All facts of a column of another schema, to be declared of the one of that name.

    Its bounds come with bins of equal width; what is inferred there stays so.
    """
    ends = [str(v) for v in _ends(column)] if column.binned else [None, None]
    return Declared(
        kind=column.kind,
        levels=column.levels,
        labels=column.level_labels,
        lower=ends[0],
        upper=ends[1],
        missing=column.missing,
        texts=tuple((key, text) for key in _TEXTS if (text := getattr(column, key))),
        inferred=tuple(fact for fact, source in column.sources if source == "inferred"),
    )


def typed_levels(texts: list[str], column: Column) -> tuple[Level, ...]:
    """Levels given on a command line: whole numbers unless the column has texts."""
    texts_there = any(isinstance(level, str) for level in column.levels)
    return tuple(texts if texts_there else levels_of_texts(texts))


def declare(text: str, name: str, facts: Declared) -> tuple[str, Schema]:
    """Write facts of a column into the text of a schema file.

    Returns:
        The new text and the schema that it states. Lines of other columns, comments on lines of their
        own and keys that do not change stay as they are.
    Raises:
        UsageError: no such column, or the facts do not fit together.
    """
    columns = toml(text).get("column", [])
    names = [table.get("name") for table in columns]
    if name not in names:
        raise UsageError(
            "NOCOLUMN",
            f"There is no column {shown(name)}.",
            f"Columns are {listed(names)}.",
            nearest(name, map(str, names)) or "Check the spelling.",
        )
    place = names.index(name)
    changed = _changed(columns[place], facts)
    new = _with_table(text, place, columns[place], changed)
    return new, parse_schema(new)


def progress(schema: Schema) -> tuple[int, int]:
    """How many facts are declared (or paid for), and how many there are; the privacy unit is one."""
    total = 1 + sum(len(facts_of(column.binned)) for column in schema)
    return total - len(schema.inferred()) - (schema.unit is None), total


def next_steps(schema: Schema, most: int = 3) -> list[tuple[str, str]]:
    """What to declare next: (column, flags of `gibbous schema declare`), the first few."""
    hints = {
        "kind": "--kind {kind}",
        "levels": "--levels ...",
        "bounds": "--lower ... --upper ...",
        "missing": "--missing or --no-missing",
    }
    steps = []
    for column in schema:
        left = {fact for fact, source in column.sources if source == "inferred"}
        flags = [words for fact, words in hints.items() if fact in left]
        if left == {"bins"}:
            flags = ["--bins ..."]
        if flags:
            steps.append((column.name, " ".join(flags).format(kind=column.kind)))
    return steps[:most]


def _changed(old: Mapping[str, Any], facts: Declared) -> dict[str, Any]:
    table = dict(old)
    texts = dict(facts.texts)
    table |= {key: texts[key] for key in _TEXTS if key in texts}
    if facts.kind is not None:
        table["kind"] = facts.kind
    if facts.levels:
        _drop(table, (*_OF_BOUNDS, "labels"))
        table["levels"] = list(facts.levels)
        pairs = len(facts.levels) == 2
        if table.get("kind") in ("numeric", "date", "binary") and facts.kind is None:
            table["kind"] = "binary" if pairs else "nominal"
    if facts.labels:
        table["labels"] = {str(level): label for level, label in facts.labels}
    if facts.other is not None:
        _drop(table, ("other",))
        table |= {"other": facts.other} if facts.other else {}
    shape = (facts.lower, facts.upper, facts.bins, facts.cuts or None)
    if any(given is not None for given in shape):
        _set_bounds(table, facts)
    if facts.missing is not None:
        _drop(table, ("missing",))
        table |= {"missing": True} if facts.missing else {}
    if facts.clamp is not None:
        _drop(table, ("clamp",))
        table |= {"clamp": True} if facts.clamp else {}
    _set_sources(table, old, facts)
    return table


def _set_bounds(table: dict[str, Any], facts: Declared) -> None:
    if facts.kind is None and table.get("kind") not in ("numeric", "date"):
        table["kind"] = "numeric"
    _drop(table, (*_OF_LEVELS, *_SHAPE))
    day = table["kind"] == "date"
    for key, given in (("lower", facts.lower), ("upper", facts.upper)):
        if given is not None:
            table[key] = given if day else _number(key, given)
    ends = [table.get("lower"), table.get("upper")]
    cuts = [cut if day else _number("cuts", cut) for cut in facts.cuts]
    if cuts:
        table["cuts"] = cuts
    elif day:
        known = [as_day(end) for end in ends]
        span = (known[1] - known[0]).days if known[0] and known[1] else 0
        table |= {"bins": facts.bins} if facts.bins else {"by": "year" if span > 1830 else "month"}
        return
    whole = not day and all(type(end) is int for end in (*ends, *cuts))
    if "integer" not in table and facts.levels == () and whole:
        table["integer"] = not table.get("decimals")
    if not cuts:
        table["bins"] = facts.bins or 1  # bounds alone: the bins are bought


def _set_sources(table: dict[str, Any], old: Mapping[str, Any], facts: Declared) -> None:
    was_binned = old.get("kind") in ("numeric", "date")
    one = old.get("source")
    sources = dict.fromkeys(facts_of(was_binned), one) if one else dict(old.get("sources", {}))
    sources |= dict.fromkeys(facts.named(), "declared") | dict.fromkeys(facts.inferred, "inferred")
    own = facts_of(table.get("kind") in ("numeric", "date"))
    left = {fact: sources[fact] for fact in own if sources.get(fact, "declared") != "declared"}
    _drop(table, ("source", "sources"))
    if left and len(left) == len(own) and len(set(left.values())) == 1:
        table["source"] = next(iter(left.values()))
    elif left:
        table["sources"] = left


def _with_table(text: str, place: int, old: Mapping[str, Any], new: dict[str, Any]) -> str:
    """The text with one [[column]] table changed, key by key."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _COLUMN.fullmatch(line)]
    first = starts[place] + 1
    rest = range(first, len(lines))
    heads = (i for i in rest if _HEADER.fullmatch(lines[i]) and not _INNER.fullmatch(lines[i]))
    end = next(heads, len(lines))
    while end > first and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    kept: list[str] = []
    written: set[str] = set()
    for key, chunk in _chunks(lines[first:end]):
        if key is None or (key in new and new[key] == old.get(key)):
            kept += chunk
        elif key in new:
            kept.append(pair(key, new[key]))
        if key is not None:
            written.add(key)
    added = [pair(key, value) for key, value in new.items() if key not in written]
    inner = next((i for i, line in enumerate(kept) if _INNER.fullmatch(line)), len(kept))
    return "\n".join([*lines[:first], *kept[:inner], *added, *kept[inner:], *lines[end:]])


def _chunks(lines: list[str]) -> list[tuple[str | None, list[str]]]:
    """Lines of one table as (key, its lines); comments and blank lines have no key."""
    chunks: list[tuple[str | None, list[str]]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        inner = _INNER.fullmatch(line)
        if inner:
            return [*chunks, (inner[1], lines[at:])]
        size = 1
        key = None
        if line.strip() and not line.lstrip().startswith("#"):
            while at + size <= len(lines) and (key := _key(lines[at : at + size])) is None:
                size += 1
        chunks.append((key, lines[at : at + size]))
        at += size
    return chunks


def _key(lines: list[str]) -> str | None:
    try:
        found = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError:
        return None
    return next(iter(found), None)


def _ends(column: Column) -> tuple[object, object]:
    table = schema_json(Schema((column,)))["column"][0]
    return table["lower"], table["upper"]


def _number(key: str, text: str) -> int | float:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if number - number == 0:
            return number
    raise UsageError(
        "BOUND",
        f"--{key} is {shown(text)}.",
        "It is a number, or a day such as 2024-01-31 for a column of kind date.",
        "Give the bound from public knowledge.",
    )


def _drop(table: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        table.pop(key, None)
