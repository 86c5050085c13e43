"""What a run of onthemap promises and draws from: all public, fixed before a record is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gibbous.privacy.calibrate.probabilistic import good_odds, odds
from gibbous.structure.regions import Pairs, Places, Regions

Bound = Literal["exact", "printed"]
Accept = Literal["none", "good", "rep"]
Keep = tuple[tuple[float, float], ...]

GRAIN = 1 << 10  # prior weight of a cell without density; shaped priors are multiples of 1 / GRAIN


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
    spread: float = 0.0
    origins: Places | None = None
    destinations: Places | None = None
    regions: Regions | None = None
    earlier: Pairs | None = None

    @property
    def local(self) -> bool:
        """Whether each destination has a domain of its own."""
        return bool(self.keep) or self.reach > 0

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
