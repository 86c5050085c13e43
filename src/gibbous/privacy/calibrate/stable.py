"""Stability thresholds: keep a noisy cell iff it exceeds t, and pay delta for the cells only one unit has.

Closed forms for continuous noise, and the prices of integer noise, which are what is charged.
Proofs: docs/proofs/stable.md.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.core.exact import Number
from gibbous.privacy.calibrate.gdp import delta_of, mu_squared_for, sigma_for, square_of_gaussian
from gibbous.privacy.calibrate.rounding import TINY, decimal, positive, price, probability
from gibbous.privacy.calibrate.scales import (
    gaussian_rho,
    gaussian_sigma,
    geometric_epsilon,
    geometric_scale,
    l2_squared,
)
from gibbous.privacy.calibrate.tails import gaussian_tail, geometric_tail_exact
from gibbous.privacy.calibrate.zcdp import delta_from_zcdp, rho_from_approx


@lru_cache(maxsize=512, typed=True)
def stable_geometric_cost(
    scale: Number,
    threshold: int,
    tables: int = 1,
    relation: Relation = "add_remove",
    max_rows: int = 1,
) -> tuple[Fraction, Fraction]:
    """Exact price of geometric noise kept iff noisy > threshold, on the cells that occur.

    epsilon = L1 / b. A unit with k rows can own, in each of p tables, cells that nobody else is in:
    with c rows in such a cell it is kept with q(c) = P(X > t - c). The chance that any is kept is
    largest with k cells of one row or one cell of k rows: delta = 1 - (1 - q)^p with
    1 - q = min((1 - q(1))^k, 1 - q(k)).

    Args:
        threshold: t, in counts.
    Returns:
        (epsilon, delta), delta rounded up.
    Raises:
        ParameterError: q(c) > 1 - e^(-c/b) for some c: an absent cell would cost more than c / b.
    """
    width = positive("scale", scale)
    epsilon = geometric_epsilon(width, tables, relation, max_rows)
    if not _within_regime(width, threshold, max_rows):
        raise refused_threshold(f"threshold {threshold} is too low for scale {float(width):g}")
    return epsilon, _geometric_delta(width, threshold, tables, max_rows)


@lru_cache(maxsize=512, typed=True)
def stable_geometric(
    epsilon: Number,
    delta: Number,
    tables: int = 1,
    relation: Relation = "add_remove",
    max_rows: int = 1,
) -> tuple[Fraction, int]:
    """Scale and smallest whole threshold whose exact price is within (epsilon, delta).

    Returns:
        (b, t); keep iff noisy > t.
    """
    goal = probability("delta", delta)
    scale = geometric_scale(epsilon, tables, relation, max_rows)

    def enough(threshold: int) -> bool:
        return (
            _within_regime(scale, threshold, max_rows)
            and _geometric_delta(scale, threshold, tables, max_rows) <= goal
        )

    return scale, smallest_whole(enough, max_rows)


@lru_cache(maxsize=512, typed=True)
def stable_gaussian_cost(
    sigma: Number,
    threshold: int,
    epsilon: Number,
    tables: int = 1,
    relation: Relation = "add_remove",
    max_rows: int = 1,
) -> Fraction:
    """Delta at epsilon of discrete Gaussian noise kept iff noisy > threshold, rounded up.

    delta = delta_1 + (1 + e^epsilon) d: delta_1 is that of the noise on the cells of both
    neighbors, by zCDP or by Gaussian DP, whichever is smaller (one release, whose noise is fixed), d =
    1 - (1 - P(X > t))^(p k) the chance that one of at most p k cells with count 0 would have been kept.
    """
    rho = gaussian_rho(sigma, tables, relation, max_rows)
    target = positive("epsilon", epsilon)
    noise, one = delta_from_zcdp(rho, target), square_of_gaussian(positive("sigma", sigma))
    if one is not None:
        noise = min(noise, delta_of(l2_squared(tables, relation, max_rows) * one, target))
    zero, cells = min(gaussian_tail(sigma, threshold), Fraction(1)), tables * max_rows
    with localcontext(Context(prec=400, Emin=-(10**9), Emax=10**9)):
        # Below 100 digits the union bound is as good, and loses nothing to cancellation.
        kept = cells * zero
        if kept > Fraction(1, 10**100):
            kept = Fraction(1 - (1 - decimal(zero)) ** cells)
        factor = Fraction(1 + decimal(target).exp())
    return min(Fraction(1), price(noise + kept * factor))


@lru_cache(maxsize=512, typed=True)
def stable_gaussian(
    epsilon: Number,
    delta: Number,
    tables: int = 1,
    relation: Relation = "add_remove",
    max_rows: int = 1,
    *,
    delta_noise: Number | None = None,
) -> tuple[Fraction, int]:
    """Sigma and smallest whole threshold whose exact price is within (epsilon, delta).

    Args:
        delta_noise: the part of delta that pays for the noise; half of it when None.
    Returns:
        (sigma, t); keep iff noisy > t.
    """
    goal = probability("delta", delta)
    part = goal / 2 if delta_noise is None else probability("delta_noise", delta_noise)
    if part >= goal:
        raise too_large_delta()
    target, squared = positive("epsilon", epsilon), l2_squared(tables, relation, max_rows)
    sigma = min(
        gaussian_sigma(rho_from_approx(target, part), tables, relation, max_rows),
        sigma_for(mu_squared_for(target, part), Fraction(squared)),
    )

    def enough(threshold: int) -> bool:
        return stable_gaussian_cost(sigma, threshold, epsilon, tables, relation, max_rows) <= goal

    return sigma, smallest_whole(enough, 0)


@lru_cache(maxsize=512, typed=True)
def new_cells_delta(sigma: Number, threshold: int, tables: int = 1, max_rows: int = 1) -> Fraction:
    """Probability that a cell of one unit alone is kept, by discrete Gaussian noise > threshold.

    In one table the unit's k rows lie in cells that nobody else is in, c of them in such a cell,
    which is kept with q(c) = P(X > t - c). q is convex up to c = t, so of all ways to split k rows
    the sum of q is largest with k cells of one row or one cell of k rows; tables add up.

    Returns:
        tables x max(k q(1), q(k)), rounded up; at most 1.
    Raises:
        ParameterError: the threshold is below max_rows.
    Source:
        docs/proofs/discovery.md.
    """
    if threshold < max_rows:
        raise refused_threshold(f"threshold {threshold} is below the {max_rows} rows of one unit")
    one, all_rows = (gaussian_tail(sigma, threshold - rows) for rows in (1, max_rows))
    return min(Fraction(1), price(tables * max(max_rows * one, all_rows)))


@lru_cache(maxsize=512, typed=True)
def new_cells_threshold(sigma: Number, delta: Number, tables: int = 1, max_rows: int = 1) -> int:
    """The smallest threshold with `new_cells_delta` <= delta."""
    goal = probability("delta", delta)
    return smallest_whole(lambda t: new_cells_delta(sigma, t, tables, max_rows) <= goal, max_rows)


def smallest_whole(holds: Callable[[int], bool], start: int) -> int:
    """The smallest whole number >= start at which an increasing condition holds."""
    step, high = 1, start
    while not holds(high):
        high, step = high + step, step * 2
    low = start - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _geometric_delta(scale: Fraction, threshold: int, tables: int, max_rows: int) -> Fraction:
    """1 - min((1 - q(1))^k, 1 - q(k))^p, rounded up."""
    single = geometric_tail_exact(scale, threshold - 1)
    whole = geometric_tail_exact(scale, threshold - max_rows)
    with localcontext(Context(prec=400, Emin=-(10**9), Emax=10**9)):
        spread = (1 - decimal(single)) ** max_rows
        stay: Decimal = min(spread, 1 - decimal(whole)) ** tables
        return min(Fraction(1), price(max(Fraction(1 - stay), TINY)))


def _within_regime(scale: Fraction, threshold: int, max_rows: int) -> bool:
    # -ln(1 - q(c)) - c / b is convex in c, so its ends decide.
    with localcontext(Context(prec=80)):
        return all(
            decimal(geometric_tail_exact(scale, threshold - rows))
            <= 1 - (-rows / decimal(scale)).exp()
            for rows in (1, max_rows)
        )


def too_large_delta() -> ParameterError:
    """The refusal of a delta that no threshold reaches."""
    return ParameterError(
        "DELTA",
        "delta is too large for a stability threshold with this epsilon.",
        "delta stays below about epsilon / 2 divided by the number of tables, and delta_noise below delta.",
        "Use delta well under one over the number of records, for example 1e-6.",
    )


def refused_threshold(wrong: str) -> ParameterError:
    """The refusal of a threshold that no proof here covers."""
    return ParameterError(
        "THRESHOLD",
        f"The stability threshold has no proof here: {wrong}.",
        "Cells of one unit may survive only with a small probability.",
        "Let the threshold be computed from epsilon and delta.",
    )
