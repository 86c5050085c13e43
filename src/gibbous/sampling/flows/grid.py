"""Geometric noise on every cell of a public grid that is too large to list: same law, sparse work.

Cells with records get the Curator's noise. Of the others only those above the threshold are made:
their places by exact geometric gaps, their values by the exact tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gibbous.core.claim import Claim, Relation
from gibbous.core.errors import ResourceLimit
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.tables import Cells, Dense, NoiseInfo, Sparse
from gibbous.privacy import entropy
from gibbous.privacy.noise import Geometric
from gibbous.sampling.exact_draws import bounded

MOST = 1 << 40
_BATCH = 1 << 18


@dataclass(frozen=True, slots=True)
class WholeGrid:
    """Two-sided geometric noise on all cells of one table; cells at or below a threshold are dropped.

    Guarantee:
        That of `base` on one table, epsilon-DP without a delta: dropping is post-processing of a
        table whose every cell has noise. Proven: docs/proofs/flows_laplace.md.
    Source:
        Cormode, Procopiuc, Srivastava and Tran (2012); exact geometric draws: Canonne, Kamath and
        Steinke (2020), algorithms 1 and 2.

    Attributes:
        base: the noise of each cell.
        threshold: public, >= 0.
        keys, levels: of the table: how many cells there are.
    """

    base: Geometric
    threshold: int
    keys: int
    levels: int

    def __post_init__(self) -> None:
        if self.keys * self.levels > MOST:
            raise ResourceLimit(
                "GRID",
                f"The grid has {self.keys * self.levels:.3g} cells.",
                "Empty cells are simulated on at most 2^40.",
                "Use coarser columns, or sba, which needs no grid.",
            )

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Price: that of noise on all cells."""
        return self.base.cost(tables, relation, max_rows)

    def info(self) -> NoiseInfo:
        """What is published about it."""
        return replace(self.base.info(), threshold=self.threshold)

    def add(self, cells: Cells, *, progress: Progress = silent) -> Cells:
        """Noisy cells above the threshold, sorted by (key, level)."""
        if isinstance(cells, Dense):
            noisy = self.base.add(cells, progress=progress).values
            return Dense(np.where(noisy > self.threshold, noisy, 0))
        occur = cells.values > 0
        held = cells.keys[occur] * np.uint64(self.levels) + cells.levels[occur]
        noisy = self.base.add(Dense(cells.values[occur])).values  # how many there are is secret
        places, values = survivors(
            self.keys * self.levels, self.base.scale, self.threshold, entropy.words
        )
        free = ~np.isin(places, held, assume_unique=True)
        kept = noisy > self.threshold
        where = np.concatenate([held[kept], places[free]])
        value = np.concatenate([noisy[kept], values[free]])
        order = np.argsort(where)
        where = where[order]
        width = np.uint64(self.levels)
        return Sparse(where // width, where % width, value[order])


def survivors(
    cells: int, scale: Fraction, threshold: int, words: Words64
) -> tuple[np.ndarray, np.ndarray]:
    """Which of so many empty cells have noise above a threshold, and what it is. Exact.

    Each cell survives independently with q = e^(-(t+1)/b) / (1 + e^(-1/b)). Candidates come with
    probability 1 - e^(-2^-k) >= q by geometric gaps, and stay with the ratio of the two.

    Args:
        cells: how many, <= 2^40.
        scale: b in counts.
        threshold: t >= 0.
        words: cryptographic 64-bit words.
    Returns:
        Increasing places uint64 (survivors,), and values int64, > threshold.
    """
    shift = _shift(scale, threshold)
    found, at = [], 0
    while at < cells:
        gaps = exponential_gaps(np.full(min(_BATCH, (cells - at >> shift) + 16), 1 << shift), words)
        places = at + np.cumsum(np.minimum(gaps, cells) + 1) - 1
        found.append(places[places < cells])
        at = int(places[-1]) + 1
    places = np.concatenate(found).astype(np.uint64) if found else np.empty(0, dtype=np.uint64)
    stay = bernoulli(lambda bits: _ratio(scale, threshold, shift, bits), len(places), words)
    places = places[stay]
    wide = np.full(len(places), scale.numerator, dtype=np.int64)
    more = exponential_gaps(wide, words) // scale.denominator
    return places, threshold + 1 + more


def exponential_gaps(unit: np.ndarray, words: Words64) -> np.ndarray:
    """Whole numbers X with P(X >= x) = e^(-x / unit), exactly.

    X = U + unit V: U below unit is kept with e^(-U / unit), V counts successes of e^-1.

    Args:
        unit: int64 (draws,), from 1 to 2^55.
    Source:
        [Canonne, Kamath, Steinke 2020, alg. 2].
    """
    size = unit.astype(np.uint64)
    low = bounded(size, words)
    pending = np.flatnonzero(~bernoulli_exp(low, size, words))
    while len(pending):
        low[pending] = bounded(size[pending], words)
        pending = pending[~bernoulli_exp(low[pending], size[pending], words)]
    high = np.zeros(len(size), dtype=np.uint64)
    pending = np.arange(len(size))
    while len(pending):
        one = np.ones(len(pending), dtype=np.uint64)
        pending = pending[bernoulli_exp(one, one, words)]
        high[pending] += np.uint64(1)
    return np.asarray((low + size * high).astype(np.int64))


def bernoulli_exp(part: np.ndarray, whole: np.ndarray, words: Words64) -> np.ndarray:
    """True with probability e^(-part / whole), exactly; 0 <= part <= whole.

    Source:
        [Canonne, Kamath, Steinke 2020, alg. 1].
    """
    out = np.zeros(len(part), dtype=bool)
    pending, count = np.arange(len(part)), 1
    while len(pending):
        again = bounded(whole[pending] * np.uint64(count), words) < part[pending]
        out[pending[~again]] = count % 2 == 1
        pending, count = pending[again], count + 1
    return out


def bernoulli(share: Callable[[int], int], count: int, words: Words64) -> np.ndarray:
    """True with a real probability p, given as share(bits) = floor(p 2^bits); bits of p as needed."""
    out = np.zeros(count, dtype=bool)
    pending, bits = np.arange(count), 64
    while len(pending):
        digit = np.uint64(share(bits) & ((1 << 64) - 1))
        taken = words(len(pending))
        out[pending] = taken < digit
        pending = pending[taken == digit]  # undecided: the next 64 bits tell, once in 2^64
        bits += 64
    return out


def survival(scale: Fraction, threshold: int, digits: int = 40) -> Decimal:
    """q, the probability that noise alone is above the threshold."""
    with localcontext() as context:
        context.prec = digits
        inverse = Decimal(scale.denominator) / Decimal(scale.numerator)
        return (-(threshold + 1) * inverse).exp() / (1 + (-inverse).exp())


@lru_cache(maxsize=64)
def threshold_for(cells: int, scale: Fraction, expected: float) -> int:
    """Least public threshold with at most `expected` survivors among that many empty cells."""
    low, high = -1, 1
    while cells * float(survival(scale, high)) > expected:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if cells * float(survival(scale, middle)) > expected:
            low = middle
        else:
            high = middle
    return max(high, 0)


@lru_cache(maxsize=64)
def _shift(scale: Fraction, threshold: int) -> int:
    """The largest k with 1 - e^(-2^-k) >= q, and room for places."""
    shift = 0
    while shift < 40 and _candidate(shift + 1, 60) >= survival(scale, threshold, 60):
        shift += 1
    return shift


def _candidate(shift: int, digits: int) -> Decimal:
    with localcontext() as context:
        context.prec = digits
        return 1 - (-Decimal(1) / (1 << shift)).exp()


@lru_cache(maxsize=64)
def _ratio(scale: Fraction, threshold: int, shift: int, bits: int) -> int:
    """floor(2^bits q / (1 - e^(-2^-k))), below 2^bits."""
    digits = 60 + bits
    with localcontext() as context:
        context.prec = digits
        ratio = survival(scale, threshold, digits) / _candidate(shift, digits)
        return min(int(ratio * (1 << bits)), (1 << bits) - 1)
