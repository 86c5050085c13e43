"""A measure is a function of two tables; a finding is the measure of every set and every reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbous.core.finding import Better, Finding, Group
from gibbous.evaluate.tables import REFERENCES, Side, Subject


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a measure says of one pair of tables.

    Attributes:
        value: NaN where it is not defined, with the reason in `note`.
        interval: (low, high); None where none is defined.
        detail: rows of a small table, for charts.
        note: a sentence; empty for none.
    """

    value: float
    interval: tuple[float, float] | None = None
    detail: tuple[Mapping[str, Any], ...] = field(default=())
    note: str = ""


Measure = Callable[[Side, Side], Measured]
"""measure(real, synthetic) -> Measured; deterministic: what is random in it follows from a seed."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is the same for every use of a measure: see Finding for the meaning of each."""

    name: str
    title: str
    group: Group
    better: Better
    definition: str
    source: str
    interval_of: str = ""
    ideal: float | None = None
    references: tuple[str, ...] = REFERENCES


def find(
    metric: Metric,
    measure: Measure,
    subject: Subject,
    *,
    columns: Sequence[str] = (),
) -> Finding:
    """Apply a measure to each set and to the references.

    Args:
        metric: its name, direction and definition.
        measure: the function.
        columns: the columns it is about.
    Returns:
        A finding: mean over the sets; its interval covers the sets' own intervals; the detail and the
        note are those of the first set.
    """
    found = [measure(subject.real, one) for one in subject.sets]
    null = {}
    for name in metric.references:
        table = subject.reference(name)
        if table is not None:
            null[name] = measure(subject.real, table).value
    return assemble(metric, found, null, columns=columns)


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


def spanned(intervals: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The least interval that holds all of them; None if one is missing."""
    known = [i for i in intervals if i is not None]
    if not known or len(known) < len(intervals):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
