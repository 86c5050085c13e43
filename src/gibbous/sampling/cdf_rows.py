"""Rows from distribution functions that are drawn, each in proportion to exp(-epsilon distance / 2)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from gibbous.core.claim import Claim, Relation, pure
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense
from gibbous.sampling.public_rows import PublicRows
from gibbous.structure.cdf_grid import CdfGrid

SPARE = Fraction(1, 1 << 33)
"""Of each epsilon, for the rounding of float64 sums (docs/proofs/cdf.md)."""

MOST_LEVELS = 20_000
_LEAST_RATIO = 2.0**-20
_CHUNK = 1 << 21  # numbers held at a time


@dataclass(frozen=True, slots=True, eq=False)
class CdfRows:
    """One function a column by the exponential mechanism over all of its grid, then independent rows.

    Guarantee:
        Pure epsilon-DP, the sum over the columns, for any number of rows; add/remove and replace one.
        Proven: docs/proofs/cdf.md.
    Source:
        [bowen2016, eq. 7]; [McSherry, Talwar 2007].

    Attributes:
        epsilon: of each column with more than one group.
    """

    grids: tuple[CdfGrid, ...]
    epsilon: Fraction

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """Of the functions; rows are free. The law takes units of `max_rows` rows into account."""
        paid = sum(grid.groups > 1 for grid in self.grids)
        return pure(
            self.epsilon * paid, unit="dataset", relation=relation, source="docs/proofs/cdf.md"
        )

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw a function a column, then the rows."""
        most = schema.unit.max_rows if schema.unit else 1
        weights = []
        for grid, secret in zip(self.grids, counts, strict=True):
            cells = secret.cells
            assert isinstance(cells, Dense)
            function = draw_function(grid, cells.values[0], self.epsilon / most, words)
            weights.append(grid.weights(function))
        return PublicRows(tuple(weights))((), schema, rows, words)


def draw_function(
    grid: CdfGrid, counts: np.ndarray, epsilon: Fraction, words: Words64
) -> np.ndarray:
    """One function of the grid, with P proportional to ratio^level.

    The level of a function is its Kolmogorov-Smirnov distance from the records in counts, rounded
    up, and at most `levels` above the least. ratio^level is a sum over nested bands around the
    records: a band is drawn by how many functions it has, then one of those, uniformly.

    Args:
        counts: n[code], int64 (size,); secret.
    Returns:
        int64 (groups,), in units of 1 / steps.
    """
    low, high, ratio = bands(grid, counts, epsilon)
    chosen = pick(band_weights(low, high, ratio), words)
    layers = list(paths(low[chosen, None], high[chosen, None]))
    function = np.full(grid.groups, grid.steps)
    for place in range(grid.groups - 2, -1, -1):
        first, ways = layers[place]
        function[place] = first + pick(ways[0, : function[place + 1] - first + 1], words)
    return function


def bands(
    grid: CdfGrid, counts: np.ndarray, epsilon: Fraction
) -> tuple[np.ndarray, np.ndarray, float]:
    """Bands around the records from the narrowest that holds a function; the last is the whole grid.

    Returns:
        Least and greatest value by band and group, int64 (bands, groups), and the ratio.
    """
    ratio = math.exp(-float(max(epsilon - SPARE, Fraction(0))) / 2) * (1 + 2.0**-51)
    ratio = min(1.0, max(ratio, _LEAST_RATIO))
    tail = (grid.log_functions + 20) / -math.log(ratio) if ratio < 1 else MOST_LEVELS
    levels = math.ceil(min(max(tail, 1), MOST_LEVELS))
    low = np.zeros((levels + 1, grid.groups), dtype=np.int64)
    high = np.full_like(low, grid.steps)
    low[:, -1] = grid.steps
    below = np.cumsum(counts)[grid.ends() - 1]
    records = int(below[-1])
    if records:
        at, steps = below[None, :-1] * grid.steps, grid.steps
        nearest = np.minimum(at % records, -at % records).max(initial=0)
        reach = (-(-nearest // steps) + np.arange(levels))[:, None] * steps
        low[:-1, :-1] = np.clip(-((reach - at) // records), 0, steps)
        high[:-1, :-1] = np.clip((reach + at) // records, 0, steps)
    return low, high, ratio


def band_weights(low: np.ndarray, high: np.ndarray, ratio: float) -> np.ndarray:
    """Functions of each band times its part of ratio^level, float64 (bands,)."""
    powers = np.cumprod(np.concatenate([[1.0], np.full(len(low) - 1, ratio)]))
    parts = np.concatenate([powers[:-1] * (1 - ratio), powers[-1:]])
    width = int((high - low).max()) + 1
    found = [_functions(low[:-1], high[:-1], chunk) for chunk in _chunks(len(low) - 1, width)]
    found.append(_functions(low, high, slice(len(low) - 1, len(low))))
    weights: np.ndarray = parts * np.concatenate(found)
    return weights


def paths(low: np.ndarray, high: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Non-decreasing functions within bands, counted group by group.

    Args:
        low, high: int64 (bands, groups).
    Yields:
        For each group (first, ways): ways[band, i] functions up to this group take the value
        first + i there. Sums of positive float64 numbers.
    """
    before, sums = 0, np.ones((len(low), 1))
    for place in range(low.shape[1]):
        least, most = low[:, place, None], high[:, place, None]
        first = int(least.min())
        values = np.arange(first, int(most.max()) + 1)
        # sums[:, i]: functions so far with a value below before + i; the last one stands for all above.
        reached = sums[:, np.clip(values - before + 1, 0, sums.shape[1] - 1)]
        ways = np.where((values >= least) & (values <= most), reached, 0.0)
        sums = np.concatenate([np.zeros((len(low), 1)), np.cumsum(ways, axis=1)], axis=1)
        before = first
        yield first, ways


def pick(weights: np.ndarray, words: Words64) -> int:
    """An index with probability weight / total, exactly; one of the weights is above 0."""
    ratios = [weight.as_integer_ratio() for weight in weights.tolist()]
    shared = max(ratio[1] for ratio in ratios)  # denominators of floats are powers of two
    ends = list(accumulate(top * (shared // bottom) for top, bottom in ratios))
    bits = ends[-1].bit_length()
    count = -(-bits // 64)
    while True:
        point = int.from_bytes(words(count).tobytes(), "little") >> (64 * count - bits)
        if point < ends[-1]:
            return bisect_right(ends, point)


def _functions(low: np.ndarray, high: np.ndarray, chunk: slice) -> np.ndarray:
    *_, (_, ways) = paths(low[chunk], high[chunk])
    return np.asarray(ways.sum(axis=1))


def _chunks(bands: int, width: int) -> list[slice]:
    each = max(1, _CHUNK // width)
    return [slice(start, min(start + each, bands)) for start in range(0, bands, each)]
