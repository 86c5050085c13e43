"""What a run pays: exactly its budget, as planned, under both relations and for people with many rows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from gibbous.contract.cases import secret
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import Claim, Relation
from gibbous.core.exact import exact
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms._budget import in_account
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.calibrate.gdp import delta_of, mu_squared_for
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.curator import Curator
from gibbous.privacy.purse import Purse
from tests.adaptive_gibbs.made import chain_rows, paid, ran, rounds_of, schema_of

SIZES = (3, 4, 2, 5, 3)
ROWS = chain_rows(SIZES, 2000)
CELLS = rounds_of(*SIZES)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_run_spends_its_whole_budget_and_not_a_fraction_more(
    relation: Relation, max_rows: int
) -> None:
    method = AdaptiveGibbs(epsilon=1.0, delta=1e-6, relation=relation, cells=CELLS)

    _, curator = ran(method, schema_of(*SIZES, max_rows=max_rows), ROWS, relation)

    squares = mu_squared_for(Fraction(1), Fraction(1, 10**6))
    assert squares * (1 - Fraction(1, 10**8)) < paid(curator) <= squares
    assert delta_of(paid(curator), Fraction(1)) <= Fraction(1, 10**6)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize(
    "sizes", [(2, 2, 2), (4,), (1, 1), (6, 1), (2, 3), (40, 1, 30), (3, 4, 2)], ids=str
)
def test_small_schemas_spend_all_of_epsilon_on_one_table(
    sizes: tuple[int, ...], max_rows: int, relation: Relation
) -> None:
    method, schema = (
        AdaptiveGibbs(epsilon=0.5, relation=relation),
        schema_of(*sizes, max_rows=max_rows),
    )

    rows = np.zeros((50, len(sizes)), dtype=np.int64)
    tables, curator = ran(method, schema, rows, relation)

    assert method.plan(schema, None).total.amount() == "epsilon = 0.5"
    assert paid(curator, "pure") == Fraction(1, 2)
    (one,) = tables.items
    assert one.context.columns == tuple(range(len(sizes)))
    moved = (1 if relation == "add_remove" else 2) * max_rows  # counts that one person changes
    assert one.noise.scale == pytest.approx(moved / 0.5)
    assert tables.model is not None


@pytest.mark.parametrize("sizes", [(2, 2), (40, 1, 30)], ids=str)
def test_an_account_of_gaussian_noise_buys_the_same_table_with_it(sizes: tuple[int, ...]) -> None:
    method, schema = AdaptiveGibbs(epsilon=0.5), schema_of(*sizes)
    with in_account("zcdp"):
        plan = method.plan(schema, None)
    engine = LocalEngine.from_codes(secret(schema, np.zeros((50, len(sizes)), dtype=np.int64)))
    curator = Curator(engine, plan.total, schema, relation="add_remove")

    (one,) = method.run(curator, None).items

    rho = rho_from_approx(exact(0.5), exact(1e-9))
    assert rho * (1 - Fraction(1, 10**8)) < paid(curator, "zcdp") <= rho
    assert one.noise.scale == pytest.approx((1 / (2 * float(rho))) ** 0.5, rel=1e-6)


def test_the_plan_is_what_the_run_does() -> None:
    method, schema = AdaptiveGibbs(epsilon=1.0, cells=CELLS), schema_of(*SIZES)
    plan = method.plan(schema, None)

    tables, curator = ran(method, schema, ROWS)

    first, rest = (spend.claim.mu_squared for spend in plan.spends)
    assert first + rest == plan.total.mu_squared == mu_squared_for(Fraction(1), exact(1e-9))
    assert first * (1 - Fraction(1, 10**8)) < curator.spent[0].mu_squared <= first
    low, high = method._split(schema).sigmas()
    later = [table.noise.scale for table in tables.items if table.context.parents]
    assert later
    assert low <= min(later)
    assert max(later) <= high


def test_the_schema_alone_makes_the_plan() -> None:
    plan = AdaptiveGibbs(epsilon=1.0).plan(schema_of(*SIZES), 10_000)

    assert plan.memory_bytes > 0
    assert plan.cells > 0
    assert dict(plan.errors)["expected 1-way total variation error from noise"] < 0.2


def test_a_plan_warns_where_noise_wins() -> None:
    plan = AdaptiveGibbs(epsilon=0.01).plan(schema_of(*SIZES), 500)

    assert any("Noise dominates" in text for text in plan.warnings)


def test_choices_are_on_the_books_before_the_tables_they_lead_to() -> None:
    """In the order of the purchases: `spent` has alike ones together."""
    books: list[Claim] = []
    honest = Purse.pay

    def noted(purse: Purse, price: Claim) -> bool:
        books.append(price)
        return honest(purse, price)

    with patched(Purse, "pay", value=noted):
        _, curator = ran(AdaptiveGibbs(epsilon=1.0, cells=CELLS), schema_of(*SIZES), ROWS)

    sources = ["choice" if "exponential" in c.source else "table" for c in books]
    assert Counter(books) == Counter(curator.spent)
    assert sources[:2] == ["table", "table"]
    assert "choice" in sources
    assert sources[-1] == "table"


def test_rounds_tell_how_many_of_them_are_over() -> None:
    method, schema, told = AdaptiveGibbs(epsilon=1.0, cells=CELLS), schema_of(*SIZES), []
    curator = Curator(
        LocalEngine.from_codes(secret(schema, ROWS)),
        method.plan(schema, None).total,
        schema,
        relation="add_remove",
        progress=lambda stage, done, total: told.append((stage, done, total)),
    )

    method.run(curator, None)

    shares = [done for stage, done, total in told if stage == "rounds" and total == 100]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 100
    even = [100 * turn / (len(shares) - 1) for turn in range(len(shares))]
    assert max(abs(one - other) for one, other in zip(shares, even, strict=True)) < 45
