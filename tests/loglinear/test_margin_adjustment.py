"""The closing pass: margins met with few changes, zeros kept, blocks apart, rare cells alive."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.schema import impossible_mask
from gibbous.core.tables import Goal, LogLinear
from gibbous.sampling.loglinear import margin_adjustment, margins
from gibbous.sampling.loglinear.margin_adjustment import Closing, close
from gibbous.sampling.loglinear.step_tables import flatten
from tests.loglinear import made

SIZES = (2, 3, 4, 5)
SCHEMA = made.schema(SIZES)
PAIRS = tuple((a, b) for a in range(4) for b in range(a + 1, 4))
CLIQUES = (*((j,) for j in range(4)), *PAIRS)
LAW = made.law(made.model(SIZES, ((0, 1), (1, 2), (2, 3), (0, 3))))


def drawn(count: int, seed: int, shares: np.ndarray = LAW) -> np.ndarray:
    """Independent rows of a law."""
    cells = np.random.default_rng(seed).choice(shares.size, count, p=shares.ravel())
    return np.stack(np.unravel_index(cells, shares.shape)).astype(np.uint8)


def goals_model(closed: int, cliques: tuple[tuple[int, ...], ...] = CLIQUES) -> LogLinear:
    """A model of nothing but goals."""
    return LogLinear(SIZES, (), (), made.goals(LAW, *cliques), closed=closed)


def distance(rows: np.ndarray, columns: tuple[int, ...]) -> float:
    """Total variation distance of a margin of rows from the law's."""
    shares = margins(np.ascontiguousarray(rows), SIZES, [columns])[0] / rows.shape[1]
    return float(np.abs(shares - made.margin(LAW, columns)).sum() / 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_brings_every_margin_far_below_sampling_noise_with_few_changes(seed: int) -> None:
    rows = drawn(5000, seed)

    closed, moved = close(goals_model(5000), SCHEMA, rows, seed=4)

    for columns in CLIQUES:
        assert distance(closed, columns) < 0.1 * distance(rows, columns) + 0.001
    needed = max(distance(rows, columns) for columns in CLIQUES)
    assert 0 < moved == (closed != rows).sum()
    assert moved / rows.size < 2 * needed


def test_keeps_what_was_not_closed() -> None:
    triple = (0, 1, 2)
    rows = drawn(20_000, 5)

    closed, _ = close(goals_model(20_000), SCHEMA, rows, seed=4)

    assert distance(closed, triple) <= distance(rows, triple)


def test_rows_that_meet_their_goals_stay_as_they_are() -> None:
    rows = drawn(3000, 6)
    seen = [Goal(c, n / 3000) for c, n in zip(CLIQUES, margins(rows, SIZES, CLIQUES), strict=True)]

    closed, moved = close(goals_model(3000), SCHEMA, rows, seen, seed=4)

    assert moved == 0
    assert np.array_equal(closed, rows)


def test_structural_zeros_are_kept() -> None:
    schema = made.schema(SIZES, {0: (1,), 1: (2,)}, {1: (0,), 2: (1,), 3: (3, 4)})
    inside = LAW * (made.law(made.model(SIZES, ((0,),)), schema) > 0)
    rows = drawn(4000, 7, inside / inside.sum())

    closed, moved = close(goals_model(4000), schema, rows, seed=4)  # goals outside the zeros

    assert moved > 0
    assert not impossible_mask(schema, closed.T).any()


def test_each_block_is_closed_by_itself_and_threads_change_nothing() -> None:
    rows = drawn(2600, 8)
    whole, _ = close(goals_model(1000), SCHEMA, rows, seed=4)

    first, _ = close(goals_model(1000), SCHEMA, rows[:, :1000], seed=4)
    again, _ = close(goals_model(1000), SCHEMA, rows, seed=4, threads=2)

    assert np.array_equal(whole[:, :1000], first)
    assert np.array_equal(whole, again)


def test_goals_of_a_block_are_its_rows_and_those_of_many_blocks_the_shares() -> None:
    found = Closing(goals_model(100), flatten(goals_model(100), ()), 9)
    state = np.zeros((4, 100), dtype=np.uint8)
    counts = np.concatenate([n.ravel() for n in margins(state, SIZES, CLIQUES)])

    each = np.array([found.short(state, block) + counts for block in range(200)])

    assert (each >= 0).all()
    assert (each.sum(axis=1) == 100 * len(CLIQUES)).all()
    wanted = np.concatenate([made.margin(LAW, c).ravel() for c in CLIQUES]) * 100
    assert np.abs(each - wanted).max() < 2.0
    assert np.abs(each.sum(axis=0) - 200 * wanted).max() < 4.0


def test_a_rare_cell_does_not_die_in_small_blocks() -> None:
    share = 0.3 / 64
    goal = Goal((0,), np.array([1 - share, share]))
    model = LogLinear((2, 3), (), (), (goal,), closed=64)
    rng = np.random.default_rng(1)
    rows = np.stack([rng.random(64_000) < share, rng.integers(0, 3, 64_000)]).astype(np.uint8)

    closed, _ = close(model, made.schema((2, 3)), rows, seed=2)

    assert closed[0].sum() == pytest.approx(300, abs=3)
    kept = [block.sum() for block in closed[0].reshape(-1, 64)]
    assert set(kept) == {0, 1}


@pytest.mark.parametrize("ruled", [False, True], ids=["free", "structural zeros"])
def test_equals_the_twin(ruled: bool) -> None:
    schema = made.schema(SIZES, {0: (1,), 1: (2,)}) if ruled else SCHEMA
    weighted = tuple(
        Goal(goal.columns, goal.shares, 0.3 + len(goal.columns))
        for goal in made.goals(LAW, *CLIQUES, (0, 1, 3))
    )
    model = LogLinear(SIZES, (), (), weighted, closed=400)
    rules = margin_adjustment.model_rules(model, schema)
    found = Closing(model, flatten(model, rules), 3)
    one, two = drawn(400, 9), drawn(400, 9)

    moved = found.close(one, 5)
    twin = found.close(two, 5, compiled=False)

    assert moved == twin > 0
    assert np.array_equal(one, two)
