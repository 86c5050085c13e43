"""sbhg, figure 5.1: the hashed Gibbs sampler against PrivBayes on Adult, over epsilon and k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

import gibbous as gb
from gibbous.studies import panels
from gibbous.studies.park2014_data import Microdata, table_of, tagged
from gibbous.studies.sbhg_conditionals import Ints
from gibbous.studies.sbhg_laws import error, printed, projected, released, true_delta
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

_NUMBER: Final = 13  # of this study, in the path of every draw
EMPIRICAL: Final = "empirical sampling"
SURVIVED: Final = "SBHG as printed, starts that survived"
RECORD: Final = "SBHG as printed, starts at records"
SOUND: Final = "sbhg, as proven"
PRIVBAYES: Final = "privbayes"
METHODS: Final = (SURVIVED, RECORD, SOUND, PRIVBAYES, EMPIRICAL)
PRINTED_DELTA: Final = 0.1


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a method, epsilon and k; they are named after the table, which may not be there."""
    values = settings.values
    start = tagged(settings, "adult")
    grid = [Cell(f"{start}.method4", {"method": EMPIRICAL, "k": 0, "epsilon": None})]
    for epsilon in values["epsilon"]:
        for k in values["parents"]:
            grid += [
                Cell(f"{start}.method{METHODS.index(m)}.k={k}.eps={epsilon:g}",
                     {"method": m, "k": k, "epsilon": epsilon})
                for m in (SURVIVED, RECORD, SOUND)
            ]  # fmt: skip
        grid.append(
            Cell(
                f"{start}.method3.eps={epsilon:g}",
                {"method": PRIVBAYES, "k": 0, "epsilon": epsilon},
            )
        )
    return tuple(grid)


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row: mean U over the repeats, on the full table and on all two-way tables."""
    table = table_of(settings, "adult")
    method, k, epsilon = (cell.params[n] for n in ("method", "k", "epsilon"))
    path = (_NUMBER, METHODS.index(method), k, round((epsilon or 0) * 1e6))
    whole, two = [], []
    for repeat in range(settings.reps):
        rows = synthetic(table, cell, Draws(settings.seed, (*path, repeat)), settings)
        whole.append(error(table.codes, rows, table.sizes))
        two.append(projected(table.codes, rows, table.sizes, 2))
    delta, shown = delta_of(method, settings), _mean(whole, "shown")
    return [
        table.facts
        | {"method": method, "k": k, "epsilon": epsilon, "delta": delta}
        | {f"u_{n}": _mean(whole, n) for n in ("u", "degrees", "outside", "shown")}
        | {f"two_{n}": _mean(two, n) for n in ("u", "ratio", "outside")}
        | {"two_ratio_sd": float(np.std([one["ratio"] for one in two]))}
        | {
            "repeats": settings.reps,
            "true_delta": true_delta_of(method, table, delta, shown),
            "true_epsilon": epsilon if method in (SOUND, PRIVBAYES) else None,
        }
    ]


def synthetic(table: Microdata, cell: Cell, draws: Draws, settings: Settings) -> Ints:
    """One synthetic table with as many rows as the records."""
    method, k, epsilon = (cell.params[n] for n in ("method", "k", "epsilon"))
    if method == EMPIRICAL:
        return table.codes[(draws.uniform(table.rows) * table.rows).astype(np.int64)]
    if method in (SOUND, PRIVBAYES):
        seed = settings.seed + draws.path[-1]
        return released(_mechanism(method, k, epsilon, settings), table, table.rows, seed)
    start: Literal["surviving", "record"] = "surviving" if method == SURVIVED else "record"
    return printed(
        table, draws, parents=k, epsilon=epsilon, delta=PRINTED_DELTA,
        sweeps=settings.values["sweeps"], start=start,
    )  # fmt: skip


def _mechanism(method: str, k: int, epsilon: float, settings: Settings) -> Any:
    if method == SOUND:
        delta, sweeps = settings.values["sound_delta"], settings.values["sweeps"]
        return gb.Sbhg(epsilon, delta, relation="replace_one", parents=k, sweeps=sweeps)
    return gb.Privbayes(epsilon, relation="replace_one")


def delta_of(method: str, settings: Settings) -> float:
    """The delta that is charged."""
    if method == SOUND:
        return float(settings.values["sound_delta"])
    return {PRIVBAYES: 0.0, EMPIRICAL: 1.0}.get(method, PRINTED_DELTA)


def true_delta_of(method: str, table: Microdata, delta: float, shown: float | None) -> float:
    """What the delta is at least; of the proven methods, what it is.

    A row that is not a record never comes out of the printed acceptance test, so a record that stands
    alone and is shown is shown by its presence alone: no epsilon covers that.
    """
    if method in (SOUND, PRIVBAYES):
        return delta
    tables = true_delta(len(table.names), delta) if method == SURVIVED else 0.0
    return max(tables, shown or 0.0)


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """U by method, k and epsilon: on the occupied cells of the full table, and on two-way tables."""
    epsilons = settings.values["epsilon"]
    title = f"{rows[0]['table']}, {rows[0]['records']:,} records"
    named = (
        ("u_u", "U, full table"),
        ("u_outside", "share of rows outside the support, full table"),
        ("two_ratio", "U over its expectation, mean of all two-way tables"),
        ("two_outside", "share of rows outside the support, two-way tables"),
        ("u_shown", "share of singletons shown"),
    )
    shown_tables = []
    for measure, what in named:
        groups: dict[tuple[Any, ...], dict[Any, Any]] = {}
        for row in rows:
            key = (row["method"], row["k"] or None)
            groups.setdefault(key, {})[row["epsilon"]] = rounded(row[measure])
        lines = tuple(
            (*key, *(by.get(e, by.get(None)) for e in epsilons))
            for key, by in sorted(groups.items(), key=lambda g: METHODS.index(g[0][0]))
        )
        headers = ("method", "k", *(f"epsilon {e:g}" for e in epsilons))
        shown_tables.append(Table(measure.replace("_", "-"), f"{what}: {title}", headers, lines))
    return (*shown_tables, _costs(rows))


def _costs(rows: Sequence[Row]) -> Table:
    found: dict[tuple[str, float], list[float]] = {}
    for row in rows:
        if row["method"] != EMPIRICAL:
            found.setdefault((row["method"], row["delta"]), []).append(row["true_delta"])
    lines = tuple((*key, rounded(min(v)), rounded(max(v))) for key, v in found.items())
    headers = ("method", "delta charged", "least of its bounds over epsilon and k", "largest")
    return Table("delta", "What is charged, and lower bounds of what it costs", headers, lines)


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Figure 5.1 on the full table and on two-way tables, a panel a k."""
    drawn = []
    for measure, what in (("u_u", "U, full table"), ("two_ratio", "U over expected, two-way")):
        shown = [
            {**row, "panel": f"k = {k}", "y": row[measure]}
            for k in settings.values["parents"]
            for row in rows
            if row["epsilon"] is not None and row["k"] in (0, k)
        ]
        chart = panels.Lines(
            x="epsilon", y="y", by="method", panel="panel", order=METHODS, columns=2,
            titles=("ε", what), scales=("log", "log"),
            reference=1.0 if measure == "two_ratio" else rows[0]["u_degrees"],
        ).chart(shown)  # fmt: skip
        drawn.append(Figure(f"sbhg-3-{measure.replace('_', '-')}", what, chart))
    return tuple(drawn)


