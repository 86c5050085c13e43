"""Total variation distance of k-way margins, k = 1..4, with a jackknife interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import located
from gibbous.core.finding import Finding
from gibbous.core.schema import Schema
from gibbous.core.tables import Sparse
from gibbous.evaluation.measure import NOTHING, Metric, Options
from gibbous.evaluation.tables import Subject
from gibbous.evaluation.utility.margin_scores import (
    INTERVAL_OF,
    Margin,
    Scored,
    cells,
    chosen,
    mean_finding,
    scored,
)
from gibbous.evaluation.utility.train_and_test import references

LEVELS = 40  # of one column that are shown beside each other
_WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}


def _metric(order: int) -> Metric:
    taken = "all" if order <= 2 else "100 (or all, if fewer)"
    return Metric(
        name=f"tv{order}",
        title=f"Distance of {_WORDS[order]}-way margins",
        group="utility",
        better="lower",
        definition=(
            f"Total variation distance of {_WORDS[order]}-way margins: half the sum over cells of "
            "|real share - synthetic share|, the share of synthetic rows that would have to move "
            f"for the margin to be the real one; mean over {taken} margins of {order} "
            f"column{'s' if order > 1 else ''}. From 0 to 1."
        ),
        source="Levin, Peres (2017), Markov Chains and Mixing Times, prop. 4.2",
        interval_of=INTERVAL_OF,
    )


METRICS = tuple(_metric(order) for order in _WORDS)


def findings(subject: Subject, options: Options = NOTHING) -> list[Finding]:
    """tv1 .. tv4: one finding an order; orders above the number of columns are left out."""
    sets = [one.codes for one in subject.sets]
    null = {name: table.codes for name, table in references(subject).items()}
    out = []
    for order, metric in enumerate(METRICS, 1):
        margins = chosen(len(subject.schema), order, subject.seed)
        if not margins or (options.only and metric.name not in options.only):
            continue
        tables = [*sets, *null.values()]
        scores = distances(
            subject.real.codes, tables, margins, seed=subject.seed, intervals=len(sets)
        )
        mine = dict(zip(null, scores[len(sets) :], strict=True))
        out.append(_finding(subject, order, margins, scores[: len(sets)], mine))
    return out


def distances(
    real: Codes,
    others: Sequence[Codes],
    margins: Sequence[Margin],
    *,
    seed: int = 0,
    intervals: int = 0,
) -> list[Scored]:
    """Total variation distances of tables from the real one; arguments as for `scored`."""

    def measure(_: Margin, mine: Sparse, levels: np.ndarray, counts: np.ndarray) -> np.ndarray:
        places, hit = located(mine.levels, levels)
        share = mine.values[places[hit]] / real.rows
        # 1 - sum over common cells of the lesser share.
        rows = counts.sum(axis=1, keepdims=True)
        alike = np.minimum(share, counts[:, hit] / rows).sum(axis=1)
        return np.asarray(np.maximum(0.0, 1.0 - alike))

    return scored(real, others, margins, measure, seed=seed, intervals=intervals)


def _finding(
    subject: Subject,
    order: int,
    margins: Sequence[Margin],
    sets: Sequence[Scored],
    null: Mapping[str, Scored],
) -> Finding:
    names = subject.schema.names
    if order == 1:
        detail = overlays(subject.schema, subject.real.codes, subject.sets[0].codes)
    else:
        detail = _rows(names, margins, sets[0], null)
    total, note = math.comb(len(names), order), ""
    if len(margins) < total:
        note = f"{len(margins)} of {total} margins, chosen by seed {subject.seed}."
    return mean_finding(METRICS[order - 1], sets, null, detail=detail, note=note)


def _rows(
    names: Sequence[str], margins: Sequence[Margin], first: Scored, null: Mapping[str, Scored]
) -> list[dict[str, Any]]:
    keys = ("first", "second", "third", "fourth")
    return [
        {
            **{key: names[c] for key, c in zip(keys, margin, strict=False)},
            "distance": float(first.values[m]),
            **{name: float(one.values[m]) for name, one in null.items()},
        }
        for m, margin in enumerate(margins)
    ]


def overlays(schema: Schema, real: Codes, synthetic: Codes) -> list[dict[str, Any]]:
    """Share of each level on both sides, column by column; LEVELS at most, the largest and the rest."""
    every = chosen(len(schema), 1, 0)
    out = []
    for (j,), mine, theirs in zip(every, cells(real, every), cells(synthetic, every), strict=True):
        column = schema.columns[j]
        shares = np.zeros((2, column.size))
        shares[0, mine.levels.astype(np.int64)] = mine.values / real.rows
        shares[1, theirs.levels.astype(np.int64)] = theirs.values / synthetic.rows
        kept = np.arange(column.size)
        if column.size > LEVELS:
            kept = np.sort(np.argsort(-shares[0], kind="stable")[: LEVELS - 1])
        labels = column.labels()
        rows = [(labels[k], shares[0, k], shares[1, k]) for k in kept]
        if len(kept) < column.size:
            rest = 1.0 - shares[:, kept].sum(axis=1)
            rows.append((f"{column.size - len(kept)} other levels", rest[0], rest[1]))
        out += [
            {"column": column.name, "level": name, "real": float(a), "synthetic": float(b)}
            for name, a, b in rows
        ]
    return out
