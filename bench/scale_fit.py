"""What scale.py measured: a table with ratios, a cost model with its residuals, a log-log figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
NAMES = {
    "local": "gibbous, local",
    "duckdb": "gibbous, duckdb",
    "spark": "gibbous, spark",
    "sql": "DuckDB group-bys",
    "numpy": "NumPy bincount",
    "dpmm": "dpmm (codes in memory)",
}
STEPS = {
    "counts": "Parquet to counts",
    "release": "Parquet to released tables",
    "rows": "released tables to rows in Parquet",
}
COLORS = {
    "local": "#1f6f8b",
    "duckdb": "#c26a2d",
    "spark": "#6a4c93",
    "sql": "#8a8a8a",
    "numpy": "#4f7f3b",
    "dpmm": "#b03a48",
}
DASHES = {
    "local": [1, 0],
    "duckdb": [1, 0],
    "spark": [1, 0],
    "sql": [6, 3],
    "numpy": [2, 2],
    "dpmm": [6, 2, 2, 2],
}
BEYOND = (10**9, 10**10, 10**11, 10**12)
CORES = (2, 64, 1024)


@dataclass(frozen=True)
class Cost:
    """CPU seconds = start + column x columns + value x rows x columns, of one side of one step.

    Attributes:
        start: seconds.
        column: seconds a column.
        value: seconds a value (row and column).
        errors: measured / fitted - 1 of each run.
    """

    start: float
    column: float
    value: float
    errors: tuple[float, ...]

    def seconds(self, rows: float, columns: int, cores: int = 1) -> float:
        """With the work on values shared evenly; the rest is not shared."""
        shared = self.value * rows * columns / cores
        return self.start + self.column * columns + shared


def fit(runs: list[Row]) -> Cost:
    """Least squares of relative errors; no part is negative.

    Args:
        runs: at least as many as there are parts, else the parts that are fewest in number come first:
            with one width of table, seconds a column cannot be told from the start and are 0.
    """
    from scipy.optimize import nnls

    wide = len({run["columns"] for run in runs}) > 1
    parts = [
        (1.0, float(run["columns"]) * wide, float(run["rows"]) * run["columns"]) for run in runs
    ]
    seconds = np.array([run["cpu_s"] for run in runs])
    weighted = np.array(parts) / seconds[:, None]
    scale = weighted.max(axis=0)
    scale[scale == 0] = 1.0
    found = nnls(weighted / scale, np.ones(len(runs)))[0] / scale
    errors = seconds / (np.array(parts) @ found) - 1
    return Cost(*map(float, found), tuple(map(float, errors)))


def table(every: list[Row]) -> str:
    """Markdown: each step, each width; seconds, ratio to DuckDB's group-bys, growth a decade, memory."""
    out = []
    runs = [r for r in every if r["threads"] == 1]
    for step, title in STEPS.items():
        for columns in sorted({r["columns"] for r in runs if r["step"] == step}):
            of = [r for r in runs if (r["step"], r["columns"]) == (step, columns)]
            out += [f"\n**{title}, {columns} columns**\n", *_lines(of, step)]
    return "\n".join([*out, *_threads(every)])


def _threads(every: list[Row]) -> list[str]:
    """What a second thread brings: wall seconds of the same run with one and with two."""
    names = ("step", "side", "columns", "rows")
    at = {(*(r[name] for name in names), r["threads"]): r for r in every}
    both = sorted(key[:4] for key in at if key[4] == 2 and (*key[:4], 1) in at)
    heads = "| step | side | columns | rows | one thread, wall s | two | times as fast | load |"
    out = ["\n**Two threads**\n", heads, "|---|---|---:|---:|---:|---:|---:|---:|"]
    for key in both:
        one, two = at[*key, 1], at[*key, 2]
        step, side, columns, rows = key
        cells = [STEPS[step], NAMES[side], str(columns), f"{rows:,}", _short(one["wall_s"])]
        cells += [_short(two["wall_s"]), f"{one['wall_s'] / two['wall_s']:.2f}"]
        out.append("| " + " | ".join([*cells, f"{two['load']:.1f}"]) + " |")
    return out if both else []


