"""Exact numbers for budgets: decimal text in, fractions through, rounding always against us."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from gibbous.core.errors import ParameterError

DIGITS, EXPONENT = 100, 400  # of a budget: those of its decimal text, and its power of ten
_LONGEST = 4_000  # characters of the exact text of a fraction
_EXACT = re.compile(r"-?[0-9]+(\.[0-9]+|/0*[1-9][0-9]*)?")

Number = int | float | Fraction | Decimal | str


def shortly(value: object) -> str:
    """A value in a message: as it is written, at most 60 characters; Python writes no endless number."""
    try:
        words = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return words if len(words) <= 60 else f"{words[:57]}..."


def is_finite(value: object) -> bool:
    """Whether it is a number that a float can hold: a whole number of any length is looked at safely."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def exact(value: Number) -> Fraction:
    """Read a budget as the decimal text it was written as.

    Args:
        value: 0.1, "0.1", Decimal("0.1") and Fraction(1, 10) all give exactly 1/10.
    Returns:
        The fraction.
    Raises:
        ParameterError: (a ValueError) the value is not a finite number, has more than 100 digits, or
            is outside [1e-400, 1e400] and not 0.
    """
    try:
        if not isinstance(value, float | str | Decimal):
            return Fraction(value)
        if not isinstance(value, str) or len(value) <= DIGITS + 20:
            number = Decimal(repr(float(value)) if isinstance(value, float) else value)
            short = number.is_finite() and len(number.as_tuple().digits) <= DIGITS
            if short and abs(number.adjusted()) <= EXPONENT:
                return Fraction(number)
    except (TypeError, ValueError, InvalidOperation):
        pass
    raise ParameterError(
        "NUMBER",
        "A budget was given that is not a short decimal: no finite number, or more than 100 digits.",
        "A budget is 0.1, '0.1', Decimal('0.1') or Fraction(1, 10), between 1e-400 and 1e400 in size.",
        "Correct epsilon, delta or budget.",
    )


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


def from_text(written: object) -> Fraction:
    """Read what `text` wrote: a plain decimal, or numerator/denominator; never an exponent.

    Raises:
        ValueError: it is something else, or longer than 4,000 characters.
    """
    if (
        isinstance(written, str)
        and len(written) <= _LONGEST
        and _EXACT.fullmatch(written)
        and written.isascii()
    ):
        return Fraction(written)
    raise ValueError("not an exact number")


def root_down(square: Fraction) -> Fraction:
    """A fraction at or below the square root of one >= 0: math.isqrt rounds down exactly."""
    unit = 10**18
    return Fraction(math.isqrt(int(square * unit * unit)), unit)


def root_up(square: Fraction) -> Fraction:
    """A fraction at or above the square root of one >= 0."""
    low = root_down(square)
    return low if low * low == square else low + Fraction(1, 10**18)
