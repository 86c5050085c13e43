"""Paid choices: sensitivities by brute force, and picks that find what is there."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.core.claim import Claim, Relation, pure, zcdp
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import PrivacyRefused
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts, Dense
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy.curator import Curator
from gibbous.structure.choice import (
    Caution,
    Margins,
    Network,
    choose_hashed,
    choose_network,
    expected_cells,
    network_picks,
    pair,
    pair_scores,
    parent_scores,
    picks,
)

BINARY = Schema(tuple(Column(f"x{j}", "binary", levels=(0, 1)) for j in range(3)))


def counts_of(context: Context, rows: np.ndarray) -> Counts:
    table = np.zeros((context.keys, context.levels), dtype=np.int64)
    for row in rows:
        key = 0
        for column, size in zip(context.parents, context.parent_sizes, strict=True):
            key = key * size + row[column]
        table[key, row[context.targets[0]]] += 1
    return Counts(context, Dense(table))


def curator_of(
    rows: np.ndarray, budget: Claim, relation: Relation = "add_remove", schema: Schema = BINARY
) -> Curator:
    values = np.asfortranarray(rows.astype(schema.code_dtype()))
    engine = LocalEngine.from_codes(Codes(schema, values, secret=True))
    return Curator(engine, budget, schema, relation=relation)


def public(schema: Schema, rows: float, shares: Any = None) -> Margins:
    uniform = tuple(np.full(size, 1 / size) for size in schema.sizes)
    return Margins(shares or uniform, rows)


SHARES = (np.array([0.1, 0.9]), np.array([0.5, 0.5]), np.array([0.99, 0.01]))


def largest_change(score: Any, contexts: list[Context], most: int = 3) -> float:
    """Over all tables of at most `most` rows of three bits, and one row added."""
    levels = list(itertools.product((0, 1), repeat=3))
    worst = 0.0
    for size in range(most):
        for rows in itertools.combinations_with_replacement(levels, size):
            base = score([counts_of(c, np.array(rows).reshape(-1, 3)) for c in contexts])
            for row in levels:
                more = score([counts_of(c, np.array([*rows, row])) for c in contexts])
                worst = max(worst, float(np.abs(more - base).max()))
    return worst


@pytest.mark.parametrize("noisy_rows", [1.0, 2.6, 40.0])
def test_one_row_moves_a_pair_score_by_at_most_one_and_by_one_somewhere(noisy_rows: float) -> None:
    contexts = [pair(BINARY, a, b) for a, b in itertools.combinations(range(3), 2)]
    score = pair_scores(contexts, public(BINARY, noisy_rows, SHARES))

    worst = largest_change(score, contexts)

    assert worst <= 1 + 1e-12
    assert worst > 0.99


def test_one_row_moves_a_parent_score_by_at_most_two_and_by_more_than_one() -> None:
    contexts = [Context((0,), (1,), (2,), (2,)), Context((0,), (1, 2), (2,), (2, 2))]
    score = parent_scores(contexts, public(BINARY, 3.0, SHARES), Caution(noise=4.0))

    worst = largest_change(score, contexts)

    assert worst <= 2
    assert worst > 1.5


def test_the_noise_of_a_table_is_held_against_it_in_public() -> None:
    contexts = [Context((0,), (1,), (2,), (2,)), Context((0,), (1, 2), (2,), (2, 2))]
    rows = np.array([[0, 0, 0], [1, 1, 1]])
    counted = [counts_of(c, rows) for c in contexts]

    free = parent_scores(contexts, public(BINARY, 2.0), Caution())(counted)
    held = parent_scores(contexts, public(BINARY, 2.0), Caution(noise=1.0, weight=0.5))(counted)

    assert free == pytest.approx([2.0, 2.0])
    assert free - held == pytest.approx(0.5 * np.sqrt(2 / np.pi) * np.array([4, 8]))


def test_a_table_that_could_never_win_is_not_counted() -> None:
    caution = Caution(noise=10.0, weight=0.5, max_cells=10**6)

    limit = caution.limit(1000.0)

    assert caution.price(limit) <= 2 * 1000 < caution.price(limit + 1)


def dependent_rows(rows: int, seed: int = 4) -> tuple[Schema, np.ndarray]:
    """x1 copies x0, x2 and x4 copy x1, x3 needs both x0 and x4; all with errors; x5 alone."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Column(f"x{j}", "binary", levels=(0, 1)) for j in range(6)))
    x = rng.integers(0, 2, size=(rows, 6))
    x[:, 1] = np.where(rng.random(rows) < 0.9, x[:, 0], x[:, 1])
    x[:, 2] = np.where(rng.random(rows) < 0.9, x[:, 1], x[:, 2])
    x[:, 4] = np.where(rng.random(rows) < 0.7, x[:, 1], x[:, 4])
    x[:, 3] = (x[:, 0] & x[:, 4]) ^ (rng.random(rows) < 0.2)
    return schema, x


