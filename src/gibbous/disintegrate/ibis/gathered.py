"""Answers of a database -> exact tables: dense ones filled, hashed ones brought together, all sorted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gibbous.core.context import WORD, Context
from gibbous.core.tables import Dense, Sparse
from gibbous.disintegrate.ibis import expression


def gathered(context: Context, found: Mapping[str, np.ndarray]) -> Dense | Sparse:
    """The table of one context.

    Args:
        found: the columns that `expression.counts` gives; a group may come more than once.
    Returns:
        Dense int64 (keys, levels) for support "dense": databases give only what occurs, the other
        cells are 0. Sparse, sorted by (key, level), for support "seen".
    """
    keys, levels = expression.settled(context, found)
    counts = found["n"].astype(np.int64)
    if context.support == "dense":
        values = np.zeros((context.keys, context.levels), dtype=np.int64)
        np.add.at(values, (keys.astype(np.intp), levels.astype(np.intp)), counts)
        return Dense(values)
    if context.cells <= WORD:
        width = np.uint64(context.levels)
        cells = keys * width + levels
        order = np.argsort(cells)
        cells, counts = cells[order], counts[order]
        starts = _starts(cells[1:] != cells[:-1], len(cells))
        cells, counts = cells[starts], _added(counts, starts)
        return Sparse(cells // width, cells % width, counts)
    order = np.lexsort((levels, keys))
    keys, levels, counts = keys[order], levels[order], counts[order]
    starts = _starts((keys[1:] != keys[:-1]) | (levels[1:] != levels[:-1]), len(keys))
    return Sparse(keys[starts], levels[starts], _added(counts, starts))


def _starts(changes: np.ndarray, groups: int) -> np.ndarray:
    new = np.ones(groups, dtype=bool)
    new[1:] = changes
    return np.flatnonzero(new)


def _added(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(counts, starts) if len(counts) else counts
