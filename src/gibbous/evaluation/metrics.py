"""Metrics by name: the built-in ones and those of other packages, by the same road."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint

from gibbous.core.errors import EngineFailure, UsageError
from gibbous.core.finding import GROUPS, Finding
from gibbous.core.keywords import did_you_mean
from gibbous.core.plugins import loaded, registered
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema
from gibbous.evaluation.measure import Metric, Metrics, Need, Options
from gibbous.evaluation.tables import Subject

GROUP = "gibbous.metrics"
BUILT_IN = {
    "utility.margins": ("tv1", "tv2", "tv3", "tv4"),
    "utility.distances": (
        "marginal_distance",
        "conditional_distance",
        "u_distance",
        "outside_support",
    ),
    "utility.as_read": ("means", "moved_cells"),
    "utility.association": ("association", "correlation"),
    "utility.pmse": ("pmse", "pmse_ratio", "pmse_tree", "pmse_tree_ratio"),
    "utility.tstr": ("tstr",),
    "utility.regression": ("coefficients", "ci_overlap"),
    "utility.lasso": ("lasso_path", "lasso_mse"),
    "risk.intruder": ("intruder_mode", "intruder_mean"),
    "risk.uniques": ("population_unique", "replicated_unique"),
    "risk.attribution": ("disco", "cap"),
    "risk.proximity": ("dcr",),
    "risk.membership": ("membership_distance", "membership_density"),
    "risk.linking": ("link_gain",),
    "risk.diversity": ("output_l", "output_k"),
}
"""Names by module; a built-in metric touches its module and this line."""
_NEEDS: dict[Need, str] = {
    "keys": "keys",
    "sensitive": "a sensitive column",
    "ordered": "an ordered sensitive column",
    "targets": "targets",
    "formulas": "formulas",
}


def names() -> tuple[str, ...]:
    """All metrics that there are, built-in ones first; loads nothing."""
    return tuple(_points())


def card(name: str) -> Metric:
    """The card of a metric.

    Raises:
        EngineFailure: the package that registered it cannot be imported, or has no such metric.
    """
    for metric in _module(name).METRICS:
        if metric.name == name:
            return metric
    raise EngineFailure(
        "METRIC",
        f"The metric {name!r} ({_points()[name].value}) cannot be used: METRICS has no such name.",
        "A metric is registered under the name on its card.",
        "Repair or uninstall the package that registers it.",
    )


def selected(only: Collection[str] | None, schema: Schema, options: Options) -> tuple[str, ...]:
    """Names of the metrics to compute.

    Raises:
        UsageError: there is no such metric, or it needs an option that was not given.
        EngineFailure: a package that registers a metric cannot be imported.
    """
    if only is None:
        return names()
    known = (*names(), *GROUPS)
    unknown = [name for name in only if name not in known]
    if unknown:
        raise UsageError(
            "ONLY",
            f"only: there is no finding {', '.join(map(repr, unknown))}.",
            f"Findings are {', '.join(names())}; groups are utility, risk.",
            did_you_mean(unknown[0], known, "Correct only, or leave it out."),
        )
    lacking = left_out([name for name in only if name not in GROUPS], schema, options)
    if lacking:
        raise UsageError(
            "NEEDS",
            f"only: {', '.join(lacking)} cannot be computed.",
            f"What is missing: {'; '.join(dict.fromkeys(lacking.values()))}.",
            "Give it, or leave the name out of only.",
        )
    grouped = any(name in GROUPS for name in only)
    return tuple(n for n in names() if n in only or (grouped and card(n).group in only))


def left_out(among: Collection[str], schema: Schema, options: Options) -> dict[str, str]:
    """Metrics that these options leave out, and what they would need."""
    there = {need: bool(getattr(options, need, False)) for need in _NEEDS}
    there["ordered"] = any(schema[name].ordered for name in options.sensitive)
    needs = {name: card(name).needs for name in among}
    return {
        name: " and ".join(_NEEDS[need] for need in mine)
        for name, mine in needs.items()
        if not all(there[need] for need in mine)
    }


def compute(
    subject: Subject, options: Options, wanted: Collection[str], progress: Progress = silent
) -> tuple[list[Finding], dict[str, float]]:
    """The findings of these names that the options allow, and the seconds that each module took.

    Findings are marked as confidential, as they were computed against real records. They come by
    group, then in the order of `names()`.
    """
    left = left_out(wanted, subject.schema, options)
    chosen: dict[str, list[str]] = {}
    for name in (name for name in names() if name in wanted and name not in left):
        chosen.setdefault(_points()[name].value, []).append(name)
    findings: list[Finding] = []
    seconds: dict[str, float] = {}
    for done, (module, mine) in enumerate(chosen.items()):
        progress("compare", done, len(chosen))
        began = time.perf_counter()
        computed = _module(mine[0]).findings(subject, replace(options, only=tuple(mine)))
        findings += [replace(one, confidential=True) for one in computed if one.name in mine]
        seconds[module.rpartition(".")[2]] = round(time.perf_counter() - began, 2)
    progress("compare", len(chosen), len(chosen))
    order = names()
    return sorted(findings, key=lambda f: (GROUPS.index(f.group), order.index(f.name))), seconds


@cache
def _points() -> dict[str, EntryPoint]:
    own = {
        name: EntryPoint(name, f"gibbous.evaluation.{module}", GROUP)
        for module, listed in BUILT_IN.items()
        for name in listed
    }
    return own | {name: point for name, point in registered(GROUP).items() if name not in own}


def _module(name: str) -> Metrics:
    def fits(thing: object) -> bool:
        return hasattr(thing, "METRICS") and hasattr(thing, "findings")

    metrics: Metrics = loaded(_points()[name], "metric", fits, "METRICS and findings")
    return metrics
