"""Link gain: how much one further known column raises what a release says of a sensitive value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, find, mean_of_known
from gibbous.evaluation.risk.groups import Cells, packed
from gibbous.evaluation.tables import Side, Subject

LINK = Metric(
    name="link_gain",
    title="Link gain of the most telling further column",
    group="risk",
    better="lower",
    definition=(
        "For an intruder who knows the keys X of a record and links one further column Z: mean over "
        "records of Pr(Y | X, Z) over mean of Pr(Y | X), for the record's own sensitive value Y and "
        "shares among the synthetic rows, both over the records whose X and Z occur together in the "
        "release; the largest over the columns Z; 1 says that no link helps; 'outsiders' are holdout "
        "records. The detail has all columns, and quantiles of the theorem's own ratio "
        "Pr(Y | X, Z) / Pr(Y | X), which equals "
        "Pr(Z | X, Y) / Pr(Z | X), over the records where Pr(Y | X) > 0."
    ),
    source="park2013, theorem 2, averaged over records",
    needs=("keys", "sensitive"),
)


METRICS = (LINK,)


def findings(subject: Subject, options: Options) -> list[Finding]:
    """link_gain of each sensitive column: linked is every column that is neither key nor sensitive."""
    return [_finding(subject, options.keys, column) for column in options.sensitive]


def _finding(subject: Subject, keys: Sequence[str], sensitive: str) -> Finding:
    links = [name for name in subject.schema.names if name not in (*keys, sensitive)]
    measure = partial(largest, keys=keys, sensitive=sensitive, links=links)
    finding = find(LINK, measure, subject, columns=(*keys, sensitive))
    if subject.holdout is None:
        return finding
    gains = [measure(subject.holdout, table).value for table in subject.sets]
    return replace(finding, null=(*finding.null, ("outsiders", mean_of_known(gains))))


def largest(
    targets: Side, release: Side, keys: Sequence[str], sensitive: str, links: Sequence[str]
) -> Measured:
    """The gain of each link, and the largest."""
    rows: list[dict[str, Any]] = []
    before = belief(targets, release, keys, sensitive)
    for link in links:
        after = belief(targets, release, (*keys, link), sensitive)
        known = ~np.isnan(after)
        if not known.any() or not before[known].any():
            continue
        ratio = after[known & (before > 0)] / before[known & (before > 0)]
        rows.append(
            {
                "link": link,
                "gain": float(after[known].mean() / before[known].mean()),
                "before": float(before[known].mean()),
                "after": float(after[known].mean()),
                "records": int(known.sum()),
                "median ratio": float(np.median(ratio)),
                "99 % ratio": float(np.quantile(ratio, 0.99)),
            }
        )
    if not rows:
        return Measured(
            float("nan"),
            note="No further column to link, or no record whose keys are in the release.",
        )
    rows.sort(key=lambda row: -float(row["gain"]))
    return Measured(float(rows[0]["gain"]), detail=tuple(rows))


def belief(targets: Side, release: Side, columns: Sequence[str], sensitive: str) -> np.ndarray:
    """Pr(Y | columns) in the release at each target's own values, float64 (targets,); NaN without a row."""
    index, size = release.schema.index(sensitive), release.schema[sensitive].size
    truth, values = targets.codes.by_column[index], release.codes.by_column[index]
    mine, offered = packed([targets, release], columns)
    return Cells.of(offered, values, size).share(mine, truth)[0]
