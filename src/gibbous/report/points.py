"""Points of a risk-utility map: rows of any frame, and those that no other row beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gibbous.report.texts import clipped

Row = Mapping[str, Any]
Ends = tuple[str, str] | None


def records(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame, whatever kind of frame it is, as dictionaries."""
    if hasattr(frame, "to_dicts"):
        return list(frame.to_dicts())
    if hasattr(frame, "to_dict"):
        return list(frame.to_dict("records"))
    return [dict(row) for row in frame]


def points(
    frame: Any, axes: tuple[str, str], *, by: str, label: str | None, ends: tuple[Ends, Ends]
) -> list[dict[str, Any]]:
    """Rows with a finite x and y, under the names that the chart uses.

    Args:
        frame: a polars or pandas frame, or dictionaries.
        axes: its columns for x and y.
        by: its column with a name for color and shape.
        label: its column with a text for each point; None for none.
        ends: of each axis, its columns with the ends of error bars.
    Raises:
        ValueError: there is none.
    """
    x, y = axes
    found = [r for r in records(frame) if finite(r.get(x)) and finite(r.get(y))]
    if not found:
        raise ValueError("no row has a finite x and y")
    return [
        {
            "x": float(r[x]),
            "y": float(r[y]),
            "by": str(r[by]),
            "text": clipped(r[label], 24) if label else "",
            **_ends(r, ends[0], "x"),
            **_ends(r, ends[1], "y"),
        }
        for r in found
    ]


def front(
    rows: Sequence[Row], *, better: tuple[str, str] = ("lower", "lower"), x: str = "x", y: str = "y"
) -> list[Row]:
    """Points that no other point is at least as good as in both and better in one, by x.

    Args:
        rows: with finite numbers under `x` and `y`.
        better: "lower" or "higher", of x and of y.
    """
    signs = [1.0 if b == "lower" else -1.0 for b in better]
    ranked = sorted(rows, key=lambda r: (signs[0] * r[x], signs[1] * r[y]))
    out: list[Row] = []
    for row in ranked:
        if not out or signs[1] * row[y] < signs[1] * out[-1][y]:
            out.append(row)
    return sorted(out, key=lambda r: float(r[x]))


def finite(value: object) -> bool:
    """Whether this is a number, neither NaN nor infinite."""
    return isinstance(value, int | float) and abs(float(value)) < float("inf")


def _ends(row: Row, names: tuple[str, str] | None, axis: str) -> dict[str, float]:
    if names is None or not all(finite(row.get(name)) for name in names):
        return {}
    return {f"{axis}_low": float(row[names[0]]), f"{axis}_high": float(row[names[1]])}
