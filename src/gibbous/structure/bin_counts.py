"""How many bins a numeric column gets, and where they are cut: from public bounds, n and spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.number_grid import Grid
from gibbous.core.schema import Column

NORMAL_QUARTILES = 1.3489795003921634
"""Interquartile range of a normal law, in standard deviations."""


def sturges(rows: float, most: int) -> int:
    """1 + log2(n), rounded up, at most `most`: needs no spread; n < 1 is read as 1.

    Source:
        Sturges (1926), as in [Scott 2015].
    """
    return _within(1.0 + math.log2(max(1.0, rows)), most)


def scott(width: float, spread: float, rows: float, most: int, dimensions: int = 1) -> int:
    """Bins of width 3.49 s n^(-1 / (2 + d)), rounded up in number.

    Args:
        width: upper minus lower public bound, in units of the column.
        spread: s, a standard deviation in the same units. Read off the records it makes the number
            of bins a statistic without noise: under differential privacy it is public or paid for.
        rows: n, public or noisy; less than 1 is read as 1.
        most: largest answer.
        dimensions: d, numeric columns of the same histogram.
    Source:
        [Scott 2015]; [bowen2016, s4.2].
    """
    return _ruled(width, 3.49 * spread, rows, most, dimensions)


def freedman_diaconis(
    width: float, quartiles: float, rows: float, most: int, dimensions: int = 1
) -> int:
    """Bins of width 2 IQR n^(-1 / (2 + d)), rounded up in number; arguments as in `scott`.

    Source:
        Freedman and Diaconis (1981), as in [Scott 2015].
    """
    return _ruled(width, 2.0 * quartiles, rows, most, dimensions)


def equal_edges(column: Column, bins: int) -> tuple[float, ...]:
    """Public bounds of a numeric or date column cut into bins >= 1 of equal width.

    A column of whole numbers has at most one bin for each step between its bounds, as equal as they come.
    """
    low, high = exact(column.edges[0]), exact(column.edges[-1])
    whole = column.integer or column.kind == "date"
    if whole:
        bins = max(1, min(bins, int(high - low)))
    cuts = [low + (high - low) * i / bins for i in range(1, bins)]
    inner = [float(round(cut)) if whole else float(cut) for cut in cuts]
    kept = np.unique([cut for cut in inner if float(low) < cut < float(high)]).tolist()
    return (column.edges[0], *kept, column.edges[-1])


def quantile_edges(edges: Sequence[float], counts: np.ndarray, bins: int) -> tuple[float, ...]:
    """Cut points between which noisy counts are as equal as a grid of narrow bins lets them be.

    Sums of noisy counts from below may fall; the mean of their running largest from below and
    smallest from above rises. Negative counts are not clipped: a long empty tail would gain records.

    Args:
        edges: public bounds and cut points of the grid, increasing, (narrow bins + 1,).
        counts: noisy number of records in each narrow bin, (narrow bins,).
        bins: wanted, >= 1; fewer where quantiles fall into one narrow bin, one where the noisy
            counts add up to nothing.
    """
    sums = np.cumsum(np.asarray(counts, dtype=np.float64))
    rising = np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]
    if rising[-1] <= 0:
        return (edges[0], edges[-1])
    shares = rising[-1] * np.arange(1, bins) / bins
    # The nearer end of the narrow bin in which a quantile lies: where it is reached, or one before.
    reached = np.minimum(np.searchsorted(rising, shares), len(rising) - 1)
    before = np.where(reached > 0, rising[reached - 1], 0.0)
    ends = reached + (rising[reached] - shares <= shares - before)
    kept = np.unique(ends[(ends > 0) & (ends < len(rising))])
    return (edges[0], *(edges[end] for end in kept), edges[-1])


def spread_from_sums(count: float, first: float, second: float, grid: Grid) -> float:
    """Standard deviation, between one step and half the width, from noisy sums in grid units.

    `count` is the noisy number of records that have a value; the others are sums of it and its square.
    """
    rows = max(1.0, count)
    mean = min(max(first / rows, -float(grid.half)), float(grid.half))
    variance = second / rows - mean * mean
    step = float(grid.step)
    widest = float(Fraction(grid.high - grid.low)) / 2
    return min(max(math.sqrt(max(variance, 0.0)) * step, step), max(widest, step))


def _ruled(width: float, unit: float, rows: float, most: int, dimensions: int) -> int:
    bins = width / unit if unit > 0 else math.inf
    return _within(bins * max(1.0, rows) ** (1.0 / (2 + dimensions)), most)


def _within(bins: float, most: int) -> int:
    # A hair below: 8.000000001 bins by rounding are 8.
    return most if bins >= most else max(1, math.ceil(bins * (1 - 1e-12)))
