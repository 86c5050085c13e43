"""The private choice of a distribution function: its grid, its score, its exact law, and its rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Impossible, Schema
from gibbous.mechanisms.cdf import Cdf
from gibbous.structure.cdf_grid import cdf_grid, distances
from tests.histograms import exact_laws

SMALL = Schema(
    (Column("x", "binary", levels=(0, 1)), Column("y", "nominal", levels=("a", "b", "c")))
)


@pytest.mark.parametrize(("size", "groups", "most"), [(2, 8, 16), (5, 3, 100), (9, 4, 1 << 14)])
def test_the_grid_lists_every_function_once(size: int, groups: int, most: int) -> None:
    grid = cdf_grid(size, groups, most)

    functions = grid.functions()

    assert len(functions) == grid.candidates <= most
    assert len({tuple(f) for f in functions.tolist()}) == len(functions)
    assert (np.diff(functions, axis=1) >= 0).all()
    assert (functions[:, -1] == grid.steps).all()
    finer = dataclasses.replace(grid, steps=grid.steps + 1)
    assert finer.candidates > most or finer.steps > 1024


def test_the_weights_of_a_function_are_its_steps_shared_within_groups() -> None:
    grid = cdf_grid(5, 2, 16)  # groups of 2 and 3 codes
    function = np.array([3, grid.steps])

    weights = grid.weights(function).astype(float)

    shares = weights / weights.sum()
    assert shares[:2] == pytest.approx([3 / grid.steps / 2] * 2)
    assert shares[2:] == pytest.approx([(1 - 3 / grid.steps) / 3] * 3)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_one_record_moves_every_score_by_one_at_most_and_some_by_one(relation: Any) -> None:
    grid = cdf_grid(3, 3, 60)
    functions = grid.functions()

    moves = [
        np.abs(
            distances(grid, functions, np.array(one)) - distances(grid, functions, np.array(two))
        ).max()
        for one, two in exact_laws.neighbors(3, 5, relation)
    ]

    assert max(moves) == pytest.approx(1)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_exact_law_of_the_choice_costs_at_most_epsilon(relation: Any) -> None:
    grid = cdf_grid(3, 3, 60)
    functions = grid.functions()

    def law(counts: exact_laws.Counts) -> np.ndarray:
        weights = np.exp(-distances(grid, functions, np.array(counts)) / 2)
        found: np.ndarray = weights / weights.sum()
        return found

    loss = max(
        float(np.abs(np.log(law(one) / law(two))).max())
        for one, two in exact_laws.neighbors(3, 6, relation)
    )

    assert 0.6 < loss <= 1


def test_the_candidate_nearest_to_the_records_is_chosen_at_a_large_budget() -> None:
    schema = Schema((Column("x", "ordinal", levels=tuple(range(4))),))
    values = np.repeat([0, 1, 2, 3], [400, 100, 300, 200])[:, None]

    drawn = release(Cdf(epsilon=500, candidates=1 << 12), schema, values, 20_000)

    assert isinstance(drawn, Codes)
    shares = np.bincount(drawn.values[:, 0], minlength=4) / 20_000
    assert np.abs(np.cumsum(shares) - [0.4, 0.5, 0.8, 1.0]).max() < 0.03


def test_columns_apart_that_leave_only_impossible_rows_become_uniform_ones() -> None:
    rule = Impossible((("x", (1,)), ("y", (2,))))
    schema = Schema(SMALL.columns, impossible=(rule,))
    values = np.repeat([[1, 0], [0, 2]], [1000, 1], axis=0)
    only = np.array([[1, 2]])

    for table in (values, only):
        drawn = release(Cdf(epsilon=1e4), schema, table, 50)

        assert isinstance(drawn, Codes)
        assert not ((drawn.values[:, 0] == 1) & (drawn.values[:, 1] == 2)).any()
