"""bowen2016, simulation study 3: a mixed table, 24 cells of three factors and a bivariate normal.

Law of the data: multinomial cells, normal numbers within them, clamped to public bounds
(`mixed_laws`). All is simulated by its law: nothing here protects anybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gibbous.studies import panels
from gibbous.studies.bowen2016_1 import ORIGINAL
from gibbous.studies.mixed_laws import (
    Floats,
    Records,
    Summary,
    histogram,
    modips,
    multiple_synthesis,
    public_bins,
    records,
    scott_bins,
)
from gibbous.studies.scores import Inferred, budgets_of, scored, several, single
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
)

_NUMBER: Final = 3  # of this study, in the path of every draw
LEVELS: Final = (2, 3, 4)
CELLS: Final = 24
MODIPS: Final = ("modips as printed", "modips, sound")
HISTOGRAMS: Final = ("perturbed histogram as printed", "perturbed histogram, sound")
MS: Final = "MS, no noise"
DRAWN: Final = "perturbed histogram, drawn cells"
METHODS: Final = (*MODIPS, *HISTOGRAMS, MS, ORIGINAL, DRAWN)
PARAMETERS: Final = {"mu": "cell means", "pi": "marginal probabilities", "Sigma": "covariance"}


def chances() -> Floats:
    """Probabilities of the cells: evenly spaced from .007 to .076, which sums to .996, made to sum to 1.

    The paper prints the two ends alone.
    """
    even = np.linspace(0.007, 0.076, CELLS)
    return np.asarray(even / even.sum())


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a budget."""
    return tuple(Cell(f"lne={power}", {"power": power}) for power in settings.values["ln_epsilon"])


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row a method and component of mu (48), pi (6) and Sigma (3)."""
    power, values = cell.params["power"], settings.values
    epsilon, sets = math.exp(power), int(values["sets"])
    study = Draws(settings.seed, (_NUMBER,))
    held = records(study.at(0), settings.reps, values["n"], chances(), values["correlation"])
    rows = []
    for number, method in enumerate(METHODS):
        summary = released(method, study.at(number + 1, power + 1000), held, epsilon, sets)
        facts = {
            "ln_epsilon": power, "epsilon": epsilon, "method": method,
            "true_epsilon": epsilon if method in (MODIPS[1], HISTOGRAMS[1], DRAWN) else None,
            "bins": median_bins(method, held),
            "empty_cells": float((summary.counts == 0).sum(axis=-1).mean()),
        }  # fmt: skip
        for parameter, part, truth, inferred in components(summary, values["correlation"]):
            score = scored(inferred, truth)
            rows.append(facts | {"parameter": parameter, "component": part} | score)
    return rows


def released(method: str, draws: Draws, held: Records, epsilon: float, sets: int) -> Summary:
    """What the synthetic sets of all repeats show."""
    if method == ORIGINAL:
        return held.summary
    if method == MS:
        return multiple_synthesis(draws, held, sets)
    sound = method in (MODIPS[1], HISTOGRAMS[1], DRAWN)
    if method in MODIPS:
        return modips(draws, held, epsilon, sets, sound=sound)
    return histogram(draws, held, epsilon, sets, sound=sound, drawn=method == DRAWN)


def median_bins(method: str, held: Records) -> list[float] | None:
    """Least and largest median, over repeats, of the squares of a cell."""
    if method not in (*HISTOGRAMS, DRAWN):
        return None
    if method != HISTOGRAMS[0]:
        return [float(public_bins(held.n, CELLS) ** 2)] * 2
    medians = np.median(scott_bins(held).prod(axis=-1), axis=0)
    return [float(medians.min()), float(medians.max())]


def components(summary: Summary, correlation: float) -> list[tuple[str, str, float, Inferred]]:
    """(parameter, component, truth, intervals) of everything that is inferred."""
    out = []
    p, n = chances(), summary.counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(CELLS):
            for j in (0, 1):
                v = summary.pooled[..., j] / summary.counts[..., k]
                out.append(
                    ("mu", f"cell {k + 1}, {j + 1}", 0.0, _both(summary.means[..., k, j], v))
                )
    for axis, levels in enumerate(LEVELS):
        for level in range(levels - 1):
            member = np.indices(LEVELS)[axis].ravel() == level
            q = summary.counts[..., member].sum(axis=-1) / n
            truth = float(p[member].sum())
            out.append(
                ("pi", f"factor {axis + 1}, level {level + 1}", truth, _both(q, q * (1 - q) / n))
            )
    first, second, both = (summary.pooled[..., i] for i in range(3))
    out += [
        ("Sigma", "variance 1", 1.0, _both(first, 2 * first**2 / summary.df)),
        ("Sigma", "variance 2", 1.0, _both(second, 2 * second**2 / summary.df)),
        ("Sigma", "covariance", correlation, _both(both, (first * second + both**2) / summary.df)),
    ]
    return out


def _both(q: Floats, v: Floats) -> Inferred:
    known = np.isfinite(q) & np.isfinite(v)
    q, v = np.where(known, q, np.nan), np.where(known, v, np.nan)
    return single(q[0], v[0]) if len(q) == 1 else several(q, v)


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """Each measure averaged over the components of a parameter; bins and empty cells."""
    del settings
    kept = budgets_of(rows)
    shown_tables = []
    for measure in ("bias", "rmse", "coverage", "width"):
        lines = []
        for parameter in PARAMETERS:
            for method in METHODS:
                shown = [_average(rows, method, parameter, p, measure) for p in kept]
                lines.append((PARAMETERS[parameter], method, *shown))
        words = "mean absolute bias" if measure == "bias" else f"mean {measure}"
        headers = ("parameter", "method", *(f"e^{p}" for p in kept))
        shown_tables.append(Table(measure, f"{words} over the components", headers, tuple(lines)))
    return (*shown_tables, _extras(rows))


_DRAWN = {
    "bias": "mean absolute bias",
    "rmse": "mean RMSE",
    "coverage": "mean coverage",
    "width": "mean width of 95 % intervals",
}


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Bias, RMSE, coverage and width, a panel a parameter."""
    del settings
    points = [
        {"ln_epsilon": power, "method": method, "panel": PARAMETERS[parameter]}
        | {m: _average(rows, method, parameter, power, m) for m in _DRAWN}
        for parameter in PARAMETERS
        for method in METHODS
        for power in sorted({row["ln_epsilon"] for row in rows})
    ]
    drawn = []
    for measure, title in _DRAWN.items():
        own = measure != "coverage"
        chart = panels.Lines(
            x="ln_epsilon", y=measure, by="method", panel="panel", order=METHODS,
            titles=("ln ε of the whole release", title), shared=not own,
            limits=None if own else (0.0, 1.0), reference=None if own else 0.95, height=190,
            scales=("linear", "log" if own else "linear"),
        ).chart(points)  # fmt: skip
        drawn.append(Figure(f"bowen2016-3-{measure}", title, chart))
    return tuple(drawn)


