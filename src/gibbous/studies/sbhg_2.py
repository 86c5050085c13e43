"""sbhg, tables 4.1 and 4.2, figures 4.2 and 4.3: U(X, Z) on a dense and a sparse table, and run time by k."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

import gibbous as gb
from gibbous.studies import panels
from gibbous.studies.park2014_data import Microdata, correlated
from gibbous.studies.sbhg_1 import LEVELS, RECORDS, TABLES, dense
from gibbous.studies.sbhg_conditionals import Ints
from gibbous.studies.sbhg_laws import error, printed, released, true_delta
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import (
    Cell,
    Figure,
    Printed,
    Row,
    Settings,
    Study,
    Table,
    less,
    rounded,
    value_of,
)

_NUMBER: Final = 12  # of this study, in the path of every draw
DATA: Final = ("dense", "sparse")
EMPIRICAL: Final = "empirical sampling"
GIBBS: Final = "Gibbs sampling, no noise"
LINE_9: Final = "SBHG, starts that survived"
RECORD: Final = "SBHG, starts at records"
KEY: Final = "SBHG, accepts by noisy key"
SOUND: Final = "sbhg, as proven"
METHODS: Final = (EMPIRICAL, GIBBS, LINE_9, RECORD, KEY, SOUND)
PRINTED: Final = {
    ("dense", EMPIRICAL): 946.53, ("dense", GIBBS): 1248.42,
    ("dense", "SBHG"): 1784.13, ("dense", "optimal SBHG"): 1531.35,
    ("sparse", EMPIRICAL): 932.23, ("sparse", GIBBS): 1031.06,
    ("sparse", "SBHG"): 2293.84, ("sparse", "optimal SBHG"): 1583.53,
}  # fmt: skip
"""Average U(X, Z) [sbhg, tables 4.1 and 4.2]."""
PRINTED_SD: Final = dict(
    zip(PRINTED, (104.71, 128.52, 174.11, 152.11, 113.53, 131.12, 238.53, 153.58), strict=True)
)
"""Its standard deviation over 40 repeats."""


def table_of(kind: str, seed: int) -> Microdata:
    """The two tables of the paper: 3 or 10 columns of ten levels, 3,000 records."""
    if kind == "dense":
        return dense(TABLES[1], seed)
    codes = correlated((LEVELS,) * 10, RECORDS, Draws(seed, (_NUMBER, 0)))
    labels = tuple(str(v) for v in range(LEVELS))
    return Microdata("sparse", tuple("abcdefghij"), codes, (labels,) * 10)


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a table, method and parameter."""
    values = settings.values
    grid = []
    for kind in DATA:
        widest = len(table_of(kind, settings.seed).names) - 1
        grid += [_cell(kind, EMPIRICAL, 0, 0.0, 0.0), _cell(kind, GIBBS, widest, 0.0, 0.0)]
        for k in [k for k in values["parents"] if k <= widest]:
            grid += [_cell(kind, method, k, 0.1, 0.1) for method in (LINE_9, RECORD, KEY)]
            grid.append(_cell(kind, SOUND, k, 0.1, values["sound_delta"]))
    for other in values["budgets"]:
        for epsilon, delta in ((other, 0.1), (0.1, other)):
            grid += [_cell("sparse", m, 2, epsilon, delta) for m in (LINE_9, RECORD)]
    return tuple({cell.name: cell for cell in grid}.values())