def _lines(runs: list[Row], step: str) -> list[str]:
    ratio = " / DuckDB |" if step == "counts" else ""
    heads = f"| rows | side | CPU s | wall s |{ratio} / tenth of the rows | peak MB | load |"
    out = [heads, "|---:|---|---:|---:|" + ("---:|" if ratio else "") + "---:|---:|---:|"]
    at = {(r["rows"], r["side"]): r for r in runs}
    for rows, side in sorted(at, key=lambda k: (k[0], list(NAMES).index(k[1]))):
        run = at[rows, side]
        cells = [f"{rows:,}", NAMES[side], _short(run["cpu_s"]), _short(run["wall_s"])]
        if ratio:
            base = at.get((rows, "sql"))
            cells.append("" if base is None else _ratio(run["cpu_s"] / base["cpu_s"]))
        less = at.get((rows // 10, side))
        cells.append("" if less is None else f"{run['cpu_s'] / less['cpu_s']:.1f}")
        cells += [f"{run['peak_mb']:,.0f}", f"{run['load']:.1f}"]
        out.append("| " + " | ".join(cells) + " |")
    return out


def _short(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 9.95 else f"{seconds:,.0f}"


def _ratio(value: float) -> str:
    return f"1/{1 / value:.1f}" if value < 0.95 else f"{value:.2f}"


def fits(every: list[Row]) -> dict[tuple[str, str], Cost]:
    """A cost of one thread for each side of each step that has more runs than the cost has parts."""
    out = {}
    runs = [r for r in every if r["threads"] == 1]
    for step in STEPS:
        for side in NAMES:
            of = [r for r in runs if (r["step"], r["side"]) == (step, side)]
            parts = 2 + (len({r["columns"] for r in of}) > 1)
            if len(of) > parts:
                out[step, side] = fit(of)
    return out


def model(runs: list[Row]) -> str:
    """Markdown: parts of the cost, residuals, and what they extrapolate to, marked so."""
    out = [
        "| step | side | start, s | a column, ms | a value, ns | runs | errors of the fit |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    found = fits(runs)
    for (step, side), cost in found.items():
        errors = f"{min(cost.errors):+.0%} to {max(cost.errors):+.0%}"
        out.append(
            f"| {STEPS[step]} | {NAMES[side]} | {cost.start:.2f} | {cost.column * 1e3:.2f} "
            f"| {cost.value * 1e9:.2f} | {len(cost.errors)} | {errors} |"
        )
    out += [
        "\nExtrapolated, not measured: wall time of 13 columns if the work on values is shared evenly",
        "by all cores and nothing else takes time (no shuffle, no slow disk, no lost executor).\n",
        "| step | side | rows | " + " | ".join(f"{k:,} cores" for k in CORES) + " |",
        "|---|---|---:|" + "---:|" * len(CORES),
    ]
    for (step, side), cost in found.items():
        if side in ("local", "duckdb", "spark"):
            for rows in BEYOND:
                if side != "spark" and rows > BEYOND[1]:
                    continue  # one machine
                shown = [
                    "" if side != "spark" and k > CORES[0] else _time(cost.seconds(rows, 13, k))
                    for k in CORES
                ]
                cells = [STEPS[step], NAMES[side], f"{rows:.0e}".replace("+", ""), *shown]
                out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def _time(seconds: float) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def figure(path: Path, runs: list[Row]) -> None:
    """CPU seconds against rows, one panel a width of table; the dotted line grows as the rows do."""
    import altair as alt
    import pandas as pd

    of = [r for r in runs if r["step"] == "counts" and r["threads"] == 1]
    frame = pd.DataFrame([{**r, "name": NAMES[r["side"]]} for r in of])
    sides = [side for side in NAMES if side in set(frame.side)]
    low, high = frame.cpu_s.min() / 1.6, frame.cpu_s.max() * 1.6
    powers = [10.0**k for k in range(-3, 6) if low <= 10.0**k <= high]
    y = alt.Y("cpu_s:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False))
    y = y.axis(values=powers, format="~g").title("CPU seconds (logarithmic)")
    tens = [10.0**k for k in range(5, 9)]
    x = alt.X("rows:Q", scale=alt.Scale(type="log", domain=[7e4, 1.5e8], nice=False))
    x = x.axis(values=tens, format="~e").title("rows (logarithmic)")
    scale = {"domain": [NAMES[s] for s in sides]}
    color = alt.Color(
        "name:N", scale=alt.Scale(**scale, range=[COLORS[s] for s in sides]), title=None
    )
    dash = alt.StrokeDash(
        "name:N", scale=alt.Scale(**scale, range=[DASHES[s] for s in sides]), title=None
    )
    panels = []
    for columns in sorted(set(frame["columns"])):
        part = frame[frame["columns"] == columns]
        base = alt.Chart(part).encode(x=x, y=y, color=color)
        ours = part[part.side == "local"].sort_values("rows").iloc[-1]
        begin = max(low / ours.cpu_s * ours.rows, 1e5)
        straight = pd.DataFrame({"rows": [begin, ours.rows]})
        straight["cpu_s"] = straight.rows * ours.cpu_s / ours.rows
        linear = alt.Chart(straight).mark_line(strokeDash=[1, 3], color="#444444", strokeWidth=1)
        layers = [
            linear.encode(x=x, y=y),
            base.mark_line(strokeWidth=2).encode(strokeDash=dash),
            base.mark_point(filled=True, size=40, opacity=1),
        ]
        panels.append(alt.layer(*layers).properties(width=230, height=300, title=_title(columns)))
    chart = alt.hconcat(*panels).configure_legend(orient="bottom", columns=3, labelLimit=300)
    chart = chart.configure_axis(gridColor="#e4e4e4")
    chart.save(str(path))
    if path.suffix == ".svg":
        path.write_text(path.read_text().rstrip() + "\n")


def _title(columns: int) -> str:
    return f"{columns} columns: Parquet to counts"
