"""bowen2016, simulation study 1: inference for a proportion from differentially private binary data.

Law of the data: n Bernoulli(pi) records. Every method is simulated by its law, vectorized over repeats
(`bowen2016_laws`): nothing here protects anybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gibbous.studies import panels
from gibbous.studies.bowen2016_laws import SYNTHESIZERS, Floats, Synthesizer, shared_variance
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
    rounded,
    value_of,
)

ORIGINAL: Final = "original records"
_NUMBER: Final = 1  # of this study, in the path of every draw
_SHOWN: Final = (
    "modips, clipped", "modips, sanitized once", "modips, truncated as printed",
    "Laplace sanitizer", "Laplace sanitizer, drawn rows", "MD", "DP-prior", "MS, no noise", ORIGINAL,
)  # fmt: skip
PRINTED: Final = {
    (0.15, 40): (0.0008, 0.0018, 0.0074, 0.0190, 0.0448, 0.1140),
    (0.15, 100): (0.0016, 0.0074, 0.0140, 0.0446, 0.1144, 0.2672),
    (0.15, 1000): (0.0240, 0.0548, 0.1480, 0.3160, 0.5942, 0.8078),
    (0.25, 40): (0.0008, 0.0020, 0.0078, 0.0174, 0.0472, 0.1214),
    (0.25, 100): (0.0020, 0.0076, 0.0158, 0.0458, 0.1120, 0.2748),
    (0.25, 1000): (0.0238, 0.0568, 0.1510, 0.3310, 0.6496, 0.8990),
    (0.5, 40): (0.0012, 0.0024, 0.0074, 0.0162, 0.0464, 0.1336),
    (0.5, 100): (0.0024, 0.0070, 0.0190, 0.0458, 0.1152, 0.2868),
    (0.5, 1000): (0.0240, 0.0584, 0.1554, 0.3558, 0.7058, 0.9658),
}
"""(pi, n) -> usable repeats of the Laplace sanitizer at ln(epsilon) = -10, ..., -5 [table 1 of the
supplement]. The grid of pi is lost from the text; 0.15 is the value that these figures fit."""


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a scenario and budget."""
    values = settings.values
    return tuple(
        Cell(f"n={n}.pi={pi}.lne={power}", {"n": n, "pi": pi, "power": power})
        for n in values["n"]
        for pi in values["pi"]
        for power in values["ln_epsilon"]
    )


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row a method: bias, RMSE, coverage, width, share of usable repeats."""
    n, pi, power = (cell.params[name] for name in ("n", "pi", "power"))
    epsilon, sets = math.exp(power), int(settings.values["sets"])
    scenario = Draws(settings.seed, (_NUMBER, n, round(pi * 10**6)))
    s = scenario.at(0).binomial(n, pi, settings.reps)  # the same records at every budget
    facts = {"n": n, "pi": pi, "ln_epsilon": power, "epsilon": epsilon}
    rows = [facts | {"method": ORIGINAL, "true_epsilon": None} | scored(_single(s, n), pi)]
    for method in SYNTHESIZERS:
        draws = scenario.at(method.number, power + 1000)
        intervals = inferred(method, draws, s, n=n, epsilon=epsilon, sets=sets)
        cost = None if method.loss is None else method.loss(n, epsilon, sets)
        rows.append(facts | {"method": method.label, "true_epsilon": cost} | scored(intervals, pi))
    return rows


def inferred(
    method: Synthesizer, draws: Draws, s: Floats, *, n: int, epsilon: float, sets: int
) -> Inferred:
    """Intervals for the proportion, by the rules of the paper.

    Args:
        s: true counts, float64 (repeats,).
    """
    x = method.law(draws, s, n, epsilon, sets)
    if method.releases == "one set":
        return _single(x[0], n)
    q = x / n
    noise = shared_variance(n, epsilon) if method.releases == "noise once" else 0.0
    return several(q, q * (1 - q) / n, noise=noise)


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """Usable repeats beside the printed ones; bias, RMSE, coverage and width of the largest tables."""
    return (_usable(rows, settings), *_measures(rows), _costs(rows))


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Bias, RMSE, coverage and width over the budget, a panel a scenario; and what the budget is."""
    del settings
    shown = [
        {**row, "scenario": f"n = {row['n']:,}, π = {row['pi']:g}"}
        for row in rows
        if row["method"] in _SHOWN and row["usable"] >= 0.02
    ]
    named = (
        ("bias", "bias of the proportion", 0.0, None),
        ("rmse", "RMSE of the proportion", None, None),
        ("coverage", "coverage of 95 % intervals", 0.95, (0.0, 1.0)),
        ("width", "mean width of 95 % intervals", None, None),
    )
    drawn = []
    for measure, title, reference, limits in named:
        chart = panels.Lines(
            x="ln_epsilon", y=measure, by="method", panel="scenario", order=_SHOWN,
            titles=("ln ε of the whole release", title), reference=reference, limits=limits,
        ).chart(shown)  # fmt: skip
        drawn.append(Figure(f"bowen2016-1-{measure}", title, chart))
    return (*drawn, Figure("bowen2016-1-guarantee", "true over charged epsilon", _guarantee(rows)))


