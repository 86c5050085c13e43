"""Histogram synthesizers by their law: bin counts in, rows of synthetic sets out, vectorized.

Bins have one width; a synthetic row is a bin and a uniform place in it. It simulates on constructed
data; nothing here protects anybody.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gibbous.studies.seeded_draws import Draws, multinomial

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ROWS = 1 << 21  # synthetic rows that are held at a time


def scott(spread: Floats, n: npt.ArrayLike, width: float) -> Ints:
    """Bins of Scott's rule: the range over 3.49 s n^(-1/3), rounded up, at least one.

    Args:
        spread: s, standard deviation in the units of the width.
    """
    wanted = width * np.cbrt(np.asarray(n, dtype=np.float64)) / 3.49
    with np.errstate(divide="ignore"):
        bins = np.ceil(wanted / np.asarray(spread, dtype=np.float64) - 1e-9)
    return np.clip(bins, 1, 64).astype(np.int64)


def counted(x: Floats, low: float, high: float, bins: Ints) -> Floats:
    """Records, float64 (repeats, records), in each bin, (repeats, bins); 0 beyond a repeat's own bins."""
    repeats, most = x.shape[0], int(bins.max())
    place = ((x - low) / (high - low) * bins[:, None]).astype(np.int64)
    place = np.minimum(place, bins[:, None] - 1) + most * np.arange(repeats)[:, None]
    counts = np.bincount(place.ravel(), minlength=repeats * most)
    return counts.reshape(repeats, most).astype(np.float64)


def shares(counts: Floats, bins: Ints) -> Floats:
    """Noisy counts as probabilities: negative ones are 0; nothing left means uniform."""
    inside = np.arange(counts.shape[-1]) < bins[..., None]
    kept = np.where(inside, np.maximum(counts, 0.0), 0.0)
    whole = kept.sum(axis=-1, keepdims=True)
    even = np.where(inside, 1.0 / bins[..., None], 0.0)
    return np.where(whole > 0, kept / np.where(whole > 0, whole, 1.0), even)


def rounded(p: Floats, n: int) -> Ints:
    """n rows over cells in proportion, as whole numbers that sum to n; nothing is drawn."""
    ends = np.floor(np.cumsum(p, axis=-1) * n + 0.5).astype(np.int64)
    ends[..., -1] = n
    return np.diff(ends, axis=-1, prepend=0)


def smoothed_share(epsilon: float, bins: npt.ArrayLike, n: int) -> Floats:
    """lambda = B / (B + n (e^(epsilon / n) - 1)) for n released rows.

    Source:
        [bowen2016, eq. 6] (reconstructed); the exact price is that of `smoothed_histogram`.
    """
    b = np.asarray(bins, dtype=np.float64)
    return b / (b + n * math.expm1(min(epsilon / n, 600.0)))


def moments(
    draws: Draws, p: Floats, bins: Ints, n: int, low: float, high: float, *, drawn: bool = True
) -> tuple[Floats, Floats]:
    """Mean and variance (divisor n - 1) of n rows from each histogram.

    Args:
        p: bin probabilities, float64 (..., most bins).
        bins: of each histogram, int64, broadcast over p's other axes.
        drawn: the rows of a bin, or rounded; their places in it are drawn.
    Returns:
        Two arrays of the shape of p without its last axis.
    """
    most, shape = p.shape[-1], p.shape[:-1]
    rows = multinomial(draws.at(1), n, p) if drawn else rounded(p, n)
    counts = rows.reshape(-1, most).astype(np.int64)
    step = ((high - low) / np.broadcast_to(bins, shape)).reshape(-1)
    mean, variance = np.empty(step.size), np.empty(step.size)
    chunk = max(1, ROWS // n)
    for start in range(0, step.size, chunk):
        some = counts[start : start + chunk]
        inside = draws.at(2).uniform(len(some), n, start=start)
        whole = np.repeat(np.tile(np.arange(most), len(some)), some.ravel()).reshape(len(some), n)
        x = low + (whole + inside) * step[start : start + chunk, None]
        mean[start : start + chunk] = x.mean(axis=1)
        variance[start : start + chunk] = x.var(axis=1, ddof=1)
    return mean.reshape(shape), variance.reshape(shape)
