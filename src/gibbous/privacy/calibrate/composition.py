"""Optimal composition of equal pure mechanisms: the smallest delta at an epsilon, and the converse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gibbous.core.exact import Number
from gibbous.privacy.calibrate.rounding import TINY, float_up, positive, probability, smallest

_CHUNK = 1 << 16


def composed_delta(count: int, eps0: Number, epsilon: Number) -> Fraction:
    """Delta at epsilon of `count` adaptively composed eps0-DP mechanisms, rounded up.

    With i of them answering against the likelier side the loss is (count - 2 i) eps0, and
    delta = sum over losses above epsilon of P(i) (1 - e^(epsilon - loss)), i binomial with
    1 / (1 + e^eps0).

    Args:
        count: mechanisms, >= 1.
    Source:
        [Kairouz, Oh, Viswanath 2015, thm. 3.3].
    """
    one, target = float(positive("eps0", eps0)), float(positive("epsilon", epsilon))
    against = math.exp(-one) / (1.0 + math.exp(-one))
    # The largest i that still exceeds epsilon; terms fall off below it or below the mode.
    last = min(count, math.ceil((count - target / one) / 2.0) - 1)
    if last < 0:
        return TINY if target < count * one else Fraction(0)
    total, largest_term = 0.0, 0.0
    for stop in range(last + 1, 0, -_CHUNK):
        losses = np.arange(max(0, stop - _CHUNK), stop, dtype=np.float64)
        terms = np.exp(_log_binomial(count, losses, against)) * -np.expm1(
            np.minimum(target - (count - 2.0 * losses) * one, 0.0)
        )
        total += float(terms.sum())
        largest_term = max(largest_term, float(terms.max()))
        if stop - _CHUNK <= count * against and float(terms[0]) < 1e-18 * largest_term:
            break
    # lgamma is good to a few units in the last place of itself.
    error = 1e-12 + 2e-15 * math.lgamma(count + 2)
    return min(Fraction(1), float_up(total, error))


def composed_epsilon(count: int, eps0: Number, delta: Number) -> Fraction:
    """The smallest epsilon at which `count` eps0-DP mechanisms have at most delta, rounded up."""
    one, goal = positive("eps0", eps0), probability("delta", delta)
    return smallest(
        lambda epsilon: composed_delta(count, one, epsilon) <= goal,
        Fraction(0),
        count * one,
        10,
    )


def _log_binomial(count: int, against: np.ndarray, share: float) -> np.ndarray:
    """ln P(i) for a run of consecutive i: one exact value, then ratios."""
    first = int(against[0])
    start = (
        math.lgamma(count + 1)
        - math.lgamma(first + 1)
        - math.lgamma(count - first + 1)
        + first * math.log(share)
        + (count - first) * math.log1p(-share)
    )
    ratios = np.log((count - against[:-1]) / (against[:-1] + 1.0)) + math.log(share / (1.0 - share))
    return start + np.concatenate([np.zeros(1), np.cumsum(ratios)])
