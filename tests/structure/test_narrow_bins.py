"""Narrow bins: public grids, and shares that the noise is taken out of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gibbous.core.schema import Column
from gibbous.structure.fine_bins import measure_of
from gibbous.structure.narrow_bins import (
    merged_edges,
    narrow_edges,
    widest_edges,
)
from gibbous.structure.smoothing import simplex
from gibbous.structure.stretches import stretches

COST = Column("cost", "numeric", edges=(100.0, 5e3, 1e6), decimals=2)
STAY = Column("stay", "numeric", edges=(0, 60, 120), integer=True)
DAY = Column("day", "date", edges=(737060.0, 737425.0, 737790.0))


def test_a_logarithmic_grid_has_equal_ratios() -> None:
    edges = narrow_edges(COST, "log", 4)

    assert edges == pytest.approx((100, 1e3, 1e4, 1e5, 1e6))


def test_a_logarithmic_grid_from_zero_counts_distances_from_the_bound() -> None:
    edges = narrow_edges(STAY, "log", 3)

    # (1 + 120)^(i/3) - 1: 3.95 and 23.5, whole.
    assert edges == (0, 4, 23, 120)


@pytest.mark.parametrize("grid", ["equal", "log", "schema"])
@pytest.mark.parametrize("column", [COST, STAY, DAY], ids=lambda c: c.name)
def test_every_grid_makes_a_column_between_the_public_bounds(column: Column, grid: Any) -> None:
    edges = narrow_edges(column, grid, 256)
    made = Column("x", column.kind, edges=edges, integer=column.integer)  # checks its edges

    assert (edges[0], edges[-1]) == (column.edges[0], column.edges[-1])
    assert made.bins <= 256
    assert widest_edges(column, edges, 16).edges[0] == edges[0]
    assert len(widest_edges(column, edges, 16).edges) == min(16, made.bins) + 1


@pytest.mark.parametrize("grid", ["equal", "log"])
def test_every_narrow_bin_holds_a_number_of_the_declared_places(grid: Any) -> None:
    column = Column("x", "numeric", edges=(0.05, 5.0, 10.0), decimals=1)

    edges = narrow_edges(column, grid, 256)

    assert len(edges) == (100 if grid == "equal" else pytest.approx(70, abs=30))
    assert edges[1] == 0.2  # 0.1 is the only number of the first bin
    assert all(round(cut, 1) == cut for cut in edges[1:])


def test_numbers_below_0_have_the_bins_of_their_mirror_image() -> None:
    """Before, columns that have decimals and an upper bound of 0 or less had four bins."""
    east = Column("x", "numeric", edges=(60.0, 80.0), decimals=6)
    west = Column("x", "numeric", edges=(-80.0, -60.0), decimals=6)
    lopsided = Column("x", "numeric", edges=(-1000.0, 10.0), decimals=2)

    cuts = narrow_edges(east, "auto", 256)

    assert len(cuts) > 16
    inner = {round(-cut, 3) for cut in cuts[2:-2]}
    assert inner <= {round(cut, 3) for cut in narrow_edges(west, "auto", 256)}
    assert sum(cut < -10 for cut in narrow_edges(lopsided, "auto", 256)) > 20


@pytest.mark.parametrize(
    ("high", "bins"), [(32, 32), (33, 24), (1_000, 30), (1_000_000, 46)], ids=str
)
def test_whole_numbers_have_few_bins_of_both_kinds_or_one_each(high: int, bins: int) -> None:
    """16 equal ones, 5 of equal ratios for each power of ten, and those of the bounds alone."""
    column = Column("x", "numeric", edges=(0.0, float(high)), integer=True)

    edges = narrow_edges(column, "auto", 256)

    assert len(edges) - 1 <= bins
    assert len(edges) - 1 > bins - 6  # some cut points are the same whole number
    assert set(np.round(np.arange(1, 16) * high / 16)) <= set(edges) or high == 33


def test_cut_points_are_where_the_mass_is() -> None:
    counts = np.array([0.0, 500, 3, 0, 0, 40, 40, 41, 900, 0])

    assert merged_edges(tuple(range(11)), counts, 1e-6, 3, within=True).edges == (0, 5, 8, 10)


def test_counts_that_add_up_to_nothing_leave_one_bin() -> None:
    found = merged_edges((0.0, 1.0, 2.0, 3.0), np.zeros(3), 9.0, 4, within=True)

    assert found.edges == (0.0, 3.0)
    assert found.within is not None
    assert min(found.within.weights) >= 1


def test_a_smooth_column_with_a_peak_is_known_better_than_by_clipping() -> None:
    """10,000 records, falling by 4 % a bin with a peak, noise 30; seeded, so that nothing is left to chance.

    Measured: a total variation of .034 (clipped .165) and a mean of .96 (1.71) times the true one.
    """
    rng, size = np.random.default_rng(5), 256
    true = np.exp(-np.arange(size) / 25)
    true[6] += 0.3 * true.sum()
    true /= true.sum()
    errors, means = [], []
    for _ in range(10):
        noisy = 10_000 * true + np.rint(rng.normal(0, 30, size))
        clipped = simplex(noisy, max(1.0, noisy.sum()))
        law = stretches(noisy, 30.0, rows=(10_000.0, 30.0))
        both = (law / law.sum(), clipped / clipped.sum())
        errors.append([np.abs(one - true).sum() / 2 for one in both])
        means.append([one @ np.arange(size) / (true @ np.arange(size)) for one in both])

    error, plain = np.mean(errors, axis=0)
    mean, shifted = np.mean(means, axis=0)

    assert error < 0.06 < 0.5 * plain
    assert 0.9 < mean < 1.1 < shifted


def test_stretches_without_rows_join_the_bin_beside_them_but_not_that_of_zero() -> None:
    """A bin far away of which the law says that it is empty would hold what noise leaves in its count."""
    edges, counts = tuple(map(float, range(13))), np.zeros(12)
    counts[5:7] = 900, 1_100

    found = merged_edges(edges, counts, 10.0, 8, within=True)

    assert found.edges == (0, 6, 12)
    assert found.within is not None
    shares = np.array(found.within.weights) / sum(found.within.weights)
    assert shares == pytest.approx(counts / 2_000, abs=1e-5)
    # Without a law inside of bins their rows would be spread over the empty ones.
    assert merged_edges(edges, counts, 10.0, 8, within=False).edges == (0, 5, 6, 7, 12)
    # Beside many zeros a thin tail may hide in noise: the method is asked about it.
    zeros = np.array([2_000.0, *np.zeros(11)])
    assert merged_edges(edges, zeros, 10.0, 8, within=True).edges == (0, 1, 12)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_bin_of_which_nothing_is_known_has_its_rows_next_to_zero(sign: int) -> None:
    """It ends at a bound of a million: even rows of its steps would have a mean of 70,000."""
    far = np.array([1.0, *np.geomspace(10, 1e6, 26)])
    edges, counts = np.array([0.0, *far]), np.array([2_000.0, *np.zeros(26)])
    if sign < 0:
        edges, counts = np.append(-edges[::-1], 1.0), np.append(counts[:0:-1] * 0, [0.0, 2_000.0])

    found = merged_edges(tuple(edges.tolist()), counts, 10.0, 8, within=True)

    assert found.within is not None
    weights, low = np.array(found.within.weights), np.array(found.within.edges)
    beyond = np.abs(low[:-1] + low[1:]) / 2 > 1
    assert weights[beyond].min() > 0
    mean = float(weights[beyond] @ np.abs(low[:-1] + low[1:])[beyond]) / 2 / weights[beyond].sum()
    assert mean < 100


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bounds", [(0.0, 5e-324), (0.0, 1e-320), (-1e-310, 0.0), (1e-323, 1.0)])
def test_bounds_next_to_zero_are_cut_and_measured(bounds: tuple[float, float]) -> None:
    """Numbers too small to be divided by 10,000, or to divide the others."""
    column = Column("x", "numeric", edges=bounds)

    edges = narrow_edges(column, "auto", 256)

    assert (edges[0], edges[-1]) == bounds
    assert np.isfinite(sizes := measure_of(column, edges)).all()
    assert (sizes > 0).all()
