"""An attack on records beside the same attack on outsiders and a guess without keys: what is given away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import (
    Measure,
    Measured,
    Metric,
    difference,
    find,
    mean_of_known,
    undefined,
)
from gibbous.evaluation.tables import Side, Subject

_NO_HOLDOUT = (
    "Not defined without a holdout: keep records of the same population away from the synthesizer "
    "(a random half is best) and give them as holdout."
)


def without_holdout(metric: Metric, subject: Subject) -> Finding:
    """The finding of a metric that compares with a holdout, where there is none."""
    return undefined(metric, len(subject.sets), _NO_HOLDOUT)


def attack(
    metric: Metric,
    measure: Measure,
    subject: Subject,
    *,
    columns: tuple[str, ...],
    outsiders: Measure | None = None,
    also: Mapping[str, Measure] | None = None,
) -> Finding:
    """A finding about the records, with two more references and the difference to outsiders.

    Args:
        measure: success of the attack on the first table through the second, with an interval.
        outsiders: the same for records that no synthesizer saw (first table: the real records);
            None: `measure` with the holdout in place of the records.
        also: further references by name, each a function of (records, synthetic set).
    Returns:
        As `find`; `null` has "outsiders" too where there is a holdout, and the names of `also`;
        `detail` gets a row for each; `note` says the difference.
    """
    known: list[Measured] = []

    def kept(real: Side, table: Side) -> Measured:
        known.append(measure(real, table))
        return known[-1]

    finding = find(metric, kept, subject, columns=columns)
    inside = known[0]  # find() goes through the sets first
    others = dict(also or {})
    if subject.holdout is not None:
        spare = subject.holdout
        others["outsiders"] = outsiders or (lambda _real, table: measure(spare, table))
    seen = {name: [one(subject.real, s) for s in subject.sets] for name, one in others.items()}
    told = (
        _told(inside, seen["outsiders"][0])
        if "outsiders" in seen
        else "Without a holdout nothing says how much of this is about members."
    )
    first = [("records", inside), *((name, values[0]) for name, values in seen.items())]
    rows = tuple(row(name, m.value, interval=m.interval) for name, m in first)
    return replace(
        finding,
        null=(
            *finding.null,
            *((name, mean_of_known([m.value for m in values])) for name, values in seen.items()),
        ),
        detail=(*rows, *finding.detail),
        note=f"{finding.note} {told}".strip(),
    )


def row(
    about: str,
    value: float,
    *,
    records: int | None = None,
    interval: tuple[float, float] | None = None,
) -> Mapping[str, Any]:
    """One row of the detail of an attack: what it is about, how many records, value, interval."""
    low, high = interval or (math.nan, math.nan)
    return {"about": about, "value": value, "low": low, "high": high, "records": records}


def _told(inside: Measured, outside: Measured) -> str:
    if inside.interval is None or outside.interval is None:
        return ""
    gap = inside.value - outside.value
    low, high = difference(inside.value, inside.interval, outside.value, outside.interval)
    return f"Records minus outsiders: {gap:.4f} (95 %: {low:.4f} to {high:.4f})."
