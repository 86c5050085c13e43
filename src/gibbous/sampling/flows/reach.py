"""The public ground of each destination: origins within reach, and how likely shrinking keeps each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gibbous.sampling.flows.halves import Halves, halves
from gibbous.sampling.flows.scheme import Keep, Scheme
from gibbous.structure.regions import EARTH, Places, miles

Side = Callable[[float], np.ndarray]
_FINEST = 2.0**-20  # miles: no square is narrower
_SLACK = 1e-3  # miles: below it the short form of a distance is not relied on


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What is public about every destination's domain.

    Attributes:
        scheme: the promise; its origins may be regions.
        cells: origins of the whole domain.
        order: places from south to north, those without coordinates last, int64 (places,).
        norths: latitudes of the others in that order, degrees.
        vectors: their unit vectors, float64 (located places, 3).
        earlier: origins of the pairs of an earlier release, by destination, int64 (pairs,).
        first: first pair of each destination, and the end; empty for no earlier release.
        tree: of the origins, where they are coarsened by density.
    """

    scheme: Scheme
    cells: int
    order: np.ndarray
    norths: np.ndarray
    vectors: np.ndarray
    earlier: np.ndarray
    first: np.ndarray
    tree: Halves | None = None

    @staticmethod
    def of(scheme: Scheme, cells: int) -> Ground:
        """The ground of so many origins."""
        here, there, none = _places(scheme), scheme.destinations, np.empty(0, dtype=np.int64)
        pairs, first = none, none
        if scheme.earlier is not None:
            by = np.argsort(scheme.earlier.destinations, kind="stable")
            pairs, groups = scheme.earlier.origins[by], scheme.earlier.destinations[by]
            last = max(int(groups[-1]) if len(groups) else -1, len(there or ()) - 1)
            first = np.searchsorted(groups, np.arange(last + 2))
        if here is None or there is None or not here.located or not there.located:
            return Ground(scheme, cells, none, np.empty(0), np.empty((0, 3)), pairs, first)
        by_north = here.lat if scheme.reach > 0 else np.zeros(len(here))  # a band is no use, else
        order = np.argsort(np.where(np.isnan(here.lat + here.lon), np.nan, by_north), kind="stable")
        known = order[: int(np.isfinite(here.lat + here.lon).sum())]
        lat, lon = here.lat[known], here.lon[known]
        tree = halves(here) if scheme.coarsen and scheme.by == "density" else None
        return Ground(scheme, cells, order, lat, _vectors(lat, lon), pairs, first, tree)

    def domain(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Origins of a destination's domain, and how likely shrinking keeps each.

        A region is as far as its nearest place. An unknown distance counts as the farthest step,
        within reach. A domain is never empty: where no origin is within reach, it has them all.

        Returns:
            int64 (origins,), sorted; and float64 (origins,).
        """
        scheme, share = self.scheme, np.ones(self.cells)
        inside = np.ones(self.cells, dtype=bool)
        if scheme.local:
            origins, side = self._seen(group, scheme.reach)
            within = ~(side(scheme.reach) > 0) if scheme.reach > 0 else np.ones(1, dtype=bool)
            if within.any() and scheme.reach > 0:
                inside[:] = False
                inside[origins] = within
            elif len(origins) < self.cells:
                origins, side = self._seen(group, 0.0)
            if scheme.keep:
                share[origins] = _kept(side, len(origins), scheme.keep)
        if len(self.first):
            share[self.earlier[self.first[group] : self.first[group + 1]]] = 1.0
        if inside.all():
            return np.arange(self.cells), share
        domain = np.flatnonzero(inside)
        return domain, share[domain]

    def nearest(self, cells: np.ndarray, domain: np.ndarray) -> np.ndarray:
        """The nearest origin of a domain to each of some origins, the first of equally near ones.

        Args:
            cells, domain: origins, int64 (some,) and (origins,); regions are where their centers are.
        """
        here = self.scheme.origins
        assert here is not None
        lat, lon, found = here.lat[domain], here.lon[domain], np.empty_like(cells)
        for at, cell in enumerate(cells.tolist()):
            far = miles(here.lat[cell], here.lon[cell], lat, lon)
            found[at] = domain[np.argmin(np.where(np.isnan(far), np.inf, far))]
        return found

    def squares(self, group: int, coarsen: float) -> np.ndarray:
        """For each origin the first origin of its square: the wider, the farther from the destination.

        A square is `coarsen` times the distance wide, rounded down to a power of two in miles; by
        density, it is a node of a k-d tree with at most `coarsen` times the weight of nearer places. It
        lies wholly within reach or beyond it. Places at unknown distance are together, or only with
        each other by density. 0: none are.

        Returns:
            int64 (origins,).
        """
        here, there = self.scheme.origins, self.scheme.destinations
        if coarsen == 0:
            return np.arange(self.cells)
        assert here is not None
        assert there is not None
        far = self.far(group)
        known = np.isfinite(far)
        if self.tree is not None:
            key = self.tree.cells(np.where(known, far, np.inf), coarsen).astype(np.float64)
        else:
            key = _squares(here, float(there.lat[group]), float(there.lon[group]), far * coarsen)
        if self.scheme.reach > 0:
            key = np.where(far > self.scheme.reach, key + 2.0**52, key)
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        return np.asarray(first[place])

    def _seen(self, group: int, reach: float) -> tuple[np.ndarray, Side]:
        """All origins that may be within reach (0: all origins), and on which side of a limit each is."""
        there = self.scheme.destinations
        if self.scheme.regions is not None or there is None or len(self.order) == 0:
            far = self.far(group)
            return np.arange(self.cells), lambda limit: far - limit
        north, lon = float(there.lat[group]), float(there.lon[group])
        part = slice(0, len(self.norths))
        if reach > 0 and math.isfinite(north):  # nothing beyond a band of latitudes is near
            half = math.degrees((reach + _SLACK) / EARTH)
            part = slice(*np.searchsorted(self.norths, [north - half, north + half]).tolist())
        toward = _vectors(np.array([north]), np.array([lon]))[0]
        cosine = np.clip(self.vectors[part] @ toward, -1.0, 1.0)
        known, unknown = self.order[part], self.order[len(self.norths) :]

        def side(limit: float) -> np.ndarray:
            found = self._side(group, known, cosine, limit)
            return np.concatenate([found, np.full(len(unknown), np.nan)]) if len(unknown) else found

        return np.concatenate([known, unknown]), side

    def _side(self, group: int, places: np.ndarray, cosine: np.ndarray, limit: float) -> np.ndarray:
        """Below 0 for places nearer than a limit, above 0 for farther ones, 0 at it; NaN if unknown.

        The cosine of the angle costs a fraction of the haversine, and is not off by a thousandth of
        a mile; distances that are nearer to the limit are computed as those of the records are.
        """
        here, there = self.scheme.origins, self.scheme.destinations
        assert here is not None
        assert there is not None
        angles = np.clip(np.array([-_SLACK, 0.0, _SLACK]) + limit, 0.0, math.pi * EARTH) / EARTH
        above, at, below = np.cos(angles)
        side: np.ndarray = at - cosine
        close = np.flatnonzero((cosine <= above) & (cosine >= below))
        lat, lon, which = there.lat[group], there.lon[group], places[close]
        side[close] = miles(lat, lon, here.lat[which], here.lon[which]) - limit
        return side

    def covers(self, groups: np.ndarray, cells: np.ndarray) -> bool:
        """Whether all pairs are known to be within reach; False also where that takes a closer look.

        Args:
            groups, cells: destinations and origins of the pairs, int64 (pairs,).
        """
        here, there, scheme = self.scheme.origins, self.scheme.destinations, self.scheme
        if here is None or there is None or len(self.order) == 0:
            return True
        if scheme.regions is not None:
            return False  # distances are those of their places
        far = miles(there.lat[groups], there.lon[groups], here.lat[cells], here.lon[cells])
        return not bool((far > scheme.reach).any())

    def far(self, group: int) -> np.ndarray:
        """Miles of each origin, a region's those of its nearest place; NaN where unknown."""
        here, there = _places(self.scheme), self.scheme.destinations
        if here is None or there is None or len(self.order) == 0:
            return np.full(self.cells, np.nan)
        far: np.ndarray = miles(there.lat[group], there.lon[group], here.lat, here.lon)
        regions = self.scheme.regions
        if regions is not None:
            far = np.fmin.reduceat(far[regions.order], regions.starts[:-1])
        return far


def _places(scheme: Scheme) -> Places | None:
    return scheme.regions.members if scheme.regions is not None else scheme.origins


def _squares(here: Places, lat: float, lon: float, width: np.ndarray) -> np.ndarray:
    """A number for each square around a destination, float64 (places,); infinite where unknown.

    Args:
        lat, lon: of the destination, degrees.
        width: of the square at each place at most, miles; NaN where unknown.
    """
    known = np.isfinite(width)
    size = np.floor(np.log2(np.maximum(np.where(known, width, 0.0), _FINEST)))
    turned = (here.lon - lon + 180.0) % 360.0 - 180.0
    degree = math.radians(1.0) * EARTH / 2.0**size
    east = np.floor(turned * np.cos(np.radians(here.lat)) * degree)
    north = np.floor((here.lat - lat) * degree)
    return np.where(known, (size * 2.0**23 + north) * 2.0**23 + east, np.inf)


def _vectors(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    up, turn = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], axis=1)


def _kept(side: Side, count: int, keep: Keep) -> np.ndarray:
    """The share of the last step that begins at or before each distance; the last one for NaN."""
    at = np.zeros(count, dtype=np.int64)
    for near, _ in keep[1:]:
        at += ~(side(near) < 0)
    return np.asarray(np.array([share for _, share in keep])[at])
