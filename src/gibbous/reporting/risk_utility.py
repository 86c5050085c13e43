"""The risk-utility map: rows of any frame in; a chart, a figure, and the points that no other beats out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gibbous.reporting import theme
from gibbous.reporting.charts import NUMBER, WIDE, altair, chart_of, laid
from gibbous.reporting.evidence import table_cell
from gibbous.reporting.labels import finite, short
from gibbous.reporting.page_parts import Figure, Grid, panel

if TYPE_CHECKING:
    from altair import LayerChart

Row = Mapping[str, Any]


def ru_map(
    frame: Any,
    x: str,
    y: str,
    *,
    by: str = "mechanism",
    titles: tuple[str, str] | None = None,
    better: tuple[str, str] = ("lower", "lower"),
    intervals: bool = True,
    references: Sequence[tuple[str, float]] = (),
    width: int = WIDE,
) -> LayerChart:
    """Risk against utility: one mark a point, one color and shape a mechanism, the Pareto front.

    The x axis is logarithmic when x is positive and spans a factor of 20. Mechanisms stand some pixels
    apart, so that points of one x do not hide each other. Ends of error bars may lie outside.

    Args:
        frame: a polars or pandas frame, or dictionaries; one row a point, already averaged over
            repeats. Rows without a finite x and y are left out.
        x, y: its columns for risk (for example a proven epsilon) and utility.
        by: its column with the name of the mechanism.
        better: the better direction of x and of y, "lower" or "higher"; with "near" no front is drawn.
        intervals: error bars, where it has columns `<axis>_low` and `<axis>_high`.
        references: (name, y), drawn as lines across; far from the points they are named at the edge.
    Returns:
        A chart; `.save("map.html")` and `.to_dict()` are Altair's.
    Raises:
        ValueError: there is no point.
    """
    alt = altair()
    rows = points(frame, (x, y), by=by, intervals=intervals)
    low, high = min(r["x"] for r in rows), max(r["x"] for r in rows)
    heights = [r["y"] for r in rows]
    room = 0.08 * (max(heights) - min(heights)) or 0.1 * abs(max(heights)) or 1.0
    bottom = min(heights) - room if min(heights) < 0 else max(0.0, min(heights) - room)
    names = titles or (x, y)
    measured = sorted({r["x"] for r in rows})
    ticks = {"values": measured} if len(measured) <= 8 else {"tickCount": 6}
    axes = {
        "x": alt.X("x:Q", title=names[0], axis=alt.Axis(**ticks, format=NUMBER, grid=False),
                   scale=alt.Scale(type="log" if low > 0 and high / low >= 20 else "linear",
                                   zero=False, nice=False, padding=24)),
        "y": alt.Y("y:Q", title=names[1], axis=alt.Axis(tickCount=6, format=NUMBER),
                   scale=alt.Scale(domain=[bottom, max(heights) + room], nice=False)),
    }  # fmt: skip
    layers = _lines(alt, references, axes["y"], (bottom, max(heights) + room))
    best = front(rows, better=better) if "near" not in better else []
    if len(best) > 1:
        step = "step-after" if better[1] == "lower" else "step-before"
        line = chart_of(alt, best).mark_line(
            color=theme.MUTED, strokeDash=[3, 3], strokeWidth=1.5, interpolate=step
        )
        layers.append(line.encode(**axes))
    return laid(alt, layers + _marked(alt, rows, axes, width), width, height=320)


def ru_map_figure(
    rows: Any, axes: tuple[str, str], better: tuple[str, str] = ("lower", "lower")
) -> Figure | None:
    """Risk against utility over the mechanisms of a study.

    Args:
        rows: a frame or dictionaries with "label" or "mechanism", both axes, and, where known,
            `<axis>_low` and `<axis>_high`.
        better: the better direction of each axis, "lower" or "higher"; "near": near its ideal.
    """
    x, y = axes
    known = [r for r in records(rows) if finite(r.get(x)) and finite(r.get(y))]
    if not known:
        return None
    by = "label" if "label" in known[0] else "mechanism"
    draw = partial(ru_map, known, x, y, by=by, better=better)
    head = tuple(dict.fromkeys(k for p in known for k in p))
    sides = ({"lower": "left", "higher": "right"}, {"lower": "down", "higher": "up"})
    where = [
        f"further {side[b]} is better" if b in side else f"near its ideal is better for {axis}"
        for b, side, axis in zip(better, sides, axes, strict=True)
    ]
    line = (
        ""
        if "near" in better
        else " The dotted line joins points that no other point beats in both."
    )
    return Figure(
        "ru-map",
        "Risk and utility",
        f"{x} and {y}: {where[0]}, and {where[1]}.{line}",
        f"{len(known)} points of {len({str(p[by]) for p in known})} mechanisms.",
        (panel("ru-map", draw),),
        Grid(
            "Points of the map",
            head,
            tuple(tuple(table_cell(p.get(k)) for k in head) for p in known),
        ),
    )


def records(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame, whatever kind of frame it is, as dictionaries."""
    if hasattr(frame, "to_dicts"):
        return list(frame.to_dicts())
    if hasattr(frame, "to_dict"):
        return list(frame.to_dict("records"))
    return [dict(row) for row in frame]


