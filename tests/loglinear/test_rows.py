"""Rows of a released model: seeded, the same for any threads and chunks, near the model, closed.

Statistical tests have fixed seeds and level 3e-5 (see `made.unlikely`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gibbous.core.errors import UsageError
from gibbous.core.schema import impossible_mask
from gibbous.core.tables import Dense, Goal, LogLinear, Merged, NoiseInfo, Recipe, Table, Tables
from gibbous.sampling.loglinear import laws, margins
from gibbous.sampling.loglinear import model_rows as rows
from gibbous.sampling.loglinear.tree_rows import first_rows, tree
from gibbous.sampling.sample import sample, stream
from tests.loglinear import made
from tests.synthesize.made import sample_reference

SIZES = (2, 3, 4, 9)
SCHEMA = made.schema(SIZES, {0: (1,), 1: (2,)}, {2: (1,), 3: (0, 8)})
CLIQUES = ((0, 1), (1, 2), (2, 3), (0, 3), (0, 1, 2))
MODEL = made.model(SIZES, CLIQUES, 4, blocks=((1, 2),))
LAW = made.law(MODEL, SCHEMA)
PAIRS = tuple((a, b) for a in range(4) for b in range(a + 1, 4))
CLOSED = replace(MODEL, goals=made.goals(LAW, *((j,) for j in range(4)), *PAIRS), closed=700)


@pytest.fixture(params=["chains", "at once"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of drawing."""
    if request.param == "chains":
        monkeypatch.setattr(laws, "MOST_CELLS", 0)


@pytest.mark.parametrize("model", [MODEL, CLOSED], ids=["open", "closed"])
def test_same_seed_same_rows_for_any_threads_chunks_and_start(way: None, model: LogLinear) -> None:
    tables = made.tables(SCHEMA, model)
    whole = sample(tables, 2000, seed=3).by_column

    assert np.array_equal(whole, sample(tables, 2000, seed=3, threads=2).by_column)
    parts = [codes.by_column for codes in stream(tables, 2000, seed=3, chunk=333)]
    assert np.array_equal(whole, np.concatenate(parts, axis=1))
    assert np.array_equal(whole[:, 650:1450], sample(tables, 800, seed=3, start=650).by_column)
    assert np.array_equal(whole[:, :100], sample(tables, 100, seed=3).by_column)
    assert not np.array_equal(whole, sample(tables, 2000, seed=4).by_column)
    assert not np.array_equal(whole, sample(tables, 2000, seed=3, set_index=1).by_column)


@pytest.mark.slow
def test_equals_the_twin(way: None) -> None:
    tables = made.tables(SCHEMA, CLOSED)

    assert np.array_equal(
        sample(tables, 900, seed=3).by_column, sample_reference(tables, 900, seed=3).by_column
    )


@pytest.mark.statistical
def test_open_rows_follow_the_law(way: None) -> None:
    drawn = sample(made.tables(SCHEMA, MODEL, 20), 40_000, seed=5)
    seen = margins(np.ascontiguousarray(drawn.by_column), SIZES, [(0, 1, 2, 3)])[0]

    assert not made.unlikely(seen, LAW)
    assert not impossible_mask(SCHEMA, drawn.values).any()


@pytest.mark.statistical
def test_closed_rows_meet_the_goals_and_keep_the_zeros(way: None) -> None:
    drawn = sample(made.tables(SCHEMA, CLOSED, 20), 7000, seed=5)

    assert not impossible_mask(SCHEMA, drawn.values).any()
    for goal in CLOSED.goals:
        seen = margins(np.ascontiguousarray(drawn.by_column), SIZES, [goal.columns])[0] / 7000
        noise = np.sqrt(goal.shares / 7000).sum() / 2
        assert np.abs(seen - goal.shares).sum() / 2 < 0.5 * noise


