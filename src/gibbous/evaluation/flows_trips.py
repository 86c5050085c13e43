"""Trips: flows with their distances; means, quantiles and transport distances, by destination."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.core.stream import stream_key, uniforms
from gibbous.evaluation.tables import permutation
from gibbous.flows import Flows, Geography, collected

_STREAM = 0x74726970  # "trip": apart from the streams of other references


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trips:
    """Flows of one table under a geography. Secret where the flows are.

    Attributes:
        far: great-circle miles of each pair, NaN without coordinates, float64 (pairs,).
        destinations, origins: how many places there are.
    """

    flows: Flows
    far: np.ndarray
    destinations: int
    origins: int

    def __repr__(self) -> str:
        return f"<Trips of {self.flows!r}>"

    @staticmethod
    def of(flows: Flows, geography: Geography) -> Trips:
        """Measure flows."""
        far = flows.distances(geography)
        return Trips(flows, far, len(geography.destinations), len(geography.origins))

    @property
    def totals(self) -> np.ndarray:
        """Records of each destination, int64 (destinations,)."""
        return self.flows.totals(self.destinations)

    @property
    def pairs(self) -> np.ndarray:
        """One number a pair, int64 (pairs,)."""
        return np.asarray(self.flows.destinations * self.origins + self.flows.origins)

    def means(self, below: float = np.inf) -> np.ndarray:
        """Mean miles to each destination, of trips shorter than `below` miles; NaN where there is none."""
        on = self.far < below  # not NaN
        groups, counts = self.flows.destinations[on], self.flows.counts[on]
        people = np.bincount(groups, counts, self.destinations)
        sums = np.bincount(groups, counts * self.far[on], self.destinations)
        return np.where(people > 0, sums / np.where(people > 0, people, 1.0), np.nan)

    def quantile(self, share: float) -> float:
        """The distance that this share of located people does not exceed, miles; NaN for nobody."""
        on = np.isfinite(self.far)
        order = np.argsort(self.far[on])
        sums = np.cumsum(self.flows.counts[on][order])
        if len(sums) == 0:
            return float("nan")
        return float(self.far[on][order][int(np.searchsorted(sums, share * sums[-1]))])

    def shares(self, cuts: tuple[float, float]) -> np.ndarray:
        """Shares of located people below the first cut, between the cuts, and beyond, float64 (3,)."""
        on = np.isfinite(self.far)
        kind = np.searchsorted(np.array(cuts), self.far[on], side="right")
        people = np.bincount(kind, self.flows.counts[on], 3)
        return np.asarray(people / people.sum() if people.sum() else np.full(3, np.nan))


def resampled(flows: Flows, seed: int, *stream: int) -> Flows:
    """As many records of each destination, drawn from its own with replacement."""
    last = np.cumsum(flows.counts)
    first = np.searchsorted(flows.destinations, flows.destinations, side="left")
    start = np.concatenate([[0], last])[first]
    end = last[np.searchsorted(flows.destinations, flows.destinations, side="right") - 1]
    width = np.repeat(end - start, flows.counts)
    unit = uniforms(stream_key(seed, _STREAM, *stream), 0, len(width))
    place = np.repeat(start, flows.counts) + np.minimum((unit * width).astype(np.int64), width - 1)
    origins = flows.origins[np.searchsorted(last, place, side="right")]
    return collected(np.repeat(flows.destinations, flows.counts), origins, secret=flows.secret)


def shuffled(flows: Flows, seed: int, *stream: int) -> Flows:
    """The same origins and the same totals of destinations, matched at random."""
    origins = np.repeat(flows.origins, flows.counts)
    order = permutation(len(origins), seed, _STREAM, *stream)
    destinations = np.repeat(flows.destinations, flows.counts)
    return collected(destinations, origins[order], secret=flows.secret)


def transport(real: Trips, other: Trips) -> float:
    """Wasserstein distance of order 1 of all distances, miles; NaN where either has none."""
    one, two = (_points(t) for t in (real, other))
    whole = (np.zeros_like(groups) for groups, _, _ in (one, two))
    return float(_areas((next(whole), *one[1:]), (next(whole), *two[1:]), 1)[0])


def transport_given(real: Trips, other: Trips) -> np.ndarray:
    """The same for each destination, float64 (destinations,); NaN where either has none."""
    return _areas(_points(real), _points(other), real.destinations)


def variation_given(real: Trips, other: Trips) -> np.ndarray:
    """Total variation distance of origins given each destination; NaN where either has nobody."""
    one, two = real.totals, other.totals
    both = (one > 0) & (two > 0)
    _, here, there = np.intersect1d(
        real.pairs, other.pairs, assume_unique=True, return_indices=True
    )
    groups = real.flows.destinations[here]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.minimum(
            real.flows.counts[here] / one[groups], other.flows.counts[there] / two[groups]
        )
    common = np.bincount(groups, np.nan_to_num(least), real.destinations)
    return np.where(both, np.maximum(0.0, 1.0 - common), np.nan)


_Points = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Groups, distances, counts."""


def _points(trips: Trips) -> _Points:
    on = np.isfinite(trips.far)
    return trips.flows.destinations[on], trips.far[on], trips.flows.counts[on]


def _areas(one: _Points, two: _Points, groups: int) -> np.ndarray:
    people = [np.bincount(g, c, groups) for g, _, c in (one, two)]
    both = (people[0] > 0) & (people[1] > 0)
    of = np.concatenate([one[0], two[0]])
    far = np.concatenate([one[1], two[1]])
    share = np.concatenate([one[2] / people[0][one[0]], -two[2] / people[1][two[0]]])
    keep = both[of]
    of, far, share = of[keep], far[keep], share[keep]
    order = np.lexsort((far, of))
    of, far, share = of[order], far[order], share[order]
    # Shares of a group add up to 0, so that the running sum starts anew in the next group.
    height = np.abs(np.cumsum(share))[:-1]
    width = np.where(np.diff(of) == 0, np.diff(far), 0.0)
    return np.where(both, np.bincount(of[:-1], height * width, groups), np.nan)
