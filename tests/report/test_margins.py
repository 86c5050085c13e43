"""Margins of published tables against sums by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.context import Context, Hashed
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.reporting import margins

SCHEMA = gb.Schema(
    (
        gb.Column("a", "nominal", levels=("x", "y")),
        gb.Column("b", "nominal", levels=("p", "q", "r")),
        gb.Column("c", "nominal", levels=("0", "1", "2", "3")),
    )
)
NOISE = NoiseInfo("gaussian", 2.0)
CUBE = np.arange(24).reshape(2, 3, 4) - 5  # [a, b, c], some below 0


def _tables(*items: Table) -> Tables:
    return Tables(SCHEMA, items, Recipe("ancestral", tuple(range(len(items)))))


def _joint() -> Table:
    """Counts of (a, c) for each value of b."""
    context = Context((0, 2), (1,), (2, 4), (3,))
    return Table(context, Dense(CUBE.transpose(1, 0, 2).reshape(3, 8)), NOISE)


@pytest.mark.parametrize(("column", "axes"), [(0, (1, 2)), (2, (0, 1))])
def test_a_margin_of_a_joint_table_is_the_sum_over_the_others(
    column: int, axes: tuple[int, ...]
) -> None:
    found = margins.noisy(_tables(_joint()), column)

    assert found is not None
    np.testing.assert_array_equal(found.counts, CUBE.sum(axis=axes))
    added = CUBE.size // CUBE.shape[column]
    assert found.deviation == pytest.approx(2.0 * np.sqrt(added))
    assert set(found.given) == set(SCHEMA.names) - {SCHEMA.names[column]}


def test_the_margin_with_the_least_noise_is_taken() -> None:
    exact = Table(
        Context((0,), (), (2,), ()), Dense(np.array([[30, -4]])), NoiseInfo("gaussian", 3)
    )

    found = margins.noisy(_tables(_joint(), exact), 0)

    assert found is not None
    assert found.counts.tolist() == [30, -4]
    assert found.shares.tolist() == [1.0, 0.0]
    assert found.given == ()


def test_a_thresholded_table_adds_what_was_kept_and_states_no_deviation() -> None:
    cells = Sparse(
        np.array([0, 0, 3], np.uint64), np.array([1, 2, 1], np.uint64), np.array([9, 8, 7])
    )
    context = Context((1,), (0, 2), (3,), (2, 4), key=Hashed(8), support="seen")

    found = margins.noisy(_tables(Table(context, cells, NoiseInfo("geometric", 2.0, 5))), 1)

    assert found is not None
    assert found.counts.tolist() == [0, 16, 8]
    assert found.deviation is None


def test_a_column_that_no_table_counts_has_no_margin() -> None:
    assert margins.noisy(_tables(_joint()), 1) is None


def test_shares_of_the_sets_are_counted_set_by_set() -> None:
    first = pl.DataFrame({"a": ["x", "x", "y"], "b": ["p"] * 3, "c": ["3", "0", "0"]})
    second = pl.DataFrame({"a": ["y"], "b": ["r"], "c": ["1"]})

    found = margins.drawn([first, second], SCHEMA)

    np.testing.assert_allclose(found[0], [[2 / 3, 1 / 3], [0, 1]])
    np.testing.assert_allclose(found[2], [[2 / 3, 0, 0, 1 / 3], [0, 1, 0, 0]])


def test_a_long_column_keeps_its_largest_levels_in_order() -> None:
    shares = np.array([0.1, 0.0, 0.4, 0.2, 0.3])

    assert margins.kept(shares, 5).tolist() == [0, 1, 2, 3, 4]
    assert margins.kept(shares, 4).tolist() == [2, 3, 4]
