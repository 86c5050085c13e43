"""Prices of rows drawn from exact conditionals: virtual records, exponential tilts, blocks with reset.

A unit has k = `max_rows` rows. Add/remove it and one key's counts change by a vector c >= 0 with at
most k in it; replace it and they change by b - a. Everything here is proven in docs/proofs/accounting.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.core.exact import Number, up
from gibbous.privacy.calibrate.rounding import expm1, log1p, positive, price, smallest
from gibbous.privacy.calibrate.scales import steps
from gibbous.privacy.calibrate.zcdp import pure_to_zcdp, range_to_zcdp

UNIFORM = 10**15
"""From this alpha on a float64 count plus alpha is alpha: compute with the uniform law instead."""


@functools.lru_cache(maxsize=256, typed=True)
def eps0_from_alpha(alpha: Number, max_rows: int = 1) -> Fraction:
    """Pure cost of one draw with alpha virtual records a level: ln(1 + k / alpha), rounded up.

    Under both relations. Its log-ratio has a range of the same size under add/remove.

    Source:
        [park2014, eq. 6] for k = 1.
    """
    return price(log1p(max_rows / positive("alpha", alpha)))


@functools.lru_cache(maxsize=256, typed=True)
def alpha_from_eps0(eps0: Number, max_rows: int = 1) -> Fraction:
    """Virtual records a level for a draw that costs eps0: k / (e^eps0 - 1), rounded up to 12 digits.

    Beyond `UNIFORM` the draw is uniform for all practical counts: build the probability as
    (n / alpha + 1) / (N / alpha + C), never as n + alpha.

    Raises:
        ParameterError: eps0 is not > 0, or above 700, where alpha is no longer a normal float64.
    Guarantee:
        eps0_from_alpha(alpha, max_rows) <= eps0.
    """
    budget = positive("eps0", eps0)
    if budget > 700:
        raise ParameterError(
            "PARAM",
            f"One draw would cost {float(budget):g} nats.",
            "A draw costs at most 700: beyond, the virtual records vanish and rows are copied.",
            "Lower epsilon.",
        )
    alpha = up(max_rows / expm1(budget), 12)
    while eps0_from_alpha(alpha, max_rows) > budget:
        alpha = up(alpha * (1 + Fraction(1, 10**12)), 12)
    return alpha


def draws(rows: int, columns: int, sweeps: int = 1) -> int:
    """Draws of a file: rows x sweeps x columns with more than one level."""
    return rows * sweeps * columns


def pegs_zcdp(
    alpha: Number, count: int, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """zCDP cost of `count` draws, rounded up.

    add_remove: eps0^2 / 8 a draw (bounded range). replace_one: eps0 tanh(eps0 / 2) a draw.
    """
    eps0 = eps0_from_alpha(alpha, max_rows)
    draw = range_to_zcdp(eps0) if steps(relation) == 1 else pure_to_zcdp(eps0)
    return up(count * draw, 24)


def pegs_alpha_published(epsilon: float, columns: int) -> float:
    """The paper's alpha 1 / (e^(epsilon / p) - 1), whatever the number of sweeps [park2014, eq. 6]."""
    return 1.0 / math.expm1(min(epsilon / columns, 700.0))


def block_pure(
    alpha: Number, sizes: Sequence[int], relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Pure cost of one block of any number of rows and sweeps, reset at each visit.

    add_remove: p k ln(1 + 1/alpha). replace_one: k (p ln(1 + 1/alpha) + sum ln(1 + 1/(C alpha))).

    Args:
        sizes: number of levels C of each redrawn column.
    """
    virtual = positive("alpha", alpha)
    gain = len(sizes) * eps0_from_alpha(virtual)
    if steps(relation) == 1:
        return max_rows * gain
    return max_rows * (gain + sum(eps0_from_alpha(size * virtual) for size in sizes))


def block_alpha(
    epsilon: Number, sizes: Sequence[int], relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Alpha with which one block costs at most epsilon; closed form or, under replace_one, a root.

    Guarantee:
        block_pure(alpha, sizes, relation, max_rows) <= epsilon.
    """
    budget = positive("epsilon", epsilon)
    closed = alpha_from_eps0(budget / (len(sizes) * max_rows))
    if steps(relation) == 1:
        return closed
    # The bound lies between once and twice the add/remove one, so the root lies between these.
    top = alpha_from_eps0(budget / (2 * len(sizes) * max_rows))
    return smallest(
        lambda alpha: block_pure(alpha, sizes, relation, max_rows) <= budget, closed, top, 12
    )


def tilt_pure(
    epsilon: Number, count: int, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Pure cost of `count` draws with P proportional to exp(epsilon n): k epsilon each, R1 twice that.

    Source:
        [park2013, IV.C], corrected: the paper's bound is of one draw and add/remove only.
    """
    return count * max_rows * steps(relation) * positive("epsilon", epsilon)
