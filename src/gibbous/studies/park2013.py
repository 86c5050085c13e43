"""park2013, section VI: marginals and LASSO on records drawn by l-diverse and exponential PeGS."""

from __future__ import annotations

from math import exp, log
from typing import Any, Final

import numpy as np

from gibbous.core.extras import need
from gibbous.evaluation.utility.lasso import Moments, moments_of, path
from gibbous.privacy.calibrate.diversity import q_star
from gibbous.studies.park2013_shown import (
    CODES,
    DIVERSE,
    EXPONENTIAL,
    ORIGINAL,
    SHOWN,
    TARGET,
    beside,
    figures,
    tables,
)
from gibbous.studies.park2014_data import Microdata, table_of, tagged
from gibbous.studies.park2014_laws import diverse, seeds, shares, tilted
from gibbous.studies.sbhg_conditionals import Floats, Hashed, Ints, Nearest, hashed, mixed
from gibbous.studies.sbhg_laws import Noised, gibbs
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import Cell, Settings, Study

_NUMBER: Final = 21  # of this study, in the path of every draw


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a method and parameter."""
    start = tagged(settings, "claims7")
    values = settings.values
    grid = [Cell(f"{start}.records", {"method": ORIGINAL, "value": None})]
    grid += [
        Cell(f"{start}.diverse={share:g}", {"method": DIVERSE, "value": share})
        for share in values["log_l"]
    ]
    grid += [
        Cell(
            f"{start}.exponential={epsilon or 'infinity'}",
            {"method": EXPONENTIAL, "value": epsilon},
        )
        for epsilon in values["epsilon"]
    ]
    return tuple(grid)


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row a LASSO penalty, with the distances of the marginals on each; one a level of both codes."""
    table = table_of(settings, "claims7")
    method, value = cell.params["method"], cell.params["value"]
    target = TARGET if TARGET in table.names else table.names[-1]
    measured, histograms = [], []
    for repeat in range(1 if method == ORIGINAL else settings.reps):
        draws = Draws(settings.seed, (_NUMBER, round((value or 0) * 1e3), repeat))
        rows = synthetic(table, method, value, draws, settings)
        measured.append(_measured(table, rows, target, settings) | _marginals(table, rows))
        histograms.append(_histograms(table, rows))
    facts = table.facts | {"method": method, "value": value, "repeats": len(measured)}
    facts |= _prices(table, method, value, settings)
    penalties = settings.values["penalties"]
    means = {name: np.mean([one[name] for one in measured], axis=0) for name in measured[0]}
    flat = {name: float(mean) for name, mean in means.items() if np.ndim(mean) == 0}
    return [
        facts | flat
        | {"penalty": penalty} | {n: float(m[k]) for n, m in means.items() if np.ndim(m)}
        for k, penalty in enumerate(penalties)
    ] + [
        {"method": method, "value": value, "column": column, "level": level, "share": float(share)}
        for column in histograms[0]
        for level, share in enumerate(np.mean([one[column] for one in histograms], axis=0))
    ]  # fmt: skip


def synthetic(
    table: Microdata, method: str, value: float | None, draws: Draws, settings: Settings
) -> Ints:
    """Rows of a method as printed: uniform seeds, passes with the nearest key where one is unknown."""
    if method == ORIGINAL:
        return table.codes
    values = settings.values
    tables = hashes(table, values["kept"], settings.seed)
    conditionals = diverse(tables, value or 0.0) if method == DIVERSE else tilted(tables, value)
    near = Noised(tuple(Nearest.of(t) for t in conditionals.tables), conditionals.cumulative)
    start = seeds(table, values["rows"], draws.at(0), records=False)
    return gibbs(near, start, draws.at(1), sweeps=values["sweeps"], records=None)


def hashes(table: Microdata, kept: int, seed: int) -> tuple[Hashed, ...]:
    """Hamming LSH: the key of a column is a public random sample of the other columns.

    Source:
        [park2013, IV.A]; how many coordinates are sampled is not said.
    """
    p, found = len(table.names), []
    for j in range(p):
        order = np.argsort(Draws(seed, (_NUMBER, 1, j)).uniform(p))
        context = sorted([int(c) for c in order if c != j][:kept])
        found.append(hashed(table.codes, table.sizes, j, context))
    return tuple(found)


def _marginals(table: Microdata, rows: Ints) -> dict[str, Any]:
    """Half L1 distances of the code columns from the records and from the uniform law, and entropies."""
    distances: dict[str, Any] = {}
    for place, name in enumerate(CODES):
        j = table.index(name) if name in table.names else place
        real, made = (shares(codes[:, j], table.sizes[j]) for codes in (table.codes, rows))
        distances[f"far{place}"] = float(np.abs(real - made).sum() / 2)
        distances[f"even{place}"] = float(np.abs(1 / table.sizes[j] - made).sum() / 2)
        distances[f"levels{place}"] = float((made > 0).sum())
    copied = np.isin(mixed(rows, table.sizes), mixed(table.codes, table.sizes))
    return distances | {"copied": float(copied.mean())}


