"""Upper tails of integer noise, P(X > s), rounded up: what thresholds are priced with."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from gibbous.core.exact import Number
from gibbous.privacy.calibrate.rounding import TINY, decimal, float_up, positive, price

_SUMMED = 5000.0  # sigma up to which the discrete Gaussian is summed term by term
_FAINT = 600  # beyond e**-600, float64 sums have no digits left


def geometric_tail(scale: Number, cut: int) -> Fraction:
    """P(X > cut) for two-sided geometric X of scale b, rounded up at the 24th digit.

    With r = e^(-1/b): r^(cut + 1) / (1 + r) for cut >= 0, and 1 - r^(-cut) / (1 + r) below.

    Args:
        scale: b in counts, > 0.
        cut: in counts.
    """
    return price(max(geometric_tail_exact(positive("scale", scale), cut), TINY))


def geometric_tail_exact(scale: Fraction, cut: int) -> Fraction:
    """The same to 60 digits, not rounded."""
    with localcontext(Context(prec=80, Emin=-(10**12), Emax=10**12)):
        step = 1 / decimal(scale)
        top = (-(abs(cut + 1) if cut >= 0 else -cut) * step).exp()
        tail = top / (1 + (-step).exp())
        if tail < Decimal(10) ** -320:
            return TINY
        return Fraction(tail if cut >= 0 else 1 - tail)


def gaussian_tail(sigma: Number, cut: int) -> Fraction:
    """P(X > cut) for discrete Gaussian X, rounded up; far out an upper bound, however small.

    Up to sigma = 5000 the probabilities are summed. Beyond, the normal tail bounds the sum from
    above: the density sum is at least sqrt(2 pi) sigma (Poisson summation), and each term is at most
    the integral of the density over the unit interval around it where that is convex (from one
    sigma on), or before it where it only decreases.

    Args:
        sigma: in counts, > 0.
        cut: in counts.
    """
    exact = positive("sigma", sigma)
    if cut > 0 and (cut + 1) ** 2 > 2 * _FAINT * exact * exact:
        return _faint_tail(exact, cut + 1)
    width = float(exact)
    if width > _SUMMED:
        start = cut + 0.5 if cut + 0.5 >= width else float(cut)
        return float_up(min(1.0, normal_tail(start / width)), 1e-9)
    reach = math.ceil(45 * width) + 1
    if cut < 0:
        return float_up(min(1.0, 1.0 - _gaussian_sum(width, -cut, reach)), 1e-11)
    return float_up(_gaussian_sum(width, cut + 1, reach), 1e-11)


def normal_tail(value: float) -> float:
    """P(Z > value) for standard normal Z."""
    return 0.5 * math.erfc(value / math.sqrt(2.0))


def normal_quantile_up(tail: float) -> float:
    """The value with P(Z > value) = tail, by bisection; for tails down to 1e-300."""
    low, high = -40.0, 40.0
    for _ in range(90):
        middle = (low + high) / 2
        if normal_tail(middle) > tail:
            low = middle
        else:
            high = middle
    return high


def _faint_tail(sigma: Fraction, start: int) -> Fraction:
    """A bound on P(X >= start): e^(-s^2 / 2 sigma^2) / ((1 - e^(-s / sigma^2)) max(1, 2.5 sigma)).

    The terms (s + j)^2 >= s^2 + 2 s j make a geometric series; all terms of the law add to at least
    sqrt(2 pi) sigma (Poisson summation), and to at least 1.
    """
    with localcontext(Context(prec=60, Emin=-(10**12), Emax=10**12)):
        rate = start / decimal(sigma * sigma)
        series = (-rate * start / 2).exp() / (1 - (-rate).exp())
        return price(Fraction(series / max(Decimal(1), Decimal("2.5") * decimal(sigma))))


def _gaussian_sum(sigma: float, start: int, reach: int) -> float:
    """P(X >= start) for start >= 1."""
    everything = 1.0 + 2.0 * _series(sigma, 1, reach)
    return _series(sigma, start, start + reach) / everything


def _series(sigma: float, start: int, stop: int) -> float:
    ratio = np.arange(start, stop, dtype=np.float64) / sigma
    return float(np.sum(np.exp(-0.5 * ratio * ratio)))
