"""Names and kinds of columns -> rules that they may keep, for a person to confirm; no value is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations

from gibbous.core.rules import Rule
from gibbous.core.schema import Column, Schema
from gibbous.read.schema_rules import rules_json
from gibbous.read.schema_write import pair

_ORDERED = (
    ("start", "end"), ("start", "stop"), ("begin", "end"), ("from", "to"), ("first", "last"),
    ("min", "max"), ("lower", "upper"), ("low", "high"), ("entry", "exit"), ("open", "close"),
    ("admission", "discharge"), ("admit", "discharge"), ("birth", "death"), ("hire", "leave"),
    ("beginning", "ending"), ("departure", "arrival"), ("before", "after"),
)  # fmt: skip
_TOTALS = {"total", "sum", "overall"}
_WITHIN = (
    ("zip", "zipcode", "postcode", "postal", "plz", "tract"), ("city", "town", "municipality"),
    ("county", "district", "fips"), ("state", "province"), ("region",), ("country",),
)  # fmt: skip
_GROUPS = {"group", "category", "class", "chapter", "region", "division", "family"}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def rule_suggestions(schema: Schema) -> list[Rule]:
    """Rules that names and kinds of columns suggest, without those that the schema has.

    Each may be wrong: an order of two columns, a total of parts, a detail that determines a group
    (whose map is to be given, or bought).
    """
    words = {column.name: _words(column.name) for column in schema}
    found = [*_orders(schema, words), *_totals(schema, words), *_details(schema, words)]
    known = {rule.words() for rule in schema.rules}
    return [rule for rule in dict.fromkeys(found) if rule.words() not in known]


def as_comments(rules: list[Rule], text: str) -> str:
    """Rules as tables in comments, for the end of a schema file; without those that it names already."""
    blocks = []
    for table in rules_json(tuple(rules)):
        lines = ["# [[rule]]", *(f"# {pair(key, value)}" for key, value in table.items())]
        if lines[1] not in text:
            blocks.append("\n".join(lines) + "\n")
    if not blocks:
        return ""
    head = "# Suggested by the names of columns alone: to be confirmed by removing signs #.\n"
    return "\n" + head + "\n".join(blocks)


def _orders(schema: Schema, words: dict[str, tuple[str, ...]]) -> Iterator[Rule]:
    for one, other in permutations((c for c in schema if c.kind in ("numeric", "date")), 2):
        for low, high in _ORDERED:
            swapped = tuple(high if word == low else word for word in words[one.name])
            if one.kind == other.kind and low in words[one.name] and swapped == words[other.name]:
                yield Rule(require=f"{_named(one)} <= {_named(other)}")


def _totals(schema: Schema, words: dict[str, tuple[str, ...]]) -> Iterator[Rule]:
    numbers = [column for column in schema if column.kind == "numeric"]
    for total in numbers:
        stem = set(words[total.name]) - _TOTALS
        if not stem or not _TOTALS & set(words[total.name]):
            continue
        parts = [
            column
            for column in numbers
            if stem < set(words[column.name]) and not _TOTALS & set(words[column.name])
        ]
        if len(parts) > 1:
            yield Rule(require=f"{_named(total)} == {' + '.join(map(_named, parts))}")


def _details(schema: Schema, words: dict[str, tuple[str, ...]]) -> Iterator[Rule]:
    levels = [column for column in schema if not column.binned and column.kind != "binary"]
    for detail, group in permutations(levels, 2):
        inner, outer = words[detail.name], words[group.name]
        ranks = [
            next((at for at, names in enumerate(_WITHIN) if set(names) & set(one)), None)
            for one in (inner, outer)
        ]
        rest = [
            set(one) - {w for names in _WITHIN for w in names} - {"code"} for one in (inner, outer)
        ]
        nested = None not in ranks and ranks[0] < ranks[1] and rest[0] == rest[1]  # type: ignore[operator]
        named = outer[-1] in _GROUPS and outer[:-1] in (inner, inner[:-1]) and outer[:-1]
        if nested or (named and inner[-1] not in _GROUPS):
            yield Rule(detail=detail.name, group=group.name, bought=True)


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def _named(column: Column) -> str:
    plain = column.name.isidentifier() and column.name.isascii()
    return column.name if plain else f"`{column.name}`"
