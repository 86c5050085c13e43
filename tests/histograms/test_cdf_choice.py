"""The private draw of a distribution function: its grid, its exact law, its price, and its rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Impossible, Schema
from gibbous.mechanisms.cdf import Cdf
from gibbous.sampling import cdf_rows
from gibbous.sampling.cdf_rows import SPARE, band_weights, bands, draw_function, paths, pick
from gibbous.structure.cdf_grid import MOST_GROUPS, MOST_STEPS, CdfGrid, cdf_grid
from tests.histograms import exact_laws

SMALL = Schema(
    (Column("x", "binary", levels=(0, 1)), Column("y", "nominal", levels=("a", "b", "c")))
)
Law = dict[tuple[int, ...], float]


def functions(grid: CdfGrid) -> list[tuple[int, ...]]:
    inner = itertools.combinations_with_replacement(range(grid.steps + 1), grid.groups - 1)
    return [(*one, grid.steps) for one in inner]


def distance(grid: CdfGrid, counts: np.ndarray, function: tuple[int, ...]) -> int:
    """Kolmogorov-Smirnov distance in counts, rounded up."""
    below = np.cumsum(counts)[grid.ends() - 1].tolist()
    apart = [
        abs(n - below[-1] * Fraction(f, grid.steps)) for n, f in zip(below, function, strict=True)
    ]
    found: int = math.ceil(max(apart))
    return found


def brute(grid: CdfGrid, counts: np.ndarray, ratio: float, levels: int) -> Law:
    """The law by its definition."""
    apart = {one: distance(grid, counts, one) for one in functions(grid)}
    least = min(apart.values())
    weights = {one: ratio ** min(d - least, levels) for one, d in apart.items()}
    total = math.fsum(weights.values())
    return {one: weight / total for one, weight in weights.items()}


def sampled(grid: CdfGrid, counts: np.ndarray, epsilon: Fraction) -> Law:
    """The law that the code draws from, by its bands and its ways through each."""
    low, high, ratio = bands(grid, counts, epsilon)
    weights = band_weights(low, high, ratio)
    shares = weights / math.fsum(weights)
    layers = list(paths(low, high))
    return {one: math.fsum(shares * _through(layers, one)) for one in functions(grid)}


def _through(layers: list[tuple[int, np.ndarray]], function: tuple[int, ...]) -> np.ndarray:
    """Probability of one function in each band, as the draw goes back from group to group."""
    found = np.ones(len(layers[0][1]))
    for place in range(len(function) - 2, -1, -1):
        first, ways = layers[place]
        upto = ways[:, : max(0, function[place + 1] - first + 1)]
        at = function[place] - first
        if not 0 <= at < upto.shape[1]:
            return np.zeros(len(found))
        found = found * upto[:, at] / np.maximum(upto.sum(axis=1), 1)
    return found


TABLES = [
    (CdfGrid(3, 3, 8), (5, 0, 2)),
    (CdfGrid(4, 4, 5), (0, 3, 0, 0)),
    (CdfGrid(5, 3, 7), (9, 4, 1, 0, 30)),
]


@pytest.mark.parametrize(("grid", "counts"), TABLES)
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 20), Fraction(30)])
def test_the_law_of_the_draw_is_the_exponential_mechanism_over_all_functions(
    grid: CdfGrid, counts: tuple[int, ...], epsilon: Fraction
) -> None:
    table = np.array(counts)
    low, _, ratio = bands(grid, table, epsilon)

    law, wanted = sampled(grid, table, epsilon), brute(grid, table, ratio, len(low) - 1)

    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    worst = max(abs(law[one] / wanted[one] - 1) for one in wanted)
    assert worst < 1e-12
    assert -2 * math.log(ratio) == pytest.approx(min(float(epsilon), 40 * math.log(2)), rel=1e-6)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_one_record_changes_the_law_by_its_price_at_most_and_nearly_by_that(relation: Any) -> None:
    grid, epsilon = CdfGrid(3, 3, 6), Fraction(1)

    def loss(change: Fraction) -> float:
        laws: dict[exact_laws.Counts, Law] = {}

        def law(counts: exact_laws.Counts) -> Law:
            if counts not in laws:
                laws[counts] = sampled(grid, np.array(counts), epsilon * change)
            return laws[counts]

        return max(
            abs(math.log(law(one)[f] / law(two)[f]))
            for one, two in exact_laws.neighbors(3, 4, relation)
            for f in functions(grid)
        )

    assert 0.6 < loss(Fraction(1)) <= 1
    assert loss(Fraction(2)) > 1  # twice as sure as is priced


def test_the_error_of_float_sums_is_below_what_is_kept_back_for_it() -> None:
    # Every factor is a product or a sum of positive numbers: (1 + 2^-53)^operations at most, twice for
    # the law and for its total, of both neighbors.
    operations = (MOST_STEPS + 1) * MOST_GROUPS + 2 * cdf_rows.MOST_LEVELS + 8

    assert 4 * operations * 2.0**-53 * 1.001 < float(SPARE)
    assert CdfGrid(64, MOST_GROUPS, MOST_STEPS).log_functions + 20 + 14 < math.log(2.0**1022)


@pytest.mark.slow
def test_functions_are_drawn_with_their_law_and_other_weights_are_told_apart() -> None:
    # Chi-square, level 1e-6 each, 4,000 draws.
    grid, table = CdfGrid(3, 3, 4), np.array([4, 1, 2])
    low, _, ratio = bands(grid, table, Fraction(1))
    words = exact_laws.seeded(5)

    drawn = [tuple(draw_function(grid, table, Fraction(1), words).tolist()) for _ in range(4000)]

    def level(law: Law) -> float:
        seen = [drawn.count(one) for one in law]
        return float(chisquare(seen, [4000 * p for p in law.values()]).pvalue)

    assert level(brute(grid, table, ratio, len(low) - 1)) > 1e-6
    assert level(brute(grid, table, ratio**1.4, len(low) - 1)) < 1e-6


def test_a_pick_has_exactly_the_weights_it_is_given() -> None:
    words = exact_laws.seeded(1)
    weights = np.array([2.0**-60, 0.0, 3.0, 1.0])

    drawn = np.bincount([pick(weights, words) for _ in range(4000)], minlength=4)

    assert drawn[1] == 0
    assert drawn[2] == pytest.approx(3000, abs=140)  # five standard deviations


@pytest.mark.parametrize(
    ("size", "signal", "groups"), [(2, 1e6, 64), (5, 30, 64), (900, 1e9, 64), (9, -3, 4)]
)
def test_a_grid_stays_within_what_floats_count(size: int, signal: float, groups: int) -> None:
    grid = cdf_grid(size, signal, groups)

    assert 2 <= grid.groups <= min(size, groups, MOST_GROUPS)
    assert 4 <= grid.steps <= MOST_STEPS
    assert grid.ends()[-1] == size
    assert (np.diff(grid.ends(), prepend=0) >= 1).all()
    assert grid.log_functions == pytest.approx(
        math.log(math.comb(grid.groups - 1 + grid.steps, grid.steps))
    )


def test_the_weights_of_a_function_are_its_steps_shared_within_groups() -> None:
    grid = CdfGrid(5, 2, 16)  # groups of 2 and 3 codes

    weights = grid.weights(np.array([3, 16])).astype(float)

    shares = weights / weights.sum()
    assert shares[:2] == pytest.approx([3 / 16 / 2] * 2)
    assert shares[2:] == pytest.approx([13 / 16 / 3] * 3)


@pytest.mark.parametrize(("epsilon", "most"), [(1, 0.02), (100, 0.004)])
def test_rows_come_near_the_records_and_nearer_with_more_budget(
    epsilon: float, most: float
) -> None:
    # 20 codes, 20,000 records: the noise is about 2 * 20 / 20,000 / epsilon, the rows' own .002.
    schema = Schema((Column("x", "ordinal", levels=tuple(range(20))),))
    values = np.minimum(np.arange(20_000) % 37, 19)[:, None]

    drawn = release(Cdf(epsilon=epsilon), schema, values, 400_000)

    assert isinstance(drawn, Codes)
    shares = np.bincount(drawn.values[:, 0], minlength=20) / 400_000
    true = np.bincount(values[:, 0], minlength=20) / 20_000
    assert np.abs(np.cumsum(shares - true)).max() < most


def test_a_table_without_records_gives_rows() -> None:
    drawn = release(Cdf(epsilon=1), SMALL, np.empty((0, 2), dtype=np.int64), 10)

    assert isinstance(drawn, Codes)
    assert len(drawn.values) == 10


def test_columns_apart_that_leave_only_impossible_rows_become_uniform_ones() -> None:
    rule = Impossible((("x", (1,)), ("y", (2,))))
    schema = Schema(SMALL.columns, impossible=(rule,))
    values = np.repeat([[1, 0], [0, 2]], [1000, 1], axis=0)
    only = np.array([[1, 2]])

    for table in (values, only):
        drawn = release(Cdf(epsilon=1e4), schema, table, 50)

        assert isinstance(drawn, Codes)
        assert not ((drawn.values[:, 0] == 1) & (drawn.values[:, 1] == 2)).any()