def _single(x: Floats, n: int) -> Inferred:
    q = np.asarray(x, dtype=np.float64) / n
    return single(q, q * (1 - q) / n)


def _usable(rows: Sequence[Row], settings: Settings) -> Table:
    lines = []
    for row in rows:
        printed = PRINTED.get((row["pi"], row["n"]), ())
        place = row["ln_epsilon"] + 10
        if row["method"] != "Laplace sanitizer" or not 0 <= place < len(printed):
            continue
        error = math.sqrt(printed[place] * (1 - printed[place]) / 5000)
        lines.append((row["n"], row["pi"], row["ln_epsilon"], printed[place], error, row["usable"]))
    headers = ("n", "pi", "ln epsilon", "printed", "its Monte Carlo error", "here")
    title = f"Usable repeats of the Laplace sanitizer (here: {settings.reps:,} repeats)"
    return Table("usable", title, headers, tuple(lines))


def _measures(rows: Sequence[Row]) -> tuple[Table, ...]:
    return tuple(
        Table(
            measure,
            f"{measure} by epsilon, usable repeats only",
            *by_budget(rows, ("n", "pi", "method"), measure),
        )
        for measure in ("bias", "rmse", "coverage", "width")
    )


def _costs(rows: Sequence[Row]) -> Table:
    lines = []
    for row in rows:
        cost = row["true_epsilon"]
        if row["method"] == "modips, truncated as printed" and row["pi"] == rows[0]["pi"]:
            line = (row["n"], row["ln_epsilon"], row["epsilon"], cost, cost / row["epsilon"])
            lines.append(tuple(rounded(value) for value in line))
    headers = ("n", "ln epsilon", "epsilon charged", "true epsilon", "ratio")
    title = "Truncation as printed: what the paper charges, and what it costs (replace one record)"
    return Table("truncation", title, headers, tuple(lines))


