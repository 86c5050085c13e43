"""A certificate against itself: total, plan, words and ledger entries; and its price against the noise."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from gibbous.core.claim import NUMBERS, Claim, pure
from gibbous.core.errors import GibbousError, LedgerUnusable
from gibbous.core.schema import Schema
from gibbous.core.tables import NoiseInfo, Recipe, Tables
from gibbous.privacy import accountant
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.privacy.calibrate.scales import geometric_epsilon
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.chain import chained
from gibbous.privacy.noise import Gaussian
from gibbous.structure.sensitive import stated
from gibbous.write.certificate import (
    NOT_DP,
    assumptions,
    claim_of,
    discovered,
    earlier,
    given_gap,
    guarantee,
    plan_of,
    versions,
)
from gibbous.write.durable_files import rejected

PATHS = 4096  # ways in which noises of sets that have parts add up; of equal parts there is one


def check_certificate(receipt: dict[str, Any], schema: Schema, total: Claim) -> list[str]:
    """Hold the parts of a certificate against each other: sentences on what was found right.

    ModelRejected names the first thing that does not fit.
    """
    _check_total(receipt, total)
    _check_plan(receipt, total)
    given = given_names(receipt, schema)
    _check_words(receipt, schema, total, given)
    _check_proof(receipt, total)
    named = f"columns that were given, and that no guarantee covers, are named: {', '.join(given)}"
    return [
        "the total is what the maker of the tables states; nothing was charged for this release"
        if total.basis == "stated"
        else "the parts of the cost add up to the total, which is what was charged",
        *([named] if given else []),
        "the ledger entries hash as they say, for this claim and this digest",
    ]


def check_price(tables: Tables, total: Claim, max_rows: int) -> None:
    """Raise ModelRejected where the noise alone costs more than a release says that it cost.

    Every table is taken for a histogram, of which a record changes one cell: sums of numbers cost
    more, thresholds and paid choices come on top. So the price found is a lower bound.
    """
    if not total.is_dp:
        return
    budgets = [total]
    if total.kind == "approximate" and total.delta and not total.mu_squared:
        # Thresholded noise may have been made by Gaussian DP: one release, whose noise is fixed.
        squares = mu_squared_for(total.epsilon, total.delta)
        budgets.append(replace(total, mu_squared=squares))
    for noises in _paths(tables):
        if not any(_covered(budget, noises, max_rows) for budget in budgets):
            raise rejected(
                "PRICE",
                "the noise in its tables is too small for the price that it states; the tables cost more",
            )


def check_diversity(tables: Tables | None, receipt: dict[str, Any], schema: Schema) -> None:
    """Raise ModelRejected where a release says more of drawn values than how its rows are drawn keeps.

    `tables` are None where rows were drawn from records.
    """
    said, relation = plan_of(receipt["plan"]).beside, claim_of(receipt, "total").relation
    recipes = (
        [one.recipe for one in _drawn_from(tables)]
        if tables is not None
        else [Recipe("ancestral", ())]
    )
    for recipe in recipes:
        if said != stated(schema, recipe.diverse, recipe.criterion, relation):
            raise rejected("DIVERSITY", "its rows are not drawn as diverse as it says")


def _drawn_from(tables: Tables) -> Iterator[Tables]:
    """What rows are drawn from, each: sets of their own, and parts."""
    for one in (replace(tables, copies=()), *tables.copies):
        for part in one.parts or (one,):
            yield from _drawn_from(part) if part is not one else (one,)


def _covered(budget: Claim, noises: Counter[NoiseInfo], max_rows: int) -> bool:
    try:
        prices = [_price(noise, n, budget, max_rows) for noise, n in noises.items()]
        return accountant.within(budget, prices)
    except GibbousError:
        return False


def check_ledger(given: Ledger | Path | str, receipt: dict[str, Any]) -> None:
    """Look for the entries of a release in the ledger that is said to have paid for it.

    Raises:
        ModelRejected: they are not there.
        LedgerUnusable: there is no ledger, or it does not fit together.
    """
    if not isinstance(given, Ledger) and not Path(given).is_file():
        raise LedgerUnusable(
            "NOLEDGER",
            f"There is no ledger {str(given)!r}.",
            "It is the file that the release was charged to; verifying makes no new one.",
            "Check the path given to --ledger.",
        )
    book = given if isinstance(given, Ledger) else Ledger.open(Path(given))
    book.verify()
    for entry in receipt["ledger"]["entries"].values():
        if book.number(entry["hash"]) is None:
            raise rejected(
                "LEDGER", "this ledger did not pay for it (or an old copy of it is used)"
            )


def given_names(receipt: dict[str, Any], schema: Schema) -> tuple[str, ...]:
    """Columns that were given, not drawn; ModelRejected if they are not some of the schema, in order."""
    if "given" not in receipt:
        return ()
    names, covered = receipt["given"]["columns"], receipt["given"]["covered"]
    if covered is not False or not 0 < len(names) < len(schema):
        raise rejected("GIVEN", "its certificate does not say which columns were given")
    if names != [name for name in schema.names if name in names]:
        raise rejected("GIVEN", "its certificate names given columns that its schema does not have")
    return tuple(names)


def _check_total(receipt: dict[str, Any], total: Claim) -> None:
    claim, rows = claim_of(receipt, "claim"), sum(receipt["rows"])
    if total.is_dp and total.unit in ("row", "block"):
        raise rejected("TOTAL", "its total is stated for a part of the file only")
    if claim.is_dp != total.is_dp or (total.is_dp and claim.relation != total.relation):
        raise rejected("TOTAL", "claim and total are not of one kind")
    if receipt["relation"] != total.relation and total.is_dp:
        raise rejected("TOTAL", "its total is under another neighbor relation than the run")
    units = {1}
    if claim.is_dp and claim.unit == "row":
        units = {rows}
    if claim.is_dp and claim.unit == "block":
        units = {math.ceil(Fraction(rows, int(receipt["method"]["params"]["block"])))}
    if claim.is_dp and claim.unit == "dataset":
        units = {1, receipt["sets"]}  # sets may be drawn together, or each for itself
    numbers = ("kind", *NUMBERS)
    possible = [[getattr(claim.times(n), name) for name in numbers] for n in units]
    if [getattr(total, name) for name in numbers] not in possible:
        times = " or ".join(map(str, sorted(units)))
        raise rejected("TOTAL", f"its total is not {times} times its claim per {claim.unit}")


def _check_plan(receipt: dict[str, Any], total: Claim) -> None:
    plan = receipt["plan"]
    if claim_of(plan, "total") != total or claim_of(plan, "claim") != claim_of(receipt, "claim"):
        raise rejected("PLAN", "its plan and its certificate state different costs")
    if plan["params"] != receipt["method"]["params"]:
        raise rejected("PLAN", "its plan and its certificate state different parameters")
    if plan["sets"] != receipt["sets"] or plan["rows"] not in (None, *set(receipt["rows"])):
        raise rejected("PLAN", "its plan and its certificate state different sizes")
    if plan["rows"] is not None and len(set(receipt["rows"])) > 1:
        raise rejected("PLAN", "its sets have different numbers of rows")
    spends = [claim_of(spend, "claim") for spend in plan["spends"]]
    try:
        covered = accountant.within(total, spends)
    except GibbousError:
        covered = False
    if not covered:
        raise rejected("SPENDS", "the parts of its cost are more than its total")


def _check_words(
    receipt: dict[str, Any], schema: Schema, total: Claim, given: tuple[str, ...]
) -> None:
    words = str(receipt["guarantee"])
    uncovered = tuple(str(fact) for fact in receipt["uncovered"])
    if not words.startswith(total.words()):
        raise rejected("WORDS", "its words do not state its total")
    if total.is_dp and sorted(uncovered) != sorted(schema.inferred()):
        raise rejected("WORDS", "it does not name the facts that were read off the data")
    if receipt.get("discovered", []) != discovered(schema):
        raise rejected("WORDS", "it does not name the facts that were paid for")
    plan = plan_of(receipt["plan"])
    if total.is_dp and earlier(schema, plan) not in words:
        raise rejected("WORDS", "it does not name the facts that were paid for before")
    assumed = assumptions(schema, plan, given)
    same_writer = receipt["versions"].get("gibbous") == versions()["gibbous"]
    if same_writer and receipt["assumptions"] != assumed:
        raise rejected("WORDS", "it does not list what its guarantee assumes, as this gibbous does")
    stated = guarantee(plan, schema, uncovered, given)
    if words != stated if same_writer else len(words.splitlines()) > len(stated.splitlines()):
        raise rejected(
            "WORDS", "its words say something else than what it costs and leaves uncovered"
        )
    if not words.endswith(given_gap(given)):
        raise rejected("WORDS", "its words do not name the columns that were given")
    silent_gap = (uncovered or not total.is_dp) and NOT_DP not in words
    covered = total.is_dp and not uncovered and not given
    if silent_gap or receipt["differentially_private"] != covered:
        raise rejected("WORDS", "it does not say that it is not differentially private")


def _check_proof(receipt: dict[str, Any], total: Claim) -> None:
    proof = receipt["ledger"]
    reserve, commit = (_entry(proof, kind) for kind in ("reserve", "commit"))
    names = {reserve["id"], commit["id"], proof["reservation"]}
    if len(names) != 1 or reserve["kind"] != "reserve" or commit["kind"] != "commit":
        raise rejected("PROOF", "its ledger entries are not of one reservation")
    if Claim.from_json(reserve["claim"]) != total:
        raise rejected("PROOF", "its ledger entry was charged another claim")
    if reserve["mechanism"] != receipt["method"]["name"] or reserve["seq"] >= commit["seq"]:
        raise rejected("PROOF", "its ledger entries are of another run")
    unit = receipt["unit"]["words"] if receipt["unit"] else "one row"
    if reserve["protects"] != unit:
        raise rejected("PROOF", "its ledger entry protects another unit")
    if commit["sha256"] != receipt["digest"]:
        raise rejected("PROOF", "its ledger entry was made for another release")
    if proof["head"] != proof["entries"]["commit"]["hash"]:
        raise rejected("PROOF", "its ledger head is not its last entry")


def _entry(proof: dict[str, Any], kind: str) -> dict[str, Any]:
    entry = proof["entries"][kind]
    previous, sealed = bytes.fromhex(entry["previous"]), bytes.fromhex(entry["sealed"])
    if len(previous) != hashlib.sha256().digest_size or len(sealed) != len(previous):
        raise rejected("PROOF", "its ledger entries are not entries")
    if chained(previous, sealed, entry["public"].encode()).hex() != entry["hash"]:
        raise rejected("PROOF", "its ledger entries do not hash to what they say")
    return dict(json.loads(entry["public"]))


def _price(noise: NoiseInfo, tables: int, total: Claim, max_rows: int) -> Claim:
    """The price of tables with this noise, in the measure that the total is added up in."""
    scale, relation = Fraction(noise.scale), total.relation
    if noise.law == "geometric":
        return pure(geometric_epsilon(scale, tables, relation, max_rows), relation=relation)
    return Gaussian(scale, total.measure).cost(tables, relation, max_rows)


def _paths(tables: Tables) -> Iterator[Counter[NoiseInfo]]:
    """Noise of the tables that one record can be in: of parts of the records, one each."""
    own = Counter(table.noise for table in tables.items + tables.extra)
    copies = [set(map(_frozen, _paths(copy))) for copy in tables.copies]
    parts = [{_frozen(path) for part in tables.parts for path in _paths(part)}]
    if math.prod(map(len, copies)) * max(1, len(parts[0])) > PATHS:
        raise rejected("PRICE", f"its tables have noises that add up in more than {PATHS} ways")
    for chosen in itertools.product(*copies, *(parts if tables.parts else ())):
        yield sum((Counter(dict(one)) for one in chosen), own)


def _frozen(path: Counter[NoiseInfo]) -> frozenset[tuple[NoiseInfo, int]]:
    return frozenset(path.items())
