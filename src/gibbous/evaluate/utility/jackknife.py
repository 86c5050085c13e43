"""Delete-a-group jackknife: how far a value would move with other synthetic rows of the same release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.tables import Sparse
from gibbous.evaluate.utility.chosen import Margin
from gibbous.evaluate.utility.counted import cells, grouped

GROUPS = 20
QUANTILE = 2.093024054408263  # Student t, GROUPS - 1 degrees of freedom, 97.5 %
INTERVAL_OF = (
    f"95 %, jackknife over {GROUPS} random groups of synthetic rows: where the mean of this value over "
    "further draws of as many rows lies, rows read as independent draws"
)
TOO_FEW = f"No interval: fewer than {2 * GROUPS} synthetic rows."

Measure = Callable[[Margin, Sparse, Sparse, int], Sequence[float]]
"""measure(margin, real cells, cells, rows) -> values of one margin of a table with so many rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Values of one table.

    Attributes:
        values: float64 (margins, ...).
        deleted: float64 (margins, ..., GROUPS): with one group of rows left out; None if not asked
            for, or for fewer than 2 * GROUPS rows.
    """

    values: np.ndarray
    deleted: np.ndarray | None = None

    @property
    def mean(self) -> float:
        """Over the margins."""
        return float(self.values.mean())

    def interval(self, low: float = 0.0, high: float = 1.0) -> tuple[float, float] | None:
        """95 % interval of the mean over margins, within [low, high]."""
        if self.deleted is None:
            return None
        each = self.deleted.reshape(-1, GROUPS).mean(axis=0)
        return interval(self.mean, each, low, high)


def interval(value: float, deleted: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """95 % interval around a value, within [low, high].

    Args:
        deleted: the value without each group, float64 (GROUPS,).
    """
    apart = float(((deleted - deleted.mean()) ** 2).sum())
    half = QUANTILE * math.sqrt((GROUPS - 1) / GROUPS * apart)
    return max(low, value - half), min(high, value + half)


def scored(
    real: Codes,
    others: Sequence[Codes],
    margins: Sequence[Margin],
    measure: Measure,
    *,
    seed: int = 0,
    intervals: int = 0,
) -> list[Scored]:
    """Apply a measure to each margin of each table.

    Args:
        real, others: tables of one schema, each with at least one row.
        margins: the columns of each margin, at least one.
        seed: of the groups.
        intervals: how many of the first tables get a jackknife.
    """
    tallies = [
        cells(grouped(table, GROUPS, seed), margins, given=(len(table.schema),))
        if _wide(table, place, intervals)
        else cells(table, margins)
        for place, table in enumerate(others)
    ]
    values: list[list[Sequence[float]]] = [[] for _ in others]
    deleted: list[list[list[Sequence[float]]]] = [[] for _ in others]
    for margin, (mine, *theirs) in zip(
        margins, zip(cells(real, margins), *tallies, strict=True), strict=True
    ):
        for t, (table, found) in enumerate(zip(others, theirs, strict=True)):
            if not _wide(table, t, intervals):
                values[t].append(measure(margin, mine, found, table.rows))
                continue
            whole, left = without(found)
            values[t].append(measure(margin, mine, whole, table.rows))
            deleted[t].append([measure(margin, mine, o, int(o.values.sum())) for o in left])
    return [
        Scored(np.array(v), np.moveaxis(np.array(d), 1, -1) if d else None)
        for v, d in zip(values, deleted, strict=True)
    ]


def without(found: Sparse) -> tuple[Sparse, list[Sparse]]:
    """Cells of all groups together, and of all but each.

    Args:
        found: keys are the groups 0 .. GROUPS - 1.
    """
    levels, place = np.unique(found.levels, return_inverse=True)
    at = found.keys.astype(np.int64) * len(levels) + place
    parts = np.zeros((GROUPS, len(levels)), dtype=np.int64)
    parts.reshape(-1)[at] = found.values
    total = parts.sum(axis=0)
    left = []
    for part in parts:
        rest = total - part
        kept = rest > 0
        left.append(_cells(levels[kept], rest[kept]))
    return _cells(levels, total), left


def _cells(levels: np.ndarray, values: np.ndarray) -> Sparse:
    return Sparse(np.zeros(len(levels), dtype=np.uint64), levels, values)


def _wide(table: Codes, place: int, intervals: int) -> bool:
    return place < intervals and table.rows >= 2 * GROUPS
