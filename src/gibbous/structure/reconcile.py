"""Noisy tables in, fitted non-negative tables out: post-processing that costs no privacy.

Each table is moved to the nearest non-negative table with the noisy number of records, which removes
the phantom mass that clipping leaves in many small cells; then all tables are raked to one set of
1-way margins, which are combined from every table by inverse variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gibbous.core.context import Context, Radix
from gibbous.core.tables import Dense, Table, Tables
from gibbous.structure.smoothing import rake, simplex

UNITS = 1 << 20  # fitted counts are given in millionths: the smallest cells keep three digits


def reconcile(tables: Tables) -> Tables:
    """Fit the dense tables of a release together, ready for drawing; over hashed keys to the targets alone.

    Cells are then int64, non-negative, in units of 1/UNITS count, and the recipe reads them as they
    are (fit "clip", kappa 0, floor 0).
    """
    shares = fitted_margins(tables.schema.sizes, tables.items + tables.extra)
    total = float(max(1, tables.noisy_rows()))
    items = tuple(
        replace(t, cells=Dense(_fit(t, shares, total, tables.recipe.kappa))) for t in tables.items
    )
    recipe = replace(tables.recipe, fit="clip", kappa=0.0, floor=0)
    return replace(tables, items=items, recipe=recipe)


def fitted_margins(sizes: Sequence[int], tables: Sequence[Table]) -> tuple[np.ndarray, ...]:
    """One distribution a column, float64 (levels,): noisy 1-way counts combined by inverse variance.

    Only dense tables are used; a column is uniform where nothing is left.
    """
    sums = [np.zeros(size) for size in sizes]
    weights = [0.0] * len(sizes)
    for table in tables:
        if not isinstance(table.cells, Dense):
            continue
        for column, counts, cells in _one_ways(table):
            precision = 1.0 / (max(table.noise.variance, 1e-9) * cells)
            sums[column] += precision * counts
            weights[column] += precision
    shares = []
    for size, summed, weight in zip(sizes, sums, weights, strict=True):
        counts = summed / weight if weight else np.ones(size)
        near = simplex(counts, max(float(counts.sum()), 1.0))
        shares.append(near / near.sum())
    return tuple(shares)


def _one_ways(table: Table) -> list[tuple[int, np.ndarray, int]]:
    """(column, noisy 1-way counts, cells summed for each) of every column whose code is readable."""
    context, values = table.context, table.cells.values.astype(np.float64)
    shape, columns = _axes(context)
    cube = values.reshape(shape)
    margins = []
    for axis, column in enumerate(columns):
        if column is not None:
            others = tuple(a for a in range(cube.ndim) if a != axis)
            margins.append((column, cube.sum(axis=others), values.size // shape[axis]))
    return margins


def _axes(context: Context) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Shape of a table with one axis a column; None stands for an axis of hashed keys."""
    if isinstance(context.key, Radix):
        return context.parent_sizes + context.target_sizes, context.parents + context.targets
    return (context.keys, *context.target_sizes), (None, *context.targets)


def _fit(table: Table, shares: Sequence[np.ndarray], total: float, kappa: float) -> np.ndarray:
    shape, columns = _axes(table.context)
    near = simplex(table.cells.values.astype(np.float64), total).reshape(shape)
    keys = near.sum(axis=tuple(a for a, c in enumerate(columns) if c in table.context.targets))
    wanted = []
    for axis, column in enumerate(columns):
        # A hashed key has no margin of its own to be fitted to: it keeps the one it has.
        wanted.append(shares[column] if column is not None else (keys + 1) / (keys + 1).sum())
        assert len(wanted[-1]) == shape[axis]
    # A little of the independent table in every cell: what noise erased stays possible.
    independent = np.ones(())
    for one in wanted:
        independent = np.multiply.outer(independent, one)
    smooth = near + max(kappa, 1e-3) * table.context.keys * independent
    # In numpy: a release drawn again years later has the same bytes, whatever compiles the kernels.
    fitted = rake(smooth, wanted, compiled=False) * total * UNITS
    limit = float(1 << 61) / max(table.context.cells, 1)
    if fitted.max(initial=0.0) > limit:
        fitted *= limit / fitted.max()
    return np.rint(fitted).astype(np.int64).reshape(table.context.keys, table.context.levels)
