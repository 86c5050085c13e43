"""Estimates and variances of each set in, one estimate with its variance out: the rule and its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gibbous.core.boundary import guarded
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.release import Release
from gibbous.evaluation.inference import combining_rules
from gibbous.evaluation.inference.combined_estimate import Combined
from gibbous.evaluation.inference.combining_rules import (
    Draws,
    Floats,
    Noise,
    Rule,
    Sanitized,
    Spread,
    Variance,
)
from gibbous.evaluation.inference.release_facts import CLUSTERS, Facts, checked_size, facts_of
from gibbous.evaluation.inference.rule_choice import check, chosen, remarks


class Described(Protocol):
    """Something that knows how its sets were made, as `Analysis` does."""

    @property
    def facts(self) -> Facts:
        """The facts."""
        ...


@guarded
def combine(
    estimates: npt.ArrayLike,
    variances: npt.ArrayLike,
    *,
    release: Release | Described | Facts | None = None,
    rule: Rule = "auto",
    rows: float | None = None,
    records: float | None = None,
    noise_variance: npt.ArrayLike | Noise | None = None,
    level: float = 0.95,
    sanitized: Sanitized | None = None,
    draws: Draws | None = None,
    names: Sequence[str] = (),
) -> Combined:
    """Combine the estimates of several synthetic sets.

    Args:
        estimates: one a set, (sets,) or (sets, estimates); a set does not count for one that is not
            finite, or has such a variance.
        variances: of the estimates, the same shape, computed in each set as if its rows were a
            sample of the population.
        release: where the sets are from, a Release or an Analysis: m, N, n and where the noise went
            are read off it.
        rule: "auto" takes the unified rule with what the release says of itself.
        rows: N, rows of a set; read off the release if None.
        records: n, records behind the sets; read off the release (noisy) if None.
        noise_variance: V_s, variance of the estimate due to the noise, a finite number or one an
            estimate, NaN where it is not known; `Analysis.combine` and `Analysis.noise_variance` compute it.
        level: of the interval.
        sanitized: "once" or "per_set"; read off the release if None.
        draws: "posterior" if the parameters of each set were drawn from a posterior.
        names: of the estimates.
    Returns:
        Estimates with intervals, the rule and its reason, and shares of the variance.
    Raises:
        UsageError: shapes or numbers do not fit, a rule needs two sets, or N and n are unknown.
    Source:
        docs/reference/combining-rules.md.
    """
    q, v, shape = _arrays(estimates, variances)
    facts = _stated(_facts(release, records, len(q)), rows, records, sanitized, draws)
    noise = _noise(noise_variance, q.shape[1])
    check(rule, level, len(q), facts)
    _check_names(names, q.shape[1])
    moments = combining_rules.spread(q, v)
    variance, used, why = chosen(moments, rule, facts, noise)
    said = remarks(moments, used, facts, noise, variance, sets=len(q))
    return Combined(
        **_intervals(moments, variance, level, shape),
        level=level,
        rule=used,
        why=why,
        rows=facts.rows,
        records=facts.records,
        names=tuple(names),
        warnings=(*said, *facts.biases),
    )


def direct(
    estimate: Floats,
    sampling: Floats,
    noise: Noise,
    *,
    facts: Facts,
    level: float,
    names: Sequence[str] = (),
) -> Combined:
    """An estimate read off the released tables, without any rows: T = V0 + V_s, float64 (estimates,)."""
    zero = np.zeros_like(estimate)
    moments = Spread(np.full_like(estimate, np.inf), estimate, sampling, zero)
    variance = combining_rules.unified(moments, 1.0, noise, records=facts.records or np.inf)
    why = (
        "The table itself was released: its noisy counts are unbiased, and rows drawn from it would "
        f"only add to their variance: T = V0 + V_s; n = {facts.records:,.0f} ({facts.records_from}). "
        f"V_s: {noise.source}."
    )
    return Combined(
        **_intervals(moments, variance, level, estimate.shape),
        level=level,
        rule="released table",
        why=why,
        rows=facts.rows,
        records=facts.records,
        names=tuple(names),
        warnings=(*noise.notes, *(text for text in facts.biases if text.startswith(CLUSTERS))),
    )


def _intervals(
    moments: Spread, variance: Variance, level: float, shape: tuple[int, ...]
) -> dict[str, Floats]:
    quantile = need("scipy.special", "evaluate").stdtrit
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.where(moments.sets == 0, np.nan, np.sqrt(variance.total))
        half = quantile(np.maximum(variance.df, 1e-3), 0.5 + level / 2) * se
        parts = {
            name: np.where(variance.total > 0, getattr(variance, name) / variance.total, np.nan)
            for name in ("sampling", "synthesis", "noise")
        }
    arrays = {
        "estimate": moments.mean,
        "se": se,
        "df": variance.df,
        "low": moments.mean - half,
        "high": moments.mean + half,
        "sets": moments.sets,
    }
    return {name: array.reshape(shape) for name, array in (arrays | parts).items()}


def _facts(release: Release | Described | Facts | None, records: float | None, sets: int) -> Facts:
    if isinstance(release, Release):
        facts = facts_of(release, records)
    elif isinstance(release, Facts) or release is None:
        facts = release or Facts()
    else:
        facts = release.facts
    if facts.sets is not None and facts.sets != sets:
        raise UsageError(
            "SETS",
            f"Estimates of {sets} sets were given, and the release has {facts.sets}.",
            "One row a set: (sets,) or (sets, estimates).",
            "Transpose the array, or leave release out and give rows, records and noise_variance.",
        )
    return facts


def _stated(
    facts: Facts,
    rows: float | None,
    records: float | None,
    sanitized: Sanitized | None,
    draws: Draws | None,
) -> Facts:
    if sanitized not in (None, "once", "per_set") or draws not in (None, "fitted", "posterior"):
        raise UsageError(
            "DRAWN",
            "It is not known how the sets were drawn.",
            "sanitized is 'once' or 'per_set'; draws is 'fitted' or 'posterior'.",
            "Correct them, or leave them out.",
        )
    given = {
        "rows": checked_size("rows", rows),
        "records": checked_size("records", records),
        "sanitized": sanitized,
        "draws": draws,
        "records_from": None if records is None else "given",
    }
    return replace(facts, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]


def _check_names(names: Sequence[str], count: int) -> None:
    if names and len(names) != count:
        raise UsageError(
            "NAMES",
            f"{len(names)} names were given for {count} estimates.",
            "One name an estimate.",
            "Correct names.",
        )


def _noise(given: npt.ArrayLike | Noise | None, count: int) -> Noise | None:
    if given is None:
        return None
    noise = given if isinstance(given, Noise) else Noise(_floats(given))
    odd = (noise.variance < 0) | np.isinf(noise.variance)
    if noise.variance.size not in (1, count) or odd.any():
        raise UsageError(
            "NOISE",
            f"{noise.variance.size} noise variances were given for {count} estimates.",
            "One finite number >= 0, or one an estimate; NaN where it is not known.",
            "Correct noise_variance.",
        )
    return replace(noise, variance=np.broadcast_to(noise.variance.reshape(-1), (count,)))


def _floats(given: npt.ArrayLike) -> Floats:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            "ESTIMATES", "Estimates or variances are not numbers.", _SHAPES, "Correct them."
        ) from None


def _arrays(
    estimates: npt.ArrayLike, variances: npt.ArrayLike
) -> tuple[Floats, Floats, tuple[int, ...]]:
    """(sets, estimates) twice, and the shape of one set's estimates."""
    q, v = _floats(estimates), _floats(variances)
    if q.shape != v.shape or q.ndim not in (1, 2) or q.size == 0:
        raise UsageError(
            "ESTIMATES",
            f"Estimates have the shape {q.shape}, variances {v.shape}.",
            _SHAPES,
            "Correct them.",
        )
    if (v < 0).any():
        raise UsageError(
            "VARIANCES",
            "A variance is negative.",
            "Variances are >= 0: the squares of standard errors.",
            "Correct variances.",
        )
    return q.reshape(len(q), -1), v.reshape(len(v), -1), q.shape[1:]


_SHAPES = "Estimates and their variances have the shape (sets,) or (sets, estimates)."
