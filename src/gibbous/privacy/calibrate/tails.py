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


def geometric_tail_exact(scale: Fraction, cut: int) -> Fraction:
    """P(X > cut) for two-sided geometric X of scale b in counts, to 60 digits, not rounded.

    With r = e^(-1/b): r^(cut + 1) / (1 + r) for cut >= 0, and 1 - r^(-cut) / (1 + r) below.
    """
    with localcontext(Context(prec=80, Emin=-(10**12), Emax=10**12)):
        step = 1 / decimal(scale)
        top = (-(abs(cut + 1) if cut >= 0 else -cut) * step).exp()
        tail = top / (1 + (-step).exp())
        if tail < Decimal(10) ** -320:
            return TINY
        return Fraction(tail if cut >= 0 else 1 - tail)


def gaussian_tail(sigma: Number, cut: int) -> Fraction:
    """P(X > cut) for discrete Gaussian X, rounded up; far out an upper bound, however small; in counts.

    Up to sigma = 5000 the probabilities are summed. Beyond, the normal tail bounds the sum from
    above: the density sum is at least sqrt(2 pi) sigma (Poisson summation), and each term is at most
    the integral of the density over the unit interval around it where that is convex (from one
    sigma on), or before it where it only decreases.
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


_REST = 1e-6  # of a tail: what the geometric bound on its end may add
_TERMS = 4096  # of one tail; a tail that is still undecided then counts as 1
_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def log_beta_binomial(
    j: np.ndarray, m: float | np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """ln P(count = j) of m draws with weights a and b > 0; 0 <= j <= m may be fractional."""
    j, m, a, b = np.broadcast_arrays(j, m, a, b)
    ways = _lg(m + 1) - _lg(j + 1) - _lg(m - j + 1)
    inside, outside = _lg(a + j) - _lg(a), _lg(b + m - j) - _lg(b)
    found: np.ndarray = ways + inside + outside + _lg(a + b) - _lg(a + b + m)
    return found


def beta_binomial_tail(limit: np.ndarray, m: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """P(count > limit) of m draws with weights a and b, never below the truth but for rounding.

    Terms are added until the rest, bounded by a geometric series, is below a millionth. The arguments
    are broadcast together; where b is 0 the count is m for certain.
    """
    limit, a, b = np.broadcast_arrays(limit, a, b)
    out = np.zeros(limit.shape)
    first = np.floor(limit * (1 - 1e-12)) + 1
    inside = first <= m
    out[inside & (b <= 0)] = 1.0
    rows = np.nonzero(inside & (b > 0))
    if len(rows[0]):
        out[rows] = _sum(np.maximum(first[rows], 0.0), float(m), a[rows], b[rows])
    found: np.ndarray = np.minimum(out, 1.0)
    return found


def _sum(j: np.ndarray, m: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum of probabilities from j to m, (cells,)."""
    term = np.exp(log_beta_binomial(j, m, a, b))
    total: np.ndarray = term.copy()
    place = np.arange(len(j))
    j, a, b = j.copy(), a.copy(), b.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_TERMS):
            # Of the ratio's two factors one tends to 1 from its side, the other falls.
            up, down = (a + j) / (j + 1), (m - j) / (b + m - j - 1)
            bound = np.where(b > 1, np.maximum(up, 1.0) * down, np.inf)
            rest = np.where(bound < 1, term * bound / (1 - bound), np.inf)
            open_ = (j < m) & ~(rest <= _REST * total[place])
            done = (j < m) & ~open_
            total[place[done]] += rest[done]
            if not open_.any():
                break
            term = term * up * down
            if not open_.all():
                place, j, a, b, term = (v[open_] for v in (place, j, a, b, term))
            j = j + 1
            total[place] += term
        else:
            total[place] = 1.0
    return total


def _lg(values: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.asarray(_log_gamma(values), dtype=np.float64)
    return found
