"""Which level the others of a column are compared with: as asked for, or the first of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean
from gibbous.core.schema import Column

SHOWN = 20  # levels that a refusal lists


def references_of(columns: Sequence[Column], asked: Mapping[str, str]) -> dict[str, str]:
    """The reference level of each column with levels: the one asked for by name, else the first.

    Raises:
        UsageError: a name that is none of these columns, or a level that its column does not have.
    """
    names = [column.name for column in columns]
    for name in asked:
        if name not in names:
            raise UsageError(
                "REFERENCE",
                f"A reference is given for {name!r}, which is not a column with levels of this formula.",
                f"Columns that are compared by levels here: {', '.join(names) or 'none'}.",
                did_you_mean(name, names, "Leave that reference out."),
            )
    found = {}
    for column in columns:
        levels = labels(column)
        level = str(asked.get(column.name, levels[0]))
        if level not in levels:
            raise UsageError(
                "REFERENCE",
                f"Column {column.name} has no level {level!r}.",
                f"Its levels are {', '.join(levels[:SHOWN])}{', ...' * (len(levels) > SHOWN)}.",
                did_you_mean(level, levels, "Name one of its levels."),
            )
        found[column.name] = level
    return found


def labels(column: Column, reference: str | None = None) -> tuple[str, ...]:
    """Readable labels of a column's codes, without missing; the reference first."""
    shown = column.labels()
    shown = tuple(map(str, shown[:-1] if column.missing else shown))
    if reference is None:
        return shown
    return (reference, *(one for one in shown if one != reference))


def reordered(column: Column, codes: np.ndarray, reference: str | None) -> np.ndarray:
    """Places among `labels(column, reference)`; a missing code stays what it is."""
    order = {label: place for place, label in enumerate(labels(column, reference))}
    places = np.arange(column.size)
    places[: len(order)] = [order[label] for label in labels(column)]
    return np.asarray(places[codes])
