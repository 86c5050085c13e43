"""Distance to the closest record: do synthetic rows lie closer to the records than to outsiders?"""

from __future__ import annotations

import numpy as np

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, binomial, find
from gibbous.evaluation.risk.attack import without_holdout
from gibbous.evaluation.risk.gower import near, points
from gibbous.evaluation.risk.groups import packed
from gibbous.evaluation.tables import Side, Subject, sampled

PROBES = 2000
DCR = Metric(
    name="dcr",
    title="Synthetic rows closer to records than to outsiders",
    group="risk",
    better="near",
    ideal=0.5,
    definition=(
        "Share of synthetic rows in [0, 1] whose closest record is closer than their closest holdout "
        "record (Gower's distance; ties count a half), among as many records as holdout records "
        "(the larger side is sampled, which hides a copy in part: a holdout as large as the records "
        "is best). 0.5 is what rows score that treat both alike; a copy scores near 1. Exact for a "
        "sample of rows whose size the note states."
    ),
    source=(
        "Platzer and Reutterer (2021), with Gower (1971); the interval takes rows that share a "
        "closest record as one"
    ),
    interval_of="95 %, Clopper-Pearson at the effective number of rows; covers all sets",
    references=("bootstrap", "independent"),
)


METRICS = (DCR,)


def findings(subject: Subject, _: Options) -> list[Finding]:
    """dcr; at most PROBES rows of each table are looked up, drawn by the seed."""
    holdout = subject.holdout
    if holdout is None:
        return [without_holdout(DCR, subject)]

    def measure(real: Side, synthetic: Side) -> Measured:
        return closer(real, holdout, synthetic, seed=subject.seed)

    return [find(DCR, measure, subject)]


def closer(
    real: Side, holdout: Side, synthetic: Side, *, seed: int, probes: int = PROBES
) -> Measured:
    """Share of synthetic rows closer to records than to holdout records.

    Args:
        real, holdout: the larger one is cut to the size of the smaller.
        synthetic: at most `probes` of its rows are looked up.
    """
    size = min(real.rows, holdout.rows)
    inside = real.take(sampled(real.rows, size, seed, 10))
    outside = holdout.take(sampled(holdout.rows, size, seed, 11))
    rows = synthetic.take(sampled(synthetic.rows, probes, seed, 12))
    queries = points(rows)
    mine, theirs = near(queries, points(inside)), near(queries, points(outside))
    won = mine.distance < theirs.distance
    tied = mine.distance == theirs.distance
    hits = float(won.sum() + tied.sum() / 2)
    nearest = np.where(won | tied, mine.where, size + theirs.where)
    weights = np.unique(nearest, return_counts=True)[1] / rows.rows
    trials = 1.0 / float((weights**2).sum())
    share = hits / rows.rows
    a, b, all_rows = packed([inside, outside, synthetic], real.schema.names)
    detail = tuple(
        {
            "closest among": name,
            "median distance": float(np.median(found.distance)),
            "share with equal codes": float(np.isin(all_rows, codes).mean()),
        }
        for name, found, codes in (("records", mine, a), ("holdout", theirs, b))
    )
    note = (
        f"{rows.rows} synthetic rows against {size} records and {size} holdout records; "
        f"{float(tied.mean()):.1%} ties; {trials:.0f} rows in effect. "
        f"{float(np.isin(b, a).mean()):.1%} of the holdout records have the codes of a record: if that "
        "is more than chance gives, the holdout was not kept away."
    )
    return Measured(share, binomial(share * trials, trials), detail, note)
