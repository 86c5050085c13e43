"""Membership: told a record, can an intruder say from the release whether it was used?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, binomial, find
from gibbous.evaluation.risk.attack import without_holdout
from gibbous.evaluation.risk.gower import Near, Points, near, points
from gibbous.evaluation.tables import Side, Subject, permutation, sampled

PROBES = 2000
RATES = (0.1, 0.01, 0.001)
_HOW = (
    "Area under the ROC curve in [0, 1] of telling records from holdout records by {score}. 0.5 is "
    "guessing; a copy scores near 1 as far as records differ from one another. The detail has the "
    "share of records found at false alarm rates of at most 10 %, 1 % and 0.1 % of the holdout "
    "records. Exact for samples of both whose sizes the note states; every synthetic row is "
    "looked at."
)
_COVERS = (
    "95 %, Clopper-Pearson at min(records, outsiders) trials, which bounds the variance of any "
    "such area; covers all sets"
)
DISTANCE = Metric(
    name="membership_distance",
    title="Membership told by distance",
    group="risk",
    better="near",
    ideal=0.5,
    definition=_HOW.format(score="the Gower distance to the closest synthetic row"),
    source="Chen, Yu, Zhang and Fritz (2020), black-box attack; rates as in Carlini et al. (2022)",
    interval_of=_COVERS,
    references=("bootstrap", "independent"),
)
DENSITY = replace(
    DISTANCE,
    name="membership_density",
    title="Membership told by density",
    definition=_HOW.format(
        score=(
            "how much denser synthetic rows are at the record than other holdout records are: the "
            "log ratio of two smoothed counts (a row whose codes differ in one column more weighs "
            "a hundred times less)"
        )
    ),
    source="van Breugel, Sun, Qian and van der Schaar (2023); rates as in Carlini et al. (2022)",
)


METRICS = (DISTANCE, DENSITY)


def findings(subject: Subject, _: Options) -> list[Finding]:
    """membership_distance and membership_density.

    At most PROBES records and as many holdout records are judged, drawn by the seed; the other holdout
    records, at least half of them, are the intruder's own for densities.
    """
    if subject.holdout is None:
        return [without_holdout(metric, subject) for metric in METRICS]
    scene = Scene.of(subject.real, subject.holdout, subject.seed, PROBES)
    seen: dict[int, tuple[Near, Near]] = {}

    def looked(table: Side) -> tuple[Near, Near]:
        # Both scores come from one scan of the same rows.
        if id(table) not in seen:
            pool = points(table)
            seen[id(table)] = (near(scene.members, pool), near(scene.strangers, pool))
        return seen[id(table)]

    def by_distance(_real: Side, table: Side) -> Measured:
        members, strangers = looked(table)
        return judged(-members.distance, -strangers.distance)

    def by_density(_real: Side, table: Side) -> Measured:
        members, strangers = looked(table)
        free = len(scene.of_strangers)
        return judged(
            members.density - scene.of_members, strangers.density[:free] - scene.of_strangers
        )

    return [find(DISTANCE, by_distance, subject), find(DENSITY, by_density, subject)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scene:
    """Who is judged, and what the intruder knows of the population.

    Attributes:
        members: records, at most `probes`.
        strangers: holdout records, at most `probes`.
        of_members: log density of the intruder's own records at each member.
        of_strangers: the same at the first strangers, those that are not the intruder's own.
    """

    members: Points
    strangers: Points
    of_members: np.ndarray
    of_strangers: np.ndarray

    @staticmethod
    def of(real: Side, holdout: Side, seed: int, probes: int) -> Scene:
        """Draw the samples; a holdout of one record leaves nothing to compare densities with."""
        order = permutation(holdout.rows, seed, 21)
        cut = min(probes, (holdout.rows + 1) // 2)
        members = points(real.take(sampled(real.rows, probes, seed, 20)))
        strangers = points(holdout.take(order[:probes]))
        if cut == holdout.rows:
            return Scene(members, strangers, np.zeros(members.rows), np.zeros(cut))
        own = points(holdout.take(order[cut:]))
        first = strangers.take(np.arange(cut))
        return Scene(members, strangers, near(members, own).density, near(first, own).density)


def judged(members: np.ndarray, strangers: np.ndarray) -> Measured:
    """Area under the ROC curve of scores (higher for members), its interval, detection at few alarms."""
    area = auc(members, strangers)
    trials = min(len(members), len(strangers))
    rows = tuple(_detection(members, strangers, rate) for rate in RATES)
    note = f"{len(members)} records and {len(strangers)} holdout records."
    return Measured(area, binomial(area * trials, trials), rows, note)


def auc(members: np.ndarray, strangers: np.ndarray) -> float:
    """Probability that a member scores higher than a stranger; ties count a half."""
    ordered = np.sort(strangers)
    below = np.searchsorted(ordered, members, side="left")
    upto = np.searchsorted(ordered, members, side="right")
    return float((below + upto).mean() / (2 * len(strangers)))


def _detection(members: np.ndarray, strangers: np.ndarray, rate: float) -> dict[str, float | int]:
    """Share of members above the lowest threshold that at most this share of strangers passes."""
    allowed = int(np.floor(rate * len(strangers)))
    # Scores must exceed this one: with ties fewer than `allowed` strangers may pass.
    limit = np.sort(strangers)[len(strangers) - allowed - 1]
    detected, alarms = int((members > limit).sum()), int((strangers > limit).sum())
    low, high = binomial(detected, len(members))
    false_low, false_high = binomial(alarms, len(strangers))
    return {
        "false alarms at most": rate,
        "false alarms": alarms / len(strangers),
        "false alarms, low": false_low,
        "false alarms, high": false_high,
        "found": detected / len(members),
        "found, low": low,
        "found, high": high,
    }
