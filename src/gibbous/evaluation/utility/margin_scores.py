"""Values of margins: which margins are scored, the cells that occur in them, and a jackknife of each value.

A margin is some columns of the schema. The jackknife leaves out one group of synthetic rows after the other:
it says how far a value would move with other rows of the same release.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.finding import Finding
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.disintegrate.records import LocalEngine
from gibbous.evaluation.measure import Measured, Metric, assemble
from gibbous.evaluation.tables import permutation, resampled

Margin = tuple[int, ...]
"""Positions of columns, increasing."""

EVERY = 2  # orders up to here are scored in full
SAMPLE = 100  # margins of a higher order
ENTRIES = 1 << 22  # cells that one batch of margins may hold (100 MB)
GROUPS = 20
QUANTILE = 2.093024054408263  # Student t, GROUPS - 1 degrees of freedom, 97.5 %
INTERVAL_OF = (
    f"95 %, jackknife over {GROUPS} random groups of synthetic rows: where the mean of this value over "
    "further draws of as many rows lies, rows read as independent draws"
)
TOO_FEW = f"No interval: fewer than {2 * GROUPS} synthetic rows."

Measure = Callable[[Margin, Sparse, np.ndarray, np.ndarray], Any]
"""measure(margin, real cells, levels, counts) -> the value or values of each table: (tables, ...).

counts: of the levels, one row a table, int64 (tables, levels)."""


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


def chosen(columns: int, order: int, seed: int, sample: int = SAMPLE) -> tuple[Margin, ...]:
    """The margins of one order, in lexicographic order.

    Args:
        seed: public; decides which margins of an order above EVERY are taken.
        sample: at most so many of such an order; all of them where there are fewer.
    Returns:
        Different margins; none where there are fewer columns than `order`.
    """
    total = math.comb(columns, order)
    if order <= EVERY or total <= sample:
        return tuple(itertools.combinations(range(columns), order))
    drawn: dict[int, None] = {}
    attempt = 0
    while len(drawn) < sample:
        places = resampled(total, 2 * sample, seed, 4, order, attempt)
        drawn |= dict.fromkeys(int(place) for place in places)
        attempt += 1
    ranks = sorted(list(drawn)[:sample])
    return tuple(combination(columns, order, rank) for rank in ranks)


def combination(columns: int, order: int, rank: int) -> Margin:
    """The combination with this place in the lexicographic list: 0 <= rank < C(columns, order)."""
    out: list[int] = []
    for column in range(columns):
        left = order - len(out)
        if left == 0:
            break
        starting = math.comb(columns - column - 1, left - 1)
        if rank < starting:
            out.append(column)
        else:
            rank -= starting
    return tuple(out)


def cells(
    codes: Codes, margins: Sequence[Margin], *, given: tuple[int, ...] = ()
) -> Iterator[Sparse]:
    """The cells that occur of each margin: keys by the columns `given`, levels with the last one fastest."""
    engine = LocalEngine.from_codes(codes)
    sizes = codes.schema.sizes
    keys = tuple(sizes[c] for c in given)
    contexts = [
        Context(m, given, tuple(sizes[c] for c in m), keys, support="seen") for m in margins
    ]
    for batch in _batches(contexts, codes.rows):
        for counts in engine.tally(batch):
            assert isinstance(counts.cells, Sparse)
            yield counts.cells


def grouped(codes: Codes, groups: int, seed: int) -> Codes:
    """The same rows with one column more, the last: a random group of (almost) equal size."""
    schema = codes.schema
    name = "group"
    while name in schema.names:
        name += "_"
    column = Column(name, "ordinal", levels=tuple(range(groups)))
    wider: Schema = replace(schema, columns=(*schema.columns, column))
    values = np.empty((len(wider), codes.rows), dtype=wider.code_dtype())
    values[:-1] = codes.by_column
    values[-1] = groups_of(codes.rows, groups, seed)
    return Codes(wider, values.T, codes.secret)


def groups_of(rows: int, groups: int, seed: int) -> np.ndarray:
    """A random group of each row, all of (almost) equal size: int64 (rows,), below `groups`."""
    place = np.empty(rows, dtype=np.int64)
    place[permutation(rows, seed, 5)] = np.arange(rows) % groups
    return place


def unravelled(levels: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Codes of each column of a margin from its level numbers: int64 (cells,) a column."""
    out, rest = [], levels.astype(np.int64)
    for size in reversed(sizes):
        rest, code = np.divmod(rest, size)
        out.append(code)
    return out[::-1]


def interval(value: float, deleted: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """95 % interval around a value, within [low, high], by the jackknife: `deleted` is float64 (GROUPS,)."""
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
    """Apply a measure to each margin of each table; the first `intervals` of them get a jackknife."""
    wide = [t < intervals and table.rows >= 2 * GROUPS for t, table in enumerate(others)]
    tallies = [
        cells(grouped(table, GROUPS, seed), margins, given=(len(table.schema),))
        if split
        else cells(table, margins)
        for table, split in zip(others, wide, strict=True)
    ]
    values: list[list[np.ndarray]] = [[] for _ in others]
    # All tables advance together, so that only one batch of each is held.
    for margin, mine, *theirs in zip(margins, cells(real, margins), *tallies, strict=True):
        for t, (table, split) in enumerate(zip(theirs, wide, strict=True)):
            levels, counts = without(table) if split else (table.levels, table.values[None, :])
            values[t].append(np.asarray(measure(margin, mine, levels, counts)))
    stacked = [np.array(each) for each in values]
    return [
        Scored(each[:, 0], np.moveaxis(each[:, 1:], 1, -1) if split else None)
        for each, split in zip(stacked, wide, strict=True)
    ]


def without(table: Sparse) -> tuple[np.ndarray, np.ndarray]:
    """Levels, and their counts in the whole table and without each group, int64 (1 + GROUPS, levels)."""
    levels, place = np.unique(table.levels, return_inverse=True)
    counts = np.zeros((1 + GROUPS, len(levels)), dtype=np.int64)
    counts[table.keys.astype(np.int64) + 1, place] = table.values
    counts[0] = counts[1:].sum(axis=0)
    np.subtract(counts[0], counts[1:], out=counts[1:])
    return levels, counts


def mean_finding(
    metric: Metric,
    sets: Sequence[Scored],
    null: Mapping[str, Scored],
    *,
    high: float = 1.0,
    detail: Sequence[Mapping[str, Any]] = (),
    note: str = "",
) -> Finding:
    """The finding of a mean over margins, in [0, high]."""
    measured = [
        Measured(
            one.mean,
            one.interval(0.0, high),
            note=note if one.deleted is not None else f"{note} {TOO_FEW}".strip(),
        )
        for one in sets
    ]
    return assemble(metric, measured, {k: v.mean for k, v in null.items()}, detail=detail)


def _batches(contexts: Sequence[Context], rows: int) -> Iterator[list[Context]]:
    batch: list[Context] = []
    held = 0
    for context in contexts:
        entries = min(rows, context.cells)
        if batch and held + entries > ENTRIES:
            yield batch
            batch, held = [], 0
        batch.append(context)
        held += entries
    if batch:
        yield batch
