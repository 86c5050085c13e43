"""Runs through a real Curator on small tables: what is bought, released and drawn."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure, PrivacyRefused
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, Sparse, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import registry
from gibbous.mechanisms.block_pegs import BlockPegs
from gibbous.mechanisms.bootstrap import Bootstrap
from gibbous.mechanisms.contingency import Contingency
from gibbous.mechanisms.diverse_pegs import DiversePegs
from gibbous.mechanisms.exponential_pegs import ExponentialPegs
from gibbous.mechanisms.laplace import Laplace
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.mechanisms.pegs import Pegs
from gibbous.mechanisms.sba import Sba
from gibbous.mechanisms.sbhg import Sbhg
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.privacy.curator import Curator
from gibbous.sampling.conditionals import conditionals, margins
from gibbous.sampling.sample import sample

SIZES = (3, 4, 2, 5, 1)
SCHEMA = Schema(
    tuple(Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(SIZES))
)
TABLES = (Laplace, Sba, Sbhg, NoisyPegs)
ROWS = (Contingency, Bootstrap, Pegs, BlockPegs, DiversePegs, ExponentialPegs)


def linked(rows: int, seed: int = 2) -> np.ndarray:
    """x1 follows x0, x3 follows x1, x2 leans to one side; x4 is constant."""
    rng = np.random.default_rng(seed)
    x = np.stack([rng.integers(0, s, rows) for s in SIZES], axis=1)
    x[:, 0] = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    x[:, 1] = np.where(rng.random(rows) < 0.8, x[:, 0], x[:, 1])
    x[:, 3] = np.where(rng.random(rows) < 0.8, x[:, 1], x[:, 3])
    x[:, 2] = rng.random(rows) < 0.2
    return x


def curator_of(mechanism: Any, values: np.ndarray, rows: int | None, sets: int = 1) -> Curator:
    engine = LocalEngine.from_codes(
        Codes(SCHEMA, np.asfortranarray(values.astype(np.uint8)), secret=True)
    )
    plan = mechanism.plan(SCHEMA, rows, sets)
    relation = getattr(mechanism, "relation", "add_remove")
    return Curator(engine, plan.total, SCHEMA, relation=relation)


def fit(mechanism: Any, values: np.ndarray, rows: int | None = None, sets: int = 1) -> Any:
    return mechanism.run(curator_of(mechanism, values, rows, sets), rows, sets)


def two_way(a: np.ndarray, b: np.ndarray, i: int, j: int) -> float:
    """Total variation distance of a pair of columns."""
    tables = []
    for x in (a, b):
        t = np.zeros((SIZES[i], SIZES[j]))
        np.add.at(t, (x[:, i].astype(int), x[:, j].astype(int)), 1)
        tables.append(t / t.sum())
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_run_buys_no_more_than_its_plan_and_nearly_all_of_it(kind: Any, relation: Any) -> None:
    mechanism = kind(epsilon=2, relation=relation)
    curator = curator_of(mechanism, linked(500), None)

    mechanism.run(curator, None)

    plan = mechanism.plan(SCHEMA, None)
    assert len(curator.spent) > 0
    planned = sum((s.claim.price for s in plan.spends), Fraction(0))
    paid = sum((s.price for s in curator.spent), Fraction(0))
    assert planned * Fraction(9, 10) < paid <= planned


@pytest.mark.parametrize("kind", [*TABLES, Pegs, BlockPegs, ExponentialPegs])
def test_a_run_with_less_reserved_than_planned_is_refused_unread(kind: Any) -> None:
    mechanism = kind()
    rows = None if kind in TABLES else 5
    total = mechanism.plan(SCHEMA, rows).total
    less = replace(total, epsilon=total.epsilon / 10, delta=total.delta / 10)
    engine = LocalEngine.from_codes(
        Codes(SCHEMA, np.asfortranarray(linked(20).astype(np.uint8)), secret=True)
    )

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        mechanism.run(Curator(engine, less, SCHEMA, relation="add_remove"), rows)


@pytest.mark.parametrize("kind", TABLES)
def test_tables_have_a_recipe_for_every_column(kind: Any) -> None:
    tables = fit(kind(epsilon=5), linked(800))

    assert isinstance(tables, Tables)
    drawn = [c for at in tables.recipe.order for c in tables.items[at].context.columns]
    assert set(drawn) == set(range(len(SIZES)))
    rows = sample(tables, 300, seed=1).values
    assert rows.shape == (300, len(SIZES))
    assert (rows < np.array(SIZES)).all()


@pytest.mark.parametrize("kind", ROWS)
def test_paid_rows_come_as_many_as_were_paid(kind: Any) -> None:
    rows = fit(kind(), linked(100), 7, 3)

    assert isinstance(rows, Codes)
    assert rows.values.shape == (21, len(SIZES))
    assert not rows.secret
    assert (rows.values < np.array(SIZES)).all()


@pytest.mark.parametrize("kind", [*TABLES, *ROWS])
@pytest.mark.parametrize("records", [0, 1])
def test_no_record_and_one_record_are_ordinary_tables(kind: Any, records: int) -> None:
    out = fit(kind(), linked(records), None if kind in TABLES else 4)

    drawn = out if isinstance(out, Codes) else sample(out, 4, seed=3)
    assert drawn.values.shape == (4, len(SIZES))


# --- noisy_pegs


def test_noisy_pegs_draws_parents_first_and_buys_each_conditional_once() -> None:
    tables = fit(NoisyPegs(epsilon=5), linked(3000))

    seen: set[int] = set()
    for at in tables.recipe.order:
        context = tables.items[at].context
        assert set(context.parents) <= seen
        seen |= set(context.targets)
    assert tables.recipe.draw == "ancestral"
    assert seen == set(range(len(SIZES)))
    bought = [t.context for t in tables.items + tables.extra]
    assert len(set(bought)) == len(bought)
    assert sum(not c.parents for c in bought) == len(SIZES)


def test_noisy_pegs_approaches_the_pairs_of_the_records_with_budget() -> None:
    values = linked(6000)
    found = []
    for epsilon in (0.02, 100.0):
        rows = sample(fit(NoisyPegs(epsilon=epsilon), values), 6000, seed=4).values
        found.append(np.mean([two_way(values, rows, i, j) for i, j in ((0, 1), (1, 3), (0, 3))]))

    # Sampling noise of 6000 rows in 20 cells is about .02.
    assert found[1] < 0.05
    assert found[0] > 2 * found[1]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [5, 60, 6000])
def test_what_noisy_pegs_does_not_choose_with_buys_better_tables(relation: Any, rows: int) -> None:
    """Few rows leave few affordable tables, hence few picks; the price of the others is not lost."""
    mechanism = NoisyPegs(epsilon=1, delta=1e-6, relation=relation)
    curator = curator_of(mechanism, linked(rows), None)

    mechanism.run(curator, None)

    whole = mu_squared_for(1, Fraction(1, 10**6))
    spent = sum((claim.mu_squared for claim in curator.spent), Fraction(0))
    assert whole * (1 - Fraction(1, 10**8)) < spent <= whole


def test_noisy_pegs_measures_margins_twice_where_no_table_is_affordable() -> None:
    tables = fit(NoisyPegs(epsilon=0.001, cells=1), linked(50))

    assert all(not item.context.parents for item in tables.items)
    assert len(tables.extra) == len(tables.items) == len(SIZES)
    assert tables.items[0].noise.scale < tables.extra[0].noise.scale / 1.5


def test_given_contexts_are_used_and_nothing_is_chosen() -> None:
    mechanism = NoisyPegs(epsilon=5, contexts={"x1": ["x0"], "x3": ["x1", "x2"]})
    curator = curator_of(mechanism, linked(1000), None)

    tables = mechanism.run(curator, None)

    by_target = {t.context.targets[0]: t.context.parents for t in tables.items}
    assert by_target == {0: (), 1: (0,), 2: (), 3: (1, 2), 4: ()}
    assert [claim.kind for claim in curator.spent] == ["gdp", "gdp"]
    assert tables.recipe.draw == "ancestral"


def test_given_contexts_in_a_cycle_are_drawn_by_gibbs_passes() -> None:
    values = linked(4000)
    mechanism = NoisyPegs(epsilon=50, sweeps=20, contexts={"x0": ["x1"], "x1": ["x0"]})

    tables = fit(mechanism, values)
    rows = sample(tables, 4000, seed=1).values

    assert tables.recipe.draw == "gibbs"
    assert tables.recipe.sweeps == 20
    assert two_way(values, rows, 0, 1) < 0.06


def test_public_contexts_leave_more_for_the_tables() -> None:
    chosen, given = (
        fit(m, linked(500)).items for m in (NoisyPegs(), NoisyPegs(contexts={"x1": ["x0"]}))
    )

    def sigma(items: Any) -> float:
        return next(t.noise.scale for t in items if t.context.parents)

    assert sigma(given) < sigma(chosen)


def test_no_parents_is_independent_columns_for_the_whole_budget() -> None:
    mechanism = NoisyPegs(parents=0)
    curator = curator_of(mechanism, linked(500), None)

    tables = mechanism.run(curator, None)

    assert len(curator.spent) == 1
    assert all(not t.context.parents for t in tables.items)
    assert tables.extra == ()


@pytest.mark.parametrize(("sizes", "limit"), [((2,) * 9, 6), ((2, 2, 3, 3, 5), 3), ((8,) * 6, 3)])
def test_noisy_pegs_takes_more_contexts_where_columns_are_small(
    sizes: tuple[int, ...], limit: int
) -> None:
    """The limit is public: the plan of the default is that of the number, and costs the same."""
    schema = Schema(
        tuple(Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(sizes))
    )

    found, same = (NoisyPegs(parents=p).plan(schema, None) for p in (None, limit))

    assert found.spends == same.spends
    assert found.total == same.total == NoisyPegs(parents=limit + 1).plan(schema, None).total


# --- sbhg and sba


def test_f4_sbhg_accepts_on_noisy_tables_only() -> None:
    """The recipe reads published cells; after the Curator is closed, rows are drawn from them."""
    mechanism = Sbhg(epsilon=20, contexts={"x1": ["x0"], "x3": ["x1"]})
    curator = curator_of(mechanism, linked(3000), None)
    tables = mechanism.run(curator, None)
    curator.close()

    first = sample(tables, 400, seed=2).values

    assert tables.recipe.fallback == "reject"
    assert all(isinstance(t.cells, Sparse) and t.noise.threshold for t in tables.items)
    assert (first == sample(tables, 400, seed=2).values).all()
    published = {
        (int(k), int(v))
        for k, v in zip(tables.items[1].cells.keys, tables.items[1].cells.levels, strict=True)
    }
    assert {(int(a), int(b)) for a, b in first[:, :2]} <= published
    with pytest.raises(EngineFailure, match="closed"):
        mechanism.run(curator, None)


def test_sbhg_keeps_the_chosen_contexts_public_and_paid() -> None:
    mechanism = Sbhg(epsilon=50)
    curator = curator_of(mechanism, linked(3000), None)

    tables = mechanism.run(curator, None)

    kinds = [claim.kind for claim in curator.spent]
    assert kinds == ["pure"] + ["pure"] * 4 + ["approximate"]  # x4 is constant: no pick for it
    assert len(tables.extra) == len(SIZES)
    assert tables.items[1].context.parents in ((0,), (3,))
    assert tables.items[3].context.parents == (1,)


def test_sbhg_backs_off_to_its_first_context_and_is_pulled_to_the_margin() -> None:
    """The law of every key, from the published cells by hand; the price is that of the default."""
    given = {"x0": [], "x1": [], "x2": ["x0", "x1"], "x3": [], "x4": []}
    mechanism = Sbhg(epsilon=5, contexts=given, fallback="prefix", kappa=5)
    tables = fit(mechanism, linked(300))
    pull, item = margins(tables)[2], tables.items[2]
    cells = np.zeros((SIZES[0], SIZES[1], SIZES[2]))
    keys, levels = item.cells.keys.astype(int), item.cells.levels.astype(int)
    cells[keys // SIZES[1], keys % SIZES[1], levels] = item.cells.values

    law = conditionals(tables)[2]

    places = list(itertools.product(range(SIZES[0]), range(SIZES[1])))
    slots = law.resolve(
        np.array([a * SIZES[1] + b for a, b in places], np.uint64), np.array(places).T
    )
    for (a, b), slot in zip(places, slots, strict=True):
        counts = next((c for c in (cells[a, b], cells[a].sum(axis=0)) if c.sum() > 0), 0 * pull)
        assert law.shares[slot] == pytest.approx((counts + 5 * pull) / (counts.sum() + 5))
    assert 0 < (cells.sum(axis=2) == 0).sum() < cells[..., 0].size
    default = Sbhg(epsilon=5, contexts=given)
    assert mechanism.plan(curator_of(default, linked(9), None).schema, None).total == (
        default.plan(curator_of(default, linked(9), None).schema, None).total
    )


def test_sbhg_divides_what_choosing_costs_by_the_picks_that_can_happen() -> None:
    """x4 has one level: nothing is picked for it, and it is picked for nothing."""
    mechanism = Sbhg(epsilon=1, choice=0.2, parents=2)
    curator = curator_of(mechanism, linked(500), None)

    mechanism.run(curator, None)

    picked = [claim.epsilon for claim in curator.spent if claim.source == "exponential mechanism"]
    assert len(picked) == 4 * 2
    assert Fraction(1, 10) * (1 - Fraction(1, 10**9)) < sum(picked) <= Fraction(1, 10)


def test_sbhg_without_choice_uses_the_ring() -> None:
    tables = fit(Sbhg(epsilon=5, choice=0, parents=2), linked(500))

    assert [t.context.parents for t in tables.items] == [(3, 4), (4, 0), (0, 1), (1, 2), (2, 3)]
    assert tables.extra == ()


def test_no_published_cell_is_at_or_below_its_threshold() -> None:
    for mechanism in (Sba(epsilon=2), Sbhg(epsilon=5)):
        for table in fit(mechanism, linked(2000)).items:
            assert (table.cells.values > table.noise.threshold).all()


def test_f5_no_nearest_key_is_looked_for_among_records() -> None:
    """The only row draws with a fallback are those without a claim, and none of ours asks for it."""
    for kind in (NoisyPegs, Sbhg):
        assert fit(kind(epsilon=5), linked(300)).recipe.fallback in ("prefix", "reject")


def test_laplace_lists_every_cell_of_the_joint() -> None:
    tables = fit(Laplace(), linked(50))

    assert isinstance(tables.items[0].cells, Dense)
    assert tables.items[0].cells.values.shape == (1, int(np.prod(SIZES)))


def test_the_noisy_number_of_rows_is_near_the_true_one() -> None:
    # sd: laplace 120 cells of sd .3 at epsilon 5; noisy_pegs a few tables of sd about 3.
    for kind, away in ((Laplace, 20), (NoisyPegs, 60)):
        assert abs(fit(kind(epsilon=5), linked(1000)).noisy_rows() - 1000) < away


# --- rows


def test_contingency_rows_are_records_and_bootstrap_rows_need_not_be() -> None:
    values = np.repeat(np.array([[0, 0, 0, 0, 0], [2, 3, 1, 4, 0]]), 10, axis=0)

    copied = {tuple(r) for r in fit(Contingency(), values, 60).values.tolist()}
    apart = {tuple(r) for r in fit(Bootstrap(), values, 60).values.tolist()}

    assert copied == {(0, 0, 0, 0, 0), (2, 3, 1, 4, 0)}
    assert len(apart) > 2


@pytest.mark.slow
def test_f12_rows_of_row_methods_do_not_start_at_records() -> None:
    """With nothing learnt (tiny epsilon) rows are uniform whatever the only record is."""
    values = np.tile(np.array([[2, 3, 1, 4, 0]]), (500, 1))

    for mechanism in (Pegs(epsilon=1e-6), ExponentialPegs(epsilon=1e-6)):
        rows = fit(mechanism, values, 600).values
        share = np.mean((rows[:, :4] == values[0, :4]).all(axis=1))
        # Uniform: 1/120, sd .0037 of 600 rows; a chain from records would give 1.
        assert share < 0.04


def test_contexts_given_by_name_reach_the_draw() -> None:
    values = linked(4000)
    mechanism = Pegs(epsilon=100, contexts={"x1": ["x0"], "x3": ["x1"]})

    rows = fit(mechanism, values, 3000).values

    assert two_way(values, rows, 0, 1) < 0.06


def test_without_a_budget_rows_follow_the_public_prior() -> None:
    values = np.tile(np.array([[2, 3, 1, 4, 0]]), (500, 1))
    name = SCHEMA.names[0]

    rows = fit(Pegs(epsilon=1e-9, prior={name: [6, 3, 1]}), values, 4000).values

    assert np.bincount(rows[:, 0], minlength=3) / 4000 == pytest.approx([0.6, 0.3, 0.1], abs=0.03)


def test_diverse_rows_are_less_certain_than_the_records() -> None:
    values = np.tile(np.array([[2, 3, 1, 4, 0]]), (500, 1))

    rows = fit(DiversePegs(l=1.8), values, 4000).values

    for column, levels in ((0, 3), (1, 4), (3, 5)):
        share = np.bincount(rows[:, column], minlength=levels) / 4000
        entropy = -np.sum(share[share > 0] * np.log(share[share > 0]))
        # A sample's entropy is below the law's by about (C - 1) / (2 n): 5e-4.
        assert entropy > np.log(1.8) - 0.05


@pytest.mark.parametrize("name", registry.names())
def test_input_is_not_modified(name: str) -> None:
    values = linked(60).astype(np.uint8)
    before = values.copy()

    kind = registry.load(name)
    fit(kind(), values, 3 if kind.about.releases == "rows" else None)

    assert (values == before).all()
