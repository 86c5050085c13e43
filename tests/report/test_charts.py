"""Charts: valid for Altair, faithful to hostile names, with the right Pareto front."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import polars as pl
import pytest

from gibbous.reporting import charts, svg_drawing, theme
from gibbous.reporting.labels import clipped, finite, listed
from gibbous.reporting.risk_utility import front, points, records, ru_map
from tests.report.hostile_findings import HEBREW, NASTY, QUOTES, SCRIPT, study

SHARES = [{"level": n, "base": 0.2, "main": 0.1 + 0.05 * i} for i, n in enumerate(NASTY)]
CELLS = [{"row": i, "column": j, "value": (i - j) / 9} for i in range(8) for j in range(i)]
TERMS = [
    {"term": n, "real": 1.0, "real_low": 0.5, "real_high": 1.5, "synthetic": 0.8,
     "synthetic_low": None, "synthetic_high": None}
    for n in NASTY
]  # fmt: skip
ORDERS = [
    {"who": who, "order": k, "value": 0.01 * k, "low": 0.009 * k, "high": 0.011 * k}
    for who in ("synthetic", "bootstrap", "independent", "someone")
    for k in (1, 2, 3)
]
STRIP: dict[str, Any] = {
    "value": 0.4, "low": 0.3, "high": 0.5, "ideal": 1.0,
    "null": {"bootstrap": 0.1, "outsiders": 0.4, "else": None},
}  # fmt: skip
BELIEFS = [{"before": p / 9, "low": p / 12, "high": min(1.0, p / 7)} for p in range(10)]
ALL: dict[str, Callable[..., Any]] = {
    "margins": partial(charts.margins, SHARES),
    "margins with ranges": partial(
        charts.margins, [{**r, "low": r["main"] - 0.01, "high": r["main"] + 0.01} for r in SHARES]
    ),
    "margins alone": partial(charts.margins, [{**r, "base": None} for r in SHARES], bars=False),
    "heat map": partial(charts.heat_map, CELLS, [str(i) for i in range(8)], scale="sequential"),
    "difference": partial(
        charts.heat_map, CELLS, [str(i) for i in range(8)], scale="diverging", limit=0.3
    ),
    "coefficients": partial(charts.coefficients, TERMS),
    "orders": partial(charts.by_order, ORDERS),
    "strip": partial(charts.strip, STRIP),
    "strip of nothing": partial(
        charts.strip, {"value": float("nan"), "low": None, "high": None, "ideal": None, "null": {}}
    ),
    "spends": partial(charts.spends, [{"what": n, "share": 0.2, "label": "rho"} for n in NASTY]),
    "beliefs": partial(charts.beliefs, BELIEFS),
    "map": partial(ru_map, study(), "epsilon_proven", "tv2"),
}


HEIGHTS = {"one": 0.1, "two": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_chart_is_valid_and_is_drawn_alike_twice(name: str) -> None:
    chart = ALL[name]
    chart(width=charts.NARROW).to_dict()  # raises where a part does not fit Altair's schema

    first, second = (svg_drawing.svg(chart(width=charts.WIDE), "one") for _ in range(2))

    assert first == second
    assert first.startswith("<svg ")
    assert re.search("<(path|line) ", first)


def test_hostile_names_are_drawn_as_text_and_nothing_else() -> None:
    for chart in (ALL["margins"], ALL["coefficients"], ALL["spends"]):
        text = svg_drawing.svg(chart(width=charts.WIDE), "one")

        shown = [html.unescape(t) for t in re.findall(r"<text[^>]*>([^<]*)</text>", text)]
        for name in (SCRIPT[:12], QUOTES[:12], HEBREW, "very long name"):
            assert any(label.startswith(name) for label in shown), name
        assert not re.search(r"<(script|img|svg onload|foreignObject|a|image)\b", text)


def test_a_constant_of_the_expression_language_says_what_the_text_says() -> None:
    import vl_convert

    names = [*NASTY, "\\", "'", "a\u2028b", "😀 𝔘", "${datum}", "line\nbreak"]
    label = f"{listed(names)}[datum.value]"
    chart = {
        "data": {"values": [{"i": i} for i in range(len(names))]},
        "mark": "point",
        "encoding": {"y": {"field": "i", "type": "ordinal",
                           "axis": {"labelExpr": label, "labelLimit": 0}}},
    }  # fmt: skip

    svg = vl_convert.vegalite_to_svg(chart, vl_version=svg_drawing.VL_VERSION)

    shown = {html.unescape(t) for t in re.findall(r"<text[^>]*>([^<]*)</text>", svg)}
    assert {" ".join(n.split()) for n in names} <= {" ".join(t.split()) for t in shown}


def test_names_that_are_equal_after_cutting_keep_their_own_rows() -> None:
    rows = [{"level": "x" * 90 + str(i), "base": 0.1, "main": 0.1} for i in range(3)]

    text = svg_drawing.svg(charts.margins(rows), "one")

    assert len(re.findall(">x{10,}…<", text)) == 3
    assert clipped("x" * 90) == "x" * 27 + "…"


def test_the_front_is_what_brute_force_finds() -> None:
    grid = [0.1, 0.2, 0.3, 0.5]
    rows = [{"x": x, "y": y} for x, y in itertools.product(grid, grid) if x + y >= 0.5]
    for better in itertools.product(("lower", "higher"), repeat=2):
        sign = [1 if b == "lower" else -1 for b in better]

        def beaten(r: dict[str, float], sign: list[int] = sign) -> bool:
            return any(
                sign[0] * o["x"] <= sign[0] * r["x"] and sign[1] * o["y"] <= sign[1] * r["y"]
                and (o["x"], o["y"]) != (r["x"], r["y"]) for o in rows
            )  # fmt: skip

        wanted = sorted(([r for r in rows if not beaten(r)]), key=lambda r: r["x"])
        assert front(rows, better=better) == wanted


def test_a_map_takes_any_frame_and_leaves_out_what_is_not_finite() -> None:
    rows = [*study(), {"mechanism": "none", "epsilon_proven": None, "tv2": 1.0}]
    drawn = {
        svg_drawing.svg(ru_map(frame, "epsilon_proven", "tv2"), "one")
        for frame in (rows, pl.DataFrame(rows), pd.DataFrame(rows))
    }

    assert len(drawn) == 1
    assert ">none<" not in drawn.pop()
    assert records(pl.DataFrame({"a": [1]})) == [{"a": 1}]
    assert not finite(float("nan"))
    with pytest.raises(ValueError, match="finite"):
        points([], ("x", "y"), by="m")


def test_methods_of_one_epsilon_stand_apart_and_references_are_lines_across() -> None:
    rows = [{"mechanism": m, "epsilon_proven": 1.0, "tv2": y} for m, y in HEIGHTS.items()]

    chart = ru_map(rows, "epsilon_proven", "tv2", references=[("resampled", 0.25)]).to_dict()

    layers = chart["layer"]
    aside = [m["xOffset"] for m in (layer["mark"] for layer in layers) if m["type"] == "point"]
    rules = [layer for layer in layers if layer["mark"]["type"] == "rule"]
    assert len(set(aside)) == 2
    assert sum(aside) == 0
    assert len(rules) == 1
    assert "x" not in rules[0]["encoding"]
    scale = rules[0]["encoding"]["y"]["scale"]["domain"]
    assert scale[0] < 0.1 < 0.25 < scale[1]
    told = [t["field"] for layer in layers for t in layer["encoding"].get("tooltip", ())]
    assert {"by", "x", "y"} <= set(told)


def test_a_reference_far_from_the_points_is_named_at_the_edge_and_stretches_no_axis() -> None:
    rows = [{"mechanism": m, "epsilon_proven": 1.0, "tv2": y} for m, y in HEIGHTS.items()]
    far = [("independent", 5.0), ("shuffled", 6.0), ("resampled", 0.001)]

    chart = ru_map(rows, "epsilon_proven", "tv2", references=far).to_dict()

    scales = [
        layer["encoding"]["y"]["scale"]["domain"]
        for layer in chart["layer"]
        if "scale" in layer["encoding"]["y"]
    ]
    assert scales
    assert all(0.05 < low < high < 0.35 for low, high in scales)
    assert not [layer for layer in chart["layer"] if layer["mark"]["type"] == "rule"]
    drawn = svg_drawing.svg(ru_map(rows, "epsilon_proven", "tv2", references=far), "far")
    assert "\u2191 independent 5, shuffled 6" in drawn
    assert "\u2193 resampled 0.001" in drawn


def test_mechanisms_differ_by_color_and_by_shape() -> None:
    assert len({color for color, _ in theme.SERIES}) == len(theme.SERIES)
    assert len({shape for _, shape in theme.SERIES}) == len(theme.SERIES)
    shapes = [shape for _, shape, _ in theme.REFERENCES.values()]
    assert len(set(shapes)) == len(shapes)


def test_what_is_not_a_drawing_is_left_out() -> None:
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9" '
        'onload="a()"><script>1</script><g id="c0" style="x"><path d="M0.12345,2L1,1" fill="red" '
        'onclick="a()" clip-path="url(#c0)"/><a href="http://x"><text>y</text></a></g>'
        '<foreignObject><p>z</p></foreignObject><text x="1">ok</text></svg>'
    )

    found = svg_drawing.cleaned(text, "fig")

    assert not re.search(r"script|onload|onclick|href|foreignObject|<p>|style=\"x", found)
    assert 'id="fig-0"' in found
    assert "url(#fig-0)" in found
    assert "M0.1,2L1,1" in found
    assert ">ok<" in found


def test_charts_of_shares_that_are_compared_have_one_axis_or_a_finer_one() -> None:
    from gibbous.reporting.margins import axes

    def column(*shares: float) -> list[dict[str, Any]]:
        return [{"level": str(i), "base": s, "main": s / 2} for i, s in enumerate(shares)]

    wide, other, fine, finest = column(0.6, 0.4), column(0.2), column(0.09, 0.05), column(0.02)

    ends, words = axes([wide, other, fine, finest])
    same, single = axes([wide, other])

    assert ends == pytest.approx([0.612, 0.612, 0.0918, 0.0918])
    assert same == pytest.approx([0.612, 0.612])
    assert words == (
        "All charts have one axis, up to 60 %; those without a share above 9 % have a finer one, "
        "up to that."
    )
    assert single == "All charts have one axis, up to 60 %."
    assert axes([column(float("nan"))])[0] == [1.02]
    drawn = [
        charts.margins(rows, end=end).to_dict()
        for rows, end in zip((wide, other), same, strict=True)
    ]
    domains = [
        layer["encoding"]["x"]["scale"]["domain"] for one in drawn for layer in one["layer"][:1]
    ]
    assert domains == [[0, same[0]]] * 2