@pytest.mark.statistical
@pytest.mark.statistical
def test_any_part_of_a_block_is_like_the_whole() -> None:
    """Closing moves a tenth of the rows here; were they the first ones, the first tenth would be all 1.

    Four standard errors of 400 rows are .1; the goal is as far from the model as from the truth of a
    block whose first rows are the ones that moved.
    """
    model = LogLinear(
        (2, 2),
        ((0,), (1,)),
        (np.zeros(2), np.zeros(2)),
        goals=(Goal((0,), np.array([0.4, 0.6])), Goal((1,), np.array([0.5, 0.5]))),
    )
    tables = made.tables(made.schema((2, 2)), replace(model, closed=4_000))

    rows = sample(tables, 4_000, seed=3).by_column[0]

    assert abs(rows.mean() - 0.6) < 1e-3
    assert all(abs(part.mean() - 0.6) < 0.1 for part in np.split(rows, 10))


def test_first_rows_have_the_margins_of_the_tree() -> None:
    chain = made.model(SIZES, ((0, 1), (1, 2), (2, 3)), 6)
    law = made.law(chain)
    model = replace(chain, goals=made.goals(law, *PAIRS))
    found = first_rows(SIZES, tree(model), (), np.arange(50_000, dtype=np.uint64), {}, 1)

    # A law that is a tree of pairs is drawn exactly.
    assert not made.unlikely(margins(found, SIZES, [(0, 1, 2, 3)])[0], law)


def test_first_rows_without_goals_are_uniform() -> None:
    found = first_rows(SIZES, tree(MODEL), (), np.arange(50_000, dtype=np.uint64), {}, 1)

    assert not made.unlikely(margins(found, SIZES, [(0, 1, 2, 3)])[0], np.full(SIZES, 1 / 216))


@pytest.mark.statistical
def test_levels_of_a_merged_column_are_drawn_by_their_shares() -> None:
    schema = made.schema((5, 2), {0: (4,), 1: (1,)})
    merged = Merged(np.array([0, 1, 1, 0, 2]), np.array([0.25, 0.1, 0.9, 0.75, 1.0]))
    model = made.model((3, 2), ((0, 1),), 2, merged=(merged, None))
    group = made.law(model) * np.array([[1, 1], [1, 1], [1, 0]])
    group /= group.sum()

    drawn = sample(made.tables(schema, model, 5), 40_000, seed=6)

    wanted = group[merged.groups] * merged.shares[:, None]
    assert not impossible_mask(schema, drawn.values).any()
    assert not made.unlikely(margins(drawn.by_column.copy(), (5, 2), [(0, 1)])[0], wanted)


def test_refuses_to_merge_levels_that_a_structural_zero_tells_apart() -> None:
    schema = made.schema((3, 2), {0: (2,), 1: (1,)})
    merged = Merged(np.array([0, 1, 1]), np.array([1.0, 0.5, 0.5]))
    model = made.model((2, 2), ((0, 1),), 2, merged=(merged, None))

    with pytest.raises(ValueError, match="tells apart"):
        rows.ready(schema, model, 1)


def test_tables_without_a_model_are_not_drawn_from_given_columns() -> None:
    from gibbous.core.context import Context

    schema = made.schema((2,))
    context = Context((0,), (), (2,), ())
    table = Table(context, Dense(np.array([[3, 4]])), NoiseInfo("geometric", 1.0))
    tables = Tables(schema, (table,), Recipe("ancestral", (0,)))

    with pytest.raises(UsageError, match="log-linear"):
        sample(tables, 5, seed=1, given={0: 1})


@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(way: None, count: int) -> None:
    for model in (MODEL, CLOSED):
        assert sample(made.tables(SCHEMA, model), count, seed=1).values.shape == (count, 4)


def test_one_column_of_one_level() -> None:
    schema = made.schema((1, 3))
    drawn = sample(made.tables(schema, made.model((1, 3), ((0, 1),))), 50, seed=1)

    assert (drawn.values[:, 0] == 0).all()
