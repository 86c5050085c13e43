"""Combining rules: what the sets say in, the variance of their mean out, in its parts.

Symbols: m sets of N rows each, made from n records; q_l and v_l are the estimate and its variance
in set l, computed as if its N rows were a sample; qbar = mean q_l, W = mean v_l, B = variance of
the q_l (divisor m - 1); V0 = W N / n is the sampling variance at n records; V_s is the variance of
the estimate due to the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rule = Literal["auto", "unified", "raghunathan2003", "reiter2003", "raab2016"]
Sanitized = Literal["once", "per_set"]
Draws = Literal["fitted", "posterior"]

RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Means and variances over the sets, one entry an estimate.

    Attributes:
        sets: m, the sets in which the estimate exists; float64 (estimates,).
        mean: qbar.
        within: W.
        between: B; NaN where m < 2.
    """

    sets: Floats
    mean: Floats
    within: Floats
    between: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Variance:
    """The variance of qbar, with the parts it is the sum of; float64 (estimates,) each.

    Attributes:
        total: T.
        df: degrees of freedom of T; infinite where T counts as known.
        sampling: because n records are a sample.
        synthesis: because m sets of N rows are finite.
        noise: because counts were noised; 0 where it cannot be told from the synthesis.
        floored: where a variance that was not positive has been replaced.
    """

    total: Floats
    df: Floats
    sampling: Floats
    synthesis: Floats
    noise: Floats
    floored: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Noise:
    """V_s, the variance of an estimate due to the noise, and how it was found.

    Attributes:
        variance: float64 (estimates,); NaN where it could not be found.
        df: degrees of freedom; infinite if it was computed from the published scale.
        notes: what to read with it.
        shift: by how much another round of noise moves the estimate to one side; None if not known.
        error: standard error of the variance, float64 (estimates,); None is what df says.
        rows: S, variance of the estimate over sets from the same tables, float64 (estimates,); None where
            rows are independent draws, for which W says it.
        rows_df: degrees of freedom of S.
    """

    variance: Floats
    df: float = math.inf
    source: str = "given"
    notes: tuple[str, ...] = ()
    shift: Floats | None = None
    error: Floats | None = None
    rows: Floats | None = None
    rows_df: float = math.inf


def spread(estimates: Floats, variances: Floats) -> Spread:
    """Means and variances over the sets.

    Args:
        estimates: q, float64 (sets, estimates); NaN where a set has no such estimate.
        variances: v, the same shape, >= 0.
    """
    known = np.isfinite(estimates) & np.isfinite(variances)
    sets = known.sum(axis=0).astype(np.float64)
    some = np.maximum(sets, 1)
    mean = np.where(known, estimates, 0.0).sum(axis=0) / some
    within = np.where(known, variances, 0.0).sum(axis=0) / some
    squares = np.where(known, (estimates - mean) ** 2, 0.0).sum(axis=0)
    between = np.where(sets >= 2, squares / np.maximum(sets - 1, 1), np.nan)
    none = sets == 0
    return Spread(sets, np.where(none, np.nan, mean), np.where(none, np.nan, within), between)


def unified(
    moments: Spread,
    ratio: float,
    noise: Noise,
    *,
    records: float,
    sanitized: Sanitized = "once",
    draws: Draws = "fitted",
) -> Variance:
    """T = V0 + V_s (1 or 1/m) + (ppd V0 + W) / m: any m >= 1, any N.

    Where rows are not independent draws, at most W of the noise's S stands in for W / m.

    Args:
        ratio: N / n.
        noise: V_s, of one noising; NaN counts as 0.
        records: n; what W says about one record has n - 1 degrees of freedom, or m (N - 1) if fewer.
        sanitized: "once" before all sets, or "per_set" (V_s then counts 1/m).
        draws: "posterior" (ppd = 1) if the parameters of each set were drawn, else "fitted".
    Source:
        docs/reference/combining-rules.md; with V_s = 0 it is raab2016.
    """
    m = np.maximum(moments.sets, 1)
    sampling = moments.within * ratio
    of_rows = moments.within if noise.rows is None else np.fmin(noise.rows, moments.within)
    synthesis = ((sampling if draws == "posterior" else 0.0) + of_rows) / m
    shared = np.ones_like(m) if sanitized == "once" else m
    added = np.broadcast_to(np.nan_to_num(noise.variance), m.shape) / shared
    known = sampling + synthesis
    parts: list[tuple[Floats, float | Floats]] = [(known, _of_within(m, ratio, records))]
    if noise.error is None:
        parts.append((added, noise.df))
    else:  # a variance V with d degrees of freedom has the standard error V (2 / d)^.5
        parts.append((np.nan_to_num(noise.error) / shared, 2.0))
    if noise.rows is not None:
        parts.append((of_rows / m, noise.rows_df))
    df = _welch(parts, known + added)
    return Variance(known + added, df, sampling, synthesis, added, np.zeros(m.shape, dtype=bool))


