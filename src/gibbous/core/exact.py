"""Exact numbers for budgets: decimal text in, fractions through, rounding always against us."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

Number = int | float | Fraction | Decimal | str


def exact(value: Number) -> Fraction:
    """Read a budget as the decimal text it was written as.

    Args:
        value: 0.1, "0.1", Decimal("0.1") and Fraction(1, 10) all give exactly 1/10.
    Returns:
        The fraction.
    Raises:
        ValueError: the value is not a finite number.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not finite")
        return Fraction(repr(float(value)))
    if isinstance(value, str | Decimal):
        number = Decimal(value)
        if not number.is_finite():
            raise ValueError("not finite")
        return Fraction(number)
    return Fraction(value)


def up(value: float | Fraction, digits: int = 12) -> Fraction:
    """The next fraction at or above value, with a short denominator: for scales and thresholds."""
    return _rounded(value, digits, math.ceil)


def down(value: float | Fraction, digits: int = 12) -> Fraction:
    """The next fraction at or below value, with a short denominator: for budgets."""
    return _rounded(value, digits, math.floor)


def _rounded(value: float | Fraction, digits: int, toward: object) -> Fraction:
    number = Fraction(value)
    if number == 0:
        return number
    # Keep `digits` significant digits, whatever the magnitude.
    magnitude = math.floor(math.log10(abs(number.numerator)) - math.log10(number.denominator))
    unit = Fraction(10) ** (digits - 1 - magnitude)
    whole = math.ceil(number * unit) if toward is math.ceil else math.floor(number * unit)
    return Fraction(whole) / unit


def text(value: Fraction) -> str:
    """Exact text of a fraction: a decimal where one exists, else numerator/denominator."""
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    scale, number = 0, value
    while number.denominator != 1:
        number, scale = number * 10, scale + 1
    digits = str(abs(number.numerator)).rjust(scale + 1, "0")
    whole, rest = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    return ("-" if value < 0 else "") + whole + (f".{rest}" if rest else "")


def root_down(square: Fraction) -> Fraction:
    """A fraction at or below the square root: math.isqrt rounds down exactly.

    Args:
        square: >= 0.
    """
    unit = 10**18
    return Fraction(math.isqrt(int(square * unit * unit)), unit)
