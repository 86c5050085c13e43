"""Findings out of models: every table is fitted once, and several findings are made of that fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.finding import Finding
from gibbous.core.schema import Schema
from gibbous.evaluate.draws import permutation, resampled
from gibbous.evaluate.measure import Measured, Metric, spanned
from gibbous.evaluate.tables import REFERENCES, Side, Subject, independent

TEST_SHARE = 0.2  # of the real records, where no holdout is given


def assemble(
    metric: Metric,
    sets: Sequence[Measured],
    null: Mapping[str, float],
    *,
    columns: Sequence[str] = (),
    detail: Sequence[Mapping[str, Any]] | None = None,
) -> Finding:
    """One finding from what is measured already.

    Args:
        metric: its name, direction and definition.
        sets: one measurement a synthetic set.
        null: what the references score.
        columns: the columns it is about.
        detail: in place of the detail of the first set.
    Returns:
        A finding: mean over the sets that have a value; the interval covers theirs.
    """
    values = [m.value for m in sets]
    known = [v for v in values if not math.isnan(v)]
    return Finding(
        name=metric.name,
        title=metric.title,
        group=metric.group,
        value=float(np.mean(known)) if known else math.nan,
        better=metric.better,
        definition=metric.definition,
        source=metric.source,
        interval=spanned([m.interval for m in sets]),
        interval_of=metric.interval_of,
        null=tuple(null.items()),
        ideal=metric.ideal,
        subject=tuple(columns),
        sets=tuple(values),
        detail=tuple(sets[0].detail if detail is None else detail),
        note=sets[0].note,
    )


def references(subject: Subject) -> dict[str, Side]:
    """The reference tables that there are, by name."""
    found = {name: subject.reference(name) for name in REFERENCES}
    return {name: table for name, table in found.items() if table is not None}


def split(subject: Subject) -> tuple[Side, Side, str]:
    """Real records to train on, real records to test on, and a sentence about them.

    The holdout is the test where there is one. Otherwise a seeded share of the real records is: the
    synthesizer saw them, so what is trained on its rows looks better on them than on new records.
    """
    real = subject.real
    if subject.holdout is not None:
        return real, subject.holdout, f"Tested on {subject.holdout.rows} records of the holdout."
    test = max(1, round(TEST_SHARE * real.rows)) if real.rows > 1 else 0
    if test == 0:
        return real, real, "Optimistic: tested on the one real record, which is trained on, too."
    order = permutation(real.rows, subject.seed, 11)
    note = (
        f"Optimistic: tested on {test} of the {real.rows} real records, drawn by seed, because there "
        "is no holdout; the synthesizer saw them."
    )
    return real.take(np.sort(order[test:])), real.take(np.sort(order[:test])), note


def trained(subject: Subject, train: Side) -> dict[str, Side]:
    """Tables to train on beside the synthetic sets: none of them holds a record of the test.

    Returns:
        "real": the records to train on; "bootstrap" and "independent": made of them, with as many
        rows as the first set.
    """
    rows, seed = subject.sets[0].rows, subject.seed
    return {
        "real": train,
        "bootstrap": train.take(resampled(train.rows, rows, seed, 12)),
        "independent": independent(train.take(resampled(train.rows, rows, seed, 13)), seed),
    }


def check_columns(schema: Schema, names: Sequence[str], what: str) -> None:
    """Refuse columns that do not exist.

    Raises:
        UsageError: one of them is no column of the schema; the message names those that are.
    """
    lost = [name for name in names if name not in schema.names]
    if lost:
        raise UsageError(
            "NOCOLUMN",
            f"The {what} {', '.join(map(repr, lost))} is no column of the schema.",
            f"Columns are {', '.join(schema.names)}.",
            "Check the spelling.",
        )
