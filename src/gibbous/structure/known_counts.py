"""Counts that were bought before a method runs: of the levels of a bought column, put beside its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gibbous.core.column import Column
from gibbous.core.tables import KnownCounts
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
