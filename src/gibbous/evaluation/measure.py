"""A measure is a function of two tables; a finding is the measure of every set and every reference.

A metric is a card (`Metric`) and a function that computes its findings; `Metrics` is what a module, built-in
or of another package, offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from gibbous.core.finding import Better, Finding, Group
from gibbous.evaluation.tables import REFERENCES, Side, Subject

LEVEL = 0.95
Z = 1.959963984540054  # the normal quantile of its ends


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a measure says of one pair of tables; NaN where it is not defined, with the reason in `note`."""

    value: float
    interval: tuple[float, float] | None = None
    detail: tuple[Mapping[str, Any], ...] = field(default=())
    note: str = ""


Measure = Callable[[Side, Side], Measured]
"""measure(real, synthetic) -> Measured; deterministic: what is random in it follows from a seed."""


Need = Literal["keys", "sensitive", "ordered", "targets", "formulas"]
"""An option that a metric needs; "ordered": a sensitive column with an order."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an evaluation is told beside its tables, as for `gibbous.evaluate`."""

    keys: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    fraction: float | None = None
    only: tuple[str, ...] = ()

    @staticmethod
    def of(fraction: float | None = None, **names: str | Sequence[str] | None) -> Options:
        """Options as a caller gives them: one name, several, or None for none."""
        listed = {k: (v,) if isinstance(v, str) else tuple(v or ()) for k, v in names.items()}
        return Options(fraction=fraction, **listed)


NOTHING = Options()


@dataclass(frozen=True, slots=True)
class Metric:
    """The card of a metric: what is the same for every use of it.

    Attributes:
        name, title, group, better, definition, source, interval_of, ideal: as of a Finding.
        references: the tables that it is read beside.
        needs: options without which there is nothing to compute.
    """

    name: str
    title: str
    group: Group
    better: Better
    definition: str
    source: str
    interval_of: str = ""
    ideal: float | None = None
    references: tuple[str, ...] = REFERENCES
    needs: tuple[Need, ...] = ()


class Metrics(Protocol):
    """Metrics that are computed together; an entry point of `gibbous.metrics` names one: a module is one."""

    @property
    def METRICS(self) -> Sequence[Metric]:  # noqa: N802 - a constant of a module
        """The cards."""
        ...

    def findings(self, subject: Subject, options: Options) -> Sequence[Finding]:
        """The findings that the options allow; those of other names than `options.only` are dropped."""
        ...


def find(
    metric: Metric, measure: Measure, subject: Subject, *, columns: Sequence[str] = ()
) -> Finding:
    """Apply a measure to each set and to the references.

    Returns:
        Mean over the sets; its interval covers the sets' own intervals; the detail and the note are
        those of the first set.
    """
    measured = [measure(subject.real, one) for one in subject.sets]
    null = {}
    for name in metric.references:
        table = subject.reference(name)
        if table is not None:
            null[name] = measure(subject.real, table).value
    return assemble(metric, measured, null, columns=columns)


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
        detail: in place of the detail of the first set.
    Returns:
        A finding: mean over the sets that have a value; the interval covers theirs.
    """
    values = [m.value for m in sets]
    return Finding(
        name=metric.name,
        title=metric.title,
        group=metric.group,
        value=mean_of_known(values),
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


def undefined(metric: Metric, sets: int, why: str, columns: Sequence[str] = ()) -> Finding:
    """The finding of a metric that has no value for any set, with the reason as its note."""
    return assemble(metric, [Measured(math.nan, note=why)] * sets, {}, columns=columns)


def mean_of_known(values: Sequence[float] | np.ndarray) -> float:
    """Mean of the finite values; NaN for none."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def spanned(intervals: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The least interval that holds all of them; None if one is missing."""
    known = [i for i in intervals if i is not None]
    if not known or len(known) < len(intervals):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def binomial(hits: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper-Pearson interval of a share.

    Args:
        hits: successes; need not be whole (ties count a half).
        trials: >= hits; need not be whole (an effective number).
        level: coverage, at least this for whole numbers.
    Returns:
        (low, high); (0, 1) without trials.
    Source:
        Clopper and Pearson (1934), by quantiles of the beta law.
    """
    from scipy.stats import beta

    if trials <= 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, trials - hits + 1))
    high = 1.0 if hits >= trials else float(beta.ppf(1 - tail, hits + 1, trials - hits))
    return low, high


def difference(
    first: float, of_first: tuple[float, float], second: float, of_second: tuple[float, float]
) -> tuple[float, float]:
    """Interval of first - second from the intervals of two independent estimates.

    Source:
        The square-and-add rule of Newcombe (1998); Zou and Donner (2008).
    """
    down = math.hypot(first - of_first[0], of_second[1] - second)
    up = math.hypot(of_first[1] - first, second - of_second[0])
    return first - second - down, first - second + up


def mean(values: float, square: float, count: int) -> tuple[float, float]:
    """Normal interval of a mean; `square` is the variance of one value."""
    half = Z * math.sqrt(square / count) if count else math.inf
    return values - half, values + half
