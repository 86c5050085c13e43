"""Pure DP, zero-concentrated DP and (epsilon, delta)-DP: proven conversions, rounded against us."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from gibbous.core.exact import Number
from gibbous.privacy.calibrate.rounding import (
    float_up,
    largest,
    positive,
    precise,
    price,
    probability,
    smallest,
)


def pure_to_zcdp(epsilon: Number) -> Fraction:
    """Rho of an epsilon-DP mechanism: epsilon tanh(epsilon / 2), at most epsilon^2 / 2.

    Source:
        Attained by randomized response; [Bun, Steinke 2016, prop. 3.3] gives epsilon^2 / 2.
    """
    number = positive("epsilon", epsilon)
    if number > 2000:  # tanh is 1 to 800 digits
        return number
    # tanh(x / 2) = 1 - 2 / (e^x + 1) loses digits near 0: expm1 keeps them.
    return price(precise(lambda x: x * (x.exp() - 1) / (x.exp() + 1), number))


def range_to_zcdp(epsilon: Number) -> Fraction:
    """Rho of an epsilon-bounded-range mechanism (exponential mechanism, one PeGS draw): epsilon^2 / 8.

    Source:
        [Cesar, Rogers 2021, lemma 3.4].
    """
    number = positive("epsilon", epsilon)
    return number * number / 8


@lru_cache(maxsize=512, typed=True)
def delta_from_zcdp(rho: Number, epsilon: Number) -> Fraction:
    """The smallest delta known for rho-zCDP at epsilon, rounded up; at most 1.

    delta = min over a > 1 of exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1).

    Source:
        [Canonne, Kamath, Steinke 2020, cor. 13].
    """
    rate, target = float(positive("rho", rho)), float(positive("epsilon", epsilon))
    # Any a > 1 gives a valid bound, so float error in finding the best one costs only tightness.
    exponent, size = _log_delta(rate, target, _best_order(rate, target))
    if exponent >= 0:
        return Fraction(1)
    return min(Fraction(1), float_up(math.exp(exponent), 1e-13 * (10 + size)))


@lru_cache(maxsize=512, typed=True)
def epsilon_from_zcdp(rho: Number, delta: Number) -> Fraction:
    """The smallest epsilon with delta_from_zcdp(rho, epsilon) <= delta, rounded up; 0 for tiny rho.

    rho bounds the Kullback-Leibler divergence, so total variation is at most sqrt(rho / 2)
    (Pinsker): from there down, the release is (0, delta)-DP.
    """
    rate, goal = positive("rho", rho), probability("delta", delta)
    if rate <= 2 * goal * goal:
        return Fraction(0)
    # rho + 2 sqrt(rho ln(1/delta)) always suffices [Bun, Steinke 2016, prop. 1.3].
    bound = float(rate) + 2 * math.sqrt(float(rate) * -math.log(float(goal)))
    return smallest(
        lambda epsilon: epsilon > 0 and delta_from_zcdp(rate, epsilon) <= goal,
        Fraction(0),
        Fraction(bound) * Fraction(101, 100),
    )


@lru_cache(maxsize=512, typed=True)
def rho_from_approx(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho whose zCDP implies (epsilon, delta)-DP, rounded down.

    Guarantee:
        delta_from_zcdp(rho, epsilon) <= delta. For (1, 1e-6) it is 0.024356.
    """
    target, goal = positive("epsilon", epsilon), probability("delta", delta)
    return largest(lambda rho: delta_from_zcdp(rho, target) <= goal, Fraction(0), target)


def _log_delta(rho: float, epsilon: float, order: float) -> tuple[float, float]:
    """Logarithm of the bound at one order, and the size of the terms that made it."""
    minus = order - 1.0
    terms = (minus * order * rho, -minus * epsilon, order * _log_share(minus), -math.log(minus))
    return math.fsum(terms), sum(map(abs, terms))


def _best_order(rho: float, epsilon: float) -> float:
    """The root in a of (2 a - 1) rho - epsilon + ln(1 - 1/a), which increases with a."""
    low, high = math.log(1e-12), math.log(1e20)  # of a - 1
    for _ in range(80):
        middle = (low + high) / 2
        minus = math.exp(middle)
        if (2 * minus + 1) * rho - epsilon + _log_share(minus) < 0:
            low = middle
        else:
            high = middle
    return 1.0 + math.exp(low)


def _log_share(minus: float) -> float:
    """ln(1 - 1/a) from a - 1, without cancellation at either end."""
    return -math.log1p(1.0 / minus)
