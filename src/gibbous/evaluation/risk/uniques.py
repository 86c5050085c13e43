"""Uniqueness on keys: rows that stand alone in a table, and real ones that stand alone in both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, binomial, find
from gibbous.evaluation.risk.attack import attack, row
from gibbous.evaluation.risk.groups import Tally, packed
from gibbous.evaluation.tables import Side, Subject

POPULATION = Metric(
    name="population_unique",
    title="Rows that are unique on the keys",
    group="risk",
    better="lower",
    definition=(
        "Share of synthetic rows in [0, 1] whose keys occur once in their table; 'records' is the "
        "same of the real table, exact when it is the population. For a sample of a stated fraction "
        "the detail estimates the probability that a person who matches a unique record is the "
        "right one: f * s1 / (f * s1 + 2 * (1 - f) * s2), with s1 unique rows, s2 pairs and "
        "f the fraction."
    ),
    source=(
        "park2014, section 4.4 and figure 9 (c), after Dale and Elliot (2001); it prints no "
        "estimator, so the one of Skinner and Elliot (2002) is used"
    ),
    needs=("keys",),
)
REPLICATED = Metric(
    name="replicated_unique",
    title="Records unique on the keys, and unique in the release",
    group="risk",
    better="lower",
    definition=(
        "Share of all records in [0, 1] whose keys occur once among the records and once in the "
        "synthetic table (repU). A copy scores the share of unique records. 'outsiders': holdout "
        "records whose keys no record has and one synthetic row has."
    ),
    source="Raab, Nowok and Dibben (2024), repU",
    needs=("keys",),
    interval_of="95 %, Clopper-Pearson over records, given the release; covers all sets",
)


METRICS = (POPULATION, REPLICATED)


def findings(subject: Subject, options: Options) -> list[Finding]:
    """population_unique and replicated_unique."""
    keys, holdout = options.keys, subject.holdout

    def alone(_real: Side, table: Side) -> Measured:
        return unique_share(table, keys)

    def strange(real: Side, synthetic: Side) -> Measured:
        assert holdout is not None  # attack() asks for it only then
        return stranger_share(holdout, real, synthetic, keys)

    first = find(POPULATION, alone, subject, columns=keys)
    share = 1.0 if options.fraction is None else options.fraction
    own = unique_share(subject.real, keys).value
    detail = (
        {"table": "records", **uniques(subject.real, keys, share)},
        {"table": "synthetic", **uniques(subject.sets[0], keys, math.nan)},
    )
    first = replace(
        first,
        null=(*first.null, ("records", own)),
        detail=detail,
        note="A unique synthetic row is not a person; replicated_unique counts those that point at one.",
    )
    second = attack(
        REPLICATED, partial(replicated_share, keys=keys), subject, columns=keys, outsiders=strange
    )
    return [first, replace(second, null=(*second.null, ("all unique records", own)))]


def unique_share(table: Side, keys: Sequence[str]) -> Measured:
    """Share of rows whose keys occur once."""
    counts = Tally.of(packed([table], keys)[0]).counts
    return Measured(float((counts == 1).sum() / table.rows))


def uniques(table: Side, keys: Sequence[str], fraction: float) -> dict[str, Any]:
    """Rows alone, rows in pairs, and the probability that a match with a row alone is right.

    Args:
        fraction: share of the population in the table; NaN for rows that are nobody's sample.
    """
    counts = Tally.of(packed([table], keys)[0]).counts
    single, double = int((counts == 1).sum()), int((counts == 2).sum())
    return {
        "rows": table.rows,
        "unique rows": single,
        "pairs": double,
        "fraction": fraction,
        "right match": right_match(single, double, fraction),
    }


def right_match(single: int, double: int, fraction: float) -> float:
    """Estimated probability that a person who matches a unique row of a sample is that row's.

    Args:
        fraction: share of the population that was sampled at random, in (0, 1].
    Returns:
        In [0, 1]; NaN where no row is unique. Exactly 1 when the sample is the population.
    Source:
        Skinner and Elliot (2002): a Bernoulli sample, one match drawn at random.
    """
    if single == 0:
        return float("nan")
    return fraction * single / (fraction * single + 2 * (1 - fraction) * double)


def replicated_share(real: Side, synthetic: Side, keys: Sequence[str]) -> Measured:
    """Share of records unique on the keys on both sides, with a Clopper-Pearson interval."""
    mine, theirs = packed([real, synthetic], keys)
    own, other = Tally.of(mine), Tally.of(theirs)
    alone = own.counts == 1
    met = other.at(own.keys)
    hits = int((alone & (met == 1)).sum())
    detail = tuple(
        row(about, count / real.rows, records=count)
        for about, count in (
            ("unique", int(alone.sum())),
            ("unique, keys are in the release", int((alone & (met > 0)).sum())),
            ("unique, and unique in the release", hits),
        )
    )
    return Measured(hits / real.rows, binomial(hits, real.rows), detail)


def stranger_share(holdout: Side, real: Side, synthetic: Side, keys: Sequence[str]) -> Measured:
    """The same for somebody outside: nobody inside has their keys, one synthetic row has.

    A record is unique when none of the other records has its keys; so is an outsider here. For rows
    that depend on no record both shares have the same expectation, whatever the sizes.
    """
    outside, inside, offered = packed([holdout, real, synthetic], keys)
    free = Tally.of(inside).at(outside) == 0
    hits = int((free & (Tally.of(offered).at(outside) == 1)).sum())
    return Measured(hits / holdout.rows, binomial(hits, holdout.rows))
