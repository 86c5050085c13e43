"""park2014, section 4: sampling, histograms, R-U maps and intruders of PeGS, Block PeGS and PMI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import gibbous as gb
from gibbous.studies import panels
from gibbous.studies import park2014_laws as measures
from gibbous.studies.park2014_data import Microdata, table_of, tagged
from gibbous.studies.park2014_laws import Imputer, added, alpha_printed, blocks, imputer, seeds
from gibbous.studies.park2014_printed import beside
from gibbous.studies.sbhg_conditionals import Floats, Ints, disintegrated
from gibbous.studies.sbhg_laws import gibbs, released
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import Cell, Figure, Row, Settings, Study, Table, rounded

_NUMBER: Final = 22  # of this study, in the path of every draw
PEGS: Final = "PeGS"
RECORD: Final = "PeGS, seeds are records"
BLOCK: Final = "Block PeGS with reset"
PMI: Final = "perturbed imputation"
NOISY: Final = "noisy_pegs, whole file"
BOOTSTRAP: Final = "bootstrap"
UNIFORM: Final = "uniform rows"
METHODS: Final = (PEGS, RECORD, BLOCK, PMI, NOISY, BOOTSTRAP, UNIFORM)
HISTOGRAMS: Final = ("nproc", "age_yrs")
KNOWN: Final = ("age_yrs", "sex", "los", "hosp")
POPULATION: Final = ("age_yrs", "sex", "hosp")
MEASURES: Final = {
    "marginal": "marginal distance",
    "given_age": "conditional distance, given age",
    "given_hosp": "conditional distance, given hospital",
    "linear": "distance of linear coefficients",
    "logistic": "distance of logistic coefficients",
    "mdc_missed": "share of diagnoses that an intruder misses",
    "nproc_error": "intruder's mean error in procedures",
    "unique": "unique rows by age, sex and hospital",
}
LINEAR: Final = ("nproc", ("age_yrs", "sex", "los", "sev", "cat"))
LOGISTIC: Final = ("cat", ("age_yrs", "sex", "los", "sev", "nproc"))


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a method, the sampling demonstration, and the histograms."""
    start = tagged(settings, "discharge13")
    grid = [Cell(f"{start}.demonstration", {"part": "demonstration"})]
    grid.append(Cell(f"{start}.histograms", {"part": "histograms"}))
    grid += [
        Cell(f"{start}.map{place}", {"part": "map", "method": method})
        for place, method in enumerate(METHODS)
    ]
    return tuple(grid)


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """The rows of one part; the column "part" says which."""
    table = table_of(settings, "discharge13")
    part = cell.params["part"]
    made = {"demonstration": _demonstration, "histograms": _histograms}
    rows = made[part](table, settings) if part in made else _map(table, cell, settings)
    return [{"part": part} | table.facts | row for row in rows]


def _demonstration(table: Microdata, settings: Settings) -> list[dict[str, Any]]:
    """Table 3: a record as seed (of a given table, whose records stay there, a uniform row), then draws."""
    values, draws = settings.values, Draws(settings.seed, (_NUMBER, 1))
    alpha = alpha_printed(values["shown_epsilon"], len(table.names))
    conditionals = added(disintegrated(table.codes, table.sizes, values["parents"]), alpha)
    state = seeds(table, 1, draws.at(0), records=settings.data is None)
    rows = [{"step": "seed"} | _labels(table, state[0])]
    for hashed, sums in zip(conditionals.tables, conditionals.cumulative, strict=True):
        one = type(conditionals)((hashed,), (sums,))
        state = gibbs(one, state, draws.at(1, hashed.target), sweeps=1, records=None)
        rows.append({"step": table.names[hashed.target]} | _labels(table, state[0]))
    return rows


def _labels(table: Microdata, row: Ints) -> dict[str, str]:
    return {
        f"value_{name}": labels[code]
        for name, labels, code in zip(table.names, table.labels, row, strict=True)
    }


