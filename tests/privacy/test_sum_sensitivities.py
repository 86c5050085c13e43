"""Sensitivities by enumeration of all small tables at the corners of the bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.moment import Moment, moment
from gibbous.core.recode import recoded
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.plain import sums
from gibbous.mechanisms._modips_statistics import coarsening, moments
from gibbous.sampling.cells.cell_index import cell_context
from tests.mechanisms.numeric_records import on_grid, secret

RANGES = (2.0, 3.0)
Table = tuple[tuple[float, ...], ...]
Statistic = Callable[[np.ndarray], float]


def mean(table: np.ndarray) -> float:
    return float(table[:, 0].mean())


def variance(table: np.ndarray) -> float:
    return float(table[:, 0].var(ddof=1))


def covariance(table: np.ndarray) -> float:
    return float(np.cov(table[:, 0], table[:, 1])[0, 1])


def pooled(i: int, j: int, cells: int) -> Statistic:
    """Pooled covariance of columns i and j within the cells of the last column, divisor n - K."""

    def statistic(table: np.ndarray) -> float:
        total = 0.0
        for cell in range(cells):
            part = table[table[:, 2] == cell]
            if len(part):
                total += float(
                    ((part[:, i] - part[:, i].mean()) * (part[:, j] - part[:, j].mean())).sum()
                )
        return total / (len(table) - cells)

    return statistic


def largest_change(statistic: Statistic, records: list[tuple[float, ...]], rows: int) -> float:
    """Over all tables of `rows` records and all replacements of one of them."""
    worst = 0.0
    for rest in itertools.combinations_with_replacement(records, rows - 1):
        values = [statistic(np.array((*rest, one))) for one in records]
        worst = max(worst, max(values) - min(values))
    return worst


NUMBERS = list(itertools.product((0.0, 1.0, 2.0), (0.0, 1.5, 3.0)))
CORNERS = list(itertools.product((0.0, RANGES[0]), (0.0, RANGES[1])))
IN_CELLS = [(*corner, cell) for corner in CORNERS for cell in (0.0, 1.0)]


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_mean_moves_by_its_range_over_n(rows: int) -> None:
    found = largest_change(mean, NUMBERS, rows)

    assert found == pytest.approx(RANGES[0] / rows, abs=1e-12)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_variance_moves_by_its_range_squared_over_n(rows: int) -> None:
    found = largest_change(variance, NUMBERS, rows)

    assert found == pytest.approx(RANGES[0] ** 2 / rows, abs=1e-12)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_covariance_moves_by_the_product_of_the_ranges_over_n(rows: int) -> None:
    found = largest_change(covariance, CORNERS, rows)

    assert found == pytest.approx(RANGES[0] * RANGES[1] / rows, abs=1e-12)


def test_a_pooled_variance_moves_by_less_than_its_range_squared_over_n_less_cells() -> None:
    rows, cells = 6, 2

    found = largest_change(pooled(0, 0, cells), IN_CELLS, rows)

    bound = RANGES[0] ** 2 / (rows - cells)
    assert 0.6 * bound < found <= bound + 1e-12


def test_a_pooled_covariance_moves_by_more_than_one_product_of_ranges_over_n_less_cells() -> None:
    """A record that changes its cell counts twice: the bound is 2 R1 R2 / (n - K)."""
    rows, cells = 6, 2

    found = largest_change(pooled(0, 1, cells), IN_CELLS, rows)

    once = RANGES[0] * RANGES[1] / (rows - cells)
    assert once * 1.2 < found <= 2 * once


def test_21_records_in_2_cells_show_0_0957_where_0_0526_would_be_charged() -> None:
    """The figures of s7.5: ranges 1, n = 21, K = 2; ten records in each cell, all at one corner."""
    statistic, worst = pooled(0, 1, 2), 0.0
    corners = list(itertools.product((0.0, 1.0), repeat=2))
    for first, second in itertools.product(corners, repeat=2):
        rest = [(*first, 0.0)] * 10 + [(*second, 1.0)] * 10
        values = [statistic(np.array([*rest, (*c, cell)])) for c in corners for cell in (0.0, 1.0)]
        worst = max(worst, max(values) - min(values))

    assert worst == pytest.approx(20 / 11 / 19, abs=1e-12)
    assert round(worst, 4) == 0.0957
    assert round(1 / 19, 4) == 0.0526
    assert worst <= 2 / 19


def test_a_cell_mean_moves_by_its_whole_range_where_the_cell_holds_one_record() -> None:
    def first_cell(table: np.ndarray) -> float:
        part = table[table[:, 2] == 0]
        return float(part[:, 0].mean()) if len(part) else 0.0

    found = largest_change(first_cell, IN_CELLS, 4)

    assert found == RANGES[0]


# --- what modips releases: sums of grid numbers

GROUP = Column("g", "binary", levels=("a", "b"))
LEFT = Column("left", "numeric", edges=(0, 2), integer=True)
RIGHT = Column("right", "numeric", edges=(-3, 3), integer=True, missing=True)
SCHEMA = Schema((GROUP, LEFT, RIGHT))


def _all_records() -> list[tuple[float, ...]]:
    return list(itertools.product((0, 1), (0, 1, 2), (-3, 0, 3, np.nan)))


def _sums(records: list[tuple[float, ...]], wanted: tuple[Moment, ...]) -> list[np.ndarray]:
    array = np.array(records, dtype=np.float64).reshape(-1, 3)
    values = np.zeros(array.shape)
    values[:, 0] = array[:, 0]
    codes: Codes = secret(SCHEMA, values, {1: array[:, 1], 2: array[:, 2]})
    coarse = recoded(codes, coarsening(SCHEMA))
    return [found.cells.values.ravel() for found in sums(coarse, wanted)]


@pytest.mark.parametrize("kind", ["pooled", "cells"])
@pytest.mark.parametrize("relation", get_args(Relation))
def test_sums_move_by_what_their_price_says_and_no_less(relation: Relation, kind: str) -> None:
    wanted = moments(SCHEMA, kind)  # type: ignore[arg-type]
    crowd = [(0.0, 1.0, 3.0)]
    each = [_sums([*crowd, one], wanted) for one in _all_records()]
    before = [_sums(crowd, wanted)] if relation == "add_remove" else each
    for place, one in enumerate(wanted):
        changes = [np.abs(a[place] - b[place]) for a, b in itertools.product(before, each)]
        l1 = max(int(change.sum()) for change in changes)
        l2 = max(int((change**2).sum()) for change in changes)

        assert l1 <= one.l1(relation, 1)
        assert l2 <= one.l2_squared(relation, 1)
        # Only one sum of squares over all records: no record moves it by more than the bound.
        whole = relation == "replace_one" and one.squares and kind == "pooled"
        assert whole or l1 == one.l1(relation, 1)


def test_each_moment_has_the_bound_of_its_grids() -> None:
    found = {one.factors: one.bound for one in moments(SCHEMA, "pooled")}

    assert found == {(1,): 1, (2,): 3, (1, 1): 1, (1, 2): 3, (2, 2): 9}


def test_a_moment_over_the_cells_counts_a_missing_number_as_0() -> None:
    records = [(0, 2, np.nan), (0, 2, 3), (1, 0, -3)]

    found = _sums(records, (moment(SCHEMA, cell_context(SCHEMA), (2,)),))

    # Cells are (g, number or missing): the second of each pair is where the number is missing.
    assert found[0].tolist() == [3, 0, -3, 0]
    assert on_grid(RIGHT, [3]).tolist() == [3.0]
