"""Evaluate flows: real and synthetic origins and distances by destination in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from gibbous.core.boundary import guarded
from gibbous.core.errors import UsageError
from gibbous.core.finding import Finding
from gibbous.core.keywords import answering
from gibbous.core.release import Release
from gibbous.evaluation.evaluation import NOTICE
from gibbous.evaluation.findings import Findings
from gibbous.evaluation.flows_metrics import METRICS
from gibbous.evaluation.flows_trips import (
    Trips,
    resampled,
    shuffled,
    transport,
    transport_given,
    variation_given,
)
from gibbous.evaluation.measure import Measured, assemble
from gibbous.evaluation.tables import opened
from gibbous.flows import Flows, Geography, coarse, flows_of, level_of, read_flows, to_regions

MOST_REFERENCE: Final = 20_000_000  # records beyond which nothing is resampled
SHOWN: Final = 500  # destinations of the detail

_MADE: Final = {"bootstrap": resampled, "independent": shuffled}
_Measure = Callable[[Trips, Trips], Measured]
SIZES: Final = (1, 5, 10, 20, 50, 100, 500)
"""People of a destination at which classes of size begin."""


@guarded
@answering
def evaluate_flows(
    real: Any,
    synthetic: Any,
    geography: Geography,
    *,
    cuts: tuple[float, float] | None = None,
    seed: int = 0,
    only: Sequence[str] | None = None,
    options: Any = None,
) -> Findings:
    """Compare synthetic flows with the real ones; confidential, and no part of a release.

    Args:
        real: confidential flows: a path, a frame, or `Flows`.
        synthetic: a release or its folder, a frame of rows (or of pairs and counts), `Flows`, or a
            sequence of these.
        geography: declared places and names of columns. A release of regions of one of its levels
            is compared with the records in those regions.
        cuts: miles at which moderate and long commutes begin; None takes those of the geography, else
            the median and the 90 % quantile of the real ones.
        seed: of the references.
        only: names of findings; None for all.
        options: how text files are read (`gibbous.read.source.ReadOptions`).
    Returns:
        Findings of the group "flows".
    Raises:
        UsageError: an unknown finding, cuts out of order, or a table without people.
        SchemaMismatch: a place is unknown, or a count is not whole.
    """
    drawn = opened(synthetic)
    level = _level(drawn, geography)
    known = _flows(real, geography, options)
    if level:
        known, geography = to_regions(known, geography, level), coarse(geography, level)
    truth = Trips.of(known, geography)
    sets = [Trips.of(one, geography) for one in _sets(drawn, geography, options)]
    if not truth.flows.records or not sets or not all(one.flows.records for one in sets):
        raise UsageError(
            "NOFLOWS",
            "A table has no people, or no synthetic set was given.",
            "Each table has at least one record.",
            "Check the files and the column of counts.",
        )
    at = _cuts(truth, cuts or geography.cuts)
    made = {} if truth.flows.records > MOST_REFERENCE else _MADE
    references = {key: Trips.of(make(truth.flows, seed), geography) for key, make in made.items()}
    measures = _measures(at)
    items = [_found(name, measures[name], truth, sets, references) for name in wanted(only)]
    facts = {
        "notice": NOTICE,
        "rows": {"real": truth.flows.records, "synthetic": [s.flows.records for s in sets]},
        "pairs": {"real": len(truth.flows.counts), "synthetic": [len(s.far) for s in sets]},
        "columns": [geography.destination, geography.origin],
        "places": {"destinations": truth.destinations, "origins": truth.origins},
        "sets": len(sets),
        "seed": seed,
        "cuts": list(at),
        "without_coordinates": int(truth.flows.counts[~np.isfinite(truth.far)].sum()),
    }
    return Findings(tuple(items), facts)


def measured(
    real: Flows, made: Flows, geography: Geography, only: Sequence[str]
) -> tuple[Finding, ...]:
    """Findings of one synthetic table beside the real one, without references (`compare` has its own).

    Raises:
        UsageError: an unknown finding.
    """
    truth, other = Trips.of(real, geography), Trips.of(made, geography)
    located = geography.origins.located and geography.destinations.located
    measures = _measures(_cuts(truth, geography.cuts) if located else (0.0, 0.0))
    return tuple(_found(name, measures[name], truth, [other], {}) for name in wanted(only))


def names() -> tuple[str, ...]:
    """Names of all findings about flows."""
    return tuple(METRICS)


def _flows(source: Any, geography: Geography, options: Any) -> Flows:
    if isinstance(source, Flows):
        return source
    return read_flows(source, geography, options=options)[0]


def _level(drawn: Sequence[Any], geography: Geography) -> str:
    """The level of the hierarchy that the releases have in place of origins; empty for origins."""
    seen = {level_of(geography, one.schema) for one in drawn if isinstance(one, Release)}
    if len(seen) > 1:
        raise UsageError(
            "LEVELS",
            "The releases have origins of different levels.",
            "Each is compared with the records at its own level.",
            "Evaluate them one by one.",
        )
    return seen.pop() if seen else ""


def _sets(drawn: Sequence[Any], geography: Geography, options: Any) -> list[Flows]:
    tables = []
    for one in drawn:
        if isinstance(one, Release):
            tables += [flows_of(frame, geography) for frame in one.sets]
        else:
            tables.append(_flows(one, geography, options))
    return tables


def _cuts(truth: Trips, cuts: tuple[float, float] | None) -> tuple[float, float]:
    at = (truth.quantile(0.5), truth.quantile(0.9)) if cuts is None else cuts
    if not at[0] <= at[1]:
        raise UsageError(
            "CUTS",
            "The cuts are out of order, or no pair has coordinates.",
            "Two distances in miles: short below the first, long from the second on.",
            "For example cuts=(6.23, 21.54).",
        )
    return float(at[0]), float(at[1])


def wanted(only: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the findings that are asked for; all of them for None.

    Raises:
        UsageError: there is no such finding.
    """
    selected = names() if only is None else tuple(only)
    unknown = [name for name in selected if name not in METRICS]
    if unknown:
        raise UsageError(
            "ONLY",
            f"only: there is no finding {', '.join(map(repr, unknown))}.",
            f"Findings about flows are {', '.join(METRICS)}.",
            "Correct only, or leave it out.",
        )
    return selected


