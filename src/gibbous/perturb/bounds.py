"""Exponentials and logarithms as exact fractions on the safe side of the true value."""

from __future__ import annotations

import math
from fractions import Fraction

from gibbous.core.exact import up

_BITS = 128
_UNIT = 1 << _BITS
_LARGEST = 64  # e**64 is beyond every weight that is used here


def exp_down(x: Fraction) -> Fraction:
    """A fraction just below e**x.

    Args:
        x: 0 <= x; above 64 it is read as 64, which is still below e**x.
    Returns:
        A lower bound that is relatively closer than 2**-100 for x <= 64.

    The Taylor series of e**(x / 2**k) has positive terms only, so a partial sum that is rounded
    down is below it; squaring k times keeps that.
    """
    if x < 0:
        raise ValueError("x must be >= 0")
    fixed = min(int(x * _UNIT), _LARGEST * _UNIT)
    halvings = max(0, fixed.bit_length() - _BITS)
    extra = 2 * halvings + 8  # further bits, lost again by squaring
    step = fixed << extra >> halvings
    unit = _UNIT << extra
    term, total, k = unit, unit, 0
    while term:
        k += 1
        term = term * step // (unit * k)
        total += term
    for _ in range(halvings):
        total = total * total // unit
    return Fraction(total, unit)


def log1p_up(x: Fraction) -> Fraction:
    """A fraction just above ln(1 + x), 12 significant digits.

    Args:
        x: >= 0.
    """
    if x < 0:
        raise ValueError("x must be >= 0")
    if x == 0:
        return Fraction(0)
    if x > Fraction(2) ** 1000:
        raise OverflowError("x is beyond 2**1000")
    # The conversion and log1p are each good to two units in the last place: 2**-48 covers both.
    return up(Fraction(math.log1p(float(x))) * (1 + Fraction(1, 1 << 48)))
