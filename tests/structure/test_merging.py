"""Merging of rare levels, against plain loops and against what must never be joined."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.schema import Column, Impossible, Schema
from gibbous.structure.merging import (
    FEW,
    LEAST_GROUPS,
    MOST_GROUPS,
    USUAL_GROUPS,
    kinds_of,
    level_shares,
    merged_levels,
    most_groups,
    runs,
)

ALIKE = np.zeros(400, dtype=np.int64)


def zipf(levels: int = 400, rows: int = 20_000, seed: int = 0) -> np.ndarray:
    """Counts of levels in a shuffled order, few of them frequent."""
    rng = np.random.default_rng(seed)
    law = 1.0 / np.arange(1, levels + 1)
    return rng.multinomial(rows, rng.permutation(law / law.sum())).astype(np.float64)


def by_hand(
    shares: np.ndarray, alone: np.ndarray, least: float, alike: np.ndarray
) -> list[list[int]]:
    """Runs of an ordered column, one level after the other."""
    found: list[list[int]] = []
    parts: list[list[int]] = []
    for level in range(len(shares)):
        near = parts and not alone[level] and not alone[level - 1]
        if near and alike[level] == alike[level - 1]:
            parts[-1].append(level)
        else:
            parts.append([level])
    for part in parts:
        done: list[list[int]] = [[]]
        for level in part:
            done[-1].append(level)
            if sum(shares[v] for v in done[-1]) >= least:
                done.append([])
        if done[-1] and len(done) > 1 and not alone[part[0]]:
            last = done.pop()
            done[-1] += last
        found += [run for run in done if run]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_runs_of_an_ordered_column_are_those_made_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(60, 0.3))
    alike = (np.arange(60) > 40).astype(np.int64)
    alone = shares >= 0.08

    groups = runs(shares, alone, 0.08, ordered=True, alike=alike)

    mine = [np.flatnonzero(groups == g).tolist() for g in range(groups.max() + 1)]
    assert mine == by_hand(shares, alone, 0.08, alike)


def test_runs_without_order_pass_over_levels_that_stand_alone() -> None:
    shares = np.array([0.1, 0.4, 0.1, 0.1, 0.2, 0.1])
    alone = shares >= 0.2

    groups = runs(shares, alone, 0.2, ordered=False, alike=np.zeros(6, dtype=np.int64))

    assert groups.tolist() == [0, 1, 0, 2, 3, 2]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("sigma", [0.5, 30.0, 3000.0])
@pytest.mark.parametrize("most", [2, 16, MOST_GROUPS])
def test_there_are_at_least_two_groups_and_at_most_as_many_as_allowed(
    ordered: bool, sigma: float, most: int
) -> None:
    noisy = zipf() + np.random.default_rng(1).normal(0, sigma, 400)

    found = merged_levels(noisy, sigma, 20_000.0, ordered=ordered, alike=ALIKE, most=most)

    assert 2 <= found.groups.max() + 1 <= max(most, 6)
    assert np.array_equal(np.unique(found.groups), np.arange(found.groups.max() + 1))
    held = np.bincount(found.groups, weights=found.shares)
    np.testing.assert_allclose(held, 1.0)
    assert found.shares.min() > 0
    if ordered:
        assert (np.diff(found.groups) >= 0).all()


def test_levels_of_equal_counts_do_not_all_stand_alone() -> None:
    found = merged_levels(np.full(400, 50.0), 0.01, 20_000.0, ordered=False, alike=ALIKE)

    assert found.groups.max() < MOST_GROUPS


def test_frequent_levels_stand_alone_and_rare_ones_do_not() -> None:
    noisy = zipf() + np.random.default_rng(2).normal(0, 5.0, 400)

    found = merged_levels(noisy, 5.0, 20_000.0, ordered=False, alike=ALIKE)

    members = np.bincount(found.groups)[found.groups]
    order = np.argsort(-noisy)
    assert (members[order[:40]] == 1).all()
    assert (members[noisy < FEW * 5.0] > 1).all()


def test_missing_the_catch_all_and_ruled_levels_stay_apart() -> None:
    codes = Column("code", "nominal", levels=tuple(range(200)), other="rest", missing=True)
    rule = Impossible((("code", (3, 150)), ("kind", (1,))))
    schema = Schema((codes, Column("kind", "binary", levels=("a", "b"))), impossible=(rule,))
    alike = kinds_of(schema, 0)

    found = merged_levels(np.full(202, 10.0), 9.0, 2020.0, ordered=False, alike=alike)

    for apart in ([200], [201], [3, 150]):
        group = np.flatnonzero(found.groups == found.groups[apart[0]])
        assert set(group) <= set(apart)
    assert len(set(alike)) == 4


@pytest.mark.statistical
def test_shares_of_rare_levels_are_nearer_than_the_counts_set_to_zero_below_it() -> None:
    truth = zipf()
    noisy = truth + np.random.default_rng(3).normal(0, 40.0, 400)

    found = level_shares(noisy, 40.0, 20_000.0, noisy >= 160.0)

    clipped = np.maximum(noisy, 0.0)
    mine, plain = (np.abs(one - truth / 20_000).sum() for one in (found, clipped / clipped.sum()))
    assert found.sum() == pytest.approx(1.0)
    assert mine < 0.8 * plain


def test_two_merged_columns_have_a_table_within_the_limit() -> None:
    for cells in (4, 100, 20_000, 10**6):
        assert 2 <= most_groups((5000, 3), cells) <= MOST_GROUPS
        assert most_groups((5000, 3), cells) ** 2 <= cells


def test_more_groups_are_left_where_more_levels_can_stand_out_of_the_noise() -> None:
    stated = ((1.0, 0), (4 * 200.0, 9), (4 * 500.0, 9), (8e4, 350), (8e4, 5000))
    cells = MOST_GROUPS**2

    few = [most_groups((5000, 3), cells, *one) for one in stated]
    many = [  # tables of all pairs are too large
        most_groups((5000,) * 7, cells, *one) for one in stated
    ]

    assert few == [LEAST_GROUPS, 200, USUAL_GROUPS, 700, MOST_GROUPS]
    assert many == [LEAST_GROUPS, 200, USUAL_GROUPS, USUAL_GROUPS, USUAL_GROUPS]
