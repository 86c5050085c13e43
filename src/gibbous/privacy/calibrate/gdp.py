"""Gaussian differential privacy (GDP): mu of noise and choices, and what a mu says; rounded against us.

A release is mu-GDP when telling two neighbors apart is at least as hard as telling N(0, 1) from
N(mu, 1). Squares of mu add up, so squares are what is stored. Proofs: docs/proofs/gaussian.md.
The definition and the closed forms of epsilon and delta are those of [Dong, Roth, Su 2022].
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from gibbous.core.claim import Claim, Measure, gdp, pure, zcdp
from gibbous.core.errors import ParameterError
from gibbous.core.exact import Number, down, exact
from gibbous.privacy.calibrate.rounding import (
    TINY,
    decimal,
    dyadic_up,
    exp,
    largest,
    positive,
    price,
    probability,
    smallest,
)
from gibbous.privacy.calibrate.scales import dyadic_root_up
from gibbous.privacy.calibrate.zcdp import rho_from_approx

LEAST_SIGMA = Fraction(1, 2)
"""Below, mu is over 1.24 / sigma and zCDP is the account to take."""

_REST = Fraction(44763, 10**8)  # of the series of c, above its value at sigma = 1
_FAR = 38  # standard deviations; P(Z > 38) < 1e-300
_WIDE = 20  # mu from which the second term of delta is left out
_SLACK = Fraction(1, 10**45)  # beyond the error of what is known to 1e-50 of itself


@lru_cache(maxsize=512, typed=True)
def square_of_gaussian(sigma: Number) -> Fraction | None:
    """mu^2 of one count plus discrete Gaussian noise, the count changing by 1; rounded up.

    mu = 2 q((1 + P(X = 0)) / 2), q the normal quantile, and no smaller mu will do. It is
    (1 + c) / sigma with c near 1 / (24 sigma^2). Counts that change by L2 in the Euclidean norm
    cost L2^2 times as much.

    Args:
        sigma: in counts, as it is drawn.
    Returns:
        mu^2, with a c at most two parts in 10,000 too large; None for sigma < 1/2.
    Guarantee:
        mu-GDP. Basis: proven (docs/proofs/gaussian.md).
    """
    s = 1 / positive("sigma", sigma) ** 2
    if s > 1 / LEAST_SIGMA**2:
        return None
    t = min(s, Fraction(1))
    c = t * (Fraction(1, 24) + t * (Fraction(7, 1920) + t * _REST))
    series = price(t * (1 + c) ** 2)
    if s <= 1:
        return series
    # Never below the series at 1, so that the price falls as sigma grows.
    return max(series, _square_between((1 - 1 / _gaussian_sum(s)) / 2))


def square_of_choice(epsilon: Number) -> Fraction:
    """mu^2 of a choice whose log-ratio has range at most epsilon; rounded up.

    mu = 2 q(1 / (1 + e^(-epsilon / 2))), at most 0.6267 epsilon, and no smaller mu will do. An
    epsilon-DP release has range 2 epsilon.

    Guarantee:
        mu-GDP. Basis: proven (docs/proofs/gaussian.md).
    """
    spread = positive("epsilon", epsilon)
    if spread > 1000:
        return 4 * spread  # P(Z > z) <= e^(-z^2 / 2) / 2
    return _square_between(1 / (1 + exp(spread / 2)))


def choice_price(epsilon: Number, measure: Measure) -> Claim:
    """The price of one choice by the exponential mechanism.

    Args:
        epsilon: nats, > 0: P is proportional to exp(epsilon * score / (2 * sensitivity)).
        measure: "pure" is epsilon; "zcdp" epsilon^2 / 8, and "gdp" the mu^2 of the worst law of two
            points (both by bounded range).
    """
    if measure == "gdp":
        return gdp(square_of_choice(epsilon))
    if measure == "zcdp":
        return zcdp(exact(epsilon) ** 2 / 8)
    if measure == "pure":
        return pure(exact(epsilon))
    raise ValueError("measure is 'pure', 'zcdp' or 'gdp'")


@lru_cache(maxsize=512, typed=True)
def delta_of(mu_squared: Number, epsilon: Number) -> Fraction:
    """The smallest delta of mu-GDP at epsilon >= 0, rounded up; at epsilon = 0 the attack's advantage.

    delta = P(Z > a) - e^epsilon P(Z > a + mu), a = epsilon / mu - mu / 2. From mu = 20 on the
    second term is left out.
    """
    target = Fraction(0) if epsilon == 0 else positive("epsilon", epsilon)
    return _delta(positive("mu_squared", mu_squared), target)


@lru_cache(maxsize=512, typed=True)
def epsilon_of(mu_squared: Number, delta: Number) -> Fraction:
    """The smallest epsilon of mu-GDP at delta, rounded up; 0 where delta covers the advantage."""
    square, goal = positive("mu_squared", mu_squared), probability("delta", delta)
    if _delta(square, Fraction(0)) <= goal:
        return Fraction(0)
    # P(Z > a) <= e^(-a^2 / 2) puts epsilon below mu^2 / 2 + mu sqrt(2 ln(1 / delta)).
    size = max(float(square), 1e-300)
    high = Fraction(1.01 * (size / 2 + math.sqrt(2 * size * -math.log(float(goal)))))
    return smallest(lambda epsilon: _delta(square, epsilon) <= goal, Fraction(0), high)


@lru_cache(maxsize=512, typed=True)
def mu_squared_for(epsilon: Number, delta: Number) -> Fraction:
    """The largest mu^2 whose GDP implies (epsilon, delta)-DP, rounded down.

    Guarantee:
        delta_of(mu^2, epsilon) <= delta.
    """
    target, goal = positive("epsilon", epsilon), probability("delta", delta)
    low = 2 * rho_from_approx(target, goal)  # mu-GDP is mu^2 / 2-zCDP, so this fits
    high = 2 * low
    while _delta(high, target) <= goal:
        high = 2 * high
    return largest(lambda square: _delta(square, target) <= goal, low, high)


@lru_cache(maxsize=512, typed=True)
def sigma_for(mu_squared: Number, squared_shift: Number) -> Fraction:
    """Smallest sigma of discrete Gaussian noise within a budget, in 32 binary digits; at least 1/2.

    Args:
        mu_squared: for all counts together.
        squared_shift: L2^2, the largest squared Euclidean change of the counts.
    Guarantee:
        squared_shift * square_of_gaussian(sigma) <= mu_squared, exactly.
    """
    goal = positive("mu_squared", mu_squared) / positive("squared_shift", squared_shift)

    def fits(sigma: Fraction) -> bool:
        one = square_of_gaussian(sigma)
        return one is not None and one <= goal

    if fits(LEAST_SIGMA):
        return LEAST_SIGMA
    low = max(dyadic_root_up(1 / goal), LEAST_SIGMA)
    return dyadic_up(smallest(fits, low, low * Fraction(5, 4)))


def rate_at(mu_squared: Number, false_positives: Number) -> float:
    """The largest share of true positives of an attack with that share of false ones, rounded up."""
    share = probability("false_positives", false_positives)
    with localcontext(Context(prec=400)):
        reach = _quantile(share) + decimal(positive("mu_squared", mu_squared)).sqrt()
        rate = _cdf(min(reach, Decimal(_FAR)))
    return min(1.0, math.nextafter(float(rate), math.inf))


def mu_squared_for_rate(true_positives: Number, false_positives: Number) -> Fraction:
    """The largest mu^2 under which no attack has both rates, rounded down.

    ParameterError where the first rate is not above the second, which guessing reaches.
    """
    high = probability("true_positives", true_positives)
    low = probability("false_positives", false_positives)
    if high <= low:
        raise ParameterError(
            "RATE",
            f"The rate of true positives is {float(high):g} at {float(low):g} false ones.",
            "Guessing has equal rates, so the first is above the second and below 1.",
            "For example 3 % true positives at 1 % false ones.",
        )
    with localcontext(Context(prec=400)):
        root = max(Fraction(_quantile(high) - _quantile(low)) - _SLACK, Fraction(0))
    return down(root * root, 24)


def _square_between(tail: Fraction) -> Fraction:
    """(2 z)^2 with P(Z > z) = tail, rounded up."""
    root = Fraction(2 * _quantile(tail))
    return price(root * root * (1 + 4 * _SLACK))


def _gaussian_sum(s: Fraction) -> Fraction:
    """The sum of e^(-s k^2 / 2) over the integers, rounded down; s >= 1."""
    return 1 + 2 * sum((exp(-s * k * k / 2) for k in range(1, 20)), -_SLACK)


def _delta(square: Fraction, epsilon: Fraction) -> Fraction:
    with localcontext(Context(prec=40, Emin=-(10**9), Emax=10**9)):
        root = decimal(square).sqrt()
        start = decimal(epsilon) / root - root / 2
        if start > _FAR:
            return TINY
        if start < -_FAR:
            return Fraction(1)
        end = start + root if root < _WIDE else start
        # Both tails in as many digits as the smaller lacks, and those that their difference loses.
        digits = 80 + int(max(start * start, end * end) / 4) + max(0, -root.adjusted())
    with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
        root = decimal(square).sqrt()
        start = decimal(epsilon) / root - root / 2
        found = _cdf(-start)
        if root < _WIDE:
            found -= decimal(epsilon).exp() * _cdf(-start - root)
    return max(TINY, min(Fraction(1), price(Fraction(found))))


def _quantile(share: Fraction) -> Decimal:
    """z with P(Z <= z) = share, to 50 digits.

    Newton's steps from the float64 value; both sides are checked, so the steps need no proof.
    """
    tail = min(share, 1 - share)
    if tail == Fraction(1, 2):
        return Decimal(0)
    size = (tail.denominator // tail.numerator).bit_length()
    middle = math.ceil(1 / (Fraction(1, 2) - tail)).bit_length()
    with localcontext(Context(prec=80 + (size + middle) // 3, Emin=-(10**9), Emax=10**9)):
        goal = decimal(tail)
        found = Decimal(NormalDist().inv_cdf(float(tail)))
        for _ in range(12):
            step = (_cdf(found) - goal) / _density(found)
            found -= step
            if abs(step) < abs(found).scaleb(-60):
                break
        near, far = (found * (1 + sign * Decimal(10) ** -50) for sign in (-1, 1))
        assert _cdf(far) < goal < _cdf(near)
        return found if share == tail else -found


def _cdf(x: Decimal) -> Decimal:
    """P(Z <= x); the absolute error is below 1e6 units of the context's last place for |x| < 60.

    1/2 + density (x + x^3 / 3 + x^5 / (3 5) + ...): at most 1e4 terms of one sign, summed in whole
    units, each two roundings away from its share of the one before.
    """
    bits = getcontext().prec * 10 // 3 + 4
    term = total = int(abs(x) * (1 << bits))
    square, odd = term * term >> bits, 1
    while term:
        odd += 2
        term = (term * square >> bits) // odd
        total += term
    half: Decimal = Decimal(total) / (1 << bits) * _density(x)
    return Decimal("0.5") + half.copy_sign(x)


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / _root_two_pi(getcontext().prec)


@lru_cache(maxsize=512)
def _root_two_pi(digits: int) -> Decimal:
    """The square root of 2 pi, by the arithmetic-geometric mean of Gauss, Brent and Salamin."""
    with localcontext(Context(prec=digits + 10)):
        a, b, t, weight = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        for _ in range(digits.bit_length() + 1):  # digits double
            a, b, before = (a + b) / 2, (a * b).sqrt(), a
            t -= weight * (before - a) ** 2
            weight *= 2
        return ((a + b) ** 2 / (2 * t)).sqrt()
