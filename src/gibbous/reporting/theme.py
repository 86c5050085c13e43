"""Colors, marks and sizes of every chart; a mark never differs from another by its color alone.

The first eight colors are those of Okabe and Ito (2008), "Color Universal Design", or near them; the
others, of drawings with many lines, have marks of their own, too. Each is a fixed text in the
drawings, so that the style sheet of a report can replace it on a dark screen.
"""

from __future__ import annotations

from typing import Any, Final

INK: Final = "#1c2024"
MUTED: Final = "#5b616b"
GRID: Final = "#e2e5e9"
PAPER: Final = "#ffffff"
BASE: Final = "#b4bac3"  # what is compared with: real records, or a noisy table
MAIN: Final = "#0072b2"  # the synthetic rows
WARM: Final = "#d55e00"

FONT: Final = "Arial, 'Liberation Sans', Helvetica, sans-serif"

# One color and one shape each, in a fixed order, for mechanisms of a study.
SERIES: Final = (
    ("#0072b2", "circle"),
    ("#d55e00", "square"),
    ("#009e73", "triangle-up"),
    ("#cc79a7", "diamond"),
    ("#e69f00", "triangle-down"),
    ("#56b4e9", "cross"),
    ("#1c2024", "triangle-right"),
    ("#8a6d00", "triangle-left"),
    ("#882255", "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"),
    ("#332288", "M-.35,-1H.35V1H-.35Z"),
    ("#117733", "M-1,-.35H1V.35H-1Z"),
    ("#5b616b", "M-.5,-.87H.5L1,0L.5,.87H-.5L-1,0Z"),
    ("#b04a87", "M0,-1.1L.3,-.4L1,-.35L.5,.2L.65,.95L0,.5L-.65,.95L-.5,.2L-1,-.35L-.3,-.4Z"),
)

# What a reference is drawn with: (color, shape, dash of its line).
REFERENCES: Final = {
    "bootstrap": ("#009e73", "circle", (6, 3)),
    "holdout": ("#cc79a7", "square", (2, 2)),
    "independent": ("#b07800", "triangle-up", (8, 3, 2, 3)),
    "outsiders": ("#d55e00", "diamond", (2, 2)),
    "records": (INK, "triangle-down", (1, 0)),
    "all unique records": (INK, "cross", (1, 0)),
}
OTHER: Final = (MUTED, "cross", (3, 3))

SEQUENTIAL: Final = ("#f4f6f8", "#b9d3e6", "#6fa8d0", "#2a79b4", "#08457e")
DIVERGING: Final = ("#9c4700", "#e39a55", "#f4f5f6", "#8d86c4", "#46337e")

# What a dark screen shows in their place; heat maps keep their colors.
DARK: Final = {
    INK: "#e8eaed",
    MUTED: "#a9b0ba",
    GRID: "#343a43",
    PAPER: "#16191d",
    BASE: "#626a75",
    MAIN: "#5cb8f2",
    WARM: "#ff9a52",
    "#009e73": "#3fd0a2",
    "#cc79a7": "#e6a3c8",
    "#e69f00": "#ffc04d",
    "#56b4e9": "#9ad4f7",
    "#b07800": "#e0b03c",
    "#8a6d00": "#cbb35a",
    "#882255": "#d97aa8",
    "#332288": "#9d90e6",
    "#117733": "#63c488",
    "#b04a87": "#e08fc0",
}

LABEL: Final = 12  # px
TITLE: Final = 12


def config() -> dict[str, Any]:
    """The Vega-Lite configuration of all charts."""
    axis = {
        "labelColor": INK,
        "titleColor": MUTED,
        "labelFontSize": LABEL,
        "titleFontSize": TITLE,
        "titleFontWeight": "normal",
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "domain": False,
        "ticks": False,
        "labelPadding": 5,
        "titlePadding": 8,
    }
    return {
        "aria": False,  # one text alternative a figure, not one a mark
        "background": "transparent",
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": axis,
        "axisBand": {"grid": False},
        "legend": {
            "orient": "top",
            "title": None,
            "labelColor": INK,
            "labelFontSize": LABEL,
            "labelLimit": 240,
            "symbolSize": 70,
            "offset": 4,
        },
        "text": {"color": INK, "fontSize": LABEL},
    }