def _average(rows: Sequence[Row], method: str, parameter: str, power: int, measure: str) -> Any:
    values = [
        abs(row[measure]) if measure == "bias" else row[measure]
        for row in rows
        if (row["method"], row["parameter"], row["ln_epsilon"]) == (method, parameter, power)
        and row[measure] is not None
    ]
    return rounded(float(np.mean(values))) if values else None


def _extras(rows: Sequence[Row]) -> Table:
    lines = {}
    for row in rows:
        low, high = row["bins"] or (None, None)
        key = (row["method"], row["ln_epsilon"])
        lines[key] = (*key, low, high, rounded(row["empty_cells"]))
    headers = ("method", "ln epsilon", "least median squares", "largest", "empty cells a set")
    title = "Squares of the histograms (printed medians: 16 to 49) and cells without rows"
    return Table("squares-and-empty-cells", title, headers, tuple(lines.values()))


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Squares of the histograms, and the statements about figures 6, 10 and 11."""
    error = 3 * math.sqrt(0.95 * 0.05 / settings.reps)  # of a coverage
    modips, histogram, top = MODIPS[0], HISTOGRAMS[0], max(row["ln_epsilon"] for row in rows)

    def gap(measure: str, one: str, other: str, parameter: str, power: int) -> float | None:
        both = (_average(rows, m, parameter, power, measure) for m in (one, other))
        return less(*both)

    squares = next((row["bins"] for row in rows if row["method"] == histogram), (None, None))
    covered = [r["coverage"] for r in rows
               if r["method"] == histogram and r["parameter"] == "Sigma"]  # fmt: skip
    least, six, ten = "mean coverage, modips", "fig. 6", "figs. 10 and 11"
    return (
        Printed("s4.3", "median squares of a cell, the least", 16, squares[0]),
        Printed("s4.3", "median squares of a cell, the largest", 49, squares[1]),
        Printed(six, "RMSE of cell means at ln ε = 0: histogram less modips", 0,
                gap("rmse", histogram, modips, "mu", 0), side="below"),
        Printed(six, "mean coverage of cell means at ln ε = 0, histogram", 0.95,
                _average(rows, histogram, "mu", 0, "coverage"), error, "above"),
        Printed(six, f"{least}, cell means at ln ε = 0", 0.95,
                _average(rows, modips, "mu", 0, "coverage"), error),
        Printed(six, "RMSE of marginal probabilities at ln ε = 0: modips less histogram", 0,
                gap("rmse", modips, histogram, "pi", 0), side="below"),
        Printed(six, f"RMSE of marginal probabilities at ln ε = {top}: modips less MS", 0,
                gap("rmse", modips, MS, "pi", top), 0.002),
        Printed(six, f"the same: histogram less {ORIGINAL}", 0,
                gap("rmse", histogram, ORIGINAL, "pi", top), 0.002),
        Printed(ten, "largest coverage of the covariance matrix, histogram", 0.95,
                max((c for c in covered if c is not None), default=None), side="below"),
        Printed(ten, "RMSE of the covariance matrix at ln ε = 4: modips less histogram", 0,
                gap("rmse", modips, histogram, "Sigma", 4), side="below"),
        *(Printed(ten, f"{least}, covariance matrix at ln ε = {power}", 0.95,
                  _average(rows, modips, "Sigma", power, "coverage"), error) for power in (0, 4, 8)),
    )  # fmt: skip


STUDY = Study(
    name="bowen2016-3",
    title="Study 3: a mixed table of 24 cells and two numeric columns",
    paper="bowen2016, s4.3 and supplement",
    reproduces=(
        "Figure 6, supplement figures 10 and 11, tables 4 and 5: modips and the perturbed histogram, "
        "for cell means, marginal probabilities and the covariance."
    ),
    full={
        "reps": 5000,
        "sets": 10,
        "n": 1000,
        "correlation": 0.5,
        "ln_epsilon": list(range(-4, 11)),
    },
    quick={"reps": 60, "ln_epsilon": [0, 4, 8]},
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
)