def _mean(errors: Sequence[dict[str, Any]], name: str) -> float | None:
    values = [one[name] for one in errors if one[name] is not None]
    return float(np.mean(values)) if values else None


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Figure 5.1: the best k against PrivBayes at each budget, by U as printed and on two-way tables."""
    out = []
    for measure, what in (("u_u", "U"), ("two_ratio", "U over expected, two-way")):
        for epsilon in settings.values["epsilon"]:
            theirs = value_of(rows, measure, method=PRIVBAYES, epsilon=epsilon)
            best = min(
                r[measure] for r in rows if (r["method"], r["epsilon"]) == (SURVIVED, epsilon)
            )
            out.append(Printed("fig. 5.1", f"{what}, best SBHG less PrivBayes at ε = {epsilon:g}", 0,
                               less(best, theirs), side="below"))  # fmt: skip
        ratio = None if theirs is None else best / theirs
        out.append(
            Printed(
                "fig. 5.1", f"{what}, best SBHG over PrivBayes at ε = {epsilon:g}", 1, ratio, 0.5
            )
        )
    return tuple(out)


STUDY = Study(
    name="sbhg-3",
    title="The hashed Gibbs sampler and PrivBayes on Adult",
    paper="sbhg, s5 and fig. 5.1",
    reproduces=(
        "Figure 5.1, upper half: U(X, Z) by epsilon and k with delta = 0.1 as printed, with a delta below "
        "1/records as proven, and of PrivBayes. NLTCS is not public: give a table with --data."
    ),
    full={
        "reps": 10,
        "records": None,
        "table": "public",
        "sweeps": 10,
        "sound_delta": 1e-6,
        "epsilon": [0.05, 0.1, 0.2, 0.4, 0.8, 1.6],
        "parents": [2, 3, 4, 5],
    },
    quick={
        "reps": 1, "records": 1500, "table": "constructed", "sweeps": 2, "epsilon": [0.1, 1.6],
        "parents": [2],
    },
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
    takes_data=True,
)  # fmt: skip
