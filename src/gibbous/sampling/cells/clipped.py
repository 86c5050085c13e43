"""Normal laws whose clipped values have wanted moments: what clipping takes away is put back.

A normal law that is clipped to bounds has another mean, smaller spreads and smaller correlations than
before. Here the law before the clipping is found from those after it.
"""

from __future__ import annotations

import numpy as np

FAR = 6.0  # spreads from both bounds at which clipping changes nothing that float64 shows here
MOST_SPREAD = 0.98  # of the largest variance that a mean inside the bounds allows
INSIDE = 1e-3  # of the range: a wanted mean stays this far from the bounds
MOST_CORRELATION = 0.999
_TERMS = 24  # of the expansion of a covariance in powers of the correlation
_HALVINGS = 30
_ROUNDS = 60
_EXACT = 1e-11  # of half a range: a moment that is this near is met
_STEP = 0.5  # most that one round changes the logarithm of a spread, or a mean in spreads


def unclipped(
    means: np.ndarray, spreads: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation before clipping, from those wanted after it.

    Args:
        means, spreads: float64, any shape; wanted of the clipped values. A mean outside the bounds is
            moved inside, a spread that the bounds do not allow is made smaller.
        low, high: bounds, broadcast to that shape.
    Returns:
        Two arrays of that shape. Where the bounds are `FAR` away, or equal, nothing changes.
    """
    low, high = np.broadcast_to(low, means.shape), np.broadcast_to(high, means.shape)
    near = (means - FAR * spreads < low) | (means + FAR * spreads > high)
    near &= high > low
    found, wide = means.copy(), spreads.copy()
    if near.any():
        half = (high[near] - low[near]) / 2
        middle = (high[near] + low[near]) / 2
        mean = np.clip((means[near] - middle) / half, INSIDE - 1, 1 - INSIDE)
        spread = np.minimum(spreads[near] / half, np.sqrt(MOST_SPREAD * (1 - mean**2)))
        mean, spread = _newton(mean, spread)
        found[near], wide[near] = middle + half * mean, half * spread
    return found, wide


def correlations(covariances: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Correlations before clipping, from the covariances wanted after it.

    Clipped standard normal numbers with correlation r have the covariance sum over k >= 1 of
    a_k b_k r^k, a_k the coefficients of clipping in normalized Hermite polynomials. It grows with r.

    Args:
        covariances: float64 (cells, d, d), wanted of standard normal numbers after clipping; the
            diagonal is not used.
        low, high: float64 (cells, d): where each number is clipped.
    Returns:
        float64 (cells, d, d) with ones on the diagonal, at most `MOST_CORRELATION` in size.
    Source:
        Price (1958), Mehler's expansion of the bivariate normal law.
    """
    cells, width = low.shape
    found = np.broadcast_to(np.eye(width), (cells, width, width)).copy()
    terms = _hermite(low, high)
    for i in range(width):
        for j in range(i):
            product = terms[:, :, i] * terms[:, :, j]
            found[:, i, j] = found[:, j, i] = _solved(product, covariances[:, i, j])
    return found


def _hermite(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Coefficients a_1, a_2, ... of clipping to [low, high]: float64 (terms, cells, d).

    a_1 is the share inside; a_k = (h(low) - h(high)) / sqrt(k (k - 1)), h the normalized Hermite
    polynomial of degree k - 2 times the normal density.
    """
    found = np.empty((_TERMS, *low.shape))
    found[0] = _share(high) - _share(low)
    ends = [(x, np.zeros_like(x), _density(x)) for x in (low, high)]
    for k in range(2, _TERMS + 1):
        found[k - 1] = (ends[0][2] - ends[1][2]) / np.sqrt(k * (k - 1))
        n = k - 2
        ends = [
            (x, now, (x * now - np.sqrt(n) * before) / np.sqrt(n + 1)) for x, before, now in ends
        ]
    return found


def _solved(terms: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The correlation at which the expansion (terms, cells) has the wanted value, by halving."""
    low = np.full(len(wanted), -MOST_CORRELATION)
    high = -low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for term in terms[::-1]:
            value = (value + term) * middle
        below = value < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def moments(mean: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and second moment of a normal law clipped to [-1, 1]."""
    lower, upper, inside, edge = _parts(mean, spread)
    first = 1 - _share(upper) - _share(lower) + mean * inside - spread * edge
    second = 1 - inside + (mean**2 + spread**2) * inside
    second -= spread * ((1 + mean) * _density(upper) + (1 - mean) * _density(lower))
    return first, second


def _newton(mean: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve for both at once, element by element; unknowns are the mean and the log of the spread."""
    wanted, wanted_square = mean, spread**2 + mean**2
    mean, spread = mean.copy(), spread.copy()
    left = np.arange(len(mean))
    for _ in range(_ROUNDS):
        first, second = moments(mean[left], spread[left])
        off, off_square = wanted[left] - first, wanted_square[left] - second
        open_still = np.maximum(np.abs(off), np.abs(off_square)) > _EXACT
        left, off, off_square = left[open_still], off[open_still], off_square[open_still]
        if not len(left):
            break
        moved, grown = _step(mean[left], spread[left], off, off_square)
        mean[left] += moved
        spread[left] *= np.exp(grown)
    return mean, spread


def _step(
    mean: np.ndarray, spread: np.ndarray, off: np.ndarray, off_square: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One step of Newton's method, cut to at most half a spread and half in the logarithm."""
    lower, upper, inside, edge = _parts(mean, spread)
    turned = inside - upper * _density(upper) + lower * _density(lower)
    # Derivatives of both moments by the mean, and by the logarithm of the spread.
    a, b = inside, -edge * spread
    c, d = 2 * (mean * inside - spread * edge), 2 * spread * (spread * turned - mean * edge)
    size = a * d - b * c
    safe = np.where(np.abs(size) > 1e-12, size, 1e-12)
    moved = np.clip((d * off - b * off_square) / safe, -_STEP * spread, _STEP * spread)
    return moved, np.clip((a * off_square - c * off) / safe, -_STEP, _STEP)


def _parts(
    mean: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Both bounds in spreads from the mean, the share between them, and the densities' difference."""
    lower, upper = (-1 - mean) / spread, (1 - mean) / spread
    return lower, upper, _share(upper) - _share(lower), _density(upper) - _density(lower)


def _density(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def _share(x: np.ndarray) -> np.ndarray:
    """The normal distribution function, to 7.5e-8: Abramowitz and Stegun (1964), 26.2.17."""
    place = 1 / (1 + 0.2316419 * np.abs(x))
    terms = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)
    total = np.zeros_like(place)
    for term in reversed(terms):
        total = (total + term) * place
    tail = _density(x) * total
    return np.asarray(np.where(x < 0, tail, 1 - tail))
