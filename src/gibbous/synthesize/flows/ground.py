"""The public ground of each destination: origins within reach, and how likely shrinking keeps each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.structure.regions import EARTH, Places, miles
from gibbous.synthesize.flows.scheme import Scheme

_SLACK = 1e-3  # miles: below it the short form of a distance is not relied on


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What is public about every destination's domain.

    Attributes:
        scheme: the promise; its origins may be regions.
        cells: origins of the whole domain.
        vectors: unit vectors of the places, float64 (places, 3); empty where a side has no
            coordinates.
    """

    scheme: Scheme
    cells: int
    vectors: np.ndarray

    @staticmethod
    def of(scheme: Scheme, cells: int) -> Ground:
        """The ground of so many origins."""
        here, there = _places(scheme), scheme.destinations
        if here is None or there is None or not here.located or not there.located:
            return Ground(scheme, cells, np.empty((0, 3)))
        return Ground(scheme, cells, _vectors(here.lat, here.lon))

    def shares(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Probability to keep each origin, and which are within reach.

        A region is as far as its nearest place. An unknown distance counts as the farthest step,
        within reach.

        Returns:
            float64 (origins,) and bool (origins,).
        """
        scheme = self.scheme
        share, inside = np.ones(self.cells), np.ones(self.cells, dtype=bool)
        if scheme.local:
            far = self.far(group)
            if scheme.reach > 0:
                inside = ~(far > scheme.reach)
            if scheme.keep:
                share = _steps(far, scheme.keep)
        if scheme.earlier is not None:
            share[scheme.earlier.of(group)] = 1.0
        return share, inside

    def domain(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Origins of a destination's domain, int64, and the probability to keep each; never empty."""
        share, inside = self.shares(group)
        if inside.all() or not inside.any():
            return np.arange(self.cells), share
        domain = np.flatnonzero(inside)
        return domain, share[domain]

    def covers(self, groups: np.ndarray, cells: np.ndarray) -> bool:
        """Whether all pairs are known to be within reach; False also where that takes a closer look.

        Args:
            groups, cells: destinations and origins of the pairs, int64 (pairs,).
        """
        here, there, scheme = self.scheme.origins, self.scheme.destinations, self.scheme
        if here is None or there is None or len(self.vectors) == 0:
            return True
        if scheme.regions is not None:
            return False  # distances are those of their places
        far = miles(there.lat[groups], there.lon[groups], here.lat[cells], here.lon[cells])
        return not bool((far > scheme.reach).any())

    def far(self, group: int) -> np.ndarray:
        """Miles of each origin, on the right side of every limit of the scheme; NaN where unknown.

        The short form (the angle between unit vectors) costs a fraction of the haversine. It is off
        by less than a thousandth of a mile; distances that are nearer to a limit are computed as
        those of the records are.
        """
        here, there = _places(self.scheme), self.scheme.destinations
        if here is None or there is None or len(self.vectors) == 0:
            return np.full(self.cells, np.nan)
        lat, lon = there.lat[group], there.lon[group]
        cosine = (
            self.vectors @ _vectors(there.lat[group : group + 1], there.lon[group : group + 1])[0]
        )
        far: np.ndarray = EARTH * np.arccos(np.clip(cosine, -1.0, 1.0))
        for limit in (self.scheme.reach, *(near for near, _ in self.scheme.keep)):
            close = np.flatnonzero(np.abs(far - limit) < _SLACK)
            far[close] = miles(lat, lon, here.lat[close], here.lon[close])
        regions = self.scheme.regions
        if regions is not None:
            far = np.fmin.reduceat(far[regions.order], regions.starts[:-1])
        return far


def _places(scheme: Scheme) -> Places | None:
    return scheme.regions.members if scheme.regions is not None else scheme.origins


def _vectors(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    up, turn = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], axis=1)


def _steps(far: np.ndarray, keep: tuple[tuple[float, float], ...]) -> np.ndarray:
    """The share of the last step that begins at or before each distance; the last one for NaN."""
    at = np.zeros(len(far), dtype=np.int64)
    for near, _ in keep[1:]:
        at += ~(far < near)
    found: np.ndarray = np.array([share for _, share in keep])[at]
    return found