def unified_measured(
    moments: Spread, ratio: float, *, records: float, draws: Draws = "fitted"
) -> Variance:
    """T = V0 + B / m: the unified rule where only B shows what was drawn or noised for each set.

    E B = V_s + ppd V0 + W, whatever the noise and the way of drawing, if each set has its own. An
    estimate that a single set has takes ppd V0 + W for B, as if there were no noise.

    Args:
        ratio: N / n.
        records: n.
        draws: for estimates of a single set.
    """
    sampling, several = moments.within * ratio, moments.sets >= 2
    expected = (sampling if draws == "posterior" else 0.0) + moments.within
    synthesis = np.where(several, moments.between, expected) / np.maximum(moments.sets, 1)
    of_between = np.where(several, moments.sets - 1, np.inf)
    parts: list[tuple[Floats, float | Floats]] = [
        (sampling, _of_within(np.maximum(moments.sets, 1), ratio, records)),
        (synthesis, of_between),
    ]
    return _noiseless(sampling, synthesis, _welch(parts, sampling + synthesis))


def _of_within(sets: Floats, ratio: float, records: float) -> Floats:
    """Degrees of freedom of W: of the records, or of the rows of all sets where these are fewer."""
    return np.maximum(np.minimum(records - 1, sets * (ratio * records - 1)), 1.0)


def reiter2003(moments: Spread) -> Variance:
    """T_p = W + B / m, with (m - 1) (1 + m W / B)^2 degrees of freedom; m >= 2.

    Source:
        Reiter (2003), Survey Methodology 29; [bowen2016, eq. 8-10].
    """
    synthesis = moments.between / moments.sets
    df = (moments.sets - 1) * _squared(1 + _over(moments.within, synthesis))
    return _noiseless(moments.within, synthesis, df)


def raghunathan2003(moments: Spread, ratio: float) -> Variance:
    """T_f = (1 + 1/m) B - W, or T* = max(T_f, (N / n) W) where that is larger; m >= 2.

    T_f has (m - 1) (1 - W / ((1 + 1/m) B))^2 degrees of freedom; T* counts as known.

    Args:
        ratio: N / n; NaN leaves T_f as it is.
    Source:
        Raghunathan, Reiter, Rubin (2003), J. Official Statistics 19; [park2014].
    """
    larger = (1 + 1 / moments.sets) * moments.between
    total, least = larger - moments.within, moments.within * ratio
    floored = np.isfinite(least) & (total < least)
    df = np.where(floored, np.inf, (moments.sets - 1) * _squared(1 - _over(moments.within, larger)))
    total = np.where(floored, least, total)
    synthesis = np.minimum(moments.between / moments.sets, np.maximum(total, 0))
    synthesis = np.where(floored, 0.0, synthesis)
    return Variance(total, df, total - synthesis, synthesis, np.zeros_like(total), floored)


def raab2016(moments: Spread, ratio: float, *, draws: Draws = "fitted") -> Variance:
    """T_s = W (N/n + 1/m), and W (N/n + (1 + N/n) / m) for posterior draws; m >= 1.

    Source:
        Raab, Nowok, Dibben (2016), J. Privacy and Confidentiality 7(3).
    """
    sampling = moments.within * ratio
    synthesis = ((sampling if draws == "posterior" else 0.0) + moments.within) / moments.sets
    return _noiseless(sampling, synthesis, np.full_like(sampling, np.inf))


def _noiseless(sampling: Floats, synthesis: Floats, df: Floats) -> Variance:
    never = np.zeros(sampling.shape, dtype=bool)
    return Variance(sampling + synthesis, df, sampling, synthesis, 0 * sampling, never)


def _welch(parts: Sequence[tuple[Floats, float | Floats]], total: Floats) -> Floats:
    """Degrees of freedom of a sum of variances [Satterthwaite 1946]; infinite parts do not count."""
    loss = sum((part**2 / df for part, df in parts), start=np.zeros_like(total))
    return _over(total**2, loss)


def _over(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, infinite where bottom is 0; NaN stays."""
    out = np.full_like(bottom, np.inf)
    return np.divide(top, bottom, out=out, where=bottom != 0)


def _squared(value: Floats) -> Floats:
    with np.errstate(over="ignore"):  # sets that are almost equal: infinite is right
        return value**2
