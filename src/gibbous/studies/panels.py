"""Small multiples of lines: plain rows in, an Altair chart and an SVG file out, styled as the reports."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from gibbous.core.extras import need
from gibbous.reporting import theme
from gibbous.reporting.charts import NARROW, NUMBER, laid
from gibbous.studies.study_parts import Figure

Row = Mapping[str, Any]
WIDTH: Final = 760  # px of the whole drawing
HEIGHT: Final = 150  # px of one panel
_EDGE: Final = 62  # px that axis labels of one panel take
_FEW: Final = 10  # marks of an axis, and the largest of them
_DASHES: Final = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))


Kind = Literal["linear", "log"]
_MARK = re.compile(r'<path transform="translate\(([^,()]+),([^,()]+)\)" (d="[^"]*"[^<>]*?) ?/>')
_OFTEN = 4  # times that a mark is drawn, from which on a definition is shorter


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A grid of panels, in each one line a method; color, shape and dash tell methods apart.

    Attributes:
        panel: title of the panel, in the order of the rows.
        order: names of lines in the order of colors and legend; by default as they come.
        scales: of the two axes; with "log" rows that are not positive are left out.
        limits: of the y axis; values beyond are drawn at its edge.
        shared: one y axis for all panels; False: each panel its own.
        joined: False: points alone.
    """

    x: str
    y: str
    by: str
    panel: str
    order: Sequence[str] = ()
    titles: tuple[str, str] = ("", "")
    columns: int = 3
    scales: tuple[Kind, Kind] = ("linear", "linear")
    limits: tuple[float, float] | None = None
    reference: float | None = None
    shared: bool = True
    height: int = HEIGHT
    joined: bool = True

    def chart(self, rows: Sequence[Row]) -> Drawing:
        """The drawing of these rows; nothing is drawn yet."""
        shown = [row for row in map(dict, rows) if _drawn(row, (self.x, self.y), self.scales)]
        known = dict.fromkeys(str(row[self.by]) for row in shown)
        limits = self.limits
        if limits is None and self.shared and shown:
            limits = _range([float(row[self.y]) for row in shown], self.reference, self.scales[1])
        groups: dict[str, list[Row]] = {}
        for row in shown:
            point = {"x": row[self.x], "y": row[self.y], "by": str(row[self.by])}
            groups.setdefault(str(row[self.panel]), []).append(point)
        return Drawing(self, [n for n in (self.order or known) if n in known], limits, groups)

    def _axes(
        self,
        alt: Any,
        points: Sequence[Row],
        limits: tuple[float, float] | None,
        outer: tuple[bool, bool],
    ) -> dict[str, Any]:
        """The two axes of a panel, with a title where it stands at the edge (`outer`) of the grid."""
        titles = [t if edge and t else None for t, edge in zip(self.titles, outer, strict=True)]
        x = _marks([p["x"] for p in points], self.scales[0])
        y = _marks(limits or [p["y"] for p in points], self.scales[1], whole=limits is None)
        return {
            "x": alt.X("x:Q", title=titles[0], axis=alt.Axis(format=NUMBER, grid=False, **x),
                       scale=alt.Scale(type=self.scales[0], zero=False, nice=False, padding=6)),
            "y": alt.Y("y:Q", title=titles[1], axis=alt.Axis(format=NUMBER, **y),
                       scale=_scale(alt, limits, self.scales[1])),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """Points by panel: one picture of them all, or one a panel.

    Attributes:
        names: of the lines, in the order of their colors.
        limits: of a y axis that panels share.
        panels: title -> points.
    """

    lines: Lines
    names: Sequence[str]
    limits: tuple[float, float] | None
    panels: Mapping[str, Sequence[Row]]

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """All panels in one picture with a legend, in Vega-Lite; EngineFailure without the extra "report"."""
        alt, columns = need("altair", "report"), self.lines.columns
        size = {"width": max(90, WIDTH // columns - _EDGE), "height": self.lines.height}
        legend, drawn = alt.Legend(columns=4), []
        for at, (title, points) in enumerate(self.panels.items()):
            outer = (at + columns >= len(self.panels), at % columns == 0)
            layers = self._layers(alt, points, outer, legend)
            drawn.append(alt.layer(*layers).properties(title=title, **size))
        head = {
            "fontSize": theme.TITLE,
            "color": theme.INK,
            "fontWeight": "normal",
            "anchor": "start",
        }
        whole = alt.concat(*drawn, columns=columns, spacing=14)
        whole = whole.configure(**theme.config(), title=head, concat={"spacing": 14})
        return dict(whole.to_dict(validate=validate))

    def parts(self) -> dict[str, Any]:
        """Each panel as a small chart of its own, without title and legend; EngineFailure likewise."""
        alt = need("altair", "report")
        return {
            title: laid(alt, self._layers(alt, points, (True, True), None), NARROW,
                        height=self.lines.height)
            for title, points in self.panels.items()
        }  # fmt: skip

    @property
    def key(self) -> tuple[tuple[str, str, str], ...]:
        """(color, shape, words) of each line."""
        return tuple((*_style(place), name) for place, name in enumerate(self.names))

    def _layers(
        self, alt: Any, points: Sequence[Row], outer: tuple[bool, bool], legend: Any
    ) -> list[Any]:
        axes = self.lines._axes(alt, points, self.limits, outer)
        return _layers(alt, points, self.names, axes, self.lines, legend)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Where a logarithmic axis has labels and lines: few, at round numbers.

    Powers of ten where there are three at least, else 1 and 3 times them, or 1, 2 and 5 times; on a
    short axis even steps.
    """
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    tens = [10.0**k for k in range(first, last + 1)]
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        at = [float(f"{t * s:.6g}") for t in tens for s in steps]
        at = [v for v in at if low / 1.001 <= v <= high * 1.001]
        if len(at) >= 3:
            return at[:: -(-len(at) // most)]
    step = 10.0 ** math.floor(math.log10((high - low or high) / 2))
    step *= max(s for s in (1, 2, 5) if 2 * s * step <= (high - low or high))
    at = [float(f"{k * step:.6g}") for k in range(math.ceil(low / step), int(high / step) + 1)]
    return at or [low]


def _marks(values: Sequence[float], scale: str, *, whole: bool = True) -> dict[str, Any]:
    """Options of an axis: few lines, and those of a few small whole numbers at these.

    Args:
        values: what is drawn, or the ends of the axis.
        whole: False where they are ends: nothing says that what lies between is whole.
    """
    if scale == "log":
        return {"values": ticks(min(values), max(values))}
    known = sorted({float(v) for v in values})
    if whole and len(known) <= _FEW and all(v.is_integer() and 0 <= v <= _FEW for v in known):
        return {"values": known}
    return {"tickCount": 5}


def _style(place: int) -> tuple[str, str]:
    return theme.SERIES[place % len(theme.SERIES)]


def _layers(
    alt: Any, points: Sequence[Row], names: Sequence[str], place: Row, lines: Lines, legend: Any
) -> list[Any]:
    marks = [_style(i) for i in range(len(names))]
    dashes = [list(_DASHES[i % len(_DASHES)]) for i in range(len(names))]

    def by(kind: Any, values: Sequence[Any], legend: Any = legend) -> Any:
        return kind("by:N", legend=legend, scale=alt.Scale(domain=names, range=list(values)))

    data = alt.Chart(alt.InlineData(values=[dict(point) for point in points]))
    color = by(alt.Color, [mark[0] for mark in marks])
    layers = []
    if lines.reference is not None:
        rule = alt.Chart(alt.InlineData(values=[{"y": lines.reference}]))
        rule = rule.mark_rule(color=theme.MUTED, strokeDash=[4, 3])
        layers.append(rule.encode(y=place["y"]))
    if lines.joined:
        line = data.mark_line(strokeWidth=1.5, clip=True)
        dash = by(alt.StrokeDash, dashes, None)
        layers.append(line.encode(**place, color=color, strokeDash=dash))
    dots = data.mark_point(filled=lines.joined, size=26, opacity=1, clip=True)
    shape = by(alt.Shape, [mark[1] for mark in marks])
    layers.append(dots.encode(**place, color=color, shape=shape))
    return layers


def _drawn(row: Row, axes: tuple[str, str], scales: Sequence[str]) -> bool:
    values = [row.get(axis) for axis in axes]
    return all(
        isinstance(v, int | float) and abs(v) < float("inf") and (v > 0 or scale == "linear")
        for v, scale in zip(values, scales, strict=True)
    )


def _range(values: list[float], reference: float | None, scale: str) -> tuple[float, float]:
    known = values if reference is None else [*values, reference]
    low, high = min(known), max(known)
    if scale == "log":
        return low / 1.2, high * 1.2
    room = (high - low or abs(high) or 1.0) * 0.04
    return low - room, high + room


def _scale(alt: Any, limits: tuple[float, float] | None, kind: str) -> Any:
    if limits is None:
        # A logarithmic axis would be drawn out to whole powers of ten, mostly empty.
        return alt.Scale(type=kind, zero=False, padding=6, nice=kind == "linear")
    return alt.Scale(type=kind, domain=list(limits), clamp=True, nice=False)


def file_of(figure: Figure) -> bytes:
    """The drawing for readers with any screen; EngineFailure without the extra "report"."""
    from gibbous.reporting.svg_drawing import svg

    text = svg(figure.chart, figure.name).replace('style="', 'style="background:#fff;', 1)
    return f"{compact(text, figure.name)}\n".encode()


def compact(text: str, name: str) -> str:
    """The same drawing with marks that are drawn often defined once."""
    times = Counter(match[3] for match in _MARK.finditer(text))
    marks = [mark for mark, count in times.items() if count >= _OFTEN]
    ids = {mark: f"{name}-m{k}" for k, mark in enumerate(marks)}

    def used(match: re.Match[str]) -> str:
        if match[3] not in ids:
            return match[0]
        return f'<use href="#{ids[match[3]]}" x="{match[1]}" y="{match[2]}"/>'

    written = "".join(f'<path id="{ids[mark]}" {mark}/>' for mark in marks)
    start = text.index(">") + 1
    return f"{text[:start]}<defs>{written}</defs>{_MARK.sub(used, text[start:])}"
