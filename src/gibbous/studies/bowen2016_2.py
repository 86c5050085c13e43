"""bowen2016, simulation study 2: mean and variance of a bounded normal variable.

Law of the data: n draws of N(0, sigma^2), clamped to public bounds in units of sigma. Sets drawn from
a normal model enter through their mean and variance, whose joint law is known; rows of histograms are
drawn one by one. All is simulated by its law: nothing here protects anybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gibbous.studies import panels
from gibbous.studies.bowen2016_1 import ORIGINAL
from gibbous.studies.histograms import Floats, Ints, counted, moments, scott, shares, smoothed_share
from gibbous.studies.scores import Inferred, by_budget, scored, several, single
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
    value_of,
)

_NUMBER: Final = 2  # of this study, in the path of every draw
BOUNDS: Final = {"asymmetric": (-3.0, 4.0), "symmetric": (-4.0, 4.0)}
"""In units of sigma. The numbers are lost from the text: the printed medians of 7, 10 and 21 bins need
a range of about 7 sigma, whose lower end the text calls the nearer one."""
PRINTED_BINS: Final = {40: 7, 100: 10, 1000: 21}
MODIPS: Final = ("modips, split", "modips, non-split")
PERTURBED: Final = ("perturbed histogram as printed", "perturbed histogram, public bins")
SMOOTHED: Final = ("smoothed histogram as printed", "smoothed histogram, public bins")
MS: Final = "MS, no noise"
ROUNDED: Final = "perturbed histogram, rounded rows"
"""With public bins. A smoothed histogram has no such variant: its rows are private because they are drawn."""
METHODS: Final = (*MODIPS, *PERTURBED, *SMOOTHED, MS, ORIGINAL, ROUNDED)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The records of all repeats and what a curator computes from them.

    Attributes:
        x: float64 (repeats, n).
        mean, variance: divisor n - 1; float64 (repeats,).
        low, high: the public bounds.
    """

    x: Floats
    mean: Floats
    variance: Floats
    low: float
    high: float

    @property
    def n(self) -> int:
        """Records of one repeat."""
        return int(self.x.shape[1])


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a scenario and budget."""
    values = settings.values
    return tuple(
        Cell(
            f"{bounds}.n={n}.sigma={sigma}.lne={power}",
            {"bounds": bounds, "n": n, "sigma": sigma, "power": power},
        )
        for bounds in values["bounds"]
        for n in values["n"]
        for sigma in values["sigma"]
        for power in values["ln_epsilon"]
    )


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """Two rows a method, for the mean and for the variance."""
    bounds, n, sigma, power = (cell.params[k] for k in ("bounds", "n", "sigma", "power"))
    epsilon, sets = math.exp(power), int(settings.values["sets"])
    scenario = Draws(settings.seed, (_NUMBER, list(BOUNDS).index(bounds), n, round(sigma * 1000)))
    held = sample(scenario.at(0), settings.reps, n, sigma, BOUNDS[bounds])
    rows = []
    for number, method in enumerate(METHODS):
        draws = scenario.at(number + 1, power + 1000)
        q, v, bins = released(method, draws, held, epsilon=epsilon, sets=sets)
        facts = {
            "bounds": bounds, "n": n, "sigma": sigma, "ln_epsilon": power, "epsilon": epsilon,
            "method": method, "true_epsilon": true_epsilon(method, epsilon), "bins": bins,
        }  # fmt: skip
        for parameter, intervals, truth in zip(
            ("mean", "variance"), _inferred(q, v, n), (0.0, float(sigma) ** 2), strict=True
        ):
            unit = float(sigma) if parameter == "mean" else float(sigma) ** 2
            score = scored(Inferred(intervals.estimate / unit, intervals.half / unit), truth / unit)
            rows.append(facts | {"parameter": parameter} | score)
    return rows


def sample(draws: Draws, repeats: int, n: int, sigma: float, bounds: tuple[float, float]) -> Sample:
    """Records of all repeats, clamped to the bounds (units of sigma)."""
    low, high = bounds[0] * sigma, bounds[1] * sigma
    x = np.clip(draws.normal(repeats, n) * sigma, low, high)
    return Sample(x, x.mean(axis=1), x.var(axis=1, ddof=1), low, high)


def released(
    method: str, draws: Draws, held: Sample, *, epsilon: float, sets: int
) -> tuple[Floats, Floats, float | None]:
    """Mean and variance of each synthetic set: float64 (sets, repeats) twice, and the median bins."""
    if method == ORIGINAL:
        return held.mean[None, :], held.variance[None, :], None
    if method == MS or method in MODIPS:
        whole = (np.broadcast_to(a, (sets, a.size)) for a in (held.mean, held.variance))
        mean, variance = whole
        if method != MS:
            mean, variance = sanitized(draws, held, epsilon / sets, sets, split=method == MODIPS[0])
        return *_normal_sets(draws, mean, variance, held.n), None
    bins = _bins(method, held)
    counts = counted(held.x, held.low, held.high, bins)
    if method in (*PERTURBED, ROUNDED):
        # One count changes by 1 if a record goes, two if one is replaced, as n released rows imply.
        reach = 1 if method == PERTURBED[0] else 2
        noise = draws.at(1).laplace(sets, *counts.shape) * (reach * sets / epsilon)
        p = shares(counts + noise, np.broadcast_to(bins, (sets, bins.size)))
    else:
        weight = smoothed_share(epsilon, bins, held.n)[:, None]
        p = ((1 - weight) * shares(counts, bins) + weight * shares(0 * counts, bins))[None]
    drawn = method != ROUNDED
    statistics = moments(draws.at(2), p, bins, held.n, held.low, held.high, drawn=drawn)
    return *statistics, float(np.median(bins))


def sanitized(
    draws: Draws, held: Sample, epsilon: float, sets: int, *, split: bool
) -> tuple[Floats, Floats]:
    """Noisy mean and variance of each set at epsilon a set, clipped to what data can have.

    The mean changes by R / n and the variance by R^2 / n if one record is replaced. Split: half the
    budget each; non-split: both with the scale of their sum.
    """
    n, width = held.n, held.high - held.low
    reach = (width / n, width**2 / n)
    scales = [2 * r / epsilon if split else sum(reach) / epsilon for r in reach]
    most = width**2 * n / (4 * (n - 1)) if n % 2 == 0 else width**2 * (n + 1) / (4 * n)
    mean = held.mean + scales[0] * draws.at(1).laplace(sets, held.mean.size)
    variance = held.variance + scales[1] * draws.at(2).laplace(sets, held.mean.size)
    return np.clip(mean, held.low, held.high), np.clip(variance, 0.0, most)


def true_epsilon(method: str, epsilon: float) -> float | None:
    """What a release costs if one record is replaced, where epsilon is charged; None: no bound.

    Scott's rule reads the spread off the records, and the number of bins is released as it is.
    """
    bounded = method in (*MODIPS, PERTURBED[1], SMOOTHED[1], ROUNDED)
    return epsilon if bounded else None


def _normal_sets(draws: Draws, mean: Floats, variance: Floats, n: int) -> tuple[Floats, Floats]:
    """Posterior sigma^2 and mu under 1/sigma^2, then mean and variance of n normal rows."""
    shape, half = mean.shape, (n - 1) / 2
    squared = variance * half / draws.at(3).gamma(half, *shape)
    mu = mean + np.sqrt(squared / n) * draws.at(4).normal(*shape)
    drawn = mu + np.sqrt(squared / n) * draws.at(5).normal(*shape)
    return drawn, squared * draws.at(6).gamma(half, *shape) / half


def _bins(method: str, held: Sample) -> Ints:
    """Scott's rule with the records' own spread as printed, or with the public range over 7."""
    width = held.high - held.low
    if method in (PERTURBED[0], SMOOTHED[0]):
        return scott(np.sqrt(held.variance), held.n, width)
    return scott(np.full(held.mean.size, width / 7), held.n, width)


def _inferred(q: Floats, v: Floats, n: int) -> tuple[Inferred, Inferred]:
    of_variance = 2 * v**2 / (n - 1)
    if len(q) == 1:
        return single(q[0], v[0] / n, df=n - 1), single(v[0], of_variance[0])
    return several(q, v / n), several(v, of_variance)


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """Bins beside the printed medians, then each measure of both parameters."""
    del settings
    shown = [row for row in rows if row["sigma"] == rows[0]["sigma"]]
    shown_tables = [_bin_table(rows)]
    for parameter in ("mean", "variance"):
        mine = [row for row in shown if row["parameter"] == parameter]
        for measure in ("bias", "rmse", "coverage", "width"):
            headers, lines = by_budget(mine, ("bounds", "n", "method"), measure)
            title = f"{measure} of the {parameter} by epsilon, sigma = {rows[0]['sigma']}"
            title += "" if measure == "coverage" else ", in units of sigma"
            title += "^2" if parameter == "variance" and measure != "coverage" else ""
            shown_tables.append(Table(f"{parameter}-{measure}", title, headers, lines))
    return tuple(shown_tables)


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Bias, RMSE, coverage and width of both parameters for each kind of bounds, a panel a scenario."""
    columns = len(settings.values["sigma"])
    return tuple(
        _figure(
            [r for r in rows if (r["bounds"], r["parameter"]) == (bounds, parameter)],
            measure,
            columns=columns if columns > 1 else 3,
        )
        for bounds in settings.values["bounds"]
        for parameter in ("mean", "variance")
        for measure in ("bias", "rmse", "coverage", "width")
    )


