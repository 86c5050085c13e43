"""Budgets that are refused whatever the mechanism: checked on a plan, before a record is read."""

from __future__ import annotations

from fractions import Fraction

from gibbous.core.claim import short
from gibbous.core.errors import BudgetExhausted, PrivacyRefused
from gibbous.core.exact import exact
from gibbous.core.keywords import Assumed
from gibbous.core.params import Rule, unstated
from gibbous.core.plan import Plan
from gibbous.core.request import Privacy
from gibbous.core.schema import fact_words
from gibbous.privacy.accountant import as_approximate

SMALLEST, LARGEST = Fraction(1, 10**6), Fraction(100)
LARGEST_DELTA = Fraction(1, 10**3)  # where no number of rows is given to hold it against

budget = Rule(
    lambda v: 1e-12 <= v <= 1e4,
    "between 1e-12 and 10000; outside 1e-6 to 100 only with --i-understand (understand=True)",
)
"""What an epsilon parameter may be at all: beyond it noise would not fit 64-bit integers."""


def check(plan: Plan, privacy: Privacy, rows: int | None) -> None:
    """Refuse what no method may be asked for: on a plan, before a record is read.

    Args:
        rows: rows a set, as asked for.
    Raises:
        PrivacyRefused: an inferred fact or an undeclared unit under a claim, or see `check_budget`.
        BudgetExhausted: the total is above `privacy.budget`.
    """
    _check_facts(plan, privacy)
    check_budget(plan, rows, understand=privacy.understand)
    if privacy.budget is None:
        return
    check_dp(plan)
    total = plan.total
    if total.kind in ("zcdp", "gdp"):
        total = as_approximate(total, Fraction(1, 10**6))
    if total.epsilon > exact(privacy.budget):
        raise BudgetExhausted(
            "BUDGET",
            f"This run costs more than the budget: {plan.headline()}.",
            f"The budget given is epsilon = {privacy.budget}.",
            "Ask for fewer rows or sets, a smaller epsilon, or a method whose rows are free "
            "after its tables (noisy_pegs, sbhg).",
        )


def refuse_assumed(plan: Plan, privacy: Privacy) -> None:
    """Refuse to spend a budget that nobody stated.

    A ledger in memory is charged nothing that lasts: studies may take the defaults of a method.

    Raises:
        ParameterError: epsilon is the default of the method.
    """
    lasting = getattr(privacy.ledger, "path", "") is not None
    if not lasting or not plan.total.is_dp or privacy.risk is not None:
        return
    inside = getattr(privacy.method, "method", None)
    if isinstance(getattr(privacy.method, "epsilon", getattr(inside, "epsilon", None)), Assumed):
        raise unstated(inside if isinstance(inside, str) else plan.mechanism)


def _check_maps(privacy: Privacy) -> None:
    bought = getattr(privacy.method, "maps", ())
    for rule in privacy.schema.rules:
        if rule.to_buy and rule.detail not in bought:
            raise PrivacyRefused(
                "MAP",
                f"The map of the rule ({rule.words()}) must be bought, and nothing in this run buys it.",
                "adaptive_gibbs and other methods with one budget for the whole release buy it by "
                "themselves; PaidBins does where maps names the detail.",
                "Choose such a method, or give the rule a public map.",
            )


def _check_facts(plan: Plan, privacy: Privacy) -> None:
    """A claim covers facts that are public or paid for, and says what one unit is."""
    _check_maps(privacy)
    if not plan.total.is_dp:
        return
    facts = privacy.schema.inferred()
    if facts and not privacy.accept_inferred:
        raise PrivacyRefused(
            "INFERRED",
            f"The schema holds {len(facts)} facts that were read off the data: {fact_words(facts)}.",
            "A claim of differential privacy covers only facts that are public or paid for.",
            "Check them and mark them declared, or pass --accept-inferred: the release then says "
            "which facts its guarantee does not cover.",
        )
    if privacy.schema.unit is None:
        raise PrivacyRefused(
            "UNIT",
            "The schema does not say what one privacy unit is.",
            "A unit is one row, or one person with at most max_rows rows.",
            "Declare [unit] in the schema; --accept-inferred assumes one row, and says so.",
        )


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
    if plan.claim.kind not in ("zcdp", "gdp") and not SMALLEST <= epsilon <= LARGEST:
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
        PrivacyRefused: the plan's total is not a claim of differential privacy.
    """
    if not plan.total.is_dp:
        raise PrivacyRefused(
            "NOTDP",
            f"A differential privacy budget was given for {plan.mechanism!r}, "
            f"whose guarantee is: {plan.total.words()}.",
            "A budget applies to methods that make a claim of differential privacy.",
            "Leave the budget out, or use noisy_pegs or sbhg.",
        )
