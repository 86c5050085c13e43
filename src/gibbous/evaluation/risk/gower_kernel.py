"""The compiled scan of gower.py: every query against every row, nearest row and kernel sum in one pass."""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit

BLOCK = 2048  # rows that stay in the cache while all queries pass over them


@njit(fastmath=True)
def scan(
    marks: np.ndarray,
    places: np.ndarray,
    pool_marks: np.ndarray,
    pool_places: np.ndarray,
    odds: float,
    nearest: np.ndarray,
    where: np.ndarray,
    density: np.ndarray,
) -> None:
    """Fill nearest, where and density for each query.

    Args:
        marks, pool_marks: codes, those of the ordered columns last, unsigned (columns, rows).
        places, pool_places: positions in the ordered columns, float32 (ordered columns, rows).
        odds: a row weighs odds^-d, d the number of columns whose codes differ.
        nearest: least summed distance, float32 (queries,).
        where: the first row that has it, int64 (queries,).
        density: sum of the weights of the rows, float64 (queries,).
    """
    rows, columns, ordered = pool_marks.shape[1], marks.shape[0], places.shape[0]
    weights = np.power(odds, -np.arange(columns + 1).astype(np.float64))
    differ = np.empty(BLOCK, dtype=np.uint16)
    apart = np.empty(BLOCK, dtype=np.float32)
    nearest[:], where[:], density[:] = 1e30, 0, 0.0
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        for query in range(marks.shape[1]):
            differ[:size] = 0
            for c in range(columns - ordered):
                mine = marks[c, query]
                theirs = pool_marks[c, start : start + size]
                for r in range(size):
                    differ[r] += np.uint16(theirs[r] != mine)
            for r in range(size):
                apart[r] = np.float32(differ[r])
            for c in range(ordered):
                here, mine = places[c, query], marks[columns - ordered + c, query]
                there = pool_places[c, start : start + size]
                theirs = pool_marks[columns - ordered + c, start : start + size]
                for r in range(size):
                    apart[r] += min(abs(there[r] - here), np.float32(1.0))
                for r in range(size):
                    differ[r] += np.uint16(theirs[r] != mine)
            least, total = apart[0], 0.0
            for r in range(size):
                least = min(least, apart[r])
            for r in range(size):
                total += weights[differ[r]]
            density[query] += total
            if least < nearest[query]:
                nearest[query] = least
                for r in range(size):
                    if apart[r] == least:
                        where[query] = start + r
                        break
