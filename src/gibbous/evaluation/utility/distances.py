"""Distances of margins and conditionals as park2014 compares them, and sbhg's U(X, Z) of whole rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import located
from gibbous.core.finding import Finding
from gibbous.core.tables import Sparse
from gibbous.evaluation.measure import NOTHING, Measured, Metric, Options, assemble
from gibbous.evaluation.risk.groups import Tally, packed
from gibbous.evaluation.tables import Side, Subject
from gibbous.evaluation.utility.margin_scores import (
    GROUPS,
    INTERVAL_OF,
    TOO_FEW,
    Margin,
    Scored,
    cells,
    chosen,
    groups_of,
    interval,
    mean_finding,
    scored,
    unravelled,
)
from gibbous.evaluation.utility.train_and_test import references

_HELLINGER = (
    "the Hellinger distance, the square root of 1 - sum over levels of sqrt(real share x synthetic "
    "share)"
)
_PARK = "park2014 s4.3, figs. 5-6, compare these; its formula was not legible to us: the distance is ours"

MARGINAL = Metric(
    name="marginal_distance",
    title="Distance of marginal distributions",
    group="utility",
    better="lower",
    definition=(
        f"Mean over columns of {_HELLINGER}. From 0 (equal) to 1 (no level in common); against total "
        "variation it weighs rare levels more."
    ),
    source=_PARK,
    interval_of=INTERVAL_OF,
)
CONDITIONAL = Metric(
    name="conditional_distance",
    title="Distance of conditional distributions",
    group="utility",
    better="lower",
    definition=(
        "For each ordered pair of columns the distribution of the second one given each level of the "
        f"first is compared by {_HELLINGER}, 1 where the synthetic rows lack the level; mean over "
        "levels weighted by their real share, then over pairs. From 0 to 1."
    ),
    source=_PARK,
    interval_of=INTERVAL_OF,
)
U = Metric(
    name="u_distance",
    title="Pearson distance of whole rows, U(X, Z)",
    group="utility",
    better="near",
    definition=(
        "Sum over the k combinations of all columns that occur in the real records of "
        "(expected - synthetic count)^2 / expected, where expected is the real count scaled to the "
        "synthetic number of rows. Rows drawn from the real shares have mean k - 1; a copy of the "
        "records has 0; rows that match no record have the synthetic number of rows. From 0 upward. "
        "Combinations without a real record are not in the sum: read it with outside_support."
    ),
    source="sbhg s3.4 (after Raab 2016), here for any number of rows",
    interval_of=INTERVAL_OF,
)
OUTSIDE = Metric(
    name="outside_support",
    title="Synthetic rows that match no record",
    group="utility",
    better="near",
    definition=(
        "Share of synthetic rows whose combination of all columns occurs in no real record. From 0 to "
        "1. Near what a new record of the same population has, estimated by the share of real records "
        "that are alone with their combination (Good-Turing): far below means copies, far above "
        "combinations that do not occur."
    ),
    source="the part that U(X, Z) leaves out; Good (1953), Biometrika 40, 237-264",
    interval_of=INTERVAL_OF,
)
METRICS = (MARGINAL, CONDITIONAL, U, OUTSIDE)


@dataclass(frozen=True, slots=True)
class Fit:
    """U(X, Z) over some columns.

    Attributes:
        cells: combinations that occur in the real records, k.
        outside: share of synthetic rows on others.
        single: share of real records that are alone with their combination.
    """

    value: float
    cells: int
    outside: float
    single: float

    @staticmethod
    def of(real: np.ndarray, drawn: np.ndarray, rows: int) -> Fit:
        """From the counts of the combinations that occur in the real records.

        Args:
            real: their real counts, > 0: int64 (k,).
            drawn: their synthetic counts: int64 (k,).
            rows: synthetic rows, on these combinations or not.
        """
        expected = real * (rows / int(real.sum()))
        return Fit(
            value=float(((expected - drawn) ** 2 / expected).sum()),
            cells=len(real),
            outside=1.0 - int(drawn.sum()) / rows,
            single=int((real == 1).sum()) / int(real.sum()),
        )


def findings(subject: Subject, options: Options = NOTHING) -> list[Finding]:
    """marginal_distance, conditional_distance, u_distance, outside_support.

    A schema of one column has no conditional distribution, and no such finding.
    """
    null = references(subject)
    tables = [*subject.sets, *null.values()]
    out = [_marginal(subject, tables, tuple(null))]
    if len(subject.schema) > 1:
        out.append(
            _conditional(subject, tables, tuple(null), options.given or subject.schema.names)
        )
    return [*out, *_support(subject, tables, tuple(null))]


def marginal(
    real: Codes, others: Sequence[Codes], *, seed: int = 0, intervals: int = 0
) -> list[Scored]:
    """Hellinger distance of each column: values (columns,)."""

    def measure(_: Margin, mine: Sparse, levels: np.ndarray, counts: np.ndarray) -> np.ndarray:
        places, hit = located(mine.levels, levels)
        common = np.sqrt(mine.values[places[hit]] * counts[:, hit]).sum(axis=1)
        return np.asarray(_apart(common / np.sqrt(real.rows * counts.sum(axis=1))))

    every = chosen(len(real.schema), 1, 0)
    return scored(real, others, every, measure, seed=seed, intervals=intervals)


def conditional(
    real: Codes, others: Sequence[Codes], *, seed: int = 0, intervals: int = 0
) -> list[Scored]:
    """Hellinger distance of one column given another, for each pair: values (pairs, 2).

    The second given the first, then the first given the second: mean over the levels of the column
    that is given, weighted by their real share; 1 for a level that the other table lacks.
    """
    sizes = real.schema.sizes

    def measure(
        margin: Margin, mine: Sparse, levels: np.ndarray, counts: np.ndarray
    ) -> list[list[float]]:
        shape = [sizes[c] for c in margin]
        known, codes = (unravelled(each, shape) for each in (mine.levels, levels))
        places, hit = located(mine.levels, levels)
        places = places[hit]
        weights = [np.bincount(k, mine.values, s) for k, s in zip(known, shape, strict=True)]

        def apart(other: np.ndarray, side: int) -> float:
            root = np.sqrt(mine.values[places] * other[hit])
            common = np.bincount(known[side][places], root, shape[side])
            scale = np.sqrt(weights[side] * np.bincount(codes[side], other, shape[side]))
            alike = np.divide(common, scale, out=np.zeros(shape[side]), where=scale > 0)
            return float(weights[side] @ _apart(alike)) / real.rows

        return [[apart(other, side) for side in (0, 1)] for other in counts]

    every = chosen(len(sizes), 2, 0)
    return scored(real, others, every, measure, seed=seed, intervals=intervals)


def whole(
    real: Side, others: Sequence[Side], *, seed: int = 0, intervals: int = 0
) -> list[tuple[Fit, list[Fit]]]:
    """U(X, Z) over all columns; only combinations that occur are held.

    Args:
        intervals: how many of the first tables get one.
    Returns:
        For each table its fit, and those without each group; none of these for under 2 * GROUPS rows.
    """
    mine, *theirs = packed([real, *others], real.schema.names)
    tally = Tally.of(mine)
    out = []
    for t, keys in enumerate(theirs):
        fit = Fit.of(tally.counts, Tally.of(keys).at(tally.keys), len(keys))
        left = []
        if t < intervals and len(keys) >= 2 * GROUPS:
            group = groups_of(len(keys), GROUPS, seed)
            parts = [keys[group != g] for g in range(GROUPS)]
            left = [Fit.of(tally.counts, Tally.of(p).at(tally.keys), len(p)) for p in parts]
        out.append((fit, left))
    return out


def pairs(real: Codes, other: Codes) -> list[tuple[tuple[int, ...], Fit]]:
    """U(X, Z) over each pair of columns."""
    out = []
    every = chosen(len(real.schema), 2, 0)
    for pair, mine, theirs in zip(every, cells(real, every), cells(other, every), strict=True):
        places, hit = located(mine.levels, theirs.levels)
        drawn = np.zeros(len(mine.values), dtype=np.int64)
        drawn[places[hit]] = theirs.values[hit]
        out.append((pair, Fit.of(mine.values, drawn, other.rows)))
    return out


def _apart(alike: Any) -> Any:
    # Hellinger distance from the Bhattacharyya coefficient, which rounding can lift above 1.
    return np.sqrt(np.maximum(0.0, 1.0 - alike))


def _marginal(subject: Subject, tables: Sequence[Side], names: Sequence[str]) -> Finding:
    cut, codes = len(subject.sets), [table.codes for table in tables]
    scores = marginal(subject.real.codes, codes, seed=subject.seed, intervals=cut)
    detail = [
        {"column": name, "distance": float(scores[0].values[j])}
        | {n: float(one.values[j]) for n, one in zip(names, scores[cut:], strict=True)}
        for j, name in enumerate(subject.schema.names)
    ]
    null = dict(zip(names, scores[cut:], strict=True))
    return mean_finding(MARGINAL, scores[:cut], null, detail=detail)


def _conditional(
    subject: Subject, tables: Sequence[Side], names: Sequence[str], given: Sequence[str]
) -> Finding:
    columns, cut = subject.schema.names, len(subject.sets)
    codes = [table.codes for table in tables]
    scores = conditional(subject.real.codes, codes, seed=subject.seed, intervals=cut)
    # (what is given, the other column) of each of values.ravel()
    pairs = [(i, j) for a, b in chosen(len(columns), 2, 0) for i, j in ((a, b), (b, a))]
    kept = [p for p, (i, _) in enumerate(pairs) if columns[i] in given]
    taken = [_taken(one, kept) for one in scores]
    detail = [
        {"given": columns[pairs[p][0]], "column": columns[pairs[p][1]]}
        | {"distance": float(taken[0].values[m])}
        | {n: float(one.values[m]) for n, one in zip(names, taken[cut:], strict=True)}
        for m, p in enumerate(kept)
    ]
    null = dict(zip(names, taken[cut:], strict=True))
    finding = mean_finding(CONDITIONAL, taken[:cut], null, detail=detail)
    return finding if set(given) == set(columns) else replace(finding, subject=tuple(given))


def _taken(one: Scored, kept: Sequence[int]) -> Scored:
    left = None if one.deleted is None else one.deleted.reshape(-1, GROUPS)[kept]
    return Scored(one.values.reshape(-1)[kept], left)


def _support(subject: Subject, tables: Sequence[Side], names: Sequence[str]) -> list[Finding]:
    cut = len(subject.sets)
    fits = whole(subject.real, tables, seed=subject.seed, intervals=cut)
    first, columns = fits[0][0], subject.schema.names
    by_pair = pairs(subject.real.codes, subject.sets[0].codes) if len(columns) > 1 else []
    detail = [_row("all columns", first)]
    detail += [_row(" x ".join(columns[c] for c in pair), one) for pair, one in by_pair]
    note = (
        f"{first.cells} combinations occur in {subject.real.rows} records; {first.single:.1%} of the "
        "records are alone with theirs."
    )
    more = " U says little where most combinations occur once: see the pairs in the detail."
    both = []
    for metric, high in ((U, math.inf), (OUTSIDE, 1.0)):
        key = attrgetter("value" if metric is U else "outside")
        sets = []
        for fit, left in fits[:cut]:
            each = np.array([key(one) for one in left])
            bounds = interval(key(fit), each, 0.0, high) if left else None
            sets.append(Measured(key(fit), bounds, note=note if left else f"{note} {TOO_FEW}"))
        null = {name: key(fit) for name, (fit, _) in zip(names, fits[cut:], strict=True)}
        both.append(assemble(metric, sets, null, detail=detail if metric is U else []))
    u, outside = both
    return [
        replace(u, ideal=float(first.cells - 1), note=u.note + more * (first.single > 0.5)),
        replace(outside, ideal=first.single),
    ]


def _row(columns: str, one: Fit) -> dict[str, Any]:
    return {
        "columns": columns,
        "cells": one.cells,
        "expected": one.cells - 1,
        "value": one.value,
        "outside": one.outside,
    }
