"""The charts of reports and studies: plain rows in, an Altair chart out, drawn to SVG by report.draw.

Rows are dictionaries with the keys that each function names. Text that comes from data (levels,
columns, terms) is a value of a row, or a constant with every odd character escaped (`labels.listed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from gibbous.core.extras import need
from gibbous.reporting import theme
from gibbous.reporting.labels import MINUS, apart, clipped, listed

if TYPE_CHECKING:
    from altair import LayerChart

Row = Mapping[str, Any]
WIDE, NARROW = 760, 340  # px: a column of text, and a telephone
NUMBER = ",.4~r"  # of an axis
STEP = 24  # px a row of a chart with names on its left side


def margins(
    rows: Sequence[Row], *, bars: bool = True, end: float | None = None, width: int = NARROW
) -> LayerChart:
    """One column: a bar a level for what is compared with, a dot a level for the synthetic rows.

    Args:
        rows: level, base, main (shares); low and high where sets differ.
        bars: whether there is something to compare with; without it `base` is not read.
        end: of the axis, a share; None for one of its own.
    """
    alt = altair()
    shown = [{**row, "name": clipped(row["level"]), "at": i} for i, row in enumerate(rows)]
    long = [{"at": r["at"], "share": r["base"] if bars else 0.0} for r in shown]
    y = _names(alt, shown, "at", width, share=0.42)
    step = 18 if len(rows) <= 30 else max(4, 540 // len(rows))
    x = _x(alt, "share", None, "%", width, domain=None if end is None else (0, end))
    boxes = chart_of(alt, long).mark_bar(color=theme.BASE, height={"band": 0.82})
    layers = [boxes.encode(x=x, y=y)]
    spread = [r for r in shown if r.get("high", r["main"]) > r.get("low", r["main"])]
    if spread:
        rule = chart_of(alt, spread).mark_rule(color=theme.MAIN, strokeWidth=2)
        layers.append(rule.encode(x=alt.X("low:Q"), x2="high", y=y))
    dots = chart_of(alt, shown).mark_point(
        filled=True, color=theme.MAIN, size=min(60, step * 4), opacity=1
    )
    layers.append(dots.encode(x=alt.X("main:Q"), y=y))
    return laid(alt, layers, width, height=step * len(rows))


def heat_map(
    cells: Sequence[Row],
    columns: Sequence[str],
    *,
    scale: Literal["sequential", "diverging"],
    limit: float = 1.0,
    width: int = NARROW,
) -> LayerChart:
    """The lower triangle of a matrix of pairs of columns.

    Args:
        cells: row, column (positions in `columns`), value.
        scale: sequential from 0, or diverging around 0.
        limit: the value of the strongest color.
    """
    alt = altair()
    count = len(columns)
    names = [clipped(name, 18) for name in columns]
    many = (count > 16 and width < WIDE) or count > 60
    legend = alt.Legend(gradientLength=min(160, width // 2), gradientThickness=8, tickCount=3)
    low, colors = (0.0, theme.SEQUENTIAL) if scale == "sequential" else (-limit, theme.DIVERGING)
    color = alt.Color(
        "value:Q",
        legend=legend,
        scale=alt.Scale(
            domain=[low + (limit - low) * i / (len(colors) - 1) for i in range(len(colors))],
            range=list(colors),
            clamp=True,
            interpolate="rgb",
        ),
    )
    show = f"{listed(names)}[datum.value]"
    room = int(width * (0.26 if count <= 16 else 0.14))
    axis = {"labelExpr": show, "title": None, "labels": not many, "labelLimit": room,
            "labelFontSize": 11 if count <= 16 else 9}  # fmt: skip
    order = list(range(count))
    y = alt.Y("row:O", sort=order, scale=alt.Scale(domain=order[1:]), axis=alt.Axis(**axis))
    x = alt.X(
        "column:O", sort=order, scale=alt.Scale(domain=order[:-1]),
        axis=alt.Axis(**axis, labelAngle=-60),
    )  # fmt: skip
    boxes = chart_of(alt, cells).mark_rect(stroke=theme.PAPER, strokeWidth=1 if count <= 30 else 0)
    layers = [boxes.encode(x=x, y=y, color=color)]
    inner = width - (10 if many else room + 12)
    if count <= 10:
        size = 11 if inner / count > 34 else 9
        for dark in (False, True):
            some = [
                {**c, "text": f"{round(c['value'], 2) + 0.0:.2f}".replace("-", MINUS)}
                for c in cells
                if (abs(c["value"]) > 0.55 * limit) is dark and c["value"] == c["value"]
            ]
            ink = "#fefefe" if dark else "#1c2025"
            text = chart_of(alt, some).mark_text(fontSize=size, color=ink)
            layers.append(text.encode(x=x, y=y, text="text:N"))
    return laid(alt, layers, width, height=max(60, int(inner * (count - 1) / count)))


def coefficients(rows: Sequence[Row], *, width: int = WIDE) -> LayerChart:
    """Estimates of a regression with their intervals, real above synthetic: `real`, `real_low`, ..."""
    alt = altair()
    shown = [{**row, "name": clipped(row["term"], 40), "at": i} for i, row in enumerate(rows)]
    layers = [_zero(alt)]
    kinds = (("real", "real records", theme.INK, "circle"),
             ("synthetic", "synthetic sets", theme.MAIN, "diamond"))  # fmt: skip
    scale = alt.Scale(domain=[k[1] for k in kinds], range=[k[2] for k in kinds])
    shape = alt.Scale(domain=[k[1] for k in kinds], range=[k[3] for k in kinds])
    y = _names(alt, shown, "at", width, share=0.36)
    long = [
        {"at": row["at"], "kind": words, "value": row[key],
         "low": row[f"{key}_low"], "high": row[f"{key}_high"]}
        for row in shown for key, words, _, _ in kinds if row.get(key) is not None
    ]  # fmt: skip
    side = alt.YOffset("kind:N", sort=[k[1] for k in kinds])
    bounded = [row for row in long if row["low"] is not None and row["high"] is not None]
    color = alt.Color("kind:N", scale=scale, legend=alt.Legend())
    rules = chart_of(alt, bounded).mark_rule(strokeWidth=2)
    x = _x(alt, "low", "estimate with its 95 % interval", None, width, zero=False)
    layers.append(rules.encode(x=x, x2="high", y=y, yOffset=side, color=color))
    dots = chart_of(alt, long).mark_point(filled=True, size=64, opacity=1)
    layers.append(
        dots.encode(x=alt.X("value:Q"), y=y, yOffset=side, color=color,
                    shape=alt.Shape("kind:N", scale=shape, legend=alt.Legend()))
    )  # fmt: skip
    return laid(alt, layers, width, height=34 * len(rows))


def by_order(rows: Sequence[Row], *, width: int = WIDE) -> LayerChart:
    """Total variation by the number of columns counted together, with its references.

    Args:
        rows: who ("synthetic" or a reference), order, value; low and high where known.
    """
    alt = altair()
    orders = sorted({row["order"] for row in rows})
    x = alt.X(
        "order:Q",
        title="columns counted together",
        axis=alt.Axis(values=orders, format="d", grid=False),
        scale=alt.Scale(domain=[orders[0] - 0.1, orders[-1] + (1.4 if width < WIDE else 0.8)]),
    )
    y = alt.Y(
        "value:Q", title="mean distance", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=True)
    )
    layers = []
    for who in dict.fromkeys(row["who"] for row in rows):
        some = [row for row in rows if row["who"] == who]
        color, shape, dash = theme.REFERENCES.get(who, (theme.MAIN, "circle", (1, 0)))
        main = who not in theme.REFERENCES
        line = chart_of(alt, some).mark_line(
            color=color, strokeWidth=2.5 if main else 1.5, strokeDash=list(dash)
        )
        dots = chart_of(alt, some).mark_point(
            color=color, shape=shape, filled=main, size=60, strokeWidth=1.5, opacity=1
        )
        layers += [line.encode(x=x, y=y), dots.encode(x=x, y=y)]
        bounded = [row for row in some if row.get("low") is not None]
        if bounded:
            rule = chart_of(alt, bounded).mark_rule(color=color, strokeWidth=1.5)
            layers.append(rule.encode(x=x, y=alt.Y("low:Q"), y2="high"))
    ends = apart([max((r for r in rows if r["who"] == w), key=lambda r: r["order"])
                   for w in dict.fromkeys(row["who"] for row in rows)])  # fmt: skip
    for end in ends:
        color = theme.REFERENCES.get(end["who"], (theme.MAIN,))[0]
        text = chart_of(alt, [end]).mark_text(align="left", dx=10, color=color, fontWeight="bold")
        layers.append(text.encode(x=x, y=alt.Y("place:Q"), text="who:N"))
    return laid(alt, layers, width, height=230)


def strip(row: Row, *, width: int = WIDE) -> LayerChart:
    """One finding on its own axis: value as a bar, its interval, and its references as open marks.

    Args:
        row: value; low, high (or None); null: reference -> value; ideal (or None).
    """
    alt = altair()
    numbers = [row["value"], row["low"], row["high"], row["ideal"], *row["null"].values()]
    known = [float(v) for v in numbers if v is not None and v == v]
    top, bottom = max([*known, 0.0]), min([*known, 0.0])
    room = (top - bottom or 1.0) * 0.04
    scale = alt.Scale(domain=[bottom - (room if bottom < 0 else 0), top + room], nice=False)
    x, low = (
        alt.X(f"{name}:Q", scale=scale, axis=alt.Axis(tickCount=5, format=NUMBER, title=None))
        for name in ("value", "low")
    )
    layers = []
    if row["value"] is not None and row["value"] == row["value"]:
        bar = chart_of(alt, [{"value": row["value"], "zero": 0}])
        layers.append(bar.mark_bar(color=theme.MAIN, height=12).encode(x=x, x2="zero"))
    if row["low"] is not None and row["high"] is not None:
        ends = chart_of(alt, [{"low": row["low"], "high": row["high"]}])
        for color, stroke in ((theme.PAPER, 5), (theme.INK, 2)):
            layers.append(ends.mark_rule(color=color, strokeWidth=stroke).encode(x=low, x2="high"))
    if row["ideal"] is not None:
        ideal = chart_of(alt, [{"value": row["ideal"]}])
        layers.append(ideal.mark_tick(color=theme.INK, thickness=2, size=26).encode(x=x))
    for name, value in row["null"].items():
        if value is None or value != value:
            continue
        color, shape, _ = theme.REFERENCES.get(name, theme.OTHER)
        mark = chart_of(alt, [{"value": value}]).mark_point(
            shape=shape, color=color, size=90, strokeWidth=2, fill=theme.PAPER, opacity=1
        )
        layers.append(mark.encode(x=x))
    return laid(alt, layers or [_zero(alt)], width, height=28)


def spends(rows: Sequence[Row], *, width: int = WIDE) -> LayerChart:
    """The parts of a budget; rows have what, share (of the sum of all parts) and label."""
    alt = altair()
    room = 22 if width < WIDE else 34
    shown = [{**row, "name": clipped(row["what"], room), "at": i} for i, row in enumerate(rows)]
    y = _names(alt, shown, "at", width, share=0.4)
    top = max([r["share"] for r in rows], default=1.0)
    x = _x(alt, "share", "share of the budget", "%", width, domain=[0, max(top * 1.25, 1e-9)])
    bars = chart_of(alt, shown).mark_bar(color=theme.MAIN, height={"band": 0.6})
    text = chart_of(alt, [{**r, "text": f"{100 * r['share']:.3g} %"} for r in shown]).mark_text(
        align="left", dx=4
    )
    return laid(
        alt, [bars.encode(x=x, y=y), text.encode(x=x, y=y, text="text:N")], width,
        height=STEP * len(rows),
    )  # fmt: skip


def beliefs(rows: Sequence[Row], *, width: int = WIDE) -> LayerChart:
    """The most an attacker may believe after a release, over what was believed before: before, low, high."""
    alt = altair()
    x = _x(alt, "before", "belief before the release", "%", width, domain=[0, 1])
    y = alt.Y("high:Q", title="belief after it", scale=alt.Scale(domain=[0, 1]),
              axis=alt.Axis(format="%", tickCount=5))  # fmt: skip
    band = chart_of(alt, rows).mark_area(color=theme.MAIN, opacity=0.16)
    edge = chart_of(alt, rows).mark_line(color=theme.MAIN, strokeWidth=2)
    same = chart_of(alt, [{"before": 0, "high": 0}, {"before": 1, "high": 1}]).mark_line(
        color=theme.MUTED, strokeDash=[4, 3], strokeWidth=1.5
    )
    peak = max(rows, key=lambda r: r["high"] - r["before"])
    least = max(rows, key=lambda r: r["before"] - r["low"])
    notes = [
        chart_of(alt, [{"before": at["before"], "high": at[side], "text": f"at {word}"}]).mark_text(
            align=align, dx=shift, dy=shift, color=theme.MAIN, fontWeight="bold"
        )
        for at, side, word, align, shift in (
            (peak, "high", "most", "right", -7),
            (least, "low", "least", "left", 7),
        )
    ]
    plain = chart_of(alt, [{"before": 0.6, "high": 0.55, "text": "no change"}]).mark_text(
        align="left", dx=4, dy=8, color=theme.MUTED
    )
    layers = [
        band.encode(x=x, y=alt.Y("low:Q", title="belief after it"), y2="high"),
        edge.encode(x=x, y=y),
        edge.encode(x=x, y=alt.Y("low:Q")),
        same.encode(x=x, y=y),
        *(note.encode(x=x, y=y, text="text:N") for note in notes),
        plain.encode(x=x, y=y, text="text:N"),
    ]
    return laid(alt, layers, width, height=min(280, int(width * 0.6)))


def altair() -> Any:
    """The library; importing it is slow."""
    return need("altair", "report")


def chart_of(alt: Any, rows: Iterable[Row]) -> Any:
    """A chart that holds these rows."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def laid(alt: Any, layers: Sequence[Any], width: int, *, height: int) -> LayerChart:
    """Layers as one chart of this size, px."""
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = alt.layer(*layers).properties(width=width, height=height, autosize=fit)
    return cast("LayerChart", chart.configure(**theme.config()))


def _names(alt: Any, rows: Sequence[Row], field: str, width: int, *, share: float) -> Any:
    """A y axis of names in the order of the rows; rows may bear the same name."""
    labels = listed([str(row["name"]) for row in rows])
    return alt.Y(
        f"{field}:O",
        sort=[row[field] for row in rows],
        title=None,
        axis=alt.Axis(
            labelExpr=f"{labels}[datum.value]", labelLimit=int(width * share),
            labelOverlap=len(rows) > 30,
        ),
    )  # fmt: skip


def _x(
    alt: Any, field: str, title: str | None, form: str | None, width: int, *,
    zero: bool = True, domain: Sequence[float] | None = None,
) -> Any:  # fmt: skip
    scale = alt.Scale(zero=zero) if domain is None else alt.Scale(domain=list(domain), nice=False)
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=scale,
        axis=alt.Axis(format=form or NUMBER, tickCount=4 if width < WIDE else 6),
    )


def _zero(alt: Any) -> Any:
    rule = chart_of(alt, [{"zero": 0}]).mark_rule(color=theme.MUTED, strokeDash=[3, 3])
    return rule.encode(x=alt.X("zero:Q"))
