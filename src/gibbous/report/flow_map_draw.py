"""One destination of a flow map as SVG: rings of distance, origins around it, a legend; no browser.

The projection is azimuthal equidistant around the destination: every origin is at its great-circle
distance and bearing, and rings are circles. `templates/flow_map.js` draws the same marks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from gibbous.report import theme
from gibbous.report.draw import SVG
from gibbous.report.flow_map_data import Layer, MapData
from gibbous.structure.regions import miles

SIZE: Final = 520  # px of a panel
RADIUS: Final = 246  # px from the destination to the edge of the view
LARGEST: Final = 16.0  # px, radius of the largest circle, where there are few of them
CROWD: Final = (
    180.0  # px: n circles have at most CROWD / sqrt(n), so that they do not cover each other
)
LEAST: Final = 2.0
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
    root = Element("svg", xmlns=SVG, viewBox=f"0 0 {wide} {SIZE + 96 + 16 * len(notes)}")
    if data.internal:
        from gibbous.report.page import INTERNAL

        SubElement(root, "desc").text = f"CONFIDENTIAL: {INTERNAL}"
    SubElement(root, "rect", width="100%", height="100%", fill=theme.PAPER)
    _text(root, 16, 24, title, size=15)
    if data.internal:
        _text(root, wide - 16, 24, MARKED, size=13, ink=theme.WARM, anchor="end")
    for k, layer in enumerate(data.layers):
        part = _panel(data, layer, destination, view)
        part.set("x", str(SIZE * k))
        part.set("y", "44")
        part.set("width", str(SIZE))
        part.set("height", str(SIZE))
        root.append(part)
        _text(root, SIZE * k + SIZE / 2, 42, layer.name, size=13, anchor="middle")
    _legend(root, data, destination, SIZE + 70)
    for k, note in enumerate(notes):
        _text(root, 16, SIZE + 100 + 16 * k, note, ink=theme.MUTED)
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
        label = _text(
            root, SIZE / 2 + 4, SIZE / 2 - RADIUS * share + 13, f"{view * share:,.6g} mi", size=11
        )
        label.set("stroke", theme.PAPER)
        label.set("stroke-width", "3")
        label.set("paint-order", "stroke")
    middle = _n(SIZE / 2)
    SubElement(
        root, "path", d=f"M{middle},{_n(SIZE / 2 - 8)}l8,8l-8,8l-8,-8z",
        fill=theme.INK, stroke=theme.PAPER,
    )  # fmt: skip
    return root


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


def _legend(root: Element, data: MapData, destination: int, y: float) -> None:
    scale = Scale.of(data, destination)
    x = 16.0
    for count in legend_counts(scale.most):
        r = scale.radius(count)
        SubElement(root, "circle", cx=_n(x + r), cy=_n(y), r=_n(r), fill="none", stroke=theme.INK)
        _text(root, x + 2 * r + 6, y + 4, f"{count:,} people" if count > 1 else "1 person")
        x += 2 * r + 90
    if any(outline.closed and outline.id for outline in data.outlines):
        for low, color in zip(BREAKS, SHADES, strict=True):
            SubElement(
                root, "rect", x=_n(x), y=_n(y - 7), width="14", height="14", fill=color,
                stroke=theme.BASE,
            )  # fmt: skip
            _text(root, x + 18, y + 4, f"{low}+")
            x += 56


def legend_counts(most: int) -> tuple[int, ...]:
    """Counts that a legend of circles shows."""
    return tuple(dict.fromkeys((1, max(1, round(most / 4)), most)))


def _text(
    root: Element, x: float, y: float, words: str, *, size: int = 12, ink: str = theme.INK,
    anchor: str = "start",
) -> Element:  # fmt: skip
    made = SubElement(root, "text", x=_n(x), y=_n(y), fill=ink)
    made.set("font-family", theme.FONT)
    made.set("font-size", str(size))
    made.set("text-anchor", anchor)
    made.text = words
    return made


def _n(value: float) -> str:
    return f"{value:.1f}"
