"""Beta-binomial laws: logarithms of probabilities, and upper tails that are never too small."""

from __future__ import annotations

import math

import numpy as np

_REST = 1e-6  # of a tail: what the geometric bound on its end may add
_TERMS = 4096  # of one tail; a tail that is still undecided then counts as 1
_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def log_beta_binomial(
    j: np.ndarray, m: float | np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """ln P(count = j) of m draws with weights a and b; j may be fractional (gamma functions).

    Args:
        j, m, a, b: broadcast together; 0 <= j <= m, a > 0, b > 0.
    """
    j, m, a, b = np.broadcast_arrays(j, m, a, b)
    ways = _lg(m + 1) - _lg(j + 1) - _lg(m - j + 1)
    inside, outside = _lg(a + j) - _lg(a), _lg(b + m - j) - _lg(b)
    found: np.ndarray = ways + inside + outside + _lg(a + b) - _lg(a + b + m)
    return found


def beta_binomial_tail(limit: np.ndarray, m: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """P(count > limit) of m draws with weights a and b, from above.

    Terms are added until the rest, bounded by a geometric series, is below a millionth.

    Args:
        limit, a, b: broadcast together; where b is 0 the count is m for certain.
    Returns:
        float64; above the truth by at most a millionth of it, never below it but for rounding.
    """
    limit, a, b = np.broadcast_arrays(limit, a, b)
    out = np.zeros(limit.shape)
    first = np.floor(limit * (1 - 1e-12)) + 1
    inside = first <= m
    out[inside & (b <= 0)] = 1.0
    rows = np.nonzero(inside & (b > 0))
    if len(rows[0]):
        out[rows] = _sum(np.maximum(first[rows], 0.0), float(m), a[rows], b[rows])
    found: np.ndarray = np.minimum(out, 1.0)
    return found


def _sum(j: np.ndarray, m: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum of probabilities from j to m, (cells,)."""
    term = np.exp(log_beta_binomial(j, m, a, b))
    total: np.ndarray = term.copy()
    place = np.arange(len(j))
    j, a, b = j.copy(), a.copy(), b.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_TERMS):
            # Of the ratio's two factors one tends to 1 from its side, the other falls.
            up, down = (a + j) / (j + 1), (m - j) / (b + m - j - 1)
            bound = np.where(b > 1, np.maximum(up, 1.0) * down, np.inf)
            rest = np.where(bound < 1, term * bound / (1 - bound), np.inf)
            open_ = (j < m) & ~(rest <= _REST * total[place])
            done = (j < m) & ~open_
            total[place[done]] += rest[done]
            if not open_.any():
                break
            term = term * up * down
            if not open_.all():
                place, j, a, b, term = (v[open_] for v in (place, j, a, b, term))
            j = j + 1
            total[place] += term
        else:
            total[place] = 1.0
    return total


def _lg(values: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.asarray(_log_gamma(values), dtype=np.float64)
    return found