def _found(
    name: str, measure: _Measure, truth: Trips, sets: list[Trips], references: dict[str, Trips]
) -> Finding:
    null = {key: measure(truth, table).value for key, table in references.items()}
    return assemble(METRICS[name], [measure(truth, one) for one in sets], null)


def _measures(cuts: tuple[float, float]) -> dict[str, _Measure]:
    return {
        "commute_bias": lambda a, b: _difference(a, b, np.inf, absolute=False),
        "commute_error": lambda a, b: _difference(a, b, np.inf, absolute=True),
        "commute_bias_short": lambda a, b: _difference(a, b, cuts[0], absolute=False),
        "commute_error_short": lambda a, b: _difference(a, b, cuts[0], absolute=True),
        "commute_distribution": lambda a, b: _whole(transport(a, b)),
        "commute_classes": lambda a, b: _classes(a, b, cuts),
        "commute_given": lambda a, b: _weighted(a, transport_given(a, b)),
        "origin_margin": _margin,
        "origin_given": lambda a, b: _weighted(a, variation_given(a, b)),
        "new_pairs": _new,
        "occupied_pairs": lambda a, b: _whole(len(b.far) / len(a.far)),
        "single_pairs": lambda a, b: _whole(_singles(b) - _singles(a)),
    }


def _whole(value: float) -> Measured:
    note = "" if np.isfinite(value) else "No pair has coordinates."
    return Measured(float(value), note=note)


def _difference(real: Trips, other: Trips, below: float, *, absolute: bool) -> Measured:
    """Mean over destinations of the difference of mean distances (figures 1 to 4 of the paper)."""
    mine, theirs = real.means(below), other.means(below)
    gap = theirs - mine
    on = np.flatnonzero(np.isfinite(gap))
    if len(on) == 0:
        return Measured(float("nan"), note="No destination has trips of both tables.")
    score = np.abs(gap) if absolute else gap
    value = float(score[on].mean())
    around = 1.96 * float(score[on].std(ddof=1)) / len(on) ** 0.5 if len(on) > 1 else np.inf
    sizes = real.totals[on]
    if absolute:
        detail = _by_size(sizes, gap[on], mine[on])
    else:
        pick = on[np.argsort(-sizes, kind="stable")]
        pick = pick[np.unique(np.linspace(0, len(pick) - 1, SHOWN).astype(int))]
        detail = [
            {"people": int(n), "real": round(float(a), 3), "synthetic": round(float(b), 3)}
            for n, a, b in zip(real.totals[pick], mine[pick], theirs[pick], strict=True)
        ]
    interval = (value - around, value + around) if np.isfinite(around) else None
    return Measured(value, interval, tuple(detail))


def _by_size(sizes: np.ndarray, gap: np.ndarray, mine: np.ndarray) -> list[dict[str, Any]]:
    rows = []
    for low, high in zip(SIZES, (*SIZES[1:], None), strict=True):
        on = (sizes >= low) & (sizes < high if high else True)
        if on.any():
            rows.append(
                {
                    "people": f"{low}+" if high is None else f"{low} to {high - 1}",
                    "destinations": int(on.sum()),
                    "real mean": round(float(mine[on].mean()), 3),
                    "bias": round(float(gap[on].mean()), 3),
                    "error": round(float(np.abs(gap[on]).mean()), 3),
                }
            )
    return rows


def _classes(real: Trips, other: Trips, cuts: tuple[float, float]) -> Measured:
    mine, theirs = real.shares(cuts), other.shares(cuts)
    words = (f"below {cuts[0]:.4g}", f"{cuts[0]:.4g} to {cuts[1]:.4g}", f"{cuts[1]:.4g} and more")
    detail = tuple(
        {"class": name, "miles": text, "real": float(a), "synthetic": float(b)}
        for name, text, a, b in zip(("short", "moderate", "long"), words, mine, theirs, strict=True)
    )
    return Measured(float(np.abs(mine - theirs).sum() / 2), detail=detail)


def _weighted(real: Trips, each: np.ndarray) -> Measured:
    on = np.isfinite(each)
    if not on.any():
        return Measured(float("nan"), note="No destination has people of both tables.")
    weight = real.totals[on]
    return Measured(float((weight * each[on]).sum() / weight.sum()))


def _margin(real: Trips, other: Trips) -> Measured:
    shares = [
        np.bincount(t.flows.origins, t.flows.counts, t.origins) / t.flows.records
        for t in (real, other)
    ]
    return Measured(float(np.abs(shares[0] - shares[1]).sum() / 2))


def _new(real: Trips, other: Trips) -> Measured:
    fresh = ~np.isin(other.pairs, real.pairs, assume_unique=True)
    return Measured(float(other.flows.counts[fresh].sum() / other.flows.records))


def _singles(trips: Trips) -> float:
    return float((trips.flows.counts == 1).mean())