def _figure(rows: Sequence[Row], measure: str, *, columns: int) -> Figure:
    bounds, parameter = rows[0]["bounds"], rows[0]["parameter"]
    title = f"{'RMSE' if measure == 'rmse' else measure} of the {parameter}"
    if measure != "coverage":
        title += {"mean": ", σ", "variance": ", σ²"}[parameter]
    chart = panels.Lines(
        x="ln_epsilon",
        y=measure,
        by="method",
        panel="panel",
        order=METHODS,
        columns=columns,
        titles=("ln ε of the whole release", title),
        limits=(0.0, 1.0) if measure == "coverage" else None,
        reference={"bias": 0.0, "coverage": 0.95}.get(measure),
    ).chart([{**row, "panel": f"n = {row['n']:,}, σ = {row['sigma']}"} for row in rows])
    return Figure(f"bowen2016-2-{bounds}-{parameter}-{measure}", f"{title}, {bounds} bounds", chart)


def _bin_table(rows: Sequence[Row]) -> Table:
    medians = {
        (r["bounds"], r["n"], r["sigma"], r["method"]): r["bins"]
        for r in rows
        if r["bins"] is not None
    }
    lines = tuple((*key, PRINTED_BINS.get(key[1]), bins) for key, bins in medians.items())
    headers = ("bounds", "n", "sigma", "method", "printed median", "median here")
    return Table("bins", "Bins of the histograms", headers, lines)


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Median bins, and the statements about figures 4 and 5 and those of the supplement, sigma = 1."""
    error = 4 * math.sqrt(0.95 * 0.05 / settings.reps)  # of the least of many coverages
    low, top = min(r["ln_epsilon"] for r in rows), 6
    split, whole, perturbed, smoothed = MODIPS[0], MODIPS[1], PERTURBED[0], SMOOTHED[0]

    def of(
        measure: str, method: str, power: int, parameter: str = "mean", **more: Any
    ) -> float | None:
        keys = {"bounds": "asymmetric", "n": 1000, "sigma": 1, "parameter": parameter, **more}
        return value_of(rows, measure, method=method, ln_epsilon=power, **keys)

    def gap(
        measure: str, one: str, other: str, power: int, parameter: str = "mean"
    ) -> float | None:
        return less(of(measure, one, power, parameter), of(measure, other, power, parameter))

    def every(measure: str, bounds: str, methods: Sequence[str], least: int = -99) -> list[float]:
        return [
            r[measure] for r in rows
            if r["bounds"] == bounds and r["parameter"] == "mean" and r["sigma"] == 1
            and r["method"] in methods and r["ln_epsilon"] >= least and r[measure] is not None
        ]  # fmt: skip

    histograms, sup = (perturbed, smoothed), "supplement, figs. 4 to 9"
    bins = [
        Printed("s4.2", f"median bins, n = {n}", median, of("bins", perturbed, 0, n=n), 0.5)
        for n, median in PRINTED_BINS.items()
    ]
    flat = max(map(abs, every("bias", "symmetric", histograms)), default=None)
    return (
        *bins,
        Printed("fig. 4", "least bias of the mean, all methods, budgets and n, σ", 0,
                min(every("bias", "asymmetric", (*MODIPS, *histograms))), 0.02, "above"),
        Printed("fig. 4", "bias of the smoothed histogram at ln ε = 3: n = 1,000 less n = 40", 0,
                less(of("bias", smoothed, 3), of("bias", smoothed, 3, n=40)), side="above"),
        Printed("fig. 4", "bias at ln ε = 0, n = 1,000: perturbed less smoothed", 0,
                gap("bias", perturbed, smoothed, 0), side="below"),
        *(Printed("fig. 4", f"RMSE at ln ε = {low}, n = 1,000: {m} less modips split", 0,
                  gap("rmse", m, split, low), side="below") for m in histograms),
        Printed("fig. 4", "RMSE at ln ε = 0, n = 1,000: split less non-split", 0,
                gap("rmse", split, whole, 0), side="below"),
        Printed("fig. 5", "least coverage of modips", 0.95,
                min(every("coverage", "asymmetric", MODIPS)), error, "above"),
        Printed("fig. 5", f"coverage at ln ε = {low}, n = 1,000: smoothed less modips split", 0,
                gap("coverage", smoothed, split, low), side="below"),
        Printed(sup, "largest bias of histograms, symmetric bounds, σ", 0, flat, 0.05),
        *(Printed(sup, f"least coverage of {m}, symmetric bounds", 0.95,
                  min(every("coverage", "symmetric", (m,)), default=None), error, "above")
          for m in histograms),
        *(Printed(sup, f"variance at ln ε = 0, n = 1,000, coverage: {m} less modips split", 0,
                  gap("coverage", m, split, 0, "variance"), side="below") for m in histograms),
        Printed(sup, "variance at ln ε = 0, n = 1,000, RMSE: non-split less split", 0,
                gap("rmse", whole, split, 0, "variance"), side="below"),
        Printed(sup, "variance, the same, bias: perturbed less smoothed", 0,
                gap("bias", perturbed, smoothed, 0, "variance"), side="below"),
        Printed(sup, f"variance, coverage of modips split at ln ε = {top}", 0.95,
                of("coverage", split, top, "variance"), error),
    )  # fmt: skip


STUDY = Study(
    name="bowen2016-2",
    title="Study 2: mean and variance of a bounded normal variable",
    paper="bowen2016, s4.2 and supplement",
    reproduces=(
        "Figures 4 and 5, supplement figures 3 to 9 and table 2: modips with a split and a non-split "
        "budget, perturbed and smoothed histograms, with bounds that are and are not symmetric."
    ),
    full={
        "reps": 5000,
        "sets": 10,
        "bounds": list(BOUNDS),
        "n": [40, 100, 1000],
        "sigma": [1, 2, 3],
        "ln_epsilon": list(range(-8, 9)),
    },
    quick={"reps": 300, "n": [40, 1000], "sigma": [1], "ln_epsilon": [-6, 0, 3, 6]},
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
)
