"""sbhg, figure 4.1: the L1 error of the stability-based algorithm, as printed, corrected and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gibbous.privacy.calibrate.sba import proposition1, proposition1_published
from gibbous.studies import panels
from gibbous.studies.park2014_data import Microdata
from gibbous.studies.sbhg_laws import Start, error, printed, sba, threshold_printed, true_delta
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

_NUMBER: Final = 11  # of this study, in the path of every draw
LEVELS: Final = 10
CELLS: Final = LEVELS**3
RECORDS: Final = 3000
TABLES: Final = ("all cells 3", "each cell at least 1")
SERIES: Final = (
    "SBA, proposition 1 as printed",
    "SBA, corrected",
    "SBA, simulated",
    "SBHG, starts at records",
    "SBHG, starts that survived",
)


def dense(kind: str, seed: int) -> Microdata:
    """3,000 records of three columns of ten levels, every combination occupied [sbhg, s4]."""
    cells = np.repeat(np.arange(CELLS), RECORDS // CELLS)
    if kind == TABLES[1]:
        more = Draws(seed, (_NUMBER, 0)).uniform(RECORDS - CELLS)
        cells = np.concatenate([np.arange(CELLS), (more * CELLS).astype(np.int64)])
    codes = np.stack(np.unravel_index(cells, (LEVELS,) * 3), axis=1).astype(np.int64)
    labels = tuple(str(v) for v in range(LEVELS))
    return Microdata(f"dense, {kind}", ("a", "b", "c"), codes, (labels,) * 3)


def cells(settings: Settings) -> tuple[Cell, ...]:
    """One cell a table and budget."""
    return tuple(
        Cell(f"table{place}.eps={epsilon:g}", {"kind": kind, "epsilon": epsilon})
        for place, kind in enumerate(TABLES)
        for epsilon in settings.values["epsilon"]
    )


def run_cell(cell: Cell, settings: Settings) -> list[dict[str, Any]]:
    """One row a series: expected or mean L1 error."""
    kind, epsilon = cell.params["kind"], cell.params["epsilon"]
    delta = settings.values["delta"]
    table = dense(kind, settings.seed)
    x = np.bincount(table.codes @ np.array([LEVELS**2, LEVELS, 1]), minlength=CELLS)
    draws = Draws(settings.seed, (_NUMBER, TABLES.index(kind) + 1, round(epsilon * 10**6)))
    many, limit = np.broadcast_to(x, (settings.reps, CELLS)), threshold_printed(epsilon, delta)
    simulated = np.abs(sba(many, draws.at(0), scale=2 / epsilon, threshold=limit) - x).sum(axis=1)
    starts: tuple[Start, Start] = ("record", "surviving")
    chains = range(int(settings.values["chains"]))
    hashed = [
        np.array([_sbhg(table, draws.at(1, r), epsilon, start, settings) for r in chains])
        for start in starts
    ]
    tables = true_delta(3, delta)
    errors: dict[str, tuple[float, float, float]] = {
        SERIES[0]: (proposition1_published(x, epsilon, delta), 0.0, delta / 2),
        SERIES[1]: (proposition1(x, epsilon, delta), 0.0, delta / 2),
        SERIES[2]: (*_mean(simulated), delta / 2),
        SERIES[3]: (*_mean(hashed[0][:, 0]), max(tables, float(hashed[0][:, 1].mean()))),
        SERIES[4]: (*_mean(hashed[1][:, 0]), max(tables, float(hashed[1][:, 1].mean()))),
    }
    facts = {"table": kind, "epsilon": epsilon, "delta": delta}
    return [
        facts | {"series": name, "l1": l1, "se": se, "true_delta": true}
        for name, (l1, se, true) in errors.items()
    ]


def _sbhg(
    table: Microdata, draws: Draws, epsilon: float, start: Start, settings: Settings
) -> tuple[float, float]:
    """L1 error, and the share of the records that stand alone and come out (0 where none does)."""
    values = settings.values
    rows = printed(
        table, draws, parents=1, epsilon=epsilon, delta=values["delta"], sweeps=values["sweeps"],
        start=start,
    )  # fmt: skip
    errors = error(table.codes, rows, table.sizes)
    return float(errors["l1"]), float(errors["shown"] or 0.0)


def _mean(values: Any) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))


def tables(rows: Sequence[Row], settings: Settings) -> tuple[Table, ...]:
    """The L1 error of each series, by table and epsilon."""
    lines = []
    for kind in TABLES:
        for epsilon in settings.values["epsilon"]:
            by_series = {
                row["series"]: row
                for row in rows
                if (row["table"], row["epsilon"]) == (kind, epsilon)
            }
            lines.append(
                (kind, epsilon, *(round(by_series[s]["l1"], 1) for s in SERIES),
                 round(by_series[SERIES[2]]["se"], 2), round(by_series[SERIES[3]]["se"], 2))
            )  # fmt: skip
    headers = ("table", "epsilon", *SERIES, "s.e. of SBA", "s.e. of SBHG")
    title = (
        f"L1 error of {RECORDS:,} records in {CELLS:,} cells, delta = {settings.values['delta']:g}"
    )
    return (Table("l1", title, headers, tuple(lines)),)


def figures(rows: Sequence[Row], settings: Settings) -> tuple[Figure, ...]:
    """Both panels of figure 4.1, for each table; values beyond the axis are drawn at its edge."""
    del settings
    shown = [
        {**row, "panel": f"{row['table']}, ε {'≤' if small else '≥'} 1"}
        for row in rows
        for small in (True, False)
        if (row["epsilon"] <= 1) is small or row["epsilon"] == 1
    ]
    shown.sort(key=lambda row: str(row["panel"]))
    chart = panels.Lines(
        x="epsilon", y="l1", by="series", panel="panel", order=SERIES, columns=2,
        titles=("ε", "L1 error, records"), reference=0.0, limits=(-500.0, 6500.0),
    ).chart(shown)  # fmt: skip
    return (Figure("sbhg-1-l1", "L1 error of the stability-based algorithm", chart),)


def beside(rows: Sequence[Row], settings: Settings) -> tuple[Printed, ...]:
    """Proposition 1 as printed beside the simulation, and the statements about figure 4.1."""
    del settings

    def of(measure: str, series: str, epsilon: float, kind: str = TABLES[0]) -> float | None:
        return value_of(rows, measure, series=series, epsilon=epsilon, table=kind)

    formula = [
        (kind, epsilon, of("l1", SERIES[0], epsilon, kind), of("se", SERIES[2], epsilon, kind))
        for kind in TABLES
        for epsilon in (1, 6, 10)
    ]
    return (
        *(Printed("prop. 1", f"L1 error of SBA by the formula, simulated: {kind}, ε = {epsilon}",
                  value, of("l1", SERIES[2], epsilon, kind), 4 * (error or 0))
          for kind, epsilon, value, error in formula if value is not None),
        *(Printed("s4", f"L1 error of SBA at ε = {epsilon}", RECORDS, of("l1", SERIES[2], epsilon), 30)
          for epsilon in (0.1, 1)),
        Printed("s4", "L1 error of SBA at ε = 3", RECORDS, of("l1", SERIES[2], 3), 30),
        *(Printed("fig. 4.1", f"L1 error at ε = {epsilon}: SBHG less SBA", 0,
                  less(of("l1", SERIES[3], epsilon), of("l1", SERIES[2], epsilon)), side="below")
          for epsilon in (0.1, 0.5, 1)),
        Printed("fig. 4.1", "L1 error at ε = 10: SBHG less SBA", 0,
                less(of("l1", SERIES[3], 10), of("l1", SERIES[2], 10)), side="above"),
    )  # fmt: skip


STUDY = Study(
    name="sbhg-1",
    title="Proposition 1: the L1 error of the stability-based algorithm",
    paper="sbhg, prop. 1 and fig. 4.1",
    reproduces=(
        "Figure 4.1: L1 error by epsilon at delta = 1e-4 on a dense table, by the printed formula, the "
        "corrected one and simulation; the hashed Gibbs sampler beside it."
    ),
    full={
        "reps": 1000,
        "chains": 40,
        "sweeps": 10,
        "delta": 1e-4,
        "epsilon": [1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    },
    quick={"reps": 200, "chains": 2, "epsilon": [0.1, 1, 6, 10]},
    cells=cells,
    run_cell=run_cell,
    tables=tables,
    figures=figures,
    printed=beside,
)
