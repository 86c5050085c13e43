"""The picture of bench/accuracy.py: distance of pairs against CPU seconds, each name beside its mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import accuracy
import numpy as np


def figure(path: Path, data: str = "adult", epsilon: float = 1.0, height: int = 340) -> None:
    """TV of pairs against CPU seconds, one mark a method; mean of its runs."""
    import altair as alt
    import pandas as pd

    found = [one for one in accuracy.lines(data) if one.epsilon == epsilon]
    floor = next(one.means["tv2"] for one in found if one.name == "resampled")
    marks = [one for one in found if one.means["cpu_seconds"] > 0]
    frame = pd.DataFrame([{"method": one.name.split(",")[0]} | one.means for one in marks])
    frame = frame.sort_values("cpu_seconds").reset_index(drop=True)
    x = alt.X("cpu_seconds:Q", scale=alt.Scale(type="log", domain=[0.3, 2000], nice=False))
    x = x.title("CPU seconds (logarithmic)")
    y = alt.Y("tv2:Q", scale=alt.Scale(domain=[0, 0.14], nice=False))
    y = y.title(["mean distance of pairs", "of columns (less is closer)"])
    base = alt.Chart(frame).encode(x=x, y=y)
    ours = alt.datum.method == "adaptive_gibbs"
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        color=alt.condition(ours, alt.value("#1f6f8b"), alt.value("#8c6a9e"))
    )
    frame["place"] = _places(frame, height)
    names = [
        alt.Chart(frame[frame.place == place])
        .encode(x=x, y=y, text="method:N")
        .mark_text(align="left" if dx > 0 else "right", dx=dx, dy=dy, fontSize=12)
        for place, (dx, dy) in enumerate(PLACES)
    ]
    line = alt.Chart(pd.DataFrame({"y": [floor]})).mark_rule(strokeDash=[4, 4]).encode(y="y:Q")
    chart = alt.layer(line, points, *names).properties(
        width=640, height=height, title=_title(data, epsilon)
    )
    chart.save(str(path))
    if path.suffix == ".svg":
        path.write_text(path.read_text().rstrip() + "\n")


# Where a name may stand beside its mark, in pixels; the first that touches nothing is taken.
PLACES = ((9, -5), (9, 10), (-9, -5), (-9, 10), (9, -18), (9, 22), (-9, -18), (-9, 22))


def _places(frame: Any, height: int) -> list[int]:
    """For each mark the place of its name: inside the picture, on no mark and on no other name."""
    x = 640 * np.log(frame.cpu_seconds / 0.3) / np.log(2000 / 0.3)
    y = height * (1 - frame.tv2 / 0.14)
    taken = [(px - 7, py - 7, px + 7, py + 7) for px, py in zip(x, y, strict=True)]
    found = []
    for px, py, name in zip(x, y, frame.method, strict=True):
        boxes = [_box(px + dx, py + dy, 6.6 * len(name), dx > 0) for dx, dy in PLACES]
        own = (px - 7, py - 7, px + 7, py + 7)
        free = [
            k
            for k, box in enumerate(boxes)
            if box[0] >= 0 and box[2] <= 640 and not any(_touch(box, t) for t in taken if t != own)
        ]
        found.append(free[0] if free else 0)
        taken.append(boxes[found[-1]])
    return found


def _box(x: float, y: float, width: float, right: bool) -> tuple[float, float, float, float]:
    return (x if right else x - width, y - 7, x + width if right else x, y + 7)


def _touch(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def _title(data: str, epsilon: float) -> str:
    dated = "; private-pgm: dated figures" if data == "adult" else ""
    return f"{data}, epsilon {epsilon:g}. Dashed: records resampled{dated}"
