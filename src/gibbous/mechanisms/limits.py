"""Budgets that are refused whatever the mechanism: checked on a plan, before a record is read."""

from __future__ import annotations

from fractions import Fraction

from gibbous.core.claim import short
from gibbous.core.errors import PrivacyRefused
from gibbous.core.params import Rule
from gibbous.core.plan import Plan

SMALLEST, LARGEST = Fraction(1, 10**6), Fraction(100)
LARGEST_DELTA = Fraction(1, 10**3)  # where no number of rows is given to hold it against

budget = Rule(
    lambda v: 1e-12 <= v <= 1e4,
    "between 1e-12 and 10000; outside 1e-6 to 100 only with --i-understand (understand=True)",
)
"""What an epsilon parameter may be at all: beyond it noise would not fit 64-bit integers."""


def check_budget(plan: Plan, rows: int | None, *, understand: bool = False) -> None:
    """Refuse an epsilon that promises nothing or leaves nothing, and a delta that publishes rows.

    Args:
        plan: of any mechanism.
        rows: rows a set, where they are known; stands for the declared number of records.
        understand: the user has said that they know (`--i-understand`).
    Raises:
        PrivacyRefused: epsilon of one unit outside [1e-6, 100], or delta above 1 / rows; above
            1e-3 where rows are not known.
    """
    if understand or not plan.total.is_dp:
        return
    epsilon, delta = plan.claim.epsilon, plan.total.delta
    each = f" per {plan.claim.unit}" if plan.claim.unit in ("row", "block") else ""
    if plan.claim.kind != "zcdp" and not SMALLEST <= epsilon <= LARGEST:
        raise PrivacyRefused(
            "EPSILON",
            f"epsilon = {short(epsilon)}{each} was asked for.",
            "It lies between 1e-6 (nothing but noise) and 100 (no protection).",
            "Choose an epsilon near 1, or pass --i-understand.",
        )
    limit = Fraction(1, rows) if rows else LARGEST_DELTA
    if delta > limit:
        above = f"1 / {rows} rows" if rows else "1e-3, and no number of rows is given"
        raise PrivacyRefused(
            "DELTA",
            f"delta = {short(delta)} is above {above}.",
            "Such a delta allows a method that publishes a few records as they are.",
            f"Choose delta well below {float(limit):.1g}, or pass --i-understand.",
        )


def check_dp(plan: Plan) -> None:
    """Refuse to call a run differentially private when its mechanism is not.

    Raises:
        PrivacyRefused: the plan's total is no claim of differential privacy.
    """
    if not plan.total.is_dp:
        raise PrivacyRefused(
            "NOTDP",
            f"A differential privacy budget was given for {plan.mechanism!r}, "
            f"whose guarantee is: {plan.total.words()}.",
            "A budget applies to methods that make a claim of differential privacy.",
            "Leave the budget out, or use noisy_pegs or sbhg.",
        )
