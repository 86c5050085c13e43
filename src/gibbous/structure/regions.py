"""Public geography: places with coordinates and densities, regions they belong to, distances.

Nothing here has seen a record. Places are declared: a census list, a grid, an earlier publication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gibbous.core.errors import UsageError

EARTH = 3958.7613  # miles, mean radius (IUGG)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Places:
    """Candidate origins (or destinations), in a fixed public order. Position is the code.

    Attributes:
        ids: text (places,), unique.
        lat, lon: degrees, float64 (places,); NaN where a place has no coordinates; empty for none.
        density: public weight of each place, >= 0; empty for equal weights.
        parents: name of a hierarchy level -> region of each place, text (places,).
    """

    ids: np.ndarray
    lat: np.ndarray = field(default_factory=lambda: np.empty(0))
    lon: np.ndarray = field(default_factory=lambda: np.empty(0))
    density: np.ndarray = field(default_factory=lambda: np.empty(0))
    parents: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count, density = len(self.ids), self.density
        if not count:
            raise _bad("are none", "There is at least one", "List the candidate places")
        if len(np.unique(self.ids)) < count:
            raise _bad("repeat an id", "Ids are unique", "List each place once")
        _check_coordinates(self.lat, self.lon, count)
        if len(density) not in (0, count):
            raise _bad("and their densities differ in number", "One a place", "Correct density")
        if len(density) and not (
            np.isfinite(density).all() and density.min() >= 0 and density.any()
        ):
            raise _bad(
                "have a density that is negative, not finite, or 0 everywhere",
                "Densities are >= 0, with at least one above 0",
                "Correct density",
            )
        for name, of in self.parents.items():
            if len(of) != count:
                raise _bad(
                    f"have {len(of)} regions of level {name!r} for {count} places",
                    "One region a place",
                    "Correct parents",
                )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        where = "with coordinates" if self.located else "without coordinates"
        levels = f"; levels: {', '.join(self.parents)}" if self.parents else ""
        return f"<Places: {len(self)} {where}{levels}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    @property
    def located(self) -> bool:
        """Whether places have coordinates."""
        return len(self.lat) > 0

    def weights(self) -> np.ndarray:
        """Public weight of each place, float64 (places,)."""
        return self.density if len(self.density) else np.ones(len(self))

    def digest(self) -> str:
        """SHA-256 of everything that is declared: what a release names its geography by."""
        made = hashlib.sha256()
        for part in (self.lat, self.lon, self.density):
            made.update(np.ascontiguousarray(part, dtype="<f8").tobytes() + b"|")
        for name, texts in (("", self.ids), *sorted(self.parents.items())):
            made.update("\x1f".join((name, *map(str, texts))).encode())
        return made.hexdigest()

    def to_json(self) -> dict[str, object]:
        """Number of places and digest: the list itself is public and kept by whoever declared it."""
        return {"places": len(self), "sha256": self.digest()}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regions:
    """Places grouped by one level of a hierarchy.

    Attributes:
        places: the regions themselves: ids, weighted centers, total density.
        members: the places in them.
        of: region of each place, int64 (places,).
        order: places sorted by region, int64 (places,).
        starts: first position in `order` of each region, and the end, int64 (regions + 1,).
    """

    places: Places
    members: Places
    of: np.ndarray
    order: np.ndarray
    starts: np.ndarray

    def __repr__(self) -> str:
        return f"<Regions: {len(self.places)} of {len(self.of)} places>"

    @property
    def density(self) -> np.ndarray:
        """Public weight of each place, float64 (places,)."""
        return self.members.weights()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """Pairs of an earlier public release.

    Attributes:
        destinations, origins: codes, int64 (pairs,).
    """

    destinations: np.ndarray
    origins: np.ndarray

    def __repr__(self) -> str:
        return f"<Pairs: {len(self.origins)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(str(self.to_json()))

    def of(self, destination: int) -> np.ndarray:
        """Origins paired with a destination, int64."""
        origins: np.ndarray = self.origins[self.destinations == destination]
        return origins

    def to_json(self) -> dict[str, object]:
        """Number of pairs and digest."""
        order = np.lexsort((self.origins, self.destinations))
        text = np.stack([self.destinations[order], self.origins[order]]).astype("<i8").tobytes()
        return {"pairs": len(order), "sha256": hashlib.sha256(text).hexdigest()}


def places(
    ids: Sequence[object] | np.ndarray,
    lat: Sequence[float] | np.ndarray | None = None,
    lon: Sequence[float] | np.ndarray | None = None,
    *,
    density: Sequence[float] | np.ndarray | None = None,
    parents: Mapping[str, Sequence[object] | np.ndarray] | None = None,
) -> Places:
    """Declare places.

    Args:
        ids: one a place; compared as text.
        lat, lon: degrees; NaN where unknown.
        density: public weights, for example residents; >= 0.
        parents: hierarchy level -> region of each place.
    Raises:
        UsageError: lengths differ, an id is twice there, a coordinate is out of range, a place has
            no region in a level, or all densities are 0.
    """
    if (lat is None) != (lon is None):
        raise _bad("have one coordinate alone", "lat and lon come together", "Give both or none")
    return Places(
        np.asarray(ids).astype(str),
        np.empty(0) if lat is None else np.asarray(lat, dtype=np.float64),
        np.empty(0) if lon is None else np.asarray(lon, dtype=np.float64),
        np.empty(0) if density is None else np.asarray(density, dtype=np.float64),
        {name: _parent_texts(name, values) for name, values in (parents or {}).items()},
    )


def regions(among: Places, level: str) -> Regions:
    """Group places by a level of their hierarchy; UsageError if there is none."""
    if level not in among.parents:
        known = ", ".join(map(repr, among.parents)) or "none"
        raise _bad(
            f"have no level {level!r}",
            f"Levels are: {known}",
            "Declare it in parents= (a geography file: levels)",
        )
    names, of = np.unique(among.parents[level], return_inverse=True)
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(len(names) + 1))
    weights = among.weights()
    total = np.bincount(of, weights, len(names))
    made = Places(names, density=total)
    if among.located:
        center = [_centers(of, weights, total, values) for values in (among.lat, among.lon)]
        made = Places(names, center[0], center[1], total)
    return Regions(
        made, among, of.astype(np.int64), order.astype(np.int64), starts.astype(np.int64)
    )


def miles(
    lat: float | np.ndarray, lon: float | np.ndarray, lats: np.ndarray, lons: np.ndarray
) -> np.ndarray:
    """Great-circle distances in miles (haversine) of degrees, broadcast; NaN where a coordinate is."""
    one, two = np.radians(lat), np.radians(lats)
    across = np.radians(np.asarray(lons) - lon) / 2
    part = np.sin((two - one) / 2) ** 2 + np.cos(one) * np.cos(two) * np.sin(across) ** 2
    distance: np.ndarray = 2 * EARTH * np.arcsin(np.sqrt(np.clip(part, 0.0, 1.0)))
    return distance


def _centers(of: np.ndarray, weights: np.ndarray, total: np.ndarray, at: np.ndarray) -> np.ndarray:
    known = np.isfinite(at)
    mass = np.bincount(of[known], weights[known] + 1e-12, len(total))
    sums = np.bincount(of[known], (weights[known] + 1e-12) * at[known], len(total))
    centers: np.ndarray = np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), np.nan)
    return centers


def _parent_texts(name: str, values: Sequence[object] | np.ndarray) -> np.ndarray:
    given = np.asarray(values, dtype=object)
    absent = np.array([v is None or v != v or v == "" for v in given], dtype=bool)
    if absent.any():
        raise _bad(
            f"have no {name!r} in {int(absent.sum())} places, first at position {int(absent.argmax())}",
            "Every place has a region at every level",
            "Complete the hierarchy, or leave the level out",
        )
    return given.astype(str)


def _check_coordinates(lat: np.ndarray, lon: np.ndarray, count: int) -> None:
    if len(lat) not in (0, count) or len(lon) != len(lat):
        raise _bad("and their coordinates differ in number", "One pair a place", "Correct lat, lon")
    with np.errstate(invalid="ignore"):
        wrong = (np.abs(lat) > 90) | (np.abs(lon) > 180) | np.isinf(lat) | np.isinf(lon)
    if wrong.any():
        raise _bad(
            f"have {int(wrong.sum())} coordinates out of range, first at position {int(wrong.argmax())}",
            "Latitude is -90 to 90 degrees, longitude -180 to 180",
            "Check whether the two are swapped; leave unknown ones empty (NaN)",
        )
    if (np.isnan(lat) != np.isnan(lon)).any():
        raise _bad("have half a coordinate", "lat and lon are both known or both NaN", "Correct it")


def _bad(wrong: str, allowed: str, fix: str) -> UsageError:
    return UsageError("PLACES", f"The places {wrong}.", f"{allowed}.", f"{fix}.")
