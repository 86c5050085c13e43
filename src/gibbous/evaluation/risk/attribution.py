"""Attribution: how surely a release ties a person's keys to a sensitive value (DiSCO, CAP)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, binomial, mean
from gibbous.evaluation.risk.attack import attack, row
from gibbous.evaluation.risk.groups import Cells, packed
from gibbous.evaluation.tables import Side, Subject

DISCO = Metric(
    name="disco",
    title="Disclosive in the release and correct for the record",
    group="risk",
    better="lower",
    definition=(
        "Share of records in [0, 1] for which all synthetic rows with the record's keys (at least "
        "one) have one sensitive value, and it is the record's (DiSCO). 'outsiders' are holdout "
        "records."
    ),
    source="Raab, Nowok and Dibben (2024), DiSCO",
    needs=("keys", "sensitive"),
    interval_of="95 %, Clopper-Pearson over records, given the release; covers all sets",
)
CAP = Metric(
    name="cap",
    title="Correct attribution probability",
    group="risk",
    better="lower",
    definition=(
        "Mean over records, in [0, 1], of the share of synthetic rows with the record's keys that "
        "have its sensitive value; zero where no row has the keys. 'margin' is that share among all "
        "synthetic rows; 'outsiders' are holdout records. The detail has the variant without the "
        "records whose keys are absent, and the targeted one (TCAP): of records whose keys tie the "
        "release to one value, the share for which it is right."
    ),
    source="Elliot (2014); Taub, Elliot, Pampaka and Smith (2018)",
    needs=("keys", "sensitive"),
    interval_of="95 %, normal over records, given the release; covers all sets",
)


METRICS = (DISCO, CAP)


def findings(subject: Subject, options: Options) -> list[Finding]:
    """disco and cap of each sensitive column."""
    attacks = []
    for column in options.sensitive:
        columns = (*options.keys, column)
        told, guessed, by_margin = (
            partial(measure, keys=keys, sensitive=column)
            for measure, keys in ((disco, options.keys), (cap, options.keys), (cap, ()))
        )
        attacks.append(attack(DISCO, told, subject, columns=columns))
        attacks.append(attack(CAP, guessed, subject, columns=columns, also={"margin": by_margin}))
    return attacks


def attribution(
    targets: Side, release: Side, keys: Sequence[str], sensitive: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a release says of each target.

    Returns:
        share of matching rows that have the target's value, float64 (targets,), NaN without a match;
        matching rows, int64 (targets,); whether all of them have one value, bool (targets,).
    """
    mine, offered = packed([targets, release], keys)
    index, size = release.schema.index(sensitive), release.schema[sensitive].size
    cells = Cells.of(offered, release.codes.by_column[index], size)
    share, rows = cells.share(mine, targets.codes.by_column[index])
    single = cells.group[cells.count == cells.total]
    return share, rows, np.isin(mine, single)


def disco(targets: Side, release: Side, keys: Sequence[str], sensitive: str) -> Measured:
    """Share of targets whose keys tie the release to one value, and it is theirs."""
    share, _, single = attribution(targets, release, keys, sensitive)
    hits, tied = int((single & (share == 1)).sum()), int(single.sum())
    detail = tuple(
        row(about, count / targets.rows, records=count)
        for about, count in (
            ("keys are in the release", int((~np.isnan(share)).sum())),
            ("keys tie the release to one value", tied),
            ("and it is right", hits),
        )
    )
    return Measured(hits / targets.rows, binomial(hits, targets.rows), detail)


def cap(targets: Side, release: Side, keys: Sequence[str], sensitive: str) -> Measured:
    """Mean share of matching rows that have the target's value; no match counts zero."""
    share, rows, single = attribution(targets, release, keys, sensitive)
    filled = np.where(rows > 0, share, 0.0)
    value = float(filled.mean())
    met = rows > 0
    matched = float(filled[met].mean()) if met.any() else float("nan")
    targeted = float((share[single] == 1).mean()) if single.any() else float("nan")
    detail = (
        row("matched records only", matched, records=int(met.sum())),
        row("targeted (TCAP)", targeted, records=int(single.sum())),
    )
    return Measured(value, mean(value, float(filled.var()), targets.rows), detail)
