"""Public places halved by weight again and again: a k-d tree, whose nodes can be cells of like weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gibbous.structure.regions import Places

_LEAST = 2.0**-20  # of the mean weight: no place weighs less


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """A k-d tree of places, level by level.

    Attributes:
        order: the places in an order in which each node is a run, int64 (places,).
        levels: first position of each node, the coarsest level first; the last has single places.
        weight: public weight of each place, > 0, float64 (places,).
    """

    order: np.ndarray
    levels: tuple[np.ndarray, ...]
    weight: np.ndarray

    def cells(self, far: np.ndarray, share: float) -> np.ndarray:
        """For each place its cell: the largest node of at most `share` of the weight of all nearer places.

        Args:
            far: miles of each place; infinite where unknown.
            share: > 0.
        Returns:
            Any number for each cell, the same for its places, int64 (places,).
        """
        by = np.argsort(far, kind="stable")
        nearer = np.empty(len(far))
        nearer[by] = np.cumsum(self.weight[by]) - self.weight[by]
        nearer, weight = nearer[self.order], self.weight[self.order]
        found = np.arange(len(far))
        for starts in reversed(self.levels):
            small = np.add.reduceat(weight, starts) <= share * np.minimum.reduceat(nearer, starts)
            sizes = np.diff(starts, append=len(far))
            found = np.where(np.repeat(small, sizes), np.repeat(starts, sizes), found)
        out = np.empty_like(found)
        out[self.order] = found
        return out


@lru_cache(maxsize=2)
def halves(places: Places) -> Halves:
    """Halve the places by public weight, across the longer side, until each is alone.

    Places without coordinates are apart from the others from the first level on.
    """
    unknown = np.isnan(places.lat + places.lon)
    north = np.where(unknown, 0.0, places.lat)
    east = np.where(unknown, 0.0, places.lon) * np.cos(np.radians(north.mean()))
    weight = np.maximum(places.weights(), _LEAST * places.weights().mean())
    order, starts = np.argsort(unknown, kind="stable"), np.unique([0, int((~unknown).sum())])
    starts, levels = starts[starts < len(order)], []
    while len(starts) < len(order):
        levels.append(starts)
        order, starts = _halved(order, starts, (north, east), weight)
    return Halves(order, (*levels, starts), weight)


def _halved(
    order: np.ndarray, starts: np.ndarray, sides: tuple[np.ndarray, np.ndarray], weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each node of several places cut in two, both with about half of its weight."""
    sizes = np.diff(starts, append=len(order))
    node = np.repeat(np.arange(len(starts)), sizes)
    along = [side[order] for side in sides]
    north, east = (np.maximum.reduceat(v, starts) - np.minimum.reduceat(v, starts) for v in along)
    order = order[np.lexsort((order, np.where((north > east)[node], *along), node))]
    mine = weight[order]
    sums = np.cumsum(mine)
    low, total = (sums - mine)[starts], np.add.reduceat(mine, starts)
    left = sums - mine / 2 - low[node] <= total[node] / 2
    left[starts + sizes - 1] = False
    left[starts] = True
    new = np.flatnonzero((np.diff(node) != 0) | (left[:-1] & ~left[1:])) + 1
    return order, np.concatenate([[0], new])
