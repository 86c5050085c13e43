"""Counts that were bought before a method runs: of the levels of a bought column, put beside its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gibbous.core.column import Column
from gibbous.core.tables import KnownCounts
from gibbous.structure.fine_bins import Looks
from gibbous.structure.smoothing import Component, Components, centered


def counts_of_levels(column: Column, kept: Mapping[str, int], sigma: float) -> KnownCounts:
    """What was counted of the levels of a column, where no cells of other texts have their code.

    Of whole numbers the first and the last stand for what is beyond them, too; without `other`, the
    most frequent level, which comes first, for everything else.

    Args:
        column: bought.
        kept: text -> noisy number of rows.
        sigma: standard deviation of one number.
    """
    values, variances = np.zeros(column.size), np.full(column.size, np.inf)
    for code, level in enumerate(column.levels):
        if str(level) in kept:
            values[code], variances[code] = kept[str(level)], sigma**2
    if column.other is None:
        variances[[0, len(column.levels) - 1] if type(column.levels[0]) is int else [0]] = np.inf
    return KnownCounts(values, variances)


def counts_of_bins(looks: Looks, edges: Sequence[float], size: int) -> KnownCounts | None:
    """What looks have counted of bins between edges, which are ends of their cells; None where they are not.

    A cell's own count and the sum of those of its parts are averaged by their variances, from the finest
    look up; where an edge divides a cell, only its parts count. No count is in two bins, so their errors are
    independent.

    Args:
        looks: each cuts the cells of the one before, and counts all of them.
        edges: of the bins, (bins + 1,); the last closes the last bin.
        size: codes of the column; what is not a bin, as missing, was not counted.
    """
    cuts = np.array(edges[:-1], dtype=np.float64)
    ends = np.array(looks[-1][0], dtype=np.float64)
    if not np.isin(cuts, ends).all():
        return None
    found, variances = np.zeros(len(ends)), np.full(len(ends), np.inf)
    for own, counts, sigma in reversed(looks):
        cells = np.array(own, dtype=np.float64)
        coarser = np.union1d(cells, cuts)
        starts = np.searchsorted(ends, coarser)
        found, variances = np.add.reduceat(found, starts), np.add.reduceat(variances, starts)
        at = np.searchsorted(coarser, cells)
        whole = np.diff(at, append=len(coarser)) == 1
        at, weight = at[whole], 1 / variances[at[whole]]
        found[at] = (weight * found[at] + counts[whole] / sigma**2) / (weight + 1 / sigma**2)
        variances[at] = 1 / (weight + 1 / sigma**2)
        ends = coarser
    starts = np.searchsorted(ends, cuts)
    values, spread = np.zeros(size), np.full(size, np.inf)
    values[: len(cuts)] = np.add.reduceat(found, starts)
    spread[: len(cuts)] = np.add.reduceat(variances, starts)
    return KnownCounts(values, spread)


def with_known_counts(before: Components, known: Mapping[int, KnownCounts]) -> Components:
    """The same with columns estimated from their component, the total and known counts: least squares.

    A component of L cells with mean 0 and precision p, a total T of precision t and counts d of
    precision w have the least-squares estimate A x = p c + t T + w d with A = diag(p + w) + (t - p / L) 1 1',
    whose inverse is of the same form (Sherman and Morrison). The new component is x with mean 0, at the mean
    precision of a cell; the total stays as it was.
    """
    found, rows = dict(before.found), before.found[()]
    for j, one in known.items():
        own, size = found[(j,)], len(one.values)
        if size == 1:
            continue
        weights = 1 / one.variances
        seen = own.total + rows.total + np.where(weights > 0, weights * one.values, 0.0)
        spread = 1 / (own.precision + weights)
        coupled = rows.precision - own.precision / size
        damped = coupled / (1 + coupled * spread.sum())
        cells = spread * (seen - damped * (spread * seen).sum())
        ones = spread * (1 - damped * spread.sum())  # of the inverse times a vector of ones
        variance = (spread - damped * spread**2).sum() - ones.sum() / size
        precision = (size - 1) / float(variance)
        found[(j,)] = Component(precision * centered(cells), precision)
    return Components(found)
