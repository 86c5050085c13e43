"""Groups of levels, read off noisy counts of pairs: the maps of rules that were left to be bought."""

from __future__ import annotations

from collections.abc import Sequence

from gibbous.core.context import Context
from gibbous.core.errors import UsageError
from gibbous.core.recode import Change, Determined
from gibbous.core.schema import Column, Level, Rule, Schema
from gibbous.core.tables import Dense, Table
from gibbous.structure.contexts import conditional


def bought_rules(schema: Schema, details: Sequence[str]) -> tuple[Rule, ...]:
    """Rules whose maps are bought, or were, in the order of the schema.

    Args:
        details: columns that determine others.
    Raises:
        UsageError: no rule of the schema leaves the map of one of them to be bought.
    """
    rules = tuple(rule for rule in schema.rules if rule.bought and rule.detail in details)
    for name in details:
        if name not in {rule.detail for rule in rules}:
            raise UsageError(
                "MAPS",
                f"maps of PaidBins names {name!r}.",
                "It names columns that are the detail of a [[rule]] with bought = true.",
                "Correct the name, or add the rule to the schema.",
            )
    return rules


def pairs(schema: Schema, rules: Sequence[Rule]) -> tuple[Context, ...]:
    """For each rule the table of its two columns, a row for each level of the detail."""
    return tuple(
        conditional(
            schema,
            schema.index(rule.group),
            (schema.index(rule.detail),),
            max_keys=schema[rule.detail].size,
        )
        for rule in rules
    )


def determined(schema: Schema, rules: Sequence[Rule], tables: Sequence[Table]) -> dict[int, Change]:
    """The most frequent group of each level, by position of the detail.

    Args:
        tables: noisy counts of `pairs`. A level of which they show nothing gets some group, too.
    """
    found: dict[int, list[tuple[str, tuple[tuple[str, Level], ...]]]] = {}
    for rule, table in zip(rules, tables, strict=True):
        detail, group = schema[rule.detail], schema[rule.group]
        assert isinstance(table.cells, Dense)
        fine, coarse = _levels(detail), _levels(group)
        counts = table.cells.values.reshape(detail.size, group.size)
        most = counts[: len(fine), : len(coarse)].argmax(axis=1)
        maps = tuple((str(level), coarse[at]) for level, at in zip(fine, most, strict=True))
        found.setdefault(schema.index(rule.detail), []).append((rule.group, maps))
    return {place: Determined(tuple(maps)) for place, maps in found.items()}


def _levels(column: Column) -> tuple[Level, ...]:
    return (*column.levels, *([] if column.other is None else [column.other]))