def _histograms(table: Microdata, settings: Settings) -> list[dict[str, Any]]:
    """Figure 4: shares of two columns in the records, in PeGS and in one long block."""
    values, draws = settings.values, Draws(settings.seed, (_NUMBER, 2))
    alpha = alpha_printed(values["shown_epsilon"], len(table.names))
    conditionals = added(disintegrated(table.codes, table.sizes, values["parents"]), alpha)
    n = values["rows"]
    start = seeds(table, n, draws.at(0), records=False)
    epsilon = values["shown_epsilon"]
    drawn = {
        "records": (table.codes, None),
        PEGS: (gibbs(conditionals, start, draws.at(1), sweeps=1, records=None), n * epsilon),
        f"{BLOCK}, one block": (blocks(conditionals, start[:1], draws.at(2), block=n), epsilon),
        f"{BLOCK}, blocks of {values['block']}": (
            blocks(conditionals, start[: n // values["block"]], draws.at(3), block=values["block"]),
            n // values["block"] * epsilon,
        ),
    }
    return [
        {"column": name, "method": method, "level": level, "share": float(share),
         "label": table.labels[table.index(name)][level], "true_epsilon": cost}
        for name in [n for n in HISTOGRAMS if n in table.names] or table.names[:2]
        for method, (rows, cost) in drawn.items()
        for level, share in enumerate(
            measures.shares(rows[:, table.index(name)], table.sizes[table.index(name)]))
    ]  # fmt: skip


def _map(table: Microdata, cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """Means of all measures over the repeats, a row an epsilon."""
    values, method = settings.values, cell.params["method"]
    sampler, truth = _sampler(table, method, settings), fitted(table, table.codes)
    place = METHODS.index(method)
    rows = []
    for epsilon in _epsilons(method, values):
        measured_rows, coefficients = [], []
        for repeat in range(settings.reps):
            draws = Draws(settings.seed, (_NUMBER, 3, place, round((epsilon or 0) * 1e6), repeat))
            one = measured(table, sampler(epsilon, draws), truth, settings)
            coefficients.append(one.pop("coefficients"))
            measured_rows.append(one)
        means = {
            name: float(np.mean([one[name] for one in measured_rows])) for name in measured_rows[0]
        }
        terms = {f"b_{k}": float(b) for k, b in enumerate(np.mean(coefficients, axis=0))}
        rows.append(
            {"method": method, "repeats": settings.reps}
            | _prices(method, epsilon, values["rows"])
            | means
            | terms
        )
    return rows


def _sampler(
    table: Microdata, method: str, settings: Settings
) -> Callable[[float | None, Draws], Ints]:
    """Rows of a method from epsilon and draws; what does not depend on them is made once."""
    values, p = settings.values, len(table.names)
    n, block = values["rows"], values["block"]
    if method == BOOTSTRAP:
        return lambda _, draws: seeds(table, n, draws, records=True)
    if method == UNIFORM:
        return lambda _, draws: seeds(table, n, draws, records=False)
    if method == NOISY:
        return lambda e, draws: released(gb.NoisyPegs(e or 0.0), table, n, draws.path[-1])
    if method == PMI:
        models = imputer(table, values["fit_records"])
        return lambda e, draws: Imputer(models, alpha_printed(e or 0.0, p)).rows(
            seeds(table, n, draws.at(0), records=False), draws.at(1)
        )
    tables = disintegrated(table.codes, table.sizes, values["parents"])
    if method == BLOCK:  # epsilon a row: a block of B rows may cost B times as much
        return lambda e, draws: blocks(
            added(tables, alpha_printed((e or 0.0) * block, p)),
            seeds(table, -(-n // block), draws.at(0), records=False),
            draws.at(1),
            block=block,
        )[:n]
    return lambda e, draws: gibbs(
        added(tables, alpha_printed(e or 0.0, p)),
        seeds(table, n, draws.at(0), records=method == RECORD),
        draws.at(1),
        sweeps=1,
        records=None,
    )


def _epsilons(method: str, values: Any) -> Sequence[float | None]:
    if method in (BOOTSTRAP, UNIFORM):
        return (None,)
    return tuple(values["file_epsilon"] if method == NOISY else values["epsilon"])


def _prices(method: str, epsilon: float | None, rows: int) -> dict[str, Any]:
    """Epsilon a row as the paper plots it, and what the file costs; None: no bound.

    The file of PeGS and Block PeGS costs rows times epsilon if contexts are public; here they are
    ranked on the records, as printed, which no proof covers.
    """
    if epsilon is None:
        return {"epsilon": None, "file_epsilon": 0.0 if method == UNIFORM else None}
    if method == NOISY:
        return {"epsilon": None, "file_epsilon": epsilon}
    return {"epsilon": epsilon, "file_epsilon": None if method == RECORD else rows * epsilon}


def fitted(table: Microdata, rows: Ints) -> tuple[Floats, Floats] | None:
    """Linear and logistic coefficients; None for a given table without the columns of the paper."""
    if any(name not in table.names for name in (*KNOWN, "nproc", "mdc", "sev", "cat")):
        return None
    return measures.linear(table, rows, *LINEAR), measures.logistic(table, rows, *LOGISTIC)


def measured(
    table: Microdata, rows: Ints, truth: tuple[Floats, Floats] | None, settings: Settings
) -> dict[str, Any]:
    """All measures of one synthetic table, and its linear coefficients.

    Args:
        truth: coefficients on the records; None leaves out what needs the columns of the paper.
    """
    figures_of: dict[str, Any] = {"marginal": measures.marginal_distance(table, rows)}
    made = fitted(table, rows)
    if truth is None or made is None:
        return figures_of | {"coefficients": np.zeros(0)}
    places = Draws(settings.seed, (_NUMBER, 4)).uniform(settings.values["targets"]) * table.rows
    targets = table.codes[places.astype(np.int64)]
    return figures_of | {
        "given_age": measures.conditional_distance(table, rows, "age_yrs"),
        "given_hosp": measures.conditional_distance(table, rows, "hosp"),
        "linear": float(np.linalg.norm(made[0] - truth[0])),
        "logistic": float(np.linalg.norm(made[1] - truth[1])),
        "mdc_missed": measures.attack(table, rows, KNOWN, "mdc", targets),
        "nproc_error": measures.guessed_number(table, rows, KNOWN, "nproc", targets),
        "unique": float(measures.unique(table, rows, POPULATION)),
        "coefficients": made[0],
    }


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """Table 3, the distances of the histograms, the maps, and the coefficients of figure 8."""
    del settings
    shown = [row for row in rows if row["part"] == "demonstration"]
    names = [name for name in shown[0] if name.startswith("value_")]
    steps = tuple((row["step"], *(row[name] for name in names)) for row in shown)
    headers = ("redrawn", *(name.removeprefix("value_") for name in names))
    title = f"Sampling demonstration: {rows[0]['table']}, {rows[0]['records']:,} records"
    return (
        Table("demonstration", title, headers, steps),
        _far(rows),
        _mapped(rows),
        _coefficients(rows),
    )


def _far(rows: Sequence[Row]) -> Table:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["part"] == "histograms":
            groups.setdefault((row["column"], row["method"]), []).append(row)
    lines = []
    for (column, method), lines_of in groups.items():
        real = groups[column, "records"]
        share = [row["share"] for row in lines_of]
        far = sum(abs(a["share"] - b) for a, b in zip(real, share, strict=True)) / 2
        even = sum(abs(1 / len(share) - b) for b in share) / 2
        lines.append((column, method, rounded(far), rounded(even), lines_of[0]["true_epsilon"]))
    headers = ("column", "method", "distance to records", "distance to uniform", "true epsilon")
    return Table("histograms", "Histograms: half L1 distances", headers, tuple(lines))


def _mapped(rows: Sequence[Row]) -> Table:
    maps = [row for row in rows if row["part"] == "map"]
    names = [name for name in MEASURES if name in maps[0]]
    lines = tuple(
        (row["method"], row["epsilon"], row["file_epsilon"], *(rounded(row[n]) for n in names))
        for row in maps
    )
    headers = ("method", "epsilon a row", "true epsilon of the file", *names)
    return Table("map", "Utility and risk", headers, lines)


def _coefficients(rows: Sequence[Row]) -> Table:
    maps = [row for row in rows if row["part"] == "map" and "b_0" in row]
    names = [f"b_{k}" for k in range(len(LINEAR[1]) + 1)]
    lines = tuple(
        (row["method"], row["epsilon"], *(rounded(row[name]) for name in names)) for row in maps
    )
    headers = ("method", "epsilon a row", "intercept", *LINEAR[1])
    title = f"Linear model of {LINEAR[0]}: coefficients per real standard deviation"
    return Table("coefficients", title, headers, lines)


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Figure 4; figures 5 to 7 and 9 with what is charged and what is true side by side."""
    del settings
    maps = [row for row in rows if row["part"] == "map"]
    chart = panels.Lines(
        x="level", y="share", by="method", panel="column", columns=2,
        titles=("level", "share"), shared=False,
    ).chart([row for row in rows if row["part"] == "histograms"])  # fmt: skip
    drawn = [Figure("park2014-histograms", "Histograms of PeGS and Block PeGS", chart)]
    groups = {
        "utility": ("marginal", "given_age", "given_hosp", "linear", "logistic"),
        "risk": ("mdc_missed", "nproc_error", "unique"),
    }
    for group, names in groups.items():
        shown = [
            {"x": row[axis], "y": row[name], "method": row["method"],
             "panel": f"{MEASURES[name]}; {words}"}
            for name in names
            if name in maps[0]
            for axis, words in (("epsilon", "by row, charged"), ("file_epsilon", "whole file, true"))
            for row in maps
            if row[axis]
        ]  # fmt: skip
        chart = panels.Lines(
            x="x", y="y", by="method", panel="panel", order=METHODS, columns=2,
            titles=("ε", "measure"), scales=("log", "linear"), shared=False, height=110,
        ).chart(shown)  # fmt: skip
        drawn.append(Figure(f"park2014-{group}", f"R-U maps: {group}", chart))
    return tuple(drawn)


STUDY = Study(
    name="park2014",
    title="Perturbed Gibbs samplers on a discharge table of 13 columns",
    paper="park2014, s4",
    reproduces=(
        "Table 3 and figures 4 to 9: a sampling demonstration, histograms of PeGS and Block PeGS, R-U "
        "maps of marginal, conditional and regression distances, simulated intruders and uniqueness."
    ),
    full={
        "reps": 5,
        "records": None,
        "table": "public",
        "parents": 2,
        "rows": 1000,
        "block": 10,
        "shown_epsilon": 1.0,
        "epsilon": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0],
        "file_epsilon": [1.0, 10.0, 100.0],
        "fit_records": 5000,
        "targets": 5000,
    },
    quick={
        "reps": 1, "records": 3000, "table": "constructed", "rows": 200, "epsilon": [0.1, 10.0],
        "file_epsilon": [10.0], "fit_records": 300, "targets": 200,
    },
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
    takes_data=True,
)  # fmt: skip
