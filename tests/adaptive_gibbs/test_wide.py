"""Many columns, and a column of thousands of levels: what is left out, by which public rule."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gibbous.core.exact import exact
from gibbous.core.schema import Impossible
from gibbous.mechanisms import _rounds, adaptive_gibbs
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.calibrate import rho_from_approx
from gibbous.synthesize.sample import sample
from tests.adaptive_gibbs.made import chain_rows, paid, ran, schema_of

LEVELS = 10_000
SIZES = (LEVELS, 3, 4, 2)


def long_rows(rows: int) -> np.ndarray:
    """Half of the records at level 7 of the first column, the others anywhere; the rest tied."""
    values = chain_rows(SIZES, rows)
    rng = np.random.default_rng(1)
    values[:, 0] = np.where(rng.random(rows) < 0.5, 7, rng.integers(0, LEVELS, rows))
    return values


def test_a_column_of_ten_thousand_levels_is_drawn_by_its_noisy_table() -> None:
    schema, rows = schema_of(*SIZES), long_rows(20_000)

    tables, curator = ran(AdaptiveGibbs(epsilon=5.0), schema, rows)
    drawn = sample(tables, 20_000, seed=1).values

    assert tables.model is not None
    assert tables.model.sizes == (1, 3, 4, 2)
    assert all(0 not in t.context.columns or len(t.context.columns) == 1 for t in tables.items)
    rho = rho_from_approx(exact(5.0), exact(1e-9))
    assert rho * (1 - Fraction(1, 10**8)) < paid(curator) <= rho
    assert (drawn[:, 0] == 7).mean() == pytest.approx(0.5, abs=0.05)
    assert len(np.unique(drawn[:, 0])) > 100
    tie = [(one[:, 2] == one[:, 1]).mean() for one in (rows, drawn)]
    assert abs(tie[0] - tie[1]) < 0.1  # eight runs: .055 to .057; independent columns: 0.5 and more


def test_shares_of_merged_levels_come_from_the_released_tables_alone() -> None:
    schema, rows = schema_of(*SIZES), long_rows(3000)

    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema, rows)

    assert tables.model is not None
    merged = tables.model.merged[0]
    assert merged is not None
    ones = [table for table in tables.items if len(table.context.columns) == 1]
    again = _rounds.begun(_rounds.bought(_rounds.Known(schema), ones))
    assert again.model is not None
    np.testing.assert_array_equal(merged.shares, again.model.merged[0].shares)
    raw = np.bincount(rows[:, 0], minlength=LEVELS) / len(rows)
    assert np.abs(merged.shares - raw).sum() > 0.1


def test_levels_that_a_structural_zero_tells_apart_are_not_merged() -> None:
    schema = schema_of(2000, 2000, 3)
    ruled = replace(schema, impossible=(Impossible((("c0", (5,)), ("c2", (1,)))),))

    assert _rounds.model_sizes(schema) == (1, 1, 3)
    assert _rounds.model_sizes(ruled) == (2000, 1, 3)
    assert _rounds.model_sizes(schema_of(_rounds.MOST_LEVELS, 3)) == (_rounds.MOST_LEVELS, 3)


def test_two_long_columns_and_nothing_else_are_drawn() -> None:
    rows = np.random.default_rng(0).integers(0, 2000, (3000, 2))

    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema_of(2000, 2000), rows)

    assert sample(tables, 50, seed=1).values.shape == (50, 2)


def test_rows_of_wide_tables_are_closed_to_measured_pairs_alone() -> None:
    cliques = {(0, 5), (1, 2, 9), (3, 99)}

    assert _rounds.goal_pairs((3,) * 20, cliques) == tuple(itertools.combinations(range(20), 2))
    assert _rounds.goal_pairs((3,) * 100, cliques) == ((0, 5), (1, 2), (1, 9), (2, 9), (3, 99))


def test_a_round_takes_a_quarter_of_the_columns_and_more_of_wide_tables() -> None:
    found = [AdaptiveGibbs()._picks(schema_of(*[2] * m)) for m in (1, 8, 15, 32, 64, 128, 300)]

    assert found == [2, 2, 4, 8, 32, 128, 300]


@pytest.mark.slow
def test_seventy_columns_keep_their_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_gibbs, "PICKS", 4)  # fewer rounds, each at a higher price
    sizes = (3,) * 70
    rows = chain_rows(sizes, 5000)

    tables, _ = ran(AdaptiveGibbs(epsilon=10.0), schema_of(*sizes), rows)
    drawn = sample(tables, 5000, seed=1).values

    assert tables.model is not None
    pairs = [goal.columns for goal in tables.model.goals if len(goal.columns) == 2]
    assert 40 < len(pairs) < 70 * 69 / 2
    ties = [[(one[:, j] == one[:, j + 1]).mean() for j in range(69)] for one in (rows, drawn)]
    assert np.abs(np.subtract(*ties)).mean() < 0.05
