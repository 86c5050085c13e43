"""Exact: small models whose every row can be listed; their law, fit and draws without Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gibbous.core.tables import LogLinear
from gibbous.synthesize.loglinear.chains import code_dtype, impossible_rows
from gibbous.synthesize.masks import Rule

MOST_CELLS = 1 << 16


def listable(sizes: Sequence[int]) -> bool:
    """Whether all rows of a model can be listed."""
    return math.prod(sizes) <= MOST_CELLS


def every_row(sizes: Sequence[int]) -> np.ndarray:
    """All rows, the last column fastest: (columns, cells) codes."""
    state = np.indices(tuple(sizes)).reshape(len(sizes), -1)
    return np.ascontiguousarray(state, dtype=code_dtype(sizes))


def law(model: LogLinear, rules: tuple[Rule, ...]) -> np.ndarray:
    """Probability of every row, float64, an axis a column; 0 where it is impossible.

    Where every row is impossible, all have the same.
    """
    total = np.zeros(model.sizes)
    for clique, theta in zip(model.cliques, model.theta, strict=True):
        shape = [size if column in clique else 1 for column, size in enumerate(model.sizes)]
        total += theta.reshape(shape)
    possible = ~impossible_rows(rules, every_row(model.sizes)).reshape(model.sizes)
    if not possible.any():
        return np.full(model.sizes, 1.0 / total.size)
    shares = np.where(possible, np.exp(total - total[possible].max()), 0.0)
    normalized: np.ndarray = shares / shares.sum()
    return normalized


def draw_law(shares: np.ndarray, points: np.ndarray, given: Mapping[int, np.ndarray]) -> np.ndarray:
    """Rows drawn from a law, given some columns.

    Args:
        shares: probability of every row, an axis a column.
        points: uniforms in [0, 1), float64 (rows,).
        given: codes of columns that are not drawn, each (rows,).
    Returns:
        (columns, rows) codes. Rows whose given columns are impossible take the first free codes.
    """
    fixed = sorted(given)
    free = [column for column in range(shares.ndim) if column not in given]
    cases = [shares.shape[column] for column in fixed]
    table = shares.transpose(fixed + free).reshape(math.prod(cases), -1)
    sums = np.cumsum(table, axis=1)
    case = np.zeros(len(points), dtype=np.int64)
    for column in fixed:
        case = case * shares.shape[column] + given[column].astype(np.int64)
    state = np.empty((shares.ndim, len(points)), dtype=code_dtype(shares.shape))
    if free:
        held, cell = np.unique(case), np.zeros(len(points), dtype=np.int64)
        for one in held:
            rows = case == one
            place = np.searchsorted(sums[one], points[rows] * sums[one, -1], side="right")
            cell[rows] = np.minimum(place, table.shape[1] - 1)
        codes = np.unravel_index(cell, [shares.shape[column] for column in free])
        for column, own in zip(free, codes, strict=True):
            state[column] = own
    for column in fixed:
        state[column] = given[column]
    return state
