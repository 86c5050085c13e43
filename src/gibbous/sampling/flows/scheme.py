"""What a run of onthemap promises and draws from, and the virtual records that keep it; all public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from gibbous.privacy.calibrate.probabilistic import (
    exact_delta,
    good_odds,
    kept_mass,
    near_alpha,
    odds,
    pure_alpha,
    reference_zero_sample,
    shrunken_loss,
    theorem44_limit,
)
from gibbous.sampling.flows.polya_urns import scaled
from gibbous.structure.regions import Pairs, Places, Regions

Bound = Literal["exact", "printed"]
Accept = Literal["none", "good", "rep"]
Keep = tuple[tuple[float, float], ...]
Coarsen = float | Literal["auto"]
By = Literal["distance", "density"]

GRAIN = 1 << 10  # prior weight of a cell without density; shaped priors are multiples of 1 / GRAIN
_BLOCK = 1.05  # cells whose virtual records differ by less are bounded together
_SET_ASIDE = (0.01, 0.03, 0.1, 0.25, 0.5, math.log(2), 2 * math.log(2), 3 * math.log(2))
_MISSED = 0.1  # share of delta for the event that shrinking keeps fewer origins than its bound


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """One destination's promise, and the public prior.

    Attributes:
        epsilon, delta: probabilistic DP of each destination and set.
        bound: how virtual records are chosen: the exact tail, or theorem 4.4 as printed (raised
            where the exact tail asks for more).
        accept: "good" draws again until gamma-Good.
        keep: ((miles, probability), ...): origins without records at that distance or beyond are
            kept in the domain with that probability; () keeps all.
        reach: origins beyond so many miles are not in a destination's domain; 0 for no limit.
        coarsen: origins are put together in squares as wide as this share of their distance, so that
            each destination has regions of its own; 0 keeps them apart. "auto": a share for each
            destination, from its public number of records.
        by: "density" takes that share of the public weight of nearer places instead.
        spread: virtual records of the average origin beyond the least, in multiples of it, shared
            out by public density.
        origins, destinations: public places; origins may be regions.
        regions: how places were coarsened to `origins`; None where they were not.
        earlier: pairs of an earlier public release: those are always kept.
    """

    epsilon: float
    delta: float
    bound: Bound = "exact"
    accept: Accept = "none"
    keep: Keep = ()
    reach: float = 0.0
    coarsen: Coarsen = 0.0
    by: By = "distance"
    spread: float = 0.0
    origins: Places | None = None
    destinations: Places | None = None
    regions: Regions | None = None
    earlier: Pairs | None = None

    @property
    def local(self) -> bool:
        """Whether each destination has a domain of its own."""
        return bool(self.keep) or self.reach > 0 or bool(self.coarsen)

    @property
    def least_kept(self) -> float:
        """The least probability to keep an origin."""
        return min((share for _, share in self.keep), default=1.0)

    def weights(self, cells: int) -> np.ndarray | None:
        """Prior weight of each cell, int64 (cells,), least about GRAIN; None for equal weights."""
        if self.spread == 0 or self.origins is None:
            return None
        density = self.origins.weights()
        more = np.floor(GRAIN * self.spread * density / density.mean())
        return np.asarray(GRAIN + more.astype(np.int64))

    def limit(self) -> float:
        """c, or gamma: a synthetic count above c (a + max(n - 1, 0)) may disclose."""
        if self.accept == "good":
            return good_odds(self.epsilon, self.delta)
        return odds(self.epsilon)


@dataclass(frozen=True, slots=True)
class Profile:
    """What the bound needs to know of a destination's domain.

    Attributes:
        cells: cells of each block of similar prior weight (expected number, under shrinking).
        low, high: least and largest weight of each block, in units of `least`.
        least: prior weight of the least cell.
        weight: of all cells together.
    """

    cells: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    least: int
    weight: int

    def effective(self, alpha: float, n: int, m: int) -> float:
        """The virtual records of a least cell that the integer urn really has."""
        ones, unit = scaled(alpha, self.least, self.weight, n, m)
        return ones * self.least / unit if unit else math.inf

    def delta(self, n: int, m: int, a: float, c: float, others: float) -> float:
        """Probability that the destination discloses, at most; `others` in least cells."""
        if math.isinf(a):
            return 0.0  # records have no weight at all
        ratios = np.array([self.low, self.high])
        cells = np.array(self.cells)
        return exact_delta(n, m, a, c, cells=cells, ratios=ratios, others=others * a)


def profile(weights: np.ndarray | None, cells: int, kept: np.ndarray | None = None) -> Profile:
    """Blocks of cells whose virtual records differ by less than 5 %.

    Args:
        weights: of the cells of the domain; None for equal ones.
        cells: how many.
        kept: probability that each is kept; None for certain.
    """
    if weights is None:
        share = float(cells if kept is None else kept.sum())
        return Profile((share,), (1.0,), (1.0,), 1, cells)
    ratio = weights / GRAIN
    block = np.floor(np.log(ratio) / math.log(_BLOCK)).astype(np.int64)
    names, place = np.unique(block, return_inverse=True)
    low, high = np.full(len(names), np.inf), np.zeros(len(names))
    np.minimum.at(low, place, ratio)
    np.maximum.at(high, place, ratio)
    counted = np.bincount(place, kept, len(names)).astype(np.float64)
    cells_of, least, most = (tuple(v.tolist()) for v in (counted, low, high))
    return Profile(cells_of, least, most, GRAIN, int(weights.sum()))


def alpha_for(scheme: Scheme, found: Profile, n: int, m: int, start: float | None = None) -> float:
    """Virtual records of a cell with the least weight, so that the destination keeps its promise.

    Args:
        found: the destination's domain.
        n, m: its records, public under the relation, and its synthetic people.
        start: the answer for a similar destination, where to look first.
    """
    if n == 0 or m == 0:
        return 1.0  # nobody to protect, or nothing drawn
    printed = scheme.epsilon if scheme.bound == "printed" else None
    others = found.weight / found.least - 1
    goal = _Goal(found, n, m, others, scheme.limit(), scheme.delta, printed)
    return _search(goal, start)


def shrunken_alpha(
    scheme: Scheme,
    kept: np.ndarray,
    weights: np.ndarray | None,
    n: int,
    m: int,
    start: float | None = None,
) -> float:
    """The same when origins without records are kept with probability `kept` alone.

    What theorem 5.2 costs in epsilon is set aside first. |a| is read at its least: the kept
    origins that Chernoff's bound grants, with a share of delta for its failure; kept origins alone
    can disclose, so their expected number stands for k.

    Args:
        kept: probability of each origin of the destination's domain, float64 (origins,).
        weights: prior weights of those origins; None for equal ones.
        start: the answer for a similar destination.
    Returns:
        The alpha; infinite where no alpha leaves room for the cost of shrinking.
    """
    if n == 0 or m == 0:
        return 1.0
    missed = scheme.delta * _MISSED
    mass = kept_mass(kept, n, missed)
    found = profile(weights, len(kept), kept)
    sharp = scheme.bound == "exact"
    least = 0.0
    for extra in _SET_ASIDE if sharp else _SET_ASIDE[5:]:
        left = scheme.epsilon - math.log(1 / scheme.least_kept) - extra - 1e-12
        if extra < least or left <= 0:
            continue
        goal = _Goal(found, n, m, mass, odds(left), scheme.delta - missed, None if sharp else left)
        start = _search(goal, start)
        real = max(found.high) * found.effective(start, n, m)
        if math.isinf(real):
            break
        least = shrunken_loss(real, n, m, 1.0, sharp=sharp)
        if least <= extra:
            return start
    return math.inf  # the prior alone, over the whole domain: the caller does not shrink


@dataclass(frozen=True, slots=True)
class _Goal:
    """One destination's question: which alpha keeps delta at the limit c.

    `printed` is the epsilon of theorem 4.4 as printed, None for the exact tail alone.
    """

    found: Profile
    n: int
    m: int
    others: float
    c: float
    delta: float
    printed: float | None

    def passes(self, trial: float) -> bool:
        a = self.found.effective(trial, self.n, self.m)
        return self.found.delta(self.n, self.m, a, self.c, self.others) <= self.delta


@lru_cache(maxsize=4096)
def _search(goal: _Goal, start: float | None) -> float:
    """The alpha of the exact tail; or that of the printed theorem, raised where it is too low."""
    largest = pure_alpha(goal.m, goal.c)
    if goal.printed is None:
        return near_alpha(goal.passes, largest, start)
    trial = _printed(goal, goal.printed, largest, start)
    return trial if goal.passes(trial) else near_alpha(goal.passes, largest, trial)


def _printed(goal: _Goal, epsilon: float, largest: float, start: float | None) -> float:
    """An alpha that theorem 4.4 as printed accepts; theorem 4.1's where it accepts none."""
    n, k = goal.n, goal.found.weight / goal.found.least
    if goal.m != n or not epsilon > math.log(3):
        return largest
    limit, c = theorem44_limit(epsilon, goal.delta, k), odds(epsilon)

    def passes(a: float) -> bool:
        return reference_zero_sample(n, n, a, (k - 1) * a, c) <= limit

    return near_alpha(passes, largest, start) if passes(largest) else largest
