"""Noise scales from budgets, and budgets from noise scales, for tables released together.

The privacy unit has at most `max_rows` = k rows, each in one cell of each of `tables` = p histograms.
Worst case, all k rows in one cell: add/remove one unit changes the counts by L1 = p k and
L2^2 = p k^2; replace one unit by twice as much. See docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.core.exact import Number
from gibbous.privacy.calibrate.rounding import dyadic_up, positive


def l1_sensitivity(tables: int, relation: Relation, max_rows: int = 1) -> int:
    """Largest change in L1 of `tables` histograms of the same records, in counts."""
    return steps(relation) * _count("tables", tables) * _count("max_rows", max_rows)


def l2_squared(tables: int, relation: Relation, max_rows: int = 1) -> int:
    """Largest squared Euclidean change of `tables` histograms of the same records."""
    return steps(relation) * _count("tables", tables) * _count("max_rows", max_rows) ** 2


def steps(relation: Relation) -> int:
    """Cells of one histogram that one row changes: 1 under add_remove, 2 under replace_one."""
    if relation not in ("add_remove", "replace_one"):
        raise ParameterError(
            "RELATION",
            f"The neighbor relation is {relation!r}.",
            "It is 'add_remove' or 'replace_one'.",
            "Leave it out for add_remove.",
        )
    return 1 if relation == "add_remove" else 2


def geometric_scale(
    epsilon: Number, tables: int = 1, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Scale b of two-sided geometric noise on `tables` histograms for a pure budget.

    Args:
        epsilon: nats, for all tables together; > 0.
    Returns:
        b in counts, rounded up to 32 binary digits (at most 5e-10 above the closed form).
    Guarantee:
        geometric_epsilon(b, ...) <= epsilon, exactly.
    """
    return dyadic_up(l1_sensitivity(tables, relation, max_rows) / positive("epsilon", epsilon))


def geometric_epsilon(
    scale: Number, tables: int = 1, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Exact pure cost of noise of scale b: L1 / b."""
    return l1_sensitivity(tables, relation, max_rows) / positive("scale", scale)


def gaussian_sigma(
    rho: Number, tables: int = 1, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Sigma of discrete Gaussian noise on `tables` histograms for a zCDP budget.

    Args:
        rho: for all tables together; > 0.
    Returns:
        sigma in counts, rounded up to 32 binary digits (at most 5e-10 above the closed form).
    Guarantee:
        gaussian_rho(sigma, ...) <= rho, exactly.
    """
    square = l2_squared(tables, relation, max_rows) / (2 * positive("rho", rho))
    return dyadic_root_up(square)


def gaussian_rho(
    sigma: Number, tables: int = 1, relation: Relation = "add_remove", max_rows: int = 1
) -> Fraction:
    """Exact zCDP cost of noise of standard deviation sigma: L2^2 / (2 sigma^2)."""
    number = positive("sigma", sigma)
    return l2_squared(tables, relation, max_rows) / (2 * number * number)


def dyadic_root_up(square: Fraction, bits: int = 32) -> Fraction:
    """A number with at most `bits` binary digits whose square is at least `square`."""
    # isqrt of a whole number scaled by an even power of two, so that no float is involved.
    half = 2 * bits - (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    scaled = square * Fraction(4) ** half
    whole = math.isqrt(math.floor(scaled))
    return dyadic_up(
        Fraction(whole if whole * whole == scaled else whole + 1) / Fraction(2) ** half, bits
    )


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(
            "PARAM", f"{name} is {value!r}.", f"{name} is a whole number >= 1.", f"Set {name}=1."
        )
    return value
