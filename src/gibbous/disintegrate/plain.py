"""Plain: what a count and a sum are, by NumPy alone; the truth that compiled kernels are tested against."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import WORD, Context, keys_of, levels_of
from gibbous.core.moment import Moment
from gibbous.core.number_grid import grid_of, to_grid
from gibbous.core.tables import Counts, Dense, Sparse

CHUNK = 1 << 20  # rows whose keys are computed at once


def counts(codes: Codes, contexts: Sequence[Context]) -> tuple[Counts, ...]:
    """Count all contexts, one after the other; see `core.protocols.Engine.tally`."""
    return tuple(
        Counts(c, (_dense if c.support == "dense" else _sparse)(c, codes.values)) for c in contexts
    )


def sums(codes: Codes, moments: Sequence[Moment]) -> tuple[Counts, ...]:
    """Of each moment, Dense int64 (keys, levels): sums over a cell's records of products of grid numbers.

    A record with a missing value in a factor adds 0. The codes are secret, with the numbers of all factors.
    """
    return tuple(Counts(m.context, Dense(_sum(codes, m))) for m in moments)


def added(total: tuple[Counts, ...], part: tuple[Counts, ...]) -> tuple[Counts, ...]:
    """The dense tables of two parts of the records together."""
    return tuple(
        Counts(one.context, Dense(one.cells.values + two.cells.values))
        for one, two in zip(total, part, strict=True)
    )


def count_pairs(keys: np.ndarray, levels: np.ndarray) -> Sparse:
    """Count (key, level) pairs, uint64 (rows,) each, whose product passes 63 bits: Sparse, sorted."""
    order = np.lexsort((levels, keys))
    keys, levels = keys[order], levels[order]
    del order
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (levels[1:] != levels[:-1])
    starts = np.flatnonzero(new)
    lengths = np.diff(starts, append=len(keys)).astype(np.int64, copy=False)
    return Sparse(keys[starts], levels[starts], lengths)


def occupied(context: Context, table: np.ndarray) -> Sparse:
    """The cells of a table, int64 (cells,), that are not 0."""
    cells = np.flatnonzero(table)
    return at_cells(context, cells.astype(np.uint64), table[cells])


def at_cells(context: Context, cells: np.ndarray, counts: np.ndarray) -> Sparse:
    """Counts of some cells, uint64 key * levels + level, increasing."""
    width = np.uint64(context.levels)
    return Sparse(cells // width, cells % width, counts)


def _dense(context: Context, values: np.ndarray) -> Dense:
    total = np.zeros(context.cells, dtype=np.int64)
    step = max(CHUNK, context.cells)
    for start in range(0, len(values), step):
        cells = _cells(context, values[start : start + step])
        total += np.bincount(cells, minlength=context.cells)
    return Dense(total.reshape(context.keys, context.levels))


def _sparse(context: Context, values: np.ndarray) -> Sparse:
    keys, levels = keys_of(context, values), levels_of(context, values)
    if context.cells > WORD:
        return count_pairs(keys, levels)
    ids = keys * np.uint64(context.levels) + levels
    cells, lengths = np.unique(ids, return_counts=True)
    return at_cells(context, cells, lengths.astype(np.int64, copy=False))


def _sum(codes: Codes, moment: Moment) -> np.ndarray:
    context = moment.context
    total = np.zeros(context.cells, dtype=np.int64)
    for start in range(0, codes.rows, CHUNK):
        rows = slice(start, start + CHUNK)
        np.add.at(total, _cells(context, codes.values[rows]), _product(codes, moment, rows))
    return total.reshape(context.keys, context.levels)


def _cells(context: Context, rows: np.ndarray) -> np.ndarray:
    keys, levels = keys_of(context, rows), levels_of(context, rows)
    cells: np.ndarray = (keys * np.uint64(context.levels) + levels).astype(np.int64)
    return cells


def _product(codes: Codes, moment: Moment, rows: slice) -> np.ndarray:
    factors = []
    for position in moment.factors:
        column = codes.schema.columns[position]
        numbers = to_grid(codes.number(position)[rows], grid_of(column))
        if column.missing_code is not None:
            numbers[codes.values[rows, position] == column.missing_code] = 0
        factors.append(numbers)
    product: np.ndarray = math.prod(factors[1:], start=factors[0])
    return product
