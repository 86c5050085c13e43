"""PrivBayes' network: sensitivity by enumeration, maximal parent sets, picks that find what is there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from scipy.special import log_softmax

from gibbous.contract.saboteurs import patched
from gibbous.core.claim import Relation, pure, zcdp
from gibbous.core.errors import PrivacyRefused
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts, Dense
from gibbous.mechanisms.privbayes import Privbayes, prefix_joined
from gibbous.structure import greedy
from gibbous.structure.choice import Network
from gibbous.structure.greedy import MOVED, candidates, choose_greedy, scores, table
from tests.structure.test_choice import BINARY, curator_of, dependent_rows

OPTIONS = [(0, (1,)), (2, (1,)), (0, (1, 2)), (1, ())]


def counts_of(rows: np.ndarray) -> list[Counts]:
    found = []
    for option in OPTIONS:
        context = table(BINARY, option)
        cells = np.zeros(context.target_sizes, dtype=np.int64)
        for row in rows:
            cells[tuple(row[c] for c in context.targets)] += 1
        found.append(Counts(context, Dense(cells.reshape(1, -1))))
    return found


def score(rows: np.ndarray) -> np.ndarray:
    return scores(OPTIONS, [table(BINARY, o) for o in OPTIONS], counts_of(rows))


def moved(size: int, relation: Relation) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scores of every pair of neighbors, the first of so many records of three bits."""
    levels = list(itertools.product((0, 1), repeat=3))

    @cache
    def found(rows: tuple[int, ...]) -> np.ndarray:
        return score(np.array([levels[i] for i in rows]).reshape(-1, 3))

    for rows in itertools.combinations_with_replacement(range(8), size):
        rests = (
            {rows} if relation == "add_remove" else {rows[:i] + rows[i + 1 :] for i in range(size)}
        )
        for rest, one in itertools.product(rests, range(8)):
            yield found(rows), found(tuple(sorted((*rest, one))))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_one_record_moves_a_score_by_no_more_than_is_stated(relation: Relation) -> None:
    worst = [max(float(np.abs(a - b).max()) for a, b in moved(n, relation)) for n in range(1, 5)]

    if relation == "add_remove":
        assert 1.1 < max(worst) <= MOVED[relation] == 2
    else:
        assert all(most <= 3 - 3 / n + 1e-12 for n, most in enumerate(worst, 1))
        assert max(worst) == 1.5
        assert MOVED[relation] == 3


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.slow
def test_the_exact_law_of_a_pick_keeps_epsilon_and_that_of_a_saboteur_does_not(
    relation: Relation,
) -> None:
    pairs = list(moved(4, relation))

    def lost(stated: float, epsilon: float) -> float:
        laws = [[log_softmax(epsilon * x / (2 * stated)) for x in pair] for pair in pairs]
        return max(float(np.abs(one - two).max()) for one, two in laws)

    for epsilon in (0.5, 2.0, 20.0):
        assert lost(MOVED[relation], epsilon) <= epsilon
        assert lost(MOVED[relation] / 4, epsilon) > epsilon


@pytest.mark.slow
def test_a_pick_is_drawn_with_the_bound_that_is_stated() -> None:
    schema, rows = dependent_rows(200)
    seen = {}
    relations: tuple[Relation, ...] = ("add_remove", "replace_one")
    for relation in relations:
        for factor in (1, Fraction(1, 10**6)):  # the saboteur: half a pick's noise and less
            stated = {key: value * factor for key, value in MOVED.items()}
            with patched(greedy, "MOVED", value=stated):
                seen[relation, factor] = {picked(rows, schema, relation) for _ in range(40)}

    for relation in relations:
        assert len(seen[relation, 1]) > 3
        assert len(seen[relation, Fraction(1, 10**6)]) == 1


def picked(rows: np.ndarray, schema: Schema, relation: Relation) -> Network:
    curator = curator_of(rows, pure(Fraction(1000), relation=relation), relation, schema)
    return choose_greedy(
        curator, 1, epsilon=Fraction(1, 100), accounting="pure", max_cells=100, most=1000
    )


def test_the_score_is_half_the_distance_from_independence() -> None:
    rows = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])

    found = score(rows)

    # Column 0 copies 1: n_ab = [[2, 0], [0, 2]] against 1 everywhere. Column 2 knows nothing of 1.
    assert found == pytest.approx([2.0, 0.0, 2.0, 0.0])


