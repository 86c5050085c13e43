"""GeoJSON in, outlines out: rings and lines in degrees, checked; names and styles are not read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gibbous.core.documents import Unreadable, json_value, read_bytes
from gibbous.core.errors import InputRejected

MOST_BYTES: Final = 64 << 20
MOST_POINTS: Final = 200_000
_LINES: Final = {"LineString": 0, "MultiLineString": 1}
_AREAS: Final = {"Polygon": 1, "MultiPolygon": 2}


@dataclass(frozen=True, slots=True)
class Outline:
    """One feature.

    Attributes:
        id: of the feature, as text; empty for none. The area of an origin has the origin's id.
        closed: an area, not a line.
        rings: of each ring, or line, (lat, lon) in degrees.
    """

    id: str
    closed: bool
    rings: tuple[tuple[tuple[float, float], ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, coordinates flat."""
        rings = [[round(v, 5) for point in ring for v in point] for ring in self.rings]
        return {"id": self.id, "closed": self.closed, "rings": rings}


def read_outlines(path: str | Path, *, name: str = "id") -> tuple[Outline, ...]:
    """Read a GeoJSON file (longitude, latitude; RFC 7946).

    Args:
        path: a FeatureCollection, a feature or a geometry of polygons or lines.
        name: the property that holds the id, where a feature has no id of its own.
    Raises:
        InputRejected: the file is not GeoJSON, too large, or has coordinates out of range.
    """
    path = Path(path)
    try:
        value = json_value(read_bytes(path, MOST_BYTES))
    except Unreadable as error:
        raise _bad(path, f"it {error}") from None
    found, points = [], 0
    for feature in _features(value):
        outline = _outline(feature, name, path)
        if outline is not None:
            found.append(outline)
            points += sum(map(len, outline.rings))
    if not found:
        raise _bad(path, "it has no polygon and no line")
    if points > MOST_POINTS:
        raise _bad(path, f"it has {points:,} points; a page takes {MOST_POINTS:,}")
    return tuple(found)


def _features(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    if value.get("type") == "FeatureCollection" and isinstance(value.get("features"), list):
        for feature in value["features"]:
            yield from _features(feature)
    elif value.get("type") == "Feature":
        yield value
    else:
        yield {"geometry": value}


def _outline(feature: dict[str, Any], name: str, path: Path) -> Outline | None:
    shape = feature.get("geometry")
    kind = shape.get("type") if isinstance(shape, dict) else None
    depth = {**_LINES, **_AREAS}.get(str(kind))
    if depth is None or not isinstance(shape, dict):
        return None
    known = feature.get("properties")
    given = feature.get("id", known.get(name, "") if isinstance(known, dict) else "")
    rings = tuple(_ring(ring, path) for ring in _flat(shape.get("coordinates"), depth))
    rings = tuple(ring for ring in rings if len(ring) > 1)
    return Outline(str(given), kind in _AREAS, rings) if rings else None


def _flat(value: Any, depth: int) -> Iterator[Any]:
    if depth == 0:
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _flat(part, depth - 1)


def _ring(points: Any, path: Path) -> tuple[tuple[float, float], ...]:
    if not isinstance(points, list):
        raise _bad(path, "a geometry has no list of points")
    out = []
    for point in points:
        pair = point[:2] if isinstance(point, list) else []
        numbers = [v for v in pair if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
            raise _bad(path, "a point is not two numbers")
        if abs(numbers[1]) > 90 or abs(numbers[0]) > 180:
            raise _bad(path, "a point is out of range: longitude comes first, in degrees")
        out.append((float(numbers[1]), float(numbers[0])))
    return tuple(out)


def _bad(path: Path, why: str) -> InputRejected:
    return InputRejected(
        "GEOJSON",
        f"The outlines {path.name!r} cannot be used: {why}.",
        "Outlines are GeoJSON polygons or lines in degrees, longitude first.",
        "Simplify or convert the file, or leave the outlines out.",
    )
