"""Numbers as they were read, and the cells that a schema shows as something else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbous.core.finding import Finding
from gibbous.core.schema import Column
from gibbous.evaluation.measure import (
    NOTHING,
    Measured,
    Metric,
    Options,
    assemble,
    find,
    mean_of_known,
)
from gibbous.evaluation.tables import Side, Subject

if TYPE_CHECKING:
    import polars as pl

MEANS = Metric(
    name="means",
    title="Difference of means",
    group="utility",
    better="lower",
    definition=(
        "Mean over columns of numbers and days, levels that are whole numbers included, of "
        "|synthetic mean - real mean| / real standard deviation. Real numbers are taken as they were "
        "read, also beyond the bounds of the schema; missing ones are left out. From 0."
    ),
    source="standardized mean difference, Cohen (1988)",
)
MOVED = Metric(
    name="moved_cells",
    title="Real cells that the schema changes",
    group="utility",
    better="lower",
    definition=(
        "Mean over columns of the share of real cells that the schema shows as something else: no "
        "level of it (they count as its catch-all level, as missing, or as another level), or a number "
        "beyond its bounds (it counts as the bound). No other figure here sees them. From 0 to 1."
    ),
    source="this project",
    references=(),
)
METRICS = (MEANS, MOVED)


def findings(subject: Subject, _: Options = NOTHING) -> list[Finding]:
    """means and moved_cells; means is NaN with a note where no column has numbers."""
    once = moved_cells(subject.real)
    return [find(MEANS, means, subject), assemble(MOVED, [once] * len(subject.sets), {})]


def means(real: Side, synthetic: Side) -> Measured:
    """The standardized difference of each column of numbers; a column that does not vary is left out."""
    detail = []
    for column in real.schema:
        if not (column.binned or _whole(column.levels)):
            continue
        values = [_numbers(side, column) for side in (real, synthetic)]
        known = [one[np.isfinite(one)] for one in values]
        if min(map(len, known)) == 0 or (spread := float(np.std(known[0]))) == 0.0:
            continue
        first, second = (float(np.mean(one)) for one in known)
        difference = (second - first) / spread
        detail.append(
            {"column": column.name, "real": first, "synthetic": second, "difference": difference}
        )
    far = [abs(float(str(one["difference"]))) for one in detail]
    note = "" if far else "No column has numbers that vary."
    return Measured(mean_of_known(far) if far else math.nan, detail=tuple(detail), note=note)


def moved_cells(real: Side) -> Measured:
    """The share of cells of each column that the schema shows as something else."""
    from gibbous.encode.cell_text import moved

    shares = {
        column.name: float(moved(_read(real, column), column, real.codes.by_column[at]).mean())
        for at, column in enumerate(real.schema)
    }
    detail = tuple({"column": name, "share": share} for name, share in shares.items() if share > 0)
    return Measured(mean_of_known([*shares.values()]), detail=detail)


def _whole(levels: Sequence[object]) -> bool:
    return bool(levels) and all(type(level) is int for level in levels)


def _numbers(side: Side, column: Column) -> np.ndarray:
    """float64 (rows,), days as ordinals; NaN for missing and what is no number."""
    from gibbous.encode.cell_text import numbers_as_read

    return numbers_as_read(_read(side, column), column)


def _read(side: Side, column: Column) -> pl.Series:
    read = side.read
    return (side.frame if read is None or column.name not in read.columns else read)[column.name]
