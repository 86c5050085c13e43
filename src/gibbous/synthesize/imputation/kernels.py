"""Compiled scores of a full conditional; import it only where needed, since importing numba is slow."""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit

Array = np.ndarray


@njit
def scores(
    state: Array, low: int, high: int, others: Array, starts: Array, table: Array, base: Array
) -> Array:
    """Log weights of rows low..high of state (columns, rows), float64; twin: `draw.scores`."""
    found = np.empty((high - low, len(base)))
    for i in range(high - low):
        line = found[i]
        line[:] = base
        for k in range(len(others)):
            add = table[starts[k] + np.int64(state[others[k], low + i])]
            for v in range(len(base)):
                line[v] += add[v]
    return found
