"""One-way shares of public tables and of synthetic sets, for the charts that show both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Table, Tables
from gibbous.encode.encode import encode
from gibbous.evaluation.tables import plain
from gibbous.reporting.labels import percent

LEVELS = 40  # of one column in a chart; the rest is one row
FINER = 4  # a column without a share above this part of the largest is drawn to a finer scale


def axes(columns: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[list[float], str]:
    """Where the axis of each column's chart ends, so that lengths are compared across charts.

    Returns:
        One end for all, or two, and a sentence that says so.
    """
    shares = (
        [float(r.get(k) or 0) for r in rows for k in ("base", "main", "high")] for rows in columns
    )
    tops = [max((share for share in some if isfinite(share)), default=0.0) for some in shares]
    coarse = max(tops, default=0.0) or 1.0
    fine = max((top for top in tops if FINER * top < coarse), default=0.0) or coarse
    ends = [1.02 * (coarse if top > fine else fine) for top in tops]
    words = f"All charts have one axis, up to {percent(coarse)}"
    if fine < coarse:
        words += f"; those without a share above {percent(fine)} have a finer one, up to that"
    return ends, f"{words}."


@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """The margin of one column in the published tables.

    Attributes:
        counts: float64 (levels,), as published: they may be negative.
        deviation: standard deviation of the noise in each, counts; None where small counts are
            missing, because a threshold kept only large ones.
        given: columns whose values the table tells apart; empty for a one-way table.
    """

    counts: np.ndarray
    deviation: float | None
    given: tuple[str, ...]

    @property
    def shares(self) -> np.ndarray:
        """Float64 (levels,), negative counts read as 0; all 0 where nothing is left."""
        counts = np.maximum(self.counts, 0.0)
        return np.asarray(counts / max(float(counts.sum()), 1e-9))


def noisy(tables: Tables, column: int) -> Noisy | None:
    """The published margin of a column with the least noise; None when no table has it as a target."""
    counting = [t for t in (*tables.items, *tables.extra) if _has_levels_of(t, column, tables)]
    if not counting:
        return None
    table = min(counting, key=lambda t: (not isinstance(t.cells, Dense), _variance(t, column)))
    counts = summed(table, column)
    whole = isinstance(table.cells, Dense)
    names = tables.schema.names
    others = [c for c in table.context.columns if c != column]
    deviation = float(np.sqrt(_variance(table, column))) if whole else None
    return Noisy(counts, deviation, tuple(names[c] for c in others))


def drawn(sets: Sequence[Any], schema: Schema) -> list[np.ndarray]:
    """Shares of the levels in each synthetic set, float64 (sets, levels) a column; 0 without rows."""
    bare = plain(schema)
    codes = [encode(frame, bare) for frame in sets]
    return [
        np.stack(
            [np.bincount(c.by_column[j], minlength=size)[:size] / max(c.rows, 1) for c in codes]
        )
        for j, size in enumerate(bare.sizes)
    ]


def kept(shares: np.ndarray, limit: int = LEVELS) -> np.ndarray:
    """Positions of the levels that a chart shows: all, or the largest ones in code order."""
    if len(shares) <= limit:
        return np.arange(len(shares))
    return np.sort(np.argsort(-shares, kind="stable")[: limit - 1])


def _variance(table: Table, column: int) -> float:
    # Cells that are added up for one level of the column, times the noise of each.
    context = table.context
    size = context.target_sizes[context.targets.index(column)]
    return context.keys * (context.levels // size) * table.noise.variance


def summed(table: Table, column: int) -> np.ndarray:
    """Noisy counts of the levels of a column, over everything else in a table: float64 (levels,)."""
    cells, context = table.cells, table.context
    if isinstance(cells, Dense):
        levels = cells.values.sum(axis=0).astype(np.float64)
    else:
        levels = np.bincount(
            cells.levels.astype(np.int64), weights=cells.values, minlength=context.levels
        )
    place = context.targets.index(column)
    others = tuple(i for i in range(len(context.targets)) if i != place)
    return np.asarray(levels.reshape(context.target_sizes).sum(axis=others))


def _has_levels_of(table: Table, column: int, tables: Tables) -> bool:
    targets, sizes = table.context.targets, table.context.target_sizes
    return column in targets and sizes[targets.index(column)] == tables.schema.sizes[column]
