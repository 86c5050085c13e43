"""Intervals of shares: counts in, (low, high) out."""

from __future__ import annotations

import math

LEVEL = 0.95
Z = 1.959963984540054  # the normal quantile of its ends


def binomial(hits: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper-Pearson interval of a share.

    Args:
        hits: successes; need not be whole (ties count a half).
        trials: >= hits; need not be whole (an effective number).
        level: coverage, at least this for whole numbers.
    Returns:
        (low, high); (0, 1) without trials.
    Source:
        Clopper and Pearson (1934), by quantiles of the beta law.
    """
    from scipy.stats import beta

    if trials <= 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, trials - hits + 1))
    high = 1.0 if hits >= trials else float(beta.ppf(1 - tail, hits + 1, trials - hits))
    return low, high


def difference(
    first: float, of_first: tuple[float, float], second: float, of_second: tuple[float, float]
) -> tuple[float, float]:
    """Interval of first - second from the intervals of two independent estimates.

    Source:
        The square-and-add rule of Newcombe (1998); Zou and Donner (2008).
    """
    down = math.hypot(first - of_first[0], of_second[1] - second)
    up = math.hypot(of_first[1] - first, second - of_second[0])
    return first - second - down, first - second + up


def mean(values: float, square: float, count: int) -> tuple[float, float]:
    """Normal interval of a mean.

    Args:
        values: the mean.
        square: the variance of one value.
        count: number of values.
    """
    half = Z * math.sqrt(square / count) if count else math.inf
    return values - half, values + half
