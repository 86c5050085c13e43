"""Candidates and their scores: what may be looked at, what it is worth, and how far a row moves it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from gibbous.contract.cases import binary_schema, secret
from gibbous.contract.saboteurs import patched
from gibbous.core.context import Context
from gibbous.core.tables import Counts, Dense
from gibbous.disintegrate.records import LocalEngine
from gibbous.structure import clique_scores as module
from gibbous.structure.clique_scores import (
    LARGER_PART,
    LOOKS,
    Candidates,
    _held,
    _kept,
    _Part,
    expected_errors,
    gaps,
    lowered,
    parts_of,
)
from gibbous.structure.cliques import (
    Limits,
    context_of,
    larger,
    pairs,
)


def counted(values: np.ndarray, cliques: list[tuple[int, ...]]) -> tuple[Counts, ...]:
    schema = binary_schema(3)
    engine = LocalEngine.from_codes(secret(schema, values))
    return engine.tally([context_of(schema.sizes, clique) for clique in cliques])


def most_moved_by_a_row() -> float:
    """How far any row moves any score, over all tables of up to two binary rows."""
    cliques = [(0, 1), (1, 2), (0, 1, 2)]
    rng = np.random.default_rng(0)
    expected = [rng.uniform(0, 2, 2 ** len(c)) for c in cliques]
    rows = np.array(list(itertools.product((0, 1), repeat=3)))
    most = 0.0
    for kept in (np.ones(3), np.array([1.0, 0.5, 0.25])):
        noise, spread = np.array([0.0, 0.1, 0.2]), np.array([0.0, 0.0, 0.1])
        parts, errors = np.array([1.0, 1.0, LARGER_PART]), np.array([0.3, 0.0, 0.0])
        part = _Part(np.arange(3), (), expected, noise, spread, parts, errors)
        public = {"left": np.arange(3), "kept": kept, "weights": np.ones(3)}
        for size in range(3):
            for chosen in itertools.combinations_with_replacement(range(8), size):
                before = lowered(part(counted(rows[list(chosen)], cliques)), **public)
                for row in range(8):
                    after = lowered(part(counted(rows[[*chosen, row]], cliques)), **public)
                    most = max(most, float(np.abs(after - before).max()))
    return most


def test_no_row_moves_a_score_by_more_than_one() -> None:
    assert 0.9 < most_moved_by_a_row() <= 1.0 + 1e-12


def test_a_score_that_counts_a_cell_whole_once_it_stands_out_is_caught() -> None:
    def whole_cells(
        counts: Sequence[Counts], expected: Sequence[np.ndarray], noise: np.ndarray, *_: np.ndarray
    ) -> np.ndarray:
        tables = [one.cells.values.ravel() for one in counts if isinstance(one.cells, Dense)]
        far = [abs(n - m) for n, m in zip(tables, expected, strict=True)]
        return np.array([d[d > 5 * t].sum() for d, t in zip(far, noise, strict=True)])

    with patched(module, "gaps", value=whole_cells):
        assert most_moved_by_a_row() > 1.05


def test_a_score_is_the_distance_less_the_expected_error() -> None:
    context = context_of((2, 2), (0, 1))
    counts = Counts(context, Dense(np.array([[3, 0], [1, 6]])))

    score = part_of(context, noise=3.0)([counts])  # 31/9 a record's cell, and 3.3 E|noise| are 7.9

    assert score.tolist() == [1 + 1 + 0 + 1 - 0.5]


def test_where_cells_stand_out_a_score_is_the_distance_beyond_what_is_not_told() -> None:
    context = context_of((2, 2), (0, 1))
    counts = Counts(context, Dense(np.array([[3, 0], [1, 9]])))

    score = part_of(context, noise=0.5, spread=0.09)([counts])

    untold = [(0.5**2 * 2 / np.pi + 0.09 * m) ** 0.5 for m in (2.0, 1.0, 5.0)]
    assert score[0] == pytest.approx(1 - untold[0] + 1 - untold[1] + 4 - untold[2], abs=0.001)
    assert score[0] * 2048 == round(score[0] * 2048)  # exact, in any order


def test_of_more_columns_an_eighth_counts_and_what_noise_hides_counts_nothing() -> None:
    contexts = [context_of((2, 2, 2), clique) for clique in ((0, 1), (0, 1, 2))]
    expected = (np.full(4, 100.0), np.full(8, 50.0))
    ones, noise = np.ones(2), np.full(2, 9.0)
    some = Candidates(((0, 1), (0, 1, 2)), tuple(contexts), expected, ones, ones, noise, 0 * noise)
    near, out = np.full(4, 100), np.array([200, 0, 100, 100])

    def scores(two: np.ndarray, three: np.ndarray) -> list[float]:
        cells = (two.reshape(2, 2), three.reshape(4, 2))
        tables = [Counts(c, Dense(v)) for c, v in zip(contexts, cells, strict=True)]
        found: list[float] = _Part.of(some, np.arange(2))(tables).tolist()
        return found

    assert scores(near + 7, np.full(8, 43)) == [0.0, 0.0]  # E|noise| is 7.2
    pair, triple = scores(out, np.array([150, 0, 50, 50, 0, 50, 50, 50]))
    assert pair == pytest.approx(200 - 2 * 9 * (2 / np.pi) ** 0.5, abs=0.001)
    assert 8 * triple == pytest.approx(200 - 3 * 9 * (2 / np.pi) ** 0.5, abs=0.001)


def part_of(context: Context, *, noise: float, spread: float = 1.0) -> _Part:
    """Of one candidate, an expected error of a half."""
    expected, one = np.array([2.0, 1.0, 1.0, 5.0]), np.ones(1)
    some = Candidates(((0, 1),), (context,), (expected,), one / 2, one, one * noise, one * spread)
    return _Part.of(some, np.zeros(1, int))


def test_a_pick_closes_itself_and_what_it_holds_and_lowers_what_it_overlaps() -> None:
    cliques = [(0, 1), (0, 1, 2), (1, 2), (0, 3), (0, 1, 3)]

    held, sizes = _held(cliques), np.array([len(clique) for clique in cliques])
    kept = _kept(held, sizes, np.ones(5), cliques[1])

    assert kept.tolist() == [0.0, 0.0, 0.0, 1.0, 0.5]
    assert _kept(held, sizes, kept, cliques[4]).tolist() == [0.0, 0.0, 0.0, 0.0, 0.0]


def test_distances_are_those_of_one_table_after_the_other_over_many_batches() -> None:
    rng = np.random.default_rng(3)
    cells = [2, 5, 300_000, 7, 1, 262_144, 9] + [100] * 5000
    counts = [Counts(context_of((n, 1), (0, 1)), Dense(rng.integers(0, 9, (n, 1)))) for n in cells]
    expected = [rng.uniform(0, 9, n) for n in cells]

    found = gaps(counts, expected)

    plain = [
        np.abs(one.cells.values.ravel() - model).sum()
        for one, model in zip(counts, expected, strict=True)
        if isinstance(one.cells, Dense)
    ]
    np.testing.assert_allclose(found, plain, rtol=1e-12)
    assert gaps([], []).shape == (0,)


def test_pairs_leave_out_single_levels_and_large_tables() -> None:
    assert pairs((3, 1, 4, 100), Limits(cells=350)) == ((0, 2), (0, 3))
    assert pairs((3, 4, 100), Limits(cells=400, all_cells=320)) == ((0, 1), (0, 2))


def test_triples_of_many_cells_have_all_their_pairs_in_the_model() -> None:
    sizes = (6, 6, 6, 6)

    assert larger(sizes, [(0, 1), (1, 2)], Limits()) == ()
    assert larger(sizes, [(0, 1), (1, 2), (0, 2), (2, 3)], Limits()) == ((0, 1, 2),)
    assert larger(sizes, [(1, 2, 3)], Limits()) == ((1, 2, 3),)
    assert larger(sizes, [(1, 2, 3)], Limits(cells=215)) == ()


def test_three_and_four_columns_of_few_cells_are_looked_at_whatever_is_known() -> None:
    every = [c for ways in (3, 4) for c in itertools.combinations(range(5), ways)]

    assert larger((2,) * 5, [], Limits()) == tuple(sorted(every))
    assert larger((2, 2, 2, 40, 1), [], Limits()) == ((0, 1, 2),)
    assert larger((4, 4, 4, 4), [], Limits()) == tuple(itertools.combinations(range(4), 3))
    assert larger((2,) * 40, [], Limits()) == ()  # 9,880 triples: too many to look at


def test_expected_error_lies_between_the_spread_of_counts_and_everything_at_stake() -> None:
    expected = np.array([0.01, 1.0, 100.0, 10_000.0])

    silent, loud = (expected_errors([expected], sigma, 0.0, [0.5])[0] for sigma in (1e-9, 1e9))
    rising = [expected_errors([expected], sigma, 0.0, [0.5])[0] for sigma in (1.0, 10.0, 100.0)]

    assert silent == pytest.approx(
        float(np.minimum(2 * expected, np.sqrt(expected * 2 / np.pi)).sum())
    )
    assert loud <= 2 * expected.sum()
    assert rising == sorted(rising)


def test_expected_errors_of_many_tables_are_those_of_each() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.gamma(1.0, 50.0, int(size)) for size in rng.integers(1, 90_000, 12)]
    cares = rng.uniform(0.3, 1.0, 12).tolist()

    together = expected_errors(tables, 7.0, 0.5, cares)

    alone = [
        expected_errors([t], 7.0, 0.5, [care])[0] for t, care in zip(tables, cares, strict=True)
    ]
    assert together == pytest.approx(alone)


def test_picks_look_at_all_candidates_where_looks_are_few() -> None:
    assert not parts_of(600, 4, 3).any()


def test_parts_of_wide_tables_are_even_bounded_and_drawn_anew_each_turn() -> None:
    candidates, picks = 44_850, 300

    first, second = (parts_of(candidates, picks, turn) for turn in (0, 1))

    sizes = np.bincount(first)
    assert len(sizes) == -(-candidates * picks // LOOKS)
    assert sizes.max() * picks <= 1.2 * LOOKS
    assert sizes.min() >= 0.8 * sizes.max()
    assert (first == second).mean() < 0.1


def test_no_more_parts_than_picks_so_that_every_candidate_is_looked_at() -> None:
    assert set(parts_of(3 * LOOKS, 2, 0).tolist()) == {0, 1}
