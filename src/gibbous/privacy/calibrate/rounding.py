"""Elementary functions of exact fractions, rounded in the stated direction.

Everything that becomes a price, a scale or a threshold goes through here. Values are computed in
50 to 900 decimal digits and then moved by far more than their error, against us.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from gibbous.core.errors import ParameterError
from gibbous.core.exact import Number, down, exact, up

DIGITS = 24
"""Significant digits of a price."""

TINY = Fraction(1, 10**300)
"""The smallest delta or rho that is ever stated; a positive one never rounds to zero."""

LEAST_DELTA = Fraction(1, 10**290)
"""The smallest probability that may be asked for: below, float64 tails have no digits left."""


def decimal(value: Fraction) -> Decimal:
    """A fraction in the current decimal context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def precise(function: Callable[[Decimal], Decimal], value: Fraction) -> Fraction:
    """A function evaluated in 60 digits beyond the magnitude of its argument."""
    size = abs(value.numerator.bit_length() - value.denominator.bit_length()) // 3
    with localcontext(Context(prec=60 + size, Emin=-(10**9), Emax=10**9)):
        return Fraction(function(decimal(value)))


def exp(value: Fraction) -> Fraction:
    """e^value to 60 digits."""
    return precise(lambda x: x.exp(), value)


def exp_down(value: Fraction) -> Fraction:
    """e^value, rounded down to 40 digits."""
    return down(exp(value) * (1 - Fraction(1, 10**50)), 40)


def log1p(value: Fraction) -> Fraction:
    """ln(1 + value), as accurate for tiny values as for large ones."""
    return precise(lambda x: (1 + x).ln(), value)


def expm1(value: Fraction) -> Fraction:
    """e^value - 1, as accurate for tiny values as for large ones."""
    return precise(lambda x: x.exp() - 1, value)


def geometric_sum(value: Fraction, terms: int) -> Fraction:
    """1 + e^value + ... + e^((terms - 1) value), rounded up; value >= 0."""
    if value == 0 or terms == 1:
        return Fraction(terms)
    return price(precise(lambda x: ((x * terms).exp() - 1) / (x.exp() - 1), value))


def price(value: Fraction) -> Fraction:
    """A price known to 50 digits, rounded up to 24."""
    return up(value * (1 + Fraction(1, 10**50)), DIGITS)


def dyadic_up(value: Fraction, bits: int = 32) -> Fraction:
    """The next number at or above value with at most `bits` binary digits: a float64 holds it exactly."""
    shift = bits - (value.numerator.bit_length() - value.denominator.bit_length())
    unit = Fraction(2) ** shift
    return Fraction(math.ceil(value * unit)) / unit


def float_up(value: float, relative: float = 1e-12) -> Fraction:
    """A float64 result with known relative error, as a price: rounded up, never zero."""
    return max(up(Fraction(value) * (1 + Fraction(relative)), 15), TINY)


def positive(name: str, value: Number) -> Fraction:
    """A budget that must be > 0 and finite; else ParameterError."""
    try:
        number = exact(value)
    except (ValueError, TypeError, ArithmeticError):
        number = Fraction(0)
    if number <= 0:
        raise ParameterError(
            "PARAM", f"{name} is {value!s}.", f"{name} is > 0 and finite.", f"For example {name}=1."
        )
    return number


def probability(name: str, value: Number) -> Fraction:
    """A probability of at least 1e-290 and below 1; else ParameterError."""
    number = positive(name, value)
    if not LEAST_DELTA <= number < 1:
        raise ParameterError(
            "PARAM",
            f"{name} is {value!s}.",
            f"{name} is >= 1e-290 and < 1, and should be far below one over the number of records.",
            f"For example {name}=1e-6.",
        )
    return number


def largest(
    holds: Callable[[Fraction], bool], low: Fraction, high: Fraction, digits: int = 14
) -> Fraction:
    """The largest value in [low, high] with few digits at which a decreasing condition holds.

    Args:
        holds: true at low; once false, false for all larger values.
        digits: relative resolution.
    """
    while high - low > low / 10**digits:
        middle = (low + high) / 2 if low > 0 and high < 4 * low else _geometric_mean(low, high)
        if holds(middle):
            low = middle
        else:
            high = middle
    short = down(low, digits)
    return short if holds(short) else low


def smallest(
    holds: Callable[[Fraction], bool], low: Fraction, high: Fraction, digits: int = 14
) -> Fraction:
    """The smallest value in [low, high] with few digits at which an increasing condition holds.

    From low = 0 the search ends at high / 10**30, should the condition still hold there.
    """
    if low == 0 and holds(least := high / 10**30):
        return least
    while high - low > high / 10**digits:
        middle = (low + high) / 2 if low > 0 and high < 4 * low else _geometric_mean(low, high)
        if holds(middle):
            high = middle
        else:
            low = middle
    short = up(high, digits)
    return short if holds(short) else high


def _geometric_mean(low: Fraction, high: Fraction) -> Fraction:
    low = low if low > 0 else high / 10**30
    return Fraction(math.exp((math.log(low) + math.log(high)) / 2))
