"""Small multiples of lines: plain rows in, an Altair chart out, in the style of the reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from gibbous.core.extras import need
from gibbous.report import theme
from gibbous.report.charts import NUMBER

Row = Mapping[str, Any]
WIDTH: Final = 760  # px of the whole drawing
HEIGHT: Final = 150  # px of one panel
_EDGE: Final = 62  # px that axis labels of one panel take
_DASHES: Final = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))


def lines(
    rows: Sequence[Row],
    *,
    x: str,
    y: str,
    by: str,
    panel: str,
    order: Sequence[str] = (),
    titles: tuple[str, str] = ("", ""),
    columns: int = 3,
    scales: tuple[Literal["linear", "log"], Literal["linear", "log"]] = ("linear", "linear"),
    limits: tuple[float, float] | None = None,
    reference: float | None = None,
    shared: bool = True,
    height: int = HEIGHT,
) -> Any:
    """A grid of panels, in each one line a method; color, shape and dash tell methods apart.

    Args:
        rows: one a point; those without a finite x and y are left out.
        x, y: their numbers.
        by: the name of the line.
        panel: the title of the panel, in the order of the rows.
        order: names of lines in the order of colors and legend; by default as they come.
        titles: of the two axes.
        columns: panels side by side.
        scales: of the two axes; with "log" rows that are not positive are left out.
        limits: of the y axis; values beyond are drawn at its edge.
        reference: a dashed horizontal line.
        shared: one y axis for all panels; False: each panel its own.
        height: of one panel, px.
    Returns:
        A chart for `gibbous.report.draw.svg`.
    Raises:
        EngineFailure: the extra "report" is not installed.
    """
    alt = need("altair", "report")
    shown = [row for row in map(dict, rows) if _drawn(row, (x, y), scales)]
    names = [n for n in (order or dict.fromkeys(str(r[by]) for r in shown))
             if any(str(r[by]) == n for r in shown)]  # fmt: skip
    if limits is None and shared and shown:
        limits = _range([float(r[y]) for r in shown], reference, scales[1])
    size = {"width": max(90, WIDTH // columns - _EDGE), "height": height}
    panels = list(dict.fromkeys(str(row[panel]) for row in shown))
    drawn = []
    for at, title in enumerate(panels):
        points = [
            {"x": row[x], "y": row[y], "by": str(row[by])}
            for row in shown
            if str(row[panel]) == title
        ]
        outer = (at + columns >= len(panels), at % columns == 0)
        axes = _axes(alt, titles, outer, scales, limits)
        layers = _layers(alt, points, names, axes, reference)
        drawn.append(alt.layer(*layers).properties(title=title, **size))
    grid = alt.concat(*drawn, columns=columns, spacing=14)
    titled = {
        "fontSize": theme.TITLE,
        "color": theme.INK,
        "fontWeight": "normal",
        "anchor": "start",
    }
    return grid.configure(**theme.config(), title=titled, concat={"spacing": 14})


def _axes(
    alt: Any,
    titles: tuple[str, str],
    outer: tuple[bool, bool],
    scales: tuple[str, str],
    limits: tuple[float, float] | None,
) -> dict[str, Any]:
    """The two axes of a panel, with a title where the panel stands at the edge of the grid."""
    named = [title if edge and title else None for title, edge in zip(titles, outer, strict=True)]
    return {
        "x": alt.X("x:Q", title=named[0], axis=alt.Axis(format=NUMBER, tickCount=5, grid=False),
                   scale=alt.Scale(type=scales[0], zero=False, nice=False, padding=6)),
        "y": alt.Y("y:Q", title=named[1], axis=alt.Axis(format=NUMBER, tickCount=5),
                   scale=_scale(alt, limits, scales[1])),
    }  # fmt: skip


def _layers(
    alt: Any, points: Sequence[Row], names: Sequence[str], place: Row, reference: float | None
) -> list[Any]:
    marks = [theme.SERIES[i % len(theme.SERIES)] for i in range(len(names))]
    dashes = [list(_DASHES[(i // len(theme.SERIES) + i) % len(_DASHES)]) for i in range(len(names))]
    legend = alt.Legend(columns=4)

    def by(kind: Any, values: Sequence[Any], legend: Any = legend) -> Any:
        return kind("by:N", legend=legend, scale=alt.Scale(domain=names, range=list(values)))

    data = alt.Chart(alt.InlineData(values=[dict(point) for point in points]))
    color = by(alt.Color, [mark[0] for mark in marks])
    layers = []
    if reference is not None:
        rule = alt.Chart(alt.InlineData(values=[{"y": reference}]))
        rule = rule.mark_rule(color=theme.MUTED, strokeDash=[4, 3])
        layers.append(rule.encode(y=place["y"]))
    line = data.mark_line(strokeWidth=1.5, clip=True)
    layers.append(line.encode(**place, color=color, strokeDash=by(alt.StrokeDash, dashes, None)))
    dots = data.mark_point(filled=True, size=26, opacity=1, clip=True)
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
        return alt.Scale(type=kind, zero=False, padding=6)
    return alt.Scale(type=kind, domain=list(limits), clamp=True, nice=False)