def _cell(kind: str, method: str, k: int, epsilon: float, delta: float) -> Cell:
    number = METHODS.index(method)
    name = f"{kind}.method{number}.k={k}.eps={epsilon:g}.delta={delta:g}"
    params = {"kind": kind, "method": method, "k": k, "epsilon": epsilon, "delta": delta}
    return Cell(name, params)


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row: mean and spread of U over the repeats, on the full table and on projections."""
    kind, method = cell.params["kind"], cell.params["method"]
    table = table_of(kind, settings.seed)
    path = (_NUMBER, DATA.index(kind) + 1, METHODS.index(method), cell.params["k"])
    draws = Draws(settings.seed, path).at(
        round(cell.params["epsilon"] * 1e6), round(cell.params["delta"] * 1e6)
    )
    reps = min(settings.reps, settings.values["sound_reps"]) if method == SOUND else settings.reps
    whole: list[dict[str, Any]] = []
    three: list[dict[str, Any]] = []
    two: list[dict[str, Any]] = []
    seconds = []
    for repeat in range(reps):
        begun = time.process_time()
        rows = synthetic(table, cell, draws.at(repeat), settings)
        seconds.append(time.process_time() - begun)
        whole.append(error(table.codes, rows, table.sizes))
        first = slice(0, 3)
        three.append(error(table.codes[:, first], rows[:, first], table.sizes[first]))
        two.append(error(table.codes[:, :2], rows[:, :2], table.sizes[:2]))
    shown = float(np.mean([one["shown"] for one in whole]))
    return [
        dict(cell.params)
        | _spread("u", whole)
        | _spread("u3", three)
        | _spread("u2", two)
        | {
            "outside": float(np.mean([one["outside"] for one in whole])),
            "shown": shown,
            "seconds": float(np.median(seconds)),
            "repeats": reps,
            **_true(method, len(table.names), cell, shown),
        }
    ]


def synthetic(table: Microdata, cell: Cell, draws: Draws, settings: Settings) -> Ints:
    """One synthetic table of a method."""
    method, k = cell.params["method"], cell.params["k"]
    if method == EMPIRICAL:
        places = (draws.uniform(table.rows) * table.rows).astype(np.int64)
        return table.codes[places]
    if method == SOUND:
        mechanism = gb.Sbhg(
            epsilon=cell.params["epsilon"], delta=cell.params["delta"], parents=k,
            relation="replace_one", sweeps=settings.values["sweeps"],
        )  # fmt: skip
        return released(mechanism, table, table.rows, settings.seed + draws.path[-1])
    accept: Literal["record", "key"] = "key" if method == KEY else "record"
    return printed(
        table, draws, parents=k, epsilon=None if method == GIBBS else cell.params["epsilon"],
        delta=max(cell.params["delta"], 1e-12), sweeps=settings.values["sweeps"], accept=accept,
        start="surviving" if method == LINE_9 else "record",
    )  # fmt: skip


def _spread(name: str, errors: Sequence[dict[str, Any]]) -> dict[str, float]:
    values = np.array([one["u"] for one in errors])
    return {
        name: float(values.mean()),
        f"{name}_sd": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        f"{name}_degrees": errors[0]["degrees"],
    }


def _true(method: str, columns: int, cell: Cell, shown: float) -> dict[str, Any]:
    """The proven (epsilon, delta), or what delta is at least (epsilon None: whatever epsilon).

    Args:
        shown: share of the records that stand alone and come out; without them nothing of theirs does.
    """
    if method == SOUND:
        return {"true_epsilon": cell.params["epsilon"], "true_delta": cell.params["delta"]}
    tables = true_delta(columns, cell.params["delta"])  # 0 where there is no noise at all
    return {"true_epsilon": None, "true_delta": max(tables, 0.0 if method == KEY else shown)}


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """U beside the printed averages; U, rows outside and run time by k; U by epsilon and delta."""
    del settings
    return (_beside(rows), _by_k(rows), _by_budget(rows))


def _beside(rows: Sequence[Row]) -> Table:
    lines = []
    for kind in DATA:
        for method in (EMPIRICAL, GIBBS):
            row = next(r for r in rows if (r["kind"], r["method"]) == (kind, method))
            lines.append((kind, method, None, PRINTED[kind, method], *_figures(row)))
        for method in (LINE_9, RECORD, KEY, SOUND):
            same = [r for r in rows if _usual(r) and (r["kind"], r["method"]) == (kind, method)]
            best = min(same, key=lambda r: r["u3"])
            name = "optimal SBHG" if method != SOUND else ""
            lines.append((kind, method, best["k"], PRINTED.get((kind, name)), *_figures(best)))
    headers = (
        "table", "method", "best k", "printed", "U", "s.d.", "expected", "U of 3 columns",
        "s.d. of 3", "expected of 3", "outside", "singletons shown",
    )  # fmt: skip
    title = "U(X, Z), full table and first three columns; expected: if rows were drawn from X"
    return Table("u", title, headers, tuple(lines))


def _figures(row: Row) -> tuple[Any, ...]:
    names = ("u", "u_sd", "u_degrees", "u3", "u3_sd", "u3_degrees", "outside", "shown")
    return tuple(rounded(row[name]) for name in names)


def _by_k(rows: Sequence[Row]) -> Table:
    lines = tuple(
        (row["kind"], row["method"], row["k"],
         *(rounded(row[n]) for n in ("u", "u3", "u2", "outside", "shown", "seconds")))
        for row in rows
        if _usual(row) and row["method"] not in (EMPIRICAL,)
    )  # fmt: skip
    headers = (
        "table", "method", "k", "U", "U of 3 columns", "U of 2 columns", "outside",
        "singletons shown", "CPU seconds",
    )  # fmt: skip
    return Table("k", "By k, at epsilon = 0.1 and delta = 0.1 (as proven: its own)", headers, lines)


def _by_budget(rows: Sequence[Row]) -> Table:
    lines = tuple(
        (row["method"], row["epsilon"], row["delta"], *(rounded(row[n]) for n in ("u", "u3", "true_delta")))
        for row in rows
        if row["kind"] == "sparse" and row["k"] == 2 and row["method"] in (LINE_9, RECORD)
    )  # fmt: skip
    headers = ("method", "epsilon", "delta", "U", "U of 3 columns", "true delta is at least")
    return Table("budget", "Sparse table, k = 2, by epsilon and delta", headers, lines)


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Figure 4.2 (U and run time by k) and figure 4.3 (U by epsilon and delta)."""
    del settings
    by_k = [{**r, "panel": r["kind"]} for r in rows if _usual(r) and r["method"] not in METHODS[:2]]
    budgets = [
        {**row, "value": row[axis], "panel": f"{sign}, the other 0.1"}
        for axis, other, sign in (("epsilon", "delta", "ε"), ("delta", "epsilon", "δ"))
        for row in rows
        if row["kind"] == "sparse" and row["k"] == 2 and row["method"] in (LINE_9, RECORD)
        if row[other] == 0.1
    ]
    budgets.sort(key=lambda row: (row["panel"], row["value"]))
    common: dict[str, Any] = {"by": "method", "panel": "panel", "order": METHODS, "columns": 2}
    of_three, by_hash = "U of three columns", "columns kept by the hash, k"
    drawn = (
        ("k", "U by k", by_k, "k", "u3", (by_hash, of_three)),
        ("seconds", "Run time by k", by_k, "k", "seconds", (by_hash, "CPU seconds")),
        ("budget", "U by epsilon and delta", budgets, "value", "u3", ("ε or δ", of_three)),
    )
    charts = []
    for name, title, points, x, y, titles in drawn:
        scales: tuple[panels.Kind, panels.Kind] = ("linear", "linear" if y == "seconds" else "log")
        lines = panels.Lines(x=x, y=y, titles=titles, scales=scales, **common)
        charts.append(Figure(f"sbhg-2-{name}", title, lines.chart(points)))
    return tuple(charts)