def _guarantee(rows: Sequence[Row]) -> Any:
    shown = [
        {**row, "ratio": row["true_epsilon"] / row["epsilon"], "title": f"n = {row['n']:,}"}
        for row in rows
        if row["pi"] == rows[0]["pi"] and row["true_epsilon"] is not None
    ]
    return panels.Lines(
        x="ln_epsilon", y="ratio", by="method", panel="title",
        titles=("ln ε that the paper charges", "true over charged ε"), reference=1.0,
    ).chart(shown)  # fmt: skip


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Table 1 of the supplement within four Monte Carlo errors, and the statements about figures 2 and 3."""
    table, low = "supplement, table 1: usable repeats", [r for r in rows if r["ln_epsilon"] <= -9]
    shares = [
        Printed(f"{table}, Laplace sanitizer", f"n = {n}, π = {pi}, ln ε = {power}", share,
                value_of(rows, "usable", method="Laplace sanitizer", n=n, pi=pi, ln_epsilon=power),
                _error(share, settings))
        for (pi, n), shares in PRINTED.items()
        for power, share in enumerate(shares, start=-10)
    ]  # fmt: skip
    others = [
        Printed(f"{table}, other methods", f"{method}, the least up to ln ε = −9", share,
                _least(low, method, "usable"), _error(0.9994, settings), "above")
        for method, share in ((_SHOWN[0], 0.9994), ("MD", 1.0), ("DP-prior", 1.0))
    ]  # fmt: skip
    return (*shares, *others, *_statements(rows, settings))


def _statements(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    def of(measure: str, method: str, n: int, pi: float, power: int) -> float | None:
        return value_of(rows, measure, method=method, n=n, pi=pi, ln_epsilon=power)

    laplace, clipped, truncated = "Laplace sanitizer", _SHOWN[0], _SHOWN[2]
    top = max(row["ln_epsilon"] for row in rows)
    size = {(m, p): of("bias", m, 1000, 0.15, p) for m in ("MD", "DP-prior", clipped) for p in (1,)}
    small = {m: of("bias", m, 100, 0.15, -2) for m in (clipped, truncated, "DP-prior")}
    rmse = {
        p: less(of("rmse", laplace, 100, 0.15, p), of("rmse", "MD", 100, 0.15, p)) for p in (-5, -2)
    }
    two = "fig. 2"
    here = "n = 100, π = .15, ln ε"
    out = [
        Printed(two, "bias at n = 1,000, π = .15, ln ε = 1: MD less DP-prior", 0,
                less(size["MD", 1], size["DP-prior", 1]), side="above"),
        Printed(two, "the same: modips clipped less DP-prior", 0,
                less(size[clipped, 1], size["DP-prior", 1]), side="below"),
        Printed(two, "the same: bias of MD at n = 1,000 less that at n = 100", 0,
                less(size["MD", 1], of("bias", "MD", 100, 0.15, 1)), 0.02),
        Printed(two, f"bias at {here} = −2: modips truncated less clipped", 0,
                less(small[truncated], small[clipped]), side="above"),
        Printed(two, "the same: modips truncated less DP-prior", 0,
                less(small[truncated], small["DP-prior"]), side="below"),
        Printed(two, f"RMSE at {here} = −5: Laplace less MD", 0, rmse[-5], side="above"),
        Printed(two, f"RMSE at {here} = −2: Laplace less MD", 0, rmse[-2], side="below"),
        Printed(two, "RMSE of MD less original, n = 1,000, π = .5, ln ε = 1", 0,
                less(of("rmse", "MD", 1000, 0.5, 1), of("rmse", ORIGINAL, 1000, 0.5, 1)), side="below"),
        Printed("fig. 3", "coverage of MD there", 0.95, of("coverage", "MD", 1000, 0.5, 1), side="above"),
    ]  # fmt: skip
    words = f"at ln ε = {top}, n = 1,000, π = .15"
    end = {m: of("coverage", m, 1000, 0.15, top) for m in (clipped, laplace, "MD", "DP-prior")}
    last = end.pop("DP-prior")
    out += [
        Printed("fig. 3", f"coverage of {method} {words}", 0.95, found, _error(0.95, settings))
        for method, found in end.items()
    ]
    out.append(Printed("fig. 3", f"coverage of DP-prior {words}", 0.95, last, side="below"))
    worst = {
        m: less(0.95, _least(rows, m, "coverage")) for m in (clipped, truncated, laplace, "MD")
    }
    rest = min(v for m, v in worst.items() if m != clipped and v is not None)
    gap = less(worst[clipped], rest)
    out.append(Printed("s4.1", "largest undercoverage: modips clipped less the best other", 0, gap,
                       side="below"))  # fmt: skip
    return tuple(out)


def _error(share: float, settings: Settings) -> float:
    """Four standard errors of the difference between a printed share and ours."""
    return 4 * math.sqrt(share * (1 - share) * (1 / 5000 + 1 / settings.reps))


def _least(rows: Sequence[Row], method: str, measure: str) -> float | None:
    known = [r[measure] for r in rows if r["method"] == method and r[measure] is not None]
    return min(known, default=None)


STUDY = Study(
    name="bowen2016-1",
    title="Study 1: a proportion from private binary data",
    paper="bowen2016, s4.1 and supplement",
    reproduces=(
        "Figures 2 and 3, supplement figures 1 and 2 and table 1: bias, RMSE, coverage and width of "
        "intervals by method, n, pi and epsilon."
    ),
    full={
        "reps": 5000,
        "sets": 10,
        "n": [40, 100, 1000],
        "pi": [0.15, 0.25, 0.5],
        "ln_epsilon": list(range(-10, 9)),
    },
    quick={"reps": 1000, "n": [100, 1000], "pi": [0.15, 0.5], "ln_epsilon": [-10, -5, -2, 1, 6]},
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
)
