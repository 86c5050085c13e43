"""Estimates of simulated releases in, their intervals out, and how good both are over the repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gibbous.core.extras import need
from gibbous.evaluation.inference import combining_rules
from gibbous.studies.study_parts import Row, rounded

Floats = npt.NDArray[np.float64]
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """Estimates and half widths of their intervals, one a repeat: float64 (repeats,) each.

    A repeat whose variance is 0 has no interval: it is not usable [bowen2016, table 1 of the
    supplement].
    """

    estimate: Floats
    half: Floats

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which repeats have an interval."""
        return np.isfinite(self.estimate) & np.isfinite(self.half) & (self.half > 0)


def single(q: Floats, v: Floats, *, df: float = np.inf) -> Inferred:
    """One set: q plus and minus the quantile (of t, or normal) times sqrt(v), float64 (repeats,)."""
    return Inferred(q, _quantile(np.full_like(v, df)) * np.sqrt(v))


def several(q: Floats, v: Floats, *, noise: float | Floats = 0.0) -> Inferred:
    """Several sets: T = W + B/m + V_s with Reiter's degrees of freedom.

    Args:
        q, v: float64 (sets, repeats); NaN where a set has no such estimate.
        noise: V_s, variance of the estimate due to noise that all sets share; 0 where each set has
            its own, because B then shows it.
    Source:
        [bowen2016, eq. 8-10] (reiter2003); docs/reference/combining-rules.md for V_s.
    """
    spread = combining_rules.spread(q, v)
    variance = combining_rules.reiter2003(spread)
    return Inferred(spread.mean, _quantile(variance.df) * np.sqrt(variance.total + noise))


def scored(inferred: Inferred, truth: float) -> dict[str, Any]:
    """Bias, RMSE, coverage and mean width over the usable repeats, with Monte Carlo errors.

    Returns:
        bias, bias_se, rmse, coverage, coverage_se, width and usable (share of the repeats); None
        where no repeat is usable.
    """
    usable = inferred.usable
    count = int(usable.sum())
    share = count / usable.size
    if not count:
        names = ("bias", "bias_se", "rmse", "coverage", "coverage_se", "width")
        return dict.fromkeys(names) | {"usable": share}
    error, half = inferred.estimate[usable] - truth, inferred.half[usable]
    coverage = float(np.mean(np.abs(error) <= half))
    return {
        "bias": float(error.mean()),
        "bias_se": float(error.std() / np.sqrt(count)),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "coverage": coverage,
        "coverage_se": float(np.sqrt(max(coverage * (1 - coverage), 1 / count) / count)),
        "width": float(2 * half.mean()),
        "usable": share,
    }


def by_budget(
    rows: Sequence[Row], keys: Sequence[str], measure: str
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """A table of a measure: its headers and lines, a line a combination of the keys, a column a budget."""
    budgets = budgets_of(rows)
    groups: dict[tuple[Any, ...], dict[int, Any]] = {}
    for row in rows:
        group = groups.setdefault(tuple(row[key] for key in keys), {})
        group[row["ln_epsilon"]] = row[measure]
    lines = ((*key, *(rounded(of.get(b)) for b in budgets)) for key, of in groups.items())
    return (*keys, *(f"e^{b}" for b in budgets)), tuple(lines)


def budgets_of(rows: Sequence[Row]) -> list[int]:
    """The logarithms of epsilon that tables show: the even ones where there are many."""
    every = sorted({row["ln_epsilon"] for row in rows})
    return [b for b in every if b % 2 == 0] if len(every) > 6 else every


def _quantile(df: Floats) -> Floats:
    special = need("scipy.special", "evaluate")
    at = (1 + LEVEL) / 2
    known = np.where(np.isfinite(df), np.minimum(df, 1e10), 1e10)
    return np.where(df > 0, special.stdtrit(np.maximum(known, 1e-3), at), np.nan)