def _usual(row: Row) -> bool:
    return bool(row["epsilon"] == 0.1 and (row["delta"] == 0.1 or row["method"] == SOUND))


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Tables 4.1 and 4.2 within four standard errors, by the printed spread, and figures 4.2 and 4.3.

    The printed sparse tables are near a projection to three columns (see the page): U of these is ours.
    """
    out, sides = [], (1 / 40 + 1 / settings.reps) ** 0.5
    for kind, name in PRINTED:
        place, measure = ("table 4.1", "u") if kind == "dense" else ("table 4.2", "u3")
        for method in (name,) if name in METHODS else (LINE_9, RECORD, KEY):
            ours = [r[measure] for r in rows
                    if (r["kind"], r["method"]) == (kind, method)
                    and (r["method"] in METHODS[:2] or _usual(r))]  # fmt: skip
            found = min(ours) if "optimal" in name else float(np.mean(ours))
            words = name if name == method else f"{name}, {method.removeprefix('SBHG, ')}"
            tolerance = 4 * PRINTED_SD[kind, name] * sides
            out.append(Printed(place, f"U(X, Z), {words}", PRINTED[kind, name], found, tolerance))
    keyed = [r for r in rows if (r["kind"], r["method"]) == ("sparse", KEY)]
    seconds = {r["k"]: r["seconds"] for r in keyed}
    by = {e: value_of(rows, "u3", kind="sparse", method=LINE_9, k=2, epsilon=e, delta=0.1)
          for e in (0.1, 0.6, 1.0)}  # fmt: skip
    stable = None if by[0.6] is None or by[1.0] is None else by[0.6] / by[1.0]
    best_k = min(keyed, key=lambda r: float(r["u3"]))["k"]
    return (
        *out,
        Printed("fig. 4.2", "k with the least U, sparse table", 2, best_k),
        Printed("fig. 4.2", "CPU seconds: k = 9 less k = 1", 0, less(seconds[9], seconds[1]), side="above"),
        Printed("fig. 4.3", "U at ε = 1 less U at 0.1", 0, less(by[1.0], by[0.1]), side="below"),
        Printed("fig. 4.3", "U at ε = 0.6 over U at 1", 1, stable, 0.25),
    )  # fmt: skip


STUDY = Study(
    name="sbhg-2",
    title="U(X, Z) of the hashed Gibbs sampler on a dense and a sparse table",
    paper="sbhg, tables 4.1 and 4.2, figs. 4.2 and 4.3",
    reproduces=(
        "U(X, Z) of empirical sampling, the Gibbs sampler and SBHG by the columns k that the hash "
        "keeps, on a dense and a sparse constructed table; run time by k; U by epsilon and delta."
    ),
    full={
        "reps": 40,
        "sound_reps": 5,
        "sound_delta": 1e-4,
        "sweeps": 10,
        "parents": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "budgets": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
    },
    quick={"reps": 2, "sound_reps": 1, "parents": [1, 2, 9], "budgets": [0.1, 1.0], "sweeps": 4},
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
)
