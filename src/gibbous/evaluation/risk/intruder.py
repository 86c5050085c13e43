"""The intruder of park2014: keys of a person in, the sensitive value by mode or mean of the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gibbous.core.context import located
from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, binomial, mean
from gibbous.evaluation.risk.attack import attack, row
from gibbous.evaluation.risk.groups import Cells, packed
from gibbous.evaluation.tables import Side, Subject

MODE = Metric(
    name="intruder_mode",
    title="Sensitive value guessed by its mode",
    group="risk",
    better="lower",
    definition=(
        "Share of records in [0, 1] whose sensitive value is the most frequent one among the "
        "synthetic rows with the same keys; where no row has them, the most frequent one of the "
        "whole synthetic table. 'margin' guesses that one always; 'outsiders' are holdout records."
    ),
    source="park2014, section 4.4 and figure 9 (a): one minus its misclassification rate",
    needs=("keys", "sensitive"),
    interval_of="95 %, Clopper-Pearson over records, given the release; covers all sets",
)
MEAN = Metric(
    name="intruder_mean",
    title="Error of the sensitive number guessed by its mean",
    group="risk",
    better="higher",
    definition=(
        "Mean absolute error, in units of the column (levels apart where it is ordinal), of guessing "
        "the sensitive number by its mean among the synthetic rows with the same keys; where no row "
        "has them, by the mean of the whole synthetic table. 'margin' guesses that one always; "
        "'outsiders' are holdout records. Missing numbers are left out."
    ),
    source="park2014, section 4.4 and figure 9 (b): the absolute error",
    needs=("keys", "ordered"),
    interval_of="95 %, normal over records, given the release; covers all sets",
)


METRICS = (MODE, MEAN)


def findings(subject: Subject, options: Options) -> list[Finding]:
    """intruder_mode of each sensitive column, and intruder_mean where it is ordered."""
    return [
        attack(
            metric,
            partial(measure, keys=options.keys, sensitive=column),
            subject,
            columns=(*options.keys, column),
            also={"margin": partial(measure, keys=(), sensitive=column)},
        )
        for column in options.sensitive
        for metric, measure in ((MODE, mode_attack), (MEAN, mean_attack))
        if metric is MODE or subject.schema[column].ordered
    ]


def mode_attack(targets: Side, release: Side, keys: Sequence[str], sensitive: str) -> Measured:
    """Share of targets whose keys are known that the mode guesses right, with Clopper-Pearson interval."""
    mine, offered = packed([targets, release], keys)
    index, size = release.schema.index(sensitive), release.schema[sensitive].size
    truth, values = targets.codes.by_column[index], release.codes.by_column[index]
    groups, modes = Cells.of(offered, values, size).modes()
    place, hit = located(groups, mine)
    guess = np.where(hit, modes[place], np.argmax(np.bincount(values, minlength=size)))
    right = guess == truth
    count = int(right.sum())
    detail = (
        _among("keys are in the release", right[hit]),
        _among("keys are not in the release", right[~hit]),
    )
    return Measured(count / targets.rows, binomial(count, targets.rows), detail)


def _among(about: str, right: np.ndarray) -> Mapping[str, Any]:
    count, size = int(right.sum()), len(right)
    share = count / size if size else float("nan")
    return row(about, share, records=size, interval=binomial(count, size))


def mean_attack(targets: Side, release: Side, keys: Sequence[str], sensitive: str) -> Measured:
    """Mean absolute error of guessing an ordered column by the mean, normal interval; NaN without numbers."""
    mine, offered = packed([targets, release], keys)
    index = release.schema.index(sensitive)
    truth, values = targets.numbers[:, index], release.numbers[:, index]
    known, offers = ~np.isnan(truth), ~np.isnan(values)
    if not known.any() or not offers.any():
        return Measured(float("nan"), note="The sensitive column holds no numbers.")
    groups, number = np.unique(offered[offers], return_inverse=True)
    total = np.bincount(number, weights=values[offers])
    means = total / np.bincount(number)
    place, hit = located(groups, mine[known])
    guess = np.where(hit, means[place], values[offers].mean())
    error = np.abs(guess - truth[known])
    value = float(error.mean())
    square = float((error**2).mean())
    met = float(error[hit].mean()) if hit.any() else float("nan")
    detail = (
        row("root of the mean squared error", square**0.5, records=len(error)),
        row("keys are in the release", met, records=int(hit.sum())),
    )
    return Measured(value, mean(value, float(error.var()), len(error)), detail)