def test_a_rich_budget_finds_the_strongest_parent() -> None:
    schema, rows = dependent_rows(4000)
    curator = curator_of(rows, pure(Fraction(1000)), schema=schema)

    found = choose_hashed(curator, public(schema, 4000.0), 1, epsilon=Fraction(20))

    assert found[0] == (1,)
    assert found[1] in ((0,), (2,))
    assert found[2] == (1,)
    assert found[3] in ((0,), (4,))
    assert len(curator.spent) == 6


def test_a_poor_budget_picks_about_uniformly() -> None:
    schema, rows = dependent_rows(200)
    picked = np.zeros(6)
    for _ in range(60):
        curator = curator_of(rows, pure(Fraction(1)), schema=schema)
        found = choose_hashed(curator, public(schema, 200.0), 1, epsilon=Fraction(1, 10**6))
        picked[found[0][0]] += 1

    # 60 picks of 5: each Binomial(60, 1/5), sd 3.1; the strongest one would have all 60.
    assert picked[1] < 12 + 6 * 3.1


def test_parents_are_picked_without_replacement_and_each_pick_is_paid() -> None:
    schema, rows = dependent_rows(300)
    epsilon = Fraction(1, 7)
    curator = curator_of(rows, pure(epsilon * picks(6, 3)), schema=schema)

    found = choose_hashed(curator, public(schema, 300.0), 3, epsilon=epsilon)

    assert all(len(set(chosen)) == 3 and j not in chosen for j, chosen in enumerate(found))
    assert [claim.epsilon for claim in curator.spent] == [epsilon] * 18


def test_one_pick_more_than_was_reserved_is_refused() -> None:
    schema, rows = dependent_rows(50)
    curator = curator_of(rows, pure(Fraction(17, 7)), schema=schema)

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        choose_hashed(curator, public(schema, 50.0), 3, epsilon=Fraction(1, 7))


def test_only_tables_under_the_limit_are_candidates() -> None:
    sizes = (2, 3, 40, 4)
    schema = Schema(
        tuple(Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(sizes))
    )
    rows = np.random.default_rng(0).integers(0, sizes, size=(100, 4))
    curator = curator_of(rows, pure(Fraction(100)), schema=schema)

    found = choose_hashed(curator, public(schema, 100.0), 2, epsilon=Fraction(1), max_cells=24)

    assert found[2] == ()
    for j, chosen in enumerate(found):
        assert np.prod([sizes[c] for c in (j, *chosen)]) <= 24 or not chosen


def test_a_network_is_a_tree_first_and_every_parent_comes_before() -> None:
    schema, rows = dependent_rows(4000)
    curator = curator_of(rows, zcdp(Fraction(10**4)), schema=schema)

    network = choose_network(
        curator, public(schema, 4000.0), 3, epsilon=Fraction(30), caution=Caution(noise=5.0)
    )

    place = {j: i for i, j in enumerate(network.order)}
    assert sorted(network.order) == list(range(6))
    assert all(place[c] < place[j] for j in range(6) for c in network.parents[j])
    assert sum(not p for p in network.parents) == 1
    edges = {frozenset((j, p[0])) for j, p in enumerate(network.parents) if p}
    assert {frozenset((0, 1)), frozenset((1, 2)), frozenset((1, 4))} <= edges
    assert len(curator.spent) == network.paid <= network_picks(6, 3)