def points(
    frame: Any, axes: tuple[str, str], *, by: str, intervals: bool = True
) -> list[dict[str, Any]]:
    """Rows with a finite x and y, under the names that the chart uses.

    Args:
        intervals: with the ends of error bars, where it has columns `<axis>_low` and `<axis>_high`.
    Raises:
        ValueError: there is none.
    """
    rows = []
    for row in records(frame):
        if all(finite(row.get(axis)) for axis in axes):
            point: dict[str, Any] = {"by": str(row[by])}
            for name, axis in zip("xy", axes, strict=True):
                point[name] = float(row[axis])
                ends = (f"{axis}_low", f"{axis}_high")
                if intervals and all(finite(row.get(end)) for end in ends):
                    point[f"{name}_low"], point[f"{name}_high"] = (float(row[e]) for e in ends)
            rows.append(point)
    if not rows:
        raise ValueError("no row has a finite x and y")
    return rows


def front(
    rows: Sequence[Row], *, better: tuple[str, str] = ("lower", "lower"), x: str = "x", y: str = "y"
) -> list[Row]:
    """Points that no other point is at least as good as in both and better in one, by x."""
    signs = [1.0 if b == "lower" else -1.0 for b in better]
    ranked = sorted(rows, key=lambda r: (signs[0] * r[x], signs[1] * r[y]))
    out: list[Row] = []
    for row in ranked:
        if not out or signs[1] * row[y] < signs[1] * out[-1][y]:
            out.append(row)
    return sorted(out, key=lambda r: float(r[x]))


def _lines(
    alt: Any, references: Sequence[tuple[str, float]], y: Any, domain: tuple[float, float]
) -> list[Any]:
    """A line across for each reference, and its name on it; where none fits, names and levels at the edge."""
    drawn, right = [], alt.XValue("width")
    inside = [{"by": name, "y": at} for name, at in references if domain[0] <= at <= domain[1]]
    if inside:
        base = chart_of(alt, inside)
        rule = base.mark_rule(color=theme.MUTED, strokeDash=[6, 3], tooltip=True)
        words = base.mark_text(align="right", baseline="bottom", dx=-2, dy=-2, color=theme.MUTED)
        drawn += [rule.encode(y=y), words.encode(y=y, x=right, text="by:N")]
    for arrow, place, side, outside in (
        ("\u2191", alt.YValue(0), "top", [r for r in references if r[1] > domain[1]]),
        ("\u2193", alt.YValue("height"), "bottom", [r for r in references if r[1] < domain[0]]),
    ):
        if outside:
            text = ", ".join(f"{name} {short(at)}" for name, at in outside)
            base = chart_of(alt, [{"by": f"{arrow} {text}"}])
            words = base.mark_text(align="right", baseline=side, dx=-2, color=theme.MUTED)
            drawn.append(words.encode(x=right, y=place, text="by:N"))
    return drawn


def _marked(alt: Any, rows: Sequence[Row], axes: dict[str, Any], width: int) -> list[Any]:
    """Error bars and marks of a risk-utility map, a color, a shape and a place beside x for each name."""
    kinds = sorted({str(r["by"]) for r in rows})
    marks = [theme.SERIES[i % len(theme.SERIES)] for i in range(len(kinds))]
    legend = alt.Legend(columns=2 if width < WIDE else 5)
    hue = alt.Scale(domain=kinds, range=[m[0] for m in marks])
    form = alt.Scale(domain=kinds, range=[m[1] for m in marks])
    color = alt.Color("by:N", scale=hue, legend=legend)
    shape = alt.Shape("by:N", scale=form, legend=legend)
    told = [alt.Tooltip("by:N", title="method")]
    told += [alt.Tooltip(f"{a}:Q", title=axes[a]["title"], format=NUMBER) for a in "xy"]
    bars, dots = [], []
    for place, kind in enumerate(kinds):
        own = [r for r in rows if r["by"] == kind]
        aside = (place - (len(kinds) - 1) / 2) * min(8, 40 / len(kinds))
        for axis in "xy":
            bounded = [r for r in own if f"{axis}_low" in r]
            if bounded:
                rule = chart_of(alt, bounded).mark_rule(
                    strokeWidth=1.5, opacity=0.7, clip=True, xOffset=aside, x2Offset=aside
                )
                start = (alt.X if axis == "x" else alt.Y)(f"{axis}_low:Q")
                across = {**axes, axis: start, f"{axis}2": f"{axis}_high"}
                bars.append(rule.encode(**across, color=color))
        dot = chart_of(alt, own).mark_point(
            filled=True, size=110, opacity=1, stroke=theme.PAPER, strokeWidth=0.5, xOffset=aside
        )
        dots.append(dot.encode(**axes, color=color, shape=shape, tooltip=told))
    return [*bars, *dots]