def _histograms(table: Microdata, rows: Ints) -> dict[str, Floats]:
    """Shares of the levels of both codes, the level that is most frequent in the records first."""
    found = {}
    for place, name in enumerate(CODES):
        j = table.index(name) if name in table.names else place
        real, made = (shares(codes[:, j], table.sizes[j]) for codes in (table.codes, rows))
        found[name] = made[np.argsort(-real, kind="stable")]
    return found


def _measured(table: Microdata, rows: Ints, target: str, settings: Settings) -> dict[str, Any]:
    """Error on the records and two coefficients, over penalties: float64 (penalties,) each."""
    penalties = np.array(settings.values["penalties"])
    terms, matrix = _design(table, rows, target)
    _, real = _design(table, table.codes, target)
    y = _numbers(table, rows, target)
    goal = _numbers(table, table.codes, target)
    moments = moments_of(matrix, y)
    decreasing = np.argsort(-penalties)
    slopes = np.zeros((len(penalties), len(terms)))
    slopes[decreasing] = path(moments, penalties[decreasing])
    measures: dict[str, Any] = {"mse": _errors(moments, slopes, real, goal)}
    for place, name in enumerate(SHOWN):
        known = terms.index(name) if name in terms else None
        measures[f"b{place}"] = slopes[:, known] if known is not None else 0 * penalties
    return measures


def _errors(moments: Moments, slopes: Floats, real: Any, goal: Floats) -> Floats:
    guess = moments.target + (real @ slopes.T) - (slopes @ moments.mean)[None, :]
    return np.asarray(((goal[:, None] - guess) ** 2).mean(axis=0))


def _numbers(table: Microdata, rows: Ints, name: str) -> Floats:
    """log(1 + number) of a column: the paper's target is in classes, and stays have a long tail."""
    values = table.numbers(name, np.arange(table.sizes[table.index(name)]))
    values = np.where(np.isfinite(values), values, np.arange(len(values)))
    return np.asarray(np.log1p(values)[rows[:, table.index(name)]])


def _design(table: Microdata, rows: Ints, target: str) -> tuple[list[str], Any]:
    """Dummies of all other columns, but "days" as a number, as in the paper: sparse (rows, terms)."""
    sparse = need("scipy.sparse", "evaluate")
    terms, parts = [], []
    for j, name in enumerate(table.names):
        if name == target:
            continue
        if name == "days":
            terms.append(name)
            parts.append(sparse.csr_matrix(rows[:, [j]].astype(np.float64)))
            continue
        terms += [f"{name}={label}" for label in table.labels[j]]
        ones = (np.ones(len(rows)), (np.arange(len(rows)), rows[:, j]))
        parts.append(sparse.csr_matrix(ones, shape=(len(rows), table.sizes[j])))
    return terms, sparse.hstack(parts).tocsr()


def _prices(
    table: Microdata, method: str, value: float | None, settings: Settings
) -> dict[str, Any]:
    """What is charged and what it costs: the file under add/remove, and the likeliest value allowed.

    The exponential sampler costs rows x sweeps x columns x epsilon with public contexts and without the
    nearest-key rule; with that rule on raw keys no proof covers it.
    """
    draws = settings.values["rows"] * settings.values["sweeps"] * len(table.names)
    if method == EXPONENTIAL:
        cost = None if value is None else draws * value
        return {"charged": value, "file_epsilon": cost, "likeliest": None}
    if method == DIVERSE and value:
        widest = max(table.sizes)
        return {"charged": None, "file_epsilon": None,
                "likeliest": q_star(widest, exp(value * log(widest)))}  # fmt: skip
    return {"charged": None, "file_epsilon": None, "likeliest": 1.0 if method == DIVERSE else None}


STUDY = Study(
    name="park2013",
    title="Marginals and LASSO from l-diverse and exponential Gibbs samplers",
    paper="park2013, VI",
    reproduces=(
        "Figures 2 to 5: marginals of the two code columns, error and coefficients of a LASSO on "
        "synthetic claims, by log l and epsilon; the length of stay stands for the payment."
    ),
    full={
        "reps": 3,
        "records": None,
        "table": "public",
        "rows": 15_000,
        "sweeps": 10,
        "kept": 4,
        "log_l": [0.0, 0.05, 0.1, 0.15, 0.2, 0.5],
        "epsilon": [None, 50.0, 10.0, 5.0, 1.0, 0.5],
        "penalties": [0.001, 0.003, 0.01, 0.03, 0.1],
        "levels": None,
    },
    quick={
        "reps": 1, "records": 1500, "table": "constructed", "rows": 400, "sweeps": 3,
        "log_l": [0.0, 0.5], "epsilon": [None, 0.5], "penalties": [0.01, 0.1], "levels": 25,
    },
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
    takes_data=True,
)  # fmt: skip
