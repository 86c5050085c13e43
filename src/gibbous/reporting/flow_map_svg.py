"""One destination of a flow map as SVG: rings of distance, origins around it, a legend; no browser.

The projection is azimuthal equidistant around the destination: every origin is at its great-circle
distance and bearing, and rings are circles. `templates/flow_map.js` draws the same marks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from gibbous.reporting import theme
from gibbous.reporting.flow_map_data import Layer, MapData
from gibbous.reporting.svg_drawing import SVG
from gibbous.structure.regions import miles

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
COLORS: Final = {"synthetic": theme.MAIN, "real": theme.WARM}
MARKED: Final = "CONFIDENTIAL: real records beside synthetic ones"


def panel(data: MapData, layer: Layer, destination: int, view: int) -> str:
    """One panel as an <svg> element.

    Args:
        data: what the page draws from.
        layer: the table.
        destination: position among `data.destinations`.
        view: miles from the destination to the edge.
    """
    return tostring(_panel(data, layer, destination, view), encoding="unicode")


def picture(data: MapData, destination: int, view: int, *, title: str, notes: Sequence[str]) -> str:
    """All panels side by side with title, legend and notes: one SVG document.

    Args:
        title: one line above.
        notes: lines below.
    """
    wide = SIZE * len(data.layers)
    lines = [line for note in notes for line in wrap(note, int((wide - 32) / (12 * EM)))]
    shaded = any(outline.closed and outline.id for outline in data.outlines)
    top = SIZE + (94 if shaded else 68)
    root = Element("svg", xmlns=SVG, viewBox=f"0 0 {wide} {top + 17 * len(lines)}")
    if data.internal:
        from gibbous.reporting.html_page import INTERNAL

        SubElement(root, "desc").text = f"CONFIDENTIAL: {INTERNAL}"
    SubElement(root, "rect", width="100%", height="100%", fill=theme.PAPER)
    room = wide - 32 - (2 * SIZE // 3 if data.internal else 0)
    size = min(15, max(10, int(room / (EM * len(title)))))
    most = int(room / (EM * size))
    _text(root, 16, 24, title if len(title) <= most else f"{title[: most - 1]}…", size=size)
    if data.internal:
        _text(root, wide - 16, 24, MARKED, size=13, ink=theme.WARM, anchor="end")
    for k, layer in enumerate(data.layers):
        part = _panel(data, layer, destination, view)
        part.set("x", str(SIZE * k))
        part.set("y", "44")
        part.set("width", str(SIZE))
        part.set("height", str(SIZE))
        root.append(part)
        _text(root, SIZE * k + SIZE / 2, 42, layer.name, anchor="middle")
    if shaded:
        _shades(root, SIZE + 66)
    for k, line in enumerate(lines):
        _text(root, 16, top + 17 * k, line, size=12, ink=theme.MUTED)
    return tostring(root, encoding="unicode")


def places_on(
    data: MapData, destination: int, lat: np.ndarray, lon: np.ndarray, view: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where points lie in a panel, px; NaN without coordinates.

    Args:
        lat, lon: degrees.
        view: miles from the destination to the edge.
    """
    at = int(data.destinations[destination])
    far = miles(data.lat[at], data.lon[at], lat, lon) * (RADIUS / view)
    one, two = math.radians(data.lat[at]), np.radians(lat)
    turn = np.radians(lon - data.lon[at])
    east = np.sin(turn) * np.cos(two)
    north = math.cos(one) * np.sin(two) - math.sin(one) * np.cos(two) * np.cos(turn)
    bearing = np.arctan2(east, north)
    return SIZE / 2 + far * np.sin(bearing), SIZE / 2 - far * np.cos(bearing)


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of circles, equal in all panels of a destination.

    Attributes:
        most: the largest count of one pair.
        largest: its radius, px.
    """

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


def _panel(data: MapData, layer: Layer, destination: int, view: int) -> Element:
    root = Element("svg", xmlns=SVG, viewBox=f"0 0 {SIZE} {SIZE}")
    root.set("aria-hidden", "true")
    origins, counts = layer.part(destination)
    people = dict(zip(origins.tolist(), counts.tolist(), strict=True))
    shown = _areas(root, data, destination, view, people)
    for share in RINGS:
        SubElement(
            root, "circle", cx=_n(SIZE / 2), cy=_n(SIZE / 2), r=_n(RADIUS * share), fill="none",
            stroke=theme.MUTED if share == 1 else theme.BASE,
        )  # fmt: skip
    _dots(root, data, layer, destination, view, shown)
    for share in RINGS:
        _over(root, SIZE / 2 + 4, SIZE / 2 - RADIUS * share + 15, f"{view * share:,.6g} mi")
    middle = _n(SIZE / 2)
    # Open, so that people who live where they work are seen.
    SubElement(
        root, "path", d=f"M{middle},{_n(SIZE / 2 - 9)}l9,9l-9,9l-9,-9z", fill="none",
        stroke=theme.INK,
    ).set("stroke-width", "2")  # fmt: skip
    _sizes(root, Scale.of(data, destination))
    return root


def _sizes(root: Element, scale: Scale) -> None:
    """What circles mean, in the lower left corner: drawn to the scale of the panel itself."""
    for k, (radius, words) in enumerate(scale.legend()):
        y = SIZE - 20 - 26 * k
        SubElement(root, "circle", cx="20", cy=_n(y), r=_n(radius), fill="none", stroke=theme.INK)
        _over(root, 44, y + 4, words).set("class", "size")


def _dots(
    root: Element, data: MapData, layer: Layer, destination: int, view: int, shown: set[str]
) -> None:
    """A circle for each origin in view that no area stands for, the largest first."""
    origins, counts = layer.part(destination)
    x, y = places_on(data, destination, data.lat[origins], data.lon[origins], view)
    far = data.distances(destination, origins)
    scale = Scale.of(data, destination)
    for k in np.argsort(-counts, kind="stable").tolist():
        name = data.ids[int(origins[k])]
        if not far[k] <= view or name in shown:
            continue
        dot = SubElement(
            root, "circle", cx=_n(x[k]), cy=_n(y[k]), r=_n(scale.radius(int(counts[k]))),
            fill=COLORS[layer.name], stroke=theme.PAPER,
        )  # fmt: skip
        dot.set("class", "origin")
        dot.set("fill-opacity", "0.75")
        SubElement(dot, "title").text = f"{name}: {counts[k]:,}, {far[k]:.1f} miles"


def _areas(
    root: Element, data: MapData, destination: int, view: int, people: dict[int, int]
) -> set[str]:
    """Outlines, shaded where they are the area of an origin; returns the ids that are shaded."""
    count = {data.ids[at]: n for at, n in people.items()}
    shaded: set[str] = set()
    for outline in data.outlines:
        parts, inside = [], False
        for ring in outline.rings:
            lat, lon = np.array(ring).T
            x, y = places_on(data, destination, lat, lon, view)
            inside |= bool((np.hypot(x - SIZE / 2, y - SIZE / 2) <= RADIUS).any())
            parts.append("M" + "L".join(f"{_n(a)},{_n(b)}" for a, b in zip(x, y, strict=True)))
        if not inside:
            continue
        n = count.get(outline.id, 0) if outline.closed else 0
        drawn = SubElement(root, "path", d=("Z" if outline.closed else "").join([*parts, ""]))
        drawn.set("fill", shade(n) if n else "none")
        drawn.set("stroke", theme.BASE)
        if n:
            drawn.set("class", "origin")
            SubElement(drawn, "title").text = f"{outline.id}: {n:,}"
            shaded.add(outline.id)
    return shaded


def _shades(root: Element, y: float) -> None:
    """What the shades of regions mean."""
    for k, (low, color) in enumerate(zip(BREAKS, SHADES, strict=True)):
        x = 16 + 86 * k
        SubElement(
            root, "rect", x=_n(x), y=_n(y - 7), width="14", height="14", fill=color,
            stroke=theme.BASE,
        )  # fmt: skip
        _text(root, x + 18, y + 4, f"{low}+ people" if k == 0 else f"{low}+")


def _over(root: Element, x: float, y: float, words: str) -> Element:
    """Words that stay readable above lines and circles."""
    label = _text(root, x, y, words)
    label.set("stroke", theme.PAPER)
    label.set("stroke-width", "3")
    label.set("paint-order", "stroke")
    return label


def _text(
    root: Element, x: float, y: float, words: str, *, size: int = 13, ink: str = theme.INK,
    anchor: str = "start",
) -> Element:  # fmt: skip
    label = SubElement(root, "text", x=_n(x), y=_n(y), fill=ink)
    label.set("font-family", theme.FONT)
    label.set("font-size", str(size))
    label.set("text-anchor", anchor)
    label.text = words
    return label


def _n(value: float) -> str:
    return f"{value:.1f}"
