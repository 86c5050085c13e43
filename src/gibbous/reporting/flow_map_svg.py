"""One destination of a flow map as SVG: rings of distance, origins around it, a legend; no browser.

The projection is azimuthal equidistant around the destination: every origin is at its great-circle
distance and bearing, and rings are circles. `templates/flow_map.svg` and `flow_map.js` draw the same marks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

import numpy as np

from gibbous.reporting import theme
from gibbous.reporting.flow_map_data import Layer, MapData
from gibbous.reporting.svg_drawing import SVG
from gibbous.write.rendering import render

SIZE: Final = 520  # px of a panel
RADIUS: Final = 246  # px from the destination to the edge of the view
LARGEST: Final = 16.0  # px, radius of the largest circle, where there are few of them
CROWD: Final = (
    180.0  # px: n circles have at most CROWD / sqrt(n), so that they do not cover each other
)
LEAST: Final = 2.0
EM: Final = 0.53  # of the size of the letters: more than the average one is wide
RINGS: Final = (0.25, 0.5, 0.75, 1.0)  # of the view
BREAKS: Final = (1, 2, 5, 20)
"""From how many people on a region has the next darker shade."""
SHADES: Final = theme.SEQUENTIAL[1:]
SHORT: Final = {"miles": "mi", "km": "km"}
COLORS: Final = {"synthetic": theme.MAIN, "real": theme.WARM}
MARKED: Final = "CONFIDENTIAL: real records beside synthetic ones"


def panel(data: MapData, layer: Layer, destination: int, view: int) -> str:
    """One panel as an <svg> element.

    Args:
        destination: position among `data.destinations`.
        view: from the destination to the edge, in the unit of distances.
    """
    return _drawn(data, (layer,), destination, view, title="")


def picture(data: MapData, destination: int, view: int, *, title: str, notes: Sequence[str]) -> str:
    """All panels side by side with title, legend and notes: one SVG document."""
    from gibbous.reporting.html_page import INTERNAL

    wide = SIZE * len(data.layers)
    shaded = any(outline.closed and outline.id for outline in data.outlines)
    room = wide - 32 - (2 * SIZE // 3 if data.internal else 0)
    letters = min(15, max(10, int(room / (EM * len(title)))))
    most = int(room / (EM * letters))
    return _drawn(
        data,
        data.layers,
        destination,
        view,
        title=title if len(title) <= most else f"{title[: most - 1]}…",
        letters=letters,
        wide=wide,
        top=SIZE + (94 if shaded else 68),
        lines=[line for note in notes for line in wrap(note, int((wide - 32) / (12 * EM)))],
        internal=INTERNAL if data.internal else "",
        marked=MARKED,
        shades=list(zip(BREAKS, SHADES, strict=True)) if shaded else [],
    )


def places_on(
    data: MapData, destination: int, lat: np.ndarray, lon: np.ndarray, view: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where points lie in a panel, px; NaN without coordinates.

    Args:
        lat, lon: degrees.
        view: from the destination to the edge, in the unit of distances.
    """
    at = int(data.destinations[destination])
    far = data.far(destination, lat, lon) * (RADIUS / view)
    one, two = math.radians(data.lat[at]), np.radians(lat)
    turn = np.radians(lon - data.lon[at])
    east = np.sin(turn) * np.cos(two)
    north = math.cos(one) * np.sin(two) - math.sin(one) * np.cos(two) * np.cos(turn)
    bearing = np.arctan2(east, north)
    return SIZE / 2 + far * np.sin(bearing), SIZE / 2 - far * np.cos(bearing)


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of circles, px, equal in all panels of a destination: `largest` for the count `most`."""

    most: int
    largest: float

    @staticmethod
    def of(data: MapData, destination: int) -> Scale:
        """The scale of one destination."""
        parts = [layer.part(destination)[1] for layer in data.layers]
        most = max(int(counts.max(initial=1)) for counts in parts)
        crowd = max(1, *(len(counts) for counts in parts))
        return Scale(most, min(LARGEST, max(5.0, CROWD / math.sqrt(crowd))))

    def legend(self) -> tuple[tuple[float, str], ...]:
        """Radii and what they stand for, the largest first."""
        small = max(1, int(max(self.most, 4) * (LEAST / self.largest) ** 2))
        sizes = [
            (self.radius(self.most), f"{self.most:,} {'people' if self.most > 1 else 'person'}")
        ]
        middle = round(self.most / 4)
        if small < middle:
            sizes.append((self.radius(middle), f"{middle:,}"))
        if small < self.most:
            sizes.append((self.radius(1), "1" if small == 1 else f"1 to {small:,}"))
        return tuple(sizes)

    def radius(self, count: int) -> float:
        """Radius of a circle whose area is in proportion to its people, px; never too small to see."""
        return max(LEAST, self.largest * math.sqrt(count / max(self.most, 4)))


def shade(count: int) -> str:
    """Color of a region with so many people, at least 1."""
    return SHADES[sum(count >= b for b in BREAKS) - 1]


def _drawn(
    data: MapData, layers: Sequence[Layer], destination: int, view: int, **facts: Any
) -> str:
    parts = [_part(data, layer, destination, view) for layer in layers]
    scale = Scale.of(data, destination)
    frame = {
        "svg": SVG,
        "size": SIZE,
        "radius": RADIUS,
        "rings": RINGS,
        "theme": theme,
        "view": view,
        "unit": SHORT[data.unit],
    }
    sizes = scale.legend()  # drawn to the scale of the panel itself
    drawn = render(
        __name__.rpartition(".")[0], "flow_map.svg", parts=parts, sizes=sizes, **frame, **facts
    )
    return drawn.strip()


def _part(data: MapData, layer: Layer, destination: int, view: int) -> dict[str, Any]:
    """A panel's areas (path, fill, title), and a circle (x, y, radius, title) for each origin without one."""
    origins, counts = layer.part(destination)
    count = {data.ids[at]: n for at, n in zip(origins.tolist(), counts.tolist(), strict=True)}
    name = {data.ids[at]: data.names[at] for at in origins.tolist()}
    areas, shaded = [], set[str]()
    for outline in data.outlines:
        rings, inside = [], False
        for ring in outline.rings:
            lat, lon = np.array(ring).T
            x, y = places_on(data, destination, lat, lon, view)
            inside |= bool((np.hypot(x - SIZE / 2, y - SIZE / 2) <= RADIUS).any())
            rings.append("M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True)))
        if inside:
            n = count.get(outline.id, 0) if outline.closed else 0
            path = ("Z" if outline.closed else "").join([*rings, ""])
            areas.append(
                (path, shade(n) if n else "none", f"{name[outline.id]}: {n:,}" if n else "")
            )
            shaded |= {outline.id} if n else set()
    x, y = places_on(data, destination, data.lat[origins], data.lon[origins], view)
    far, scale = data.distances(destination, origins), Scale.of(data, destination)
    ids = [data.ids[at] for at in origins.tolist()]
    dots = [
        (
            x[k],
            y[k],
            scale.radius(int(counts[k])),
            f"{name[ids[k]]}: {counts[k]:,}, {far[k]:.1f} {data.unit}",
        )
        for k in np.argsort(-counts, kind="stable").tolist()  # the largest first
        if far[k] <= view and ids[k] not in shaded
    ]
    return {"name": layer.name, "color": COLORS[layer.name], "areas": areas, "dots": dots}
