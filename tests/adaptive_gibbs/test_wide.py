"""Many columns, and a column of thousands of levels: what is merged or left out, by which public rule."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gibbous.core.exact import exact
from gibbous.core.schema import Column, Impossible, impossible_mask
from gibbous.mechanisms import _adaptive_rounds
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.sampling.sample import sample
from gibbous.structure.cliques import Limits, goal_pairs
from gibbous.structure.merging import USUAL_GROUPS, model_sizes
from tests.adaptive_gibbs.made import chain_rows, paid, ran, schema_of

LEVELS = 10_000
SIZES = (LEVELS, 3, 4, 2)
LIMITS = Limits()


def long_rows(rows: int, levels: int = LEVELS) -> np.ndarray:
    """Half of the records at level 7 of the first column; the second column follows the others' thirds."""
    values = chain_rows((levels, *SIZES[1:]), rows)
    rng = np.random.default_rng(1)
    values[:, 0] = np.where(rng.random(rows) < 0.5, 7, rng.integers(0, levels, rows))
    follows = (values[:, 0] != 7) & (rng.random(rows) < 0.8)
    values[:, 1] = np.where(follows, values[:, 0] * 3 // levels, values[:, 1])
    return values


def followed(values: np.ndarray, levels: int = LEVELS) -> float:
    """Share of the records away from level 7 whose second column is the third of the first one."""
    away = values[values[:, 0] != 7].astype(np.int64)
    return float((away[:, 1] == away[:, 0] * 3 // levels).mean())


@pytest.mark.statistical
@pytest.mark.slow
def test_a_column_of_ten_thousand_levels_takes_part_in_the_model() -> None:
    schema, rows = schema_of(*SIZES), long_rows(20_000)

    runs = [ran(AdaptiveGibbs(epsilon=5.0), schema, rows) for _ in range(5)]
    drawn = [sample(tables, 20_000, seed=1).values for tables, _ in runs]

    squares = mu_squared_for(exact(5.0), exact(1e-9))
    for tables, curator in runs:
        assert tables.model is not None
        # Level 7 alone stands out of the noise. 1,024 groups of ten records each said .03 less of the ties.
        assert 2 <= tables.model.sizes[0] <= USUAL_GROUPS
        assert tables.model.sizes[1:] == (3, 4, 2)
        assert (0, 1) in tables.model.cliques
        assert squares * (1 - Fraction(1, 10**8)) < paid(curator) <= squares
    for values in drawn:
        assert (values[:, 0] == 7).mean() == pytest.approx(0.5, abs=0.03)
        assert len(np.unique(values[:, 0])) > 1000
        tie = [(one[:, 2] == one[:, 1]).mean() for one in (rows, values)]
        assert abs(tie[0] - tie[1]) < 0.03
    # The noise has no seed. 400 runs: .021 to .072 below the records, .040 on average (deviation .0085).
    lost = [followed(rows) - followed(values) for values in drawn]
    assert -0.03 < np.mean(lost) < 0.06


def test_groups_of_an_ordered_column_are_runs_of_neighbors() -> None:
    schema = schema_of(500, 3, 4, 2)
    ages = Column("c0", "numeric", edges=tuple(float(v) for v in range(500)), missing=True)
    schema = replace(schema, columns=(ages, *schema.columns[1:]))

    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema, long_rows(3000, 500))

    assert tables.model is not None
    merged = tables.model.merged[0]
    assert merged is not None
    assert (np.diff(merged.groups) >= 0).all()
    assert (merged.groups[:-1] < merged.groups[-1]).all()  # missing stays apart


def test_levels_that_a_structural_zero_tells_apart_are_not_merged() -> None:
    rule = Impossible((("c0", (5, 6)), ("c2", (1,))))
    ruled = replace(schema_of(300, 2, 4), impossible=(rule,))
    rows = np.random.default_rng(0).integers(0, (300, 2, 4), (3000, 3))
    rows = rows[~impossible_mask(ruled, rows)]

    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), ruled, rows)
    drawn = sample(tables, 3000, seed=1).values

    assert tables.model is not None
    merged = tables.model.merged[0]
    assert merged is not None
    assert not set(merged.groups[[5, 6]]) & set(np.delete(merged.groups, [5, 6]))
    assert not impossible_mask(ruled, drawn).any()


def test_the_schema_alone_bounds_the_groups() -> None:
    ruled = replace(
        schema_of(500, 200), impossible=tuple(Impossible((("c1", (k,)),)) for k in range(150))
    )

    assert model_sizes(schema_of(5000, 3, 257, 256), LIMITS.cells) == (1024, 3, 257, 256)
    assert model_sizes(schema_of(5000, 3, 257, 256), 65_536) == (256, 3, 256, 256)
    assert model_sizes(schema_of(5000, 3, 129, 128), 100) == (10, 3, 10, 128)
    assert model_sizes(ruled, LIMITS.cells) == (500, 200)
    assert model_sizes(ruled, 65_536) == (256, 200)
    assert model_sizes(ruled, 10_000) == (100, 151)


def test_two_long_columns_and_nothing_else_are_drawn() -> None:
    rows = np.random.default_rng(0).integers(0, 2000, (3000, 2))

    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema_of(2000, 2000), rows)

    assert sample(tables, 50, seed=1).values.shape == (50, 2)


def test_where_no_pair_of_groups_is_small_enough_columns_are_drawn_apart() -> None:
    rows = np.random.default_rng(0).integers(0, 500, (3000, 3))

    tables, curator = ran(AdaptiveGibbs(epsilon=1.0, cells=4), schema_of(500, 500, 500), rows)

    assert paid(curator) <= mu_squared_for(exact(1.0), exact(1e-9))
    assert sample(tables, 50, seed=1).values.shape == (50, 3)


def test_rows_of_wide_tables_are_closed_to_measured_pairs_alone() -> None:
    cliques = {(0, 5), (1, 2, 9), (3, 99)}

    assert goal_pairs((3,) * 20, cliques, 10**6) == tuple(itertools.combinations(range(20), 2))
    assert goal_pairs((3,) * 100, cliques, 10**6) == (
        (0, 5),
        (1, 2),
        (1, 9),
        (2, 9),
        (3, 99),
    )


@pytest.mark.parametrize(
    ("turn", "picks"),
    [
        (0, [2, 2, 4, 8, 32, 128, 300]),
        (7, [2, 2, 4, 8, 32, 128, 300]),
        (8, [2, 4, 8, 16, 32, 128, 300]),
    ],
    ids=["first", "eighth", "ninth"],
)
def test_tables_of_a_round_are_few_at_first_and_many_of_wide_tables(
    turn: int, picks: list[int]
) -> None:
    columns = (1, 8, 15, 32, 64, 128, 300)

    assert [AdaptiveGibbs()._split(schema_of(*[2] * m)).picks(turn) for m in columns] == picks


@pytest.mark.slow
def test_seventy_columns_keep_their_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_adaptive_rounds, "PICKS", 4)  # fewer rounds, each at a higher price
    sizes = (3,) * 70
    rows = chain_rows(sizes, 5000)

    tables, _ = ran(AdaptiveGibbs(epsilon=10.0), schema_of(*sizes), rows)
    drawn = sample(tables, 5000, seed=1).values

    assert tables.model is not None
    pairs = [goal.columns for goal in tables.model.goals if len(goal.columns) == 2]
    assert 40 < len(pairs) < 70 * 69 / 2
    ties = [[(one[:, j] == one[:, j + 1]).mean() for j in range(69)] for one in (rows, drawn)]
    assert np.abs(np.subtract(*ties)).mean() < 0.05
