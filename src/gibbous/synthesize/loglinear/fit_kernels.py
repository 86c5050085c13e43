"""Compiled kernel of fitting: raking a weighted sample of chains to one margin."""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit
from gibbous.synthesize.loglinear.kernels import Array, U


@njit(inline="always")
def _solved(
    share: float, goal: float, damp: float, ridge: float, theta: float, bound: float
) -> float:
    """The d in [-bound, bound] with (share + damp) e^d + ridge (theta + d) = goal + damp."""
    low, high = -bound, bound
    d = min(max((goal - share - ridge * theta) / (share + damp + ridge), low), high)
    for _ in range(30):
        rest = (share + damp) * np.exp(d) + ridge * (theta + d) - goal - damp
        if rest > 0.0:
            high = d
        else:
            low = d
        slope = (share + damp) * np.exp(d) + ridge
        new = d - rest / slope
        if not low < new < high:
            new = (low + high) / 2.0
        if abs(new - d) < 1e-6:
            return float(new)
        d = new
    return float(d)


_RAKE = (
    "float64({0}[:,::1], int64[:,::1], int64, int64, float64[::1], float64[::1], float64, "
    "float64, float64[::1], float64[::1], float64[::1], float64, float64, int64)"
)


@njit(*(_RAKE.format(kind) for kind in ("uint8", "uint16")))
def rake(
    state: Array,
    terms: Array,
    begin: int,
    end: int,
    weights: Array,
    goal: Array,
    damp: float,
    ridge: float,
    theta: Array,
    change: Array,
    share: Array,
    total: float,
    bound: float,
    first: int,
) -> float:
    """One step of raking: weigh the chains so that one clique's weighted margin meets its goal.

    Args:
        terms: column, stride of each column of the clique: rows begin..end.
        weights: float64 (chains,); changed in place.
        goal: shares, float64 (cells,).
        damp: > 0: cells whose shares are small beside it move little.
        ridge: >= 0: what is met is share + ridge x theta = goal.
        theta: float64 (cells,): before the step.
        change: float64 (cells,): what was added to theta so far; changed in place.
        share: float64 (cells,): room; then the margin before the step.
        total: sum of the weights.
        bound: most that |change| of a cell may become.
        first: 1: cells without chains move now; 0: they do not.
    Returns:
        The sum of the new weights.
    """
    chains = U(state.shape[1])
    places = np.zeros(state.shape[1], dtype=np.uint32)
    for t in range(U(begin), U(end)):
        column, step = U(terms[t, 0]), np.uint32(terms[t, 1])
        for i in range(chains):
            places[i] += np.uint32(state[column, i]) * step
    for k in range(len(share)):
        share[k] = 0.0
    for i in range(chains):
        share[places[i]] += weights[i]
    ratio = np.empty(len(share))
    for k in range(len(share)):
        share[k] /= total
        ratio[k] = 1.0
        if share[k] == 0.0 and not first:
            continue
        d = _solved(share[k], goal[k], damp, ridge, theta[k] + change[k], bound)
        new = min(max(change[k] + d, -bound), bound)
        ratio[k] = np.exp(new - change[k])
        change[k] = new
    fresh = 0.0
    for i in range(chains):
        weights[i] *= ratio[places[i]]
        fresh += weights[i]
    return fresh
