"""The picture of bench/accuracy.py, readable on a phone: a line a method, distance beside CPU seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import accuracy

OURS = "datum.method == 'adaptive_gibbs'"
WIDTH = 120  # of each of the two panels, in pixels


def figure(path: Path, data: str = "adult", epsilon: float = 1.0) -> None:
    """Mean distance of pairs and mean CPU seconds, one line a method, the closest first."""
    import altair as alt

    rows = methods(data, epsilon)
    floor = alt.Chart(alt.Data(values=[{"x": rows.pop(0)["tv2"]}])).mark_rule(strokeDash=[4, 4])
    distance = _panel(rows, "tv2", ".3f", _scale(0, rows[-1]["tv2"]))
    distance = distance + floor.encode(x="x:Q")
    longest = max(row["cpu_seconds"] for row in rows)
    seconds = _panel(rows, "cpu_seconds", ",.3~r", _scale(0.5, longest, type="log"))
    title = alt.TitleParams(
        f"{data.title()}, epsilon {epsilon:g}: distance and CPU time",
        subtitle=["Distance: mean of pairs of columns; less is closer.",
                  "Dashed: records resampled. *: dated figures."],
        anchor="start", frame="bounds", fontSize=14, subtitleFontSize=13, offset=8,
    )  # fmt: skip
    panels = alt.hconcat(
        distance.properties(title=_named("distance")),
        seconds.properties(title=_named("CPU seconds, log")),
        spacing=8,
        title=title,
    )
    panels.configure_view(stroke="#ddd").save(str(path))
    if path.suffix == ".svg":
        path.write_text(path.read_text().rstrip() + "\n")


def methods(data: str, epsilon: float) -> list[dict[str, Any]]:
    """Name and means of each method at this epsilon, by distance of pairs; records resampled come first."""
    found = [one for one in accuracy.lines(data) if one.epsilon == epsilon]
    rows = [
        {"method": one.name.split(",")[0] + "*" * one.name.endswith("dated")} | one.means
        for one in found
    ]
    return sorted(rows, key=lambda row: (row["method"] != "resampled", row["tv2"]))


def _panel(rows: list[dict[str, Any]], column: str, form: str, scale: Any) -> Any:
    """Marks of one column, each with its value beside it; the first panel names the lines."""
    import altair as alt

    bold = alt.condition("datum.value == 'adaptive_gibbs'", alt.value("bold"), alt.value("normal"))
    names = alt.Axis(labelFontSize=13, labelFontWeight=bold, labelLimit=200, ticks=False,
                     domain=False, title=None, labelPadding=6)  # fmt: skip
    order = [row["method"] for row in rows]
    base = alt.Chart(alt.Data(values=[{k: row[k] for k in ("method", column)} for row in rows]))
    base = base.encode(
        x=alt.X(f"{column}:Q", scale=scale, axis=None),
        y=alt.Y("method:N", sort=order, axis=names if column == "tv2" else None),
    ).properties(width=WIDTH, height=alt.Step(22))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=alt.condition(OURS, alt.value("#1f6f8b"), alt.value("#8c6a9e"))
    )
    return points + base.mark_text(align="left", dx=8, fontSize=13).encode(
        text=alt.Text(f"{column}:Q", format=form)
    )


def _scale(least: float, most: float, **more: Any) -> Any:
    """Of a panel: the value of the last mark has room beside it."""
    import altair as alt

    return alt.Scale(domain=[least, most], range=[2, WIDTH - 50], nice=False, **more)


def _named(text: str) -> Any:
    import altair as alt

    return alt.TitleParams(
        text, fontSize=13, fontWeight="normal", anchor="start", frame="group", offset=4
    )
