"""Findings about flows: what each of them is, which way is better, and where it is from."""

from __future__ import annotations

from functools import partial
from typing import Final

from gibbous.evaluation.measure import Metric

REFERENCES: Final = ("bootstrap", "independent")
_OVER = "95 %, normal, over destinations"
_PAPER = "[onthemap, s6, figures "
_EACH = (
    "Mean over destinations of the {what} of mean great-circle commute distances, {which}; "
    "destinations with such trips in both tables. Miles."
)


_metric = partial(Metric, group="flows", references=REFERENCES)


def _each(name: str, title: str, what: str, which: str, figures: str) -> Metric:
    bias = what == "difference, synthetic minus real,"
    return _metric(
        name, title, better="near" if bias else "lower", interval_of=_OVER,
        definition=_EACH.format(what=what, which=which), source=f"{_PAPER}{figures}]",
        ideal=0.0 if bias else None,
    )  # fmt: skip


_BIAS, _ERROR = "difference, synthetic minus real,", "absolute difference"
_ALL = (
    _each("commute_bias", "Bias of mean commutes", _BIAS, "all trips", "1 and 3"),
    _each("commute_error", "Error of mean commutes", _ERROR, "all trips", "1 and 3"),
    _each("commute_bias_short", "Bias of short commutes", _BIAS, "trips below the first cut", "2 and 4"),
    _each("commute_error_short", "Error of short commutes", _ERROR, "trips below the first cut", "2 and 4"),
    _metric(
        "commute_distribution", "Distance of commute distributions", better="lower",
        definition="Area between the two distribution functions of commute distance over all trips "
        "(Wasserstein distance of order 1). Miles.",
        source="Villani (2009), Optimal Transport, remark 6.5",
    ),
    _metric(
        "commute_classes", "Short, moderate and long commutes", better="lower",
        definition="Total variation distance of the shares of short, moderate and long commutes: half the "
        "sum of |real share - synthetic share|. From 0 to 1. The cuts are among the facts.",
        source="[onthemap, s6]: classes by published quantiles of commutes",
    ),
    _metric(
        "commute_given", "Distance of commutes given the destination", better="lower",
        definition="As the distance of commute distributions, for each destination; mean weighted by real "
        "people. Miles.",
        source="Villani (2009), Optimal Transport, remark 6.5",
    ),
    _metric(
        "origin_margin", "Distance of origin margins", better="lower",
        definition="Total variation distance of the shares of origins over all destinations. From 0 to 1.",
        source="Levin, Peres (2017), Markov Chains and Mixing Times, prop. 4.2",
    ),
    _metric(
        "origin_given", "Distance of origins given the destination", better="lower",
        definition="Total variation distance of the shares of origins given each destination; mean weighted "
        "by real people. From 0 to 1.",
        source="Levin, Peres (2017), Markov Chains and Mixing Times, prop. 4.2",
    ),
    _metric(
        "new_pairs", "People in pairs without records", better="lower",
        definition="Share of synthetic people whose pair of origin and destination has no real record. "
        "From 0 to 1.",
        source="[onthemap, s1]: sparse tables",
    ),
    _metric(
        "occupied_pairs", "Occupied pairs", better="near",
        definition="Pairs with synthetic people over pairs with real ones. 0 and more.",
        source="[onthemap, s1]: sparse tables", ideal=1.0,
    ),
    _metric(
        "single_pairs", "Pairs with one person", better="near",
        definition="Share of occupied pairs that have one person, synthetic minus real. From -1 to 1.",
        source="[onthemap, s6]: many pairs are singletons", ideal=0.0,
    ),
)  # fmt: skip
METRICS: Final = {metric.name: metric for metric in _ALL}
