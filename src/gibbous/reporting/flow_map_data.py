"""What a flow map shows: places that occur, and for each destination its origins, as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean
from gibbous.flows import Flows, Geography
from gibbous.reporting.geojson import Outline
from gibbous.structure.regions import EARTH, miles

MOST_PAIRS: Final = 600_000  # in one page: about 4 MB
VIEWS: Final = (1, 2, 4, 6, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500, 1000, 3000, 12500)
"""Miles, or kilometers, from the destination to the edge of a drawing."""
Unit = Literal["miles", "km"]
IN_A_MILE: Final = {"miles": 1.0, "km": 1.609344}
LOOKED_AT: Final = 20_000  # ids that a misspelled one is compared with
WITHIN: Final = 0.95  # share of located people that the first view holds


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Layer:
    """Flows of one table: origins of destination d are at first[d]:first[d + 1].

    Attributes:
        first: int64 (destinations + 1,).
        origins: places, int64 (pairs,).
        counts: records, int64 (pairs,).
    """

    name: str
    first: np.ndarray
    origins: np.ndarray
    counts: np.ndarray

    def part(self, destination: int) -> tuple[np.ndarray, np.ndarray]:
        """Origins and counts of one destination."""
        span = slice(int(self.first[destination]), int(self.first[destination + 1]))
        return self.origins[span], self.counts[span]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapData:
    """All that a page draws from.

    Attributes:
        ids, names: of the places that occur, and what they are shown as.
        lat, lon: of these; NaN where a place has no coordinates.
        destinations: their places, int64 (destinations,).
        left_out: destinations of the release that are not in the page, because it would be too large.
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    lat: np.ndarray
    lon: np.ndarray
    destinations: np.ndarray
    layers: tuple[Layer, ...]
    outlines: tuple[Outline, ...] = ()
    left_out: int = 0
    unit: Unit = "miles"

    @property
    def internal(self) -> bool:
        """Whether real records are in it."""
        return len(self.layers) > 1

    def place(self, destination: str) -> int:
        """Position of a destination among those of the page; UsageError if it is none of them."""
        for k, at in enumerate(self.destinations.tolist()):
            if self.ids[at] == destination:
                return k
        raise no_destination(destination, np.array([self.ids[at] for at in self.destinations]))

    def distances(self, destination: int, origins: np.ndarray) -> np.ndarray:
        """Great-circle distances from places to a destination."""
        return self.far(destination, self.lat[origins], self.lon[origins])

    def far(self, destination: int, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
        """Great-circle distances of points from a destination, in the unit."""
        at = int(self.destinations[destination])
        return miles(self.lat[at], self.lon[at], lat, lon) * IN_A_MILE[self.unit]

    def view(self, destination: int) -> int:
        """The smallest view that holds 95 % of the people whose origin is located."""
        far, people = [], []
        for layer in self.layers:
            origins, counts = layer.part(destination)
            distance = self.distances(destination, origins)
            known = np.isfinite(distance)
            far.append(distance[known])
            people.append(counts[known])
        distance, weight = np.concatenate(far), np.concatenate(people)
        if len(distance) == 0:
            return VIEWS[4]
        order = np.argsort(distance)
        share = np.cumsum(weight[order]) / weight.sum()
        edge = distance[order][int(np.searchsorted(share, WITHIN - 1e-12))]
        return next((v for v in VIEWS if v >= edge), VIEWS[-1])

    def rows(self, destination: int) -> list[tuple[int, float, tuple[int, ...]]]:
        """Of each origin of a destination: its place, distance (NaN: unknown), people a layer; most first."""
        counts: dict[int, list[int]] = {}
        for k, layer in enumerate(self.layers):
            for place, count in zip(*(v.tolist() for v in layer.part(destination)), strict=True):
                counts.setdefault(place, [0] * len(self.layers))[k] = count
        order = sorted(counts, key=lambda place: [-n for n in counts[place]])
        far = self.distances(destination, np.array(order, dtype=np.int64)).tolist()
        return [(place, f, tuple(counts[place])) for place, f in zip(order, far, strict=True)]

    def payload(self) -> dict[str, Any]:
        """Plain JSON values for the script of the page."""
        return {
            "ids": list(self.ids),
            "names": list(self.names),
            "unit": self.unit,
            "earth": EARTH * IN_A_MILE[self.unit],
            "lat": _rounded(self.lat),
            "lon": _rounded(self.lon),
            "destinations": self.destinations.tolist(),
            "layers": [
                {
                    "name": layer.name,
                    "first": layer.first.tolist(),
                    "origins": layer.origins.tolist(),
                    "counts": layer.counts.tolist(),
                }
                for layer in self.layers
            ],
            "outlines": [outline.to_json() for outline in self.outlines],
            "views": list(VIEWS),
            "within": WITHIN,
        }


def map_data(
    synthetic: Flows,
    geography: Geography,
    *,
    destination: str,
    real: Flows | None = None,
    outlines: Sequence[Outline] = (),
    most: int = MOST_PAIRS,
    names: Mapping[str, str] = MappingProxyType({}),
    unit: Unit = "miles",
) -> MapData:
    """Choose the destinations that fit into a page, the asked one first, and renumber their places.

    Args:
        names: id -> what the place is called; the id follows it in brackets.
    Raises:
        UsageError: the destination is not declared, or nobody goes there; the flows are confidential
            but were not given as real.
    """
    if synthetic.secret:
        raise UsageError(
            "MAPSECRET",
            "Confidential flows were given in the place of synthetic ones.",
            "A map shows synthetic flows; real ones stand beside them, in internal maps alone.",
            "Give the release, and confidential flows as real=.",
        )
    tables = [synthetic] if real is None else [synthetic, real]
    kept, left_out = _kept(tables, geography, destination, most)
    parts = [_of(table, kept, len(geography.destinations)) for table in tables]
    seen = np.unique(np.concatenate([origins for _, origins, _ in parts]))
    here, there = geography.origins, geography.destinations
    ids, lat, lon, where = _joined(here, there, seen, kept)
    shown = tuple(f"{names[one]} ({one})" if names.get(one) else one for one in ids)
    layers = tuple(
        Layer(name, first, np.searchsorted(seen, origins), counts)
        for name, (first, origins, counts) in zip(("synthetic", "real"), parts, strict=False)
    )
    return MapData(ids, shown, lat, lon, where, layers, tuple(outlines), left_out, unit)


def no_destination(destination: str, among: np.ndarray) -> UsageError:
    """The error for a destination that a map does not have."""
    ids = [str(i) for i in among[:LOOKED_AT]]
    fix = did_you_mean(destination, ids, "Check the id; ids are compared as text.")
    if len(among) == 0:
        fix = "No row came out: use a larger epsilon, or coarser origins (a level)."
    return UsageError(
        "NODESTINATION",
        f"There is no destination {destination!r} to which anybody goes.",
        f"It is an id of the coordinates that occurs in the synthetic flows; {len(among):,} do.",
        fix,
    )


def _kept(
    tables: Sequence[Flows], geography: Geography, destination: str, most: int
) -> tuple[np.ndarray, int]:
    """Destinations of the page in order of their codes, and how many were left out."""
    first = np.flatnonzero(geography.destinations.ids == destination)
    count = len(geography.destinations)
    pairs = np.bincount(np.concatenate([t.destinations for t in tables]), minlength=count)
    if len(first) == 0 or pairs[first[0]] == 0:
        # Of the synthetic flows alone: which destinations occur in records may be nobody's business.
        raise no_destination(destination, geography.destinations.ids[tables[0].totals(count) > 0])
    people = tables[0].totals(count)
    order = np.argsort(-people, kind="stable")
    order = np.concatenate([first[:1], order[order != first[0]]])
    order = order[pairs[order] > 0]
    fits = np.cumsum(pairs[order]) <= most
    fits[0] = True
    return np.sort(order[fits]), int((~fits).sum())


def _of(flows: Flows, kept: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    inside = np.zeros(count, dtype=bool)
    inside[kept] = True
    on = inside[flows.destinations]
    first = np.searchsorted(flows.destinations[on], np.append(kept, count))
    return first, flows.origins[on], flows.counts[on]


def _joined(
    here: Any, there: Any, seen: np.ndarray, kept: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray]:
    names = (*here.ids[seen].tolist(), *there.ids[kept].tolist())
    spots = []
    for axis in ("lat", "lon"):
        both = [
            getattr(p, axis)[at] if p.located else np.full(len(at), np.nan)
            for p, at in ((here, seen), (there, kept))
        ]
        spots.append(np.concatenate(both))
    return names, spots[0], spots[1], np.arange(len(seen), len(names))


def _rounded(values: np.ndarray) -> list[float | None]:
    return [None if v != v else round(v, 6) for v in values.tolist()]