def test_a_second_parent_is_taken_where_it_carries_more_than_its_noise() -> None:
    schema, rows = dependent_rows(4000)
    budget = zcdp(Fraction(10**4))

    def network(noise: float) -> Network:
        curator = curator_of(rows, budget, schema=schema)
        return choose_network(
            curator, public(schema, 4000.0), 2, epsilon=Fraction(30), caution=Caution(noise=noise)
        )

    families = [{j, *parents} for j, parents in enumerate(network(1.0).parents)]
    assert {0, 3, 4} in families
    assert all(len(parents) <= 1 for parents in network(2000.0).parents)


def test_columns_too_large_for_any_table_stand_alone() -> None:
    sizes = (2, 300, 2)
    schema = Schema(
        tuple(Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(sizes))
    )
    rows = np.random.default_rng(0).integers(0, sizes, size=(50, 3))
    curator = curator_of(rows, zcdp(Fraction(10)), schema=schema)

    network = choose_network(
        curator, public(schema, 50.0), 2, epsilon=Fraction(1), caution=Caution(max_cells=100)
    )

    assert network.parents[1] == ()
    assert sorted(network.order) == [0, 1, 2]


def test_replacing_a_row_doubles_the_sensitivity_that_is_declared() -> None:
    seen: list[int] = []

    class Watch(Curator):
        def choose(self, *args: Any, **options: Any) -> int:
            seen.append(options["sensitivity"])
            return super().choose(*args, **options)

    for relation in ("add_remove", "replace_one"):
        values = np.asfortranarray(np.zeros((9, 3), dtype=np.uint8))
        engine = LocalEngine.from_codes(Codes(BINARY, values, secret=True))
        budget = Claim("zcdp", rho=Fraction(100), relation=relation)
        curator = Watch(engine, budget, BINARY, relation=relation)
        choose_network(curator, public(BINARY, 9.0), 2, epsilon=Fraction(1), caution=Caution())

    half = len(seen) // 2
    assert seen[half:] == [2 * s for s in seen[:half]]
    assert set(seen[:half]) == {1, 2}


def test_constant_columns_cost_no_pick() -> None:
    schema = Schema(
        (
            Column("flat", "nominal", levels=("a",)),
            Column("x", "binary", levels=(0, 1)),
            Column("y", "binary", levels=(0, 1)),
        )
    )
    rows = np.zeros((20, 3), dtype=np.int64)
    curator = curator_of(rows, zcdp(Fraction(10)), schema=schema)

    network = choose_network(
        curator, public(schema, 20.0), 3, epsilon=Fraction(1), caution=Caution()
    )

    assert network.parents[0] == ()
    assert len(curator.spent) == network.paid == network_picks(2, 3) == 1


def test_expected_cells_grow_with_parents_and_are_zero_without() -> None:
    assert expected_cells(BINARY, 0, 100) == 0
    assert expected_cells(BINARY, 1, 100) == 12
    assert expected_cells(BINARY, 2, 100) == 12 + 24
    assert expected_cells(BINARY, 2, 5) == 12 + 15


@pytest.mark.parametrize("parents", [1, 2, 3, 9])
def test_the_most_picks_are_made_where_every_table_is_affordable(parents: int) -> None:
    values = np.random.default_rng(2).integers(0, 2, size=(500, 6))
    columns = tuple(Column(f"x{j}", "binary", levels=(0, 1)) for j in range(6))
    schema = Schema(columns)
    # Tables grow until the limit: a full column of parents at each place, all the same.
    values[:] = values[:, :1]
    curator = curator_of(values, zcdp(Fraction(10**9)), schema=schema)

    network = choose_network(
        curator, public(schema, 500.0), parents, epsilon=Fraction(1, 1000), caution=Caution()
    )

    assert len(curator.spent) == network.paid <= network_picks(6, parents)
    assert network_picks(6, parents) == sum(range(5, 5 - min(parents, 5), -1))