def test_candidates_are_maximal_sets_that_fit() -> None:
    schema = Schema(
        tuple(
            Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate((2, 3, 5, 7))
        )
    )

    found = candidates(schema, [0, 1, 2], [0, 1, 2, 3], 2, max_cells=105, most=1000)

    # With column 3 (7 levels) 15 keys fit: {0, 1} (6), {0, 2} (10) and {1, 2} (15).
    assert found == [(3, (0, 1)), (3, (0, 2)), (3, (1, 2))]
    fewer = candidates(schema, [0, 1, 2], [0, 1, 2, 3], 2, max_cells=50, most=1000)
    assert fewer == [(3, (0, 1)), (3, (2,))]
    assert candidates(schema, [0, 1, 2], [0, 1, 2, 3], 2, max_cells=6, most=1000) == [(3, ())]


@pytest.mark.parametrize("seed", range(20))
def test_candidates_are_those_of_a_search_through_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(s) for s in rng.integers(2, 6, size=8)]
    schema = Schema(
        tuple(Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(sizes))
    )
    order = [int(j) for j in rng.permutation(8)[:5]]
    parents, cells = int(rng.integers(1, 6)), int(rng.integers(6, 400))

    def fits(j: int, places: tuple[int, ...]) -> bool:
        product = sizes[j] * int(np.prod([sizes[c] for c in places]))
        return len(places) <= parents and (not places or product <= cells)

    subsets = [c for size in range(6) for c in itertools.combinations(order, size)]
    expected = {
        (j, places)
        for j in set(range(8)) - set(order)
        for places in subsets
        if fits(j, places)
        and not any(set(places) < set(more) and fits(j, more) for more in subsets)
    }

    found = candidates(schema, order, list(range(8)), parents, max_cells=cells, most=10**6)

    assert set(found) == expected
    assert found == sorted(expected)


def test_noise_alone_limits_the_parents() -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2, size=(20_000, 6))
    rows[:, 5] = rows[:, :5].sum(axis=1) % 2  # parity of the others: no four of them tell of it
    schema = Schema(tuple(Column(f"x{j}", "binary", levels=(0, 1)) for j in range(6)))
    curator = curator_of(rows, pure(Fraction(1000)), schema=schema)

    found = Privbayes(epsilon=100).run(curator, None)

    widest = max(found.items, key=lambda item: item.context.cells)
    assert widest.context.cells == 64


def test_where_there_are_too_many_candidates_fewer_parents_are_tried() -> None:
    schema = Schema(tuple(Column(f"x{j}", "binary", levels=(0, 1)) for j in range(12)))
    placed, free = list(range(8)), list(range(12))

    found = candidates(schema, placed, free, 3, max_cells=10**6, most=4 * 28)

    assert {len(parents) for _, parents in found} == {2}


def test_a_rich_budget_finds_the_network_and_every_pick_is_paid() -> None:
    schema, rows = dependent_rows(4000)
    curator = curator_of(rows, pure(Fraction(1000)), schema=schema)

    found = choose_greedy(
        curator, 1, epsilon=Fraction(20), accounting="pure", max_cells=100, most=1000
    )

    assert found.order[0] == 0
    assert found.parents[1] == (0,)
    assert found.parents[2] == (1,)
    assert [claim.epsilon for claim in curator.spent] == [20] * 5 == [20] * found.paid


def test_a_pick_beyond_the_reservation_is_refused() -> None:
    schema, rows = dependent_rows(100)
    curator = curator_of(rows, zcdp(Fraction(4, 8)), schema=schema)

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        choose_greedy(curator, 2, epsilon=Fraction(1), accounting="zcdp", max_cells=64, most=1000)


def test_the_same_table_serves_every_order_of_its_columns() -> None:
    assert table(BINARY, (0, (2, 1))) == table(BINARY, (2, (0, 1)))


def test_a_full_prefix_is_measured_once() -> None:
    joined = partial(prefix_joined, BINARY)

    whole = joined(Network((0, 1, 2), ((), (0,), (0, 1))))
    chain = joined(Network((0, 1, 2), ((), (0,), (1,))))
    apart = joined(Network((0, 1, 2), ((), (), ())))

    assert [c.targets for c in whole] == [(0, 1, 2)]
    assert [(c.targets, c.parents) for c in chain] == [((0, 1), ()), ((2,), (1,))]
    assert [(c.targets, c.parents) for c in apart] == [((0,), ()), ((1,), ()), ((2,), ())]
