"""The words of METHODS.md that a review board may not know, and the papers behind the short names."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gibbous.core.cell_model import CellModel
from gibbous.core.claim import Claim, short
from gibbous.core.plan import Plan
from gibbous.core.schema import Unit
from gibbous.core.tables import Tables
from gibbous.privacy.accountant import for_group, true_alarms

MATURITY = (
    "gibbous, which made these data, is alpha software. Its proofs are those of its authors, and have had "
    "no outside review."
)
GROUPS = (2, 5, 10)  # units together whose price is printed
NO_COST = "none: drawn from the public tables of a release, whose guarantee covers these rows, too"

SOURCES = {
    "park2014": "Park and Ghosh, PeGS: perturbed Gibbs samplers that generate privacy-compliant "
    "synthetic data, 2014",
    "park2013": "Park, Ghosh and Shankar, Perturbed Gibbs samplers for generating large-scale "
    "privacy-safe synthetic health data, 2013",
    "bowen2016": "Bowen and Liu, Differentially private data synthesis methods, 2016",
    "sbhg": "a thesis on histograms of many columns with few records a cell",
    "onthemap": "Machanavajjhala, Kifer, Abowd, Gehrke and Vilhuber, Privacy: theory meets practice on "
    "the map, 2008",
}

MEANINGS = {
    "differentially private": "whatever is published would have been almost as likely without the "
    "protected unit; epsilon and delta say how nearly",
    "epsilon": "the most by which the logarithm of such a likelihood may change; at 0 the release "
    "would not depend on the unit at all",
    "delta": "a probability that the bound leaves out; it should be far below one divided by the "
    "number of units",
    "rho": "the measure in which parts are added up (zero-concentrated differential privacy); the "
    "sum is converted once, to the total above",
    "mu": "the measure in which parts are added up (Gaussian differential privacy): telling the data with "
    "and without the unit apart is at least as hard as telling a standard normal number from one that is "
    "larger by mu; squares of mu add up, and the sum is converted once, to the total above",
    "add or remove one": "the data are compared with and without one unit, so that the number of "
    "units is protected, too",
    "replace one": "the data are compared with those in which one unit has other values; the number "
    "of units is public",
    "counted record of a pair": "one of those that a table of origins and destinations counts, such as one "
    "job; whoever has several of them is several units",
    "proven": "the documentation of gibbous proves what each purchase costs, and their sum",
    "published": "only the paper says so; there is no proof for this program",
    "stated": "whoever made the noisy tables says so; it cannot be checked without the records",
    "heuristic": "an estimate without a proof",
    "declared, inferred": "a fact of the schema that was known without looking at the data; one that "
    "was read off them",
    "ledger": "the data holder's record of what each data set has spent; an entry is made before any "
    "record is counted",
}


def origin(paper: str) -> str:
    """Where a method comes from: the card's short source, with the titles of the papers it names."""
    named = [title for key, title in SOURCES.items() if key in paper]
    titles = f" ({'; '.join(named)})" if named else ""
    return ("of " if paper.startswith("this project") else "after ") + paper + titles


def noisy_parts(tables: Tables) -> str:
    """What rows are drawn from: noisy counts, and noisy sums where a model of numbers rests on them."""
    members = (tables, *tables.copies, *tables.parts)
    models = (member.model for member in members)
    sums = any(isinstance(model, CellModel) and model.sums for model in models)
    return "noisy counts and sums" if sums else "noisy counts"


def row_price(plan: Plan) -> str:
    """What pays where rows are drawn at a price: each row, each block, or the file as a whole."""
    if plan.claim.unit in ("row", "block"):
        return f"Each {plan.claim.unit} has its price; more rows would cost more."
    return "The price is that of all these rows together; rows drawn later would be paid for anew."


def groups(plan: Plan) -> str:
    """What the total says of several units together, with numbers for some sizes."""
    total, parts = plan.total, tuple(spend.claim for spend in plan.spends)
    rule = "epsilon is g times as large"
    if total.kind == "zcdp":
        rule = "rho is g^2 times as large"
    elif total.kind == "gdp":
        rule = "mu is g times as large"
    elif total.delta > 0:
        rule += ", and delta grows to delta (e^(g epsilon) - 1) / (e^epsilon - 1)"
    whole, added = (
        "; ".join(f"{g} units have {for_group(total, g, some).amount()}" for g in GROUPS)
        for some in ((), parts)
    )
    text = (
        "Groups: several units together, such as a household, are protected less than one. For g units "
        f"{rule}: {whole}."
    )
    if added != whole:
        text += f" Added up from the parts of the price, each by its own rule: {added}. Both hold."
    return text


def tests(total: Claim) -> str:
    """What mu says of membership tests, in a sentence."""
    found = math.ceil(1e4 * true_alarms(total, 0.01)) / 100
    return (
        f"The release is mu-Gaussian differentially private with mu = {short(total.mu)}, too, without any "
        "delta: a test that takes 1 % of the units that are not in the data for ones that are finds at "
        f"most {found:g} % of those that are."
    )


def charged(plan: Plan) -> str:
    """What was done about the price, in a sentence."""
    if plan.total.basis == "stated":
        maker = plan.params["maker"]
        return f"So states {maker}, who made the tables. Nothing was charged to a ledger here."
    return "It was charged to the ledger before the first record was counted."


def of_two(total: Claim) -> str:
    """What tells two sets of values of one unit apart, where it is protected by leaving it out."""
    pair = for_group(total, 2).amount()
    return (
        f"For telling apart two values of a unit that is known to be present, the bound is {pair}."
    )


def words_used(plan: Plan, unit: Unit | None) -> Iterator[tuple[str, str]]:
    """Words and meanings, only those that a release with this plan and privacy unit shows."""
    total, kinds = plan.total, {plan.total.kind, *(spend.claim.kind for spend in plan.spends)}
    shown: list[str] = []
    if total.is_dp:
        shown += ["differentially private", "epsilon"]
        shown += ["delta"] if total.delta > 0 else []
        shown += ["rho"] if "zcdp" in kinds else []
        shown += ["mu"] if "gdp" in kinds else []
        shown += ["add or remove one" if total.relation == "add_remove" else "replace one"]
        shown += [total.basis]
        shown += ["counted record of a pair"] if unit and unit.kind == "record" else []
    for word in [*shown, "declared, inferred", "ledger"]:
        yield word, MEANINGS[word]
