"""A log-linear model of a whole cross table: expected cells in whole parts, for rows without a guarantee."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from gibbous.core.context import Context, radix_digits
from gibbous.core.schema import Schema, impossible_mask

MOST_CELLS = 1 << 20
"""Of a table that a model is fitted to: all of them are held, and every margin is summed in every pass."""
PASSES, NEAR = 200, 1e-6
PARTS = float(1 << 52)


def expected_cells(
    context: Context, levels: np.ndarray, counts: np.ndarray, schema: Schema, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cells of the fitted table, and their shares in whole parts.

    Args:
        levels, counts: cells that occur and their records; secret.
    Returns:
        Numbers of the cells with a share, and shares, uint64, that sum to about 2^52.
    """
    sizes = context.target_sizes
    table = np.zeros(context.cells)
    table[levels] = counts
    open_cells = np.ones(context.cells)
    if schema.impossible:
        digits = radix_digits(np.arange(context.cells, dtype=np.uint64), sizes)
        codes = np.zeros((context.cells, len(schema)), dtype=np.int64)
        codes[:, context.targets] = np.stack(digits, axis=1)
        open_cells = (~impossible_mask(schema, codes)).astype(np.float64)
    fitted = fitted_table(table.reshape(sizes), order, open_cells.reshape(sizes)).reshape(-1)
    parts = np.floor(fitted / fitted.sum() * PARTS).astype(np.uint64)
    there = np.flatnonzero(parts)
    return there, parts[there]


def fitted_table(counts: np.ndarray, order: int, start: np.ndarray) -> np.ndarray:
    """Maximum likelihood under the log-linear model of all interactions of `order` axes.

    Iterative proportional fitting: the table that starts at `start` is scaled to every margin of that many
    axes in turn, until no scale is further than 1e-6 from 1, or for 200 passes.

    Source:
        Deming and Stephan (1940); Bishop, Fienberg and Holland (1975), ch. 3.
    """
    axes, fitted = range(counts.ndim), start.astype(np.float64)
    for _ in range(PASSES):
        moved = 0.0
        for kept in combinations(axes, min(order, counts.ndim)):
            others = tuple(axis for axis in axes if axis not in kept)
            wanted, have = (one.sum(axis=others, keepdims=True) for one in (counts, fitted))
            scale = np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)
            moved = max(moved, float(np.abs(scale - 1)[wanted > 0].max(initial=0.0)))
            fitted = fitted * scale
        if moved <= NEAR:
            break
    return np.asarray(fitted)
