"""What the rows are worth: against the records, structural zeros, other budgets, few columns."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gibbous.core.schema import Impossible, impossible_mask
from gibbous.mechanisms import _adaptive_model
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.sampling.sample import sample
from gibbous.sampling.structural_zeros import possible_cells
from gibbous.structure.cliques import Limits
from gibbous.structure.smoothing import Components, added
from tests.adaptive_gibbs.made import chain_rows, ran, rounds_of, schema_of

SIZES = (3, 4, 2, 5, 3)
ROWS = chain_rows(SIZES, 4000)


def distance(one: np.ndarray, two: np.ndarray, columns: tuple[int, ...]) -> float:
    """Total variation distance of two tables on some columns."""
    shares = []
    for values in (one, two):
        table = np.zeros(tuple(SIZES[c] for c in columns))
        np.add.at(table, tuple(values[:, c] for c in columns), 1)
        shares.append(table / len(values))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def known_of(sizes: tuple[int, int], rows: float, sigma: float) -> _adaptive_model.Known:
    """Two columns of even levels, bought as one table with some noise, and chains of them."""
    schema, cells = schema_of(*sizes), sizes[0] * sizes[1]
    table = np.full(sizes, rows / cells)
    components = added(Components(), [((0, 1), table, sigma**2)])
    shares = tuple(np.full(size, 1 / size) for size in sizes)
    known = _adaptive_model.Known(
        schema, schema, components=components, references={(0, 1): ()}, shares=shares, rows=rows
    )
    return _adaptive_model.begun(known, Limits())


def test_between_rounds_only_what_was_bought_anew_is_estimated() -> None:
    sizes, one = (3, 4, 2), np.arange(12.0).reshape(3, 4) * 20 + 50
    more = np.arange(6.0).reshape(3, 2) * 30 + 200
    components = added(Components(), [((0, 1), one, 9.0), ((0, 2), more, 9.0)])
    apart = {(0, 1): (np.full((3, 4), 150.0),), (0, 2): (np.full((3, 2), 300.0),)}
    known = _adaptive_model.Known(
        schema_of(*sizes),
        schema_of(*sizes),
        components=components,
        references=apart,
        shares=tuple(np.full(size, 1 / size) for size in sizes),
        rows=1800.0,
    )
    first = _adaptive_model.estimates(known, {})
    again = replace(known, components=added(components, [((0, 2), more + 60, 1.0)]))
    then, afresh = _adaptive_model.estimates(again, first), _adaptive_model.estimates(again, {})

    assert then[0, 1] is first[0, 1]
    assert not np.array_equal(then[0, 2][1], first[0, 2][1])
    assert np.array_equal(then[0, 2][1], afresh[0, 2][1])


@pytest.mark.statistical
def test_a_large_budget_brings_pairs_below_the_noise_of_resampling() -> None:
    # Twelve runs: mean .68 of the floor, spread .09; 1.3 is seven spreads away (level below 1e-6).
    tables, _ = ran(AdaptiveGibbs(epsilon=100.0), schema_of(*SIZES), ROWS)
    rows = sample(tables, len(ROWS), seed=1).values
    again = ROWS[np.random.default_rng(1).integers(0, len(ROWS), len(ROWS))]

    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    mine, floor = (np.mean([distance(ROWS, one, pair) for pair in pairs]) for one in (rows, again))

    assert mine < 1.3 * floor


@pytest.mark.statistical
def test_more_budget_is_better() -> None:
    # Twelve runs: .43 (spread .05), .036 (.007), .0054 (.0007): each bound is five spreads away or more.
    found = []
    for epsilon in (0.02, 0.5, 10.0):
        tables, _ = ran(AdaptiveGibbs(epsilon=epsilon), schema_of(*SIZES), ROWS)
        rows = sample(tables, len(ROWS), seed=1).values
        found.append(np.mean([distance(ROWS, rows, (j, j + 1)) for j in range(4)]))

    assert found[0] > found[1] > found[2]
    assert found[0] > 0.15
    assert found[2] < 0.03


def test_structural_zeros_hold_in_every_row() -> None:
    rule = Impossible((("c0", (0,)), ("c3", (1, 2))))
    schema = replace(schema_of(*SIZES), impossible=(rule,))
    kept = ROWS[~impossible_mask(schema, ROWS)]

    tables, _ = ran(AdaptiveGibbs(epsilon=0.1), schema, kept)
    rows = sample(tables, 3000, seed=2).values

    assert not impossible_mask(schema, rows).any()
    assert possible_cells(schema, (0, 3)).sum() == 15 - 2


def test_the_same_seed_draws_the_same_rows_and_another_seed_others() -> None:
    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema_of(*SIZES), ROWS)

    one, same, other = (sample(tables, 500, seed=s).values for s in (3, 3, 4))

    assert (one == same).all()
    assert (one != other).any()


def test_no_records_give_rows_all_the_same() -> None:
    tables, _ = ran(AdaptiveGibbs(epsilon=1.0), schema_of(*SIZES), ROWS[:0])

    assert sample(tables, 20, seed=1).values.shape == (20, 5)


@pytest.mark.slow
def test_more_rows_than_can_be_listed_go_through_chains() -> None:
    sizes = (9,) * 6  # 531,441 rows
    rows = chain_rows(sizes, 5000)

    tables, _ = ran(AdaptiveGibbs(epsilon=5.0), schema_of(*sizes), rows)
    drawn = sample(tables, 5000, seed=1).values

    tie = [(one[:, 0] == one[:, 1]).mean() for one in (rows, drawn)]
    assert abs(tie[0] - tie[1]) < 0.05


@pytest.mark.parametrize(
    ("sigma", "count"), [(0.0, 10_000), (1e4, 8192), (400**0.5, 8_333), (1.0, 50_000)]
)
def test_rounds_take_as_many_chains_as_the_noise_that_is_expected_asks_for(
    sigma: float, count: int
) -> None:
    # As below, but up to three tenths of sigma^2; as many chains as records where nothing is expected.
    known = known_of((10, 10), 10_000.0, 1.0)

    chains = _adaptive_model.begun(known, Limits(), sigma).chains

    assert chains.count == pytest.approx(count, rel=0.01)


@pytest.mark.parametrize(("columns", "sigma"), [(2, 60.0), (20, 190.0)])
def test_noise_of_a_pair_is_that_of_two_tables_a_column(columns: int, sigma: float) -> None:
    # A table costs mu^2 = 1 / sigma^2, and two a column are bought.
    sizes = (4,) * columns
    split = AdaptiveGibbs(epsilon=1.0, cells=rounds_of(*sizes))._split(schema_of(*sizes))
    left = Fraction(2 * columns) / Fraction(sigma) ** 2

    assert split.pair_sigma(left) == pytest.approx(sigma, rel=0.01)
    assert split.pair_sigma(Fraction(0)) == 0.0


@pytest.mark.parametrize(("sigma", "count"), [(1e4, 8192), (1000**0.5, 10_000), (1.0, 50_000)])
def test_the_last_fit_takes_as_many_chains_as_the_noise_of_its_tables_asks_for(
    sigma: float, count: int
) -> None:
    # 1e4 records in 100 cells: chains add (1e4)^2 / (100 chains), which may be a tenth of sigma^2.
    known = known_of((10, 10), 10_000.0, sigma)

    assert _adaptive_model.chains_needed(known) == pytest.approx(count, rel=0.02)


@pytest.mark.parametrize(("epsilon", "few"), [(10.0, 0.012), (1000.0, 0.001)])
def test_columns_that_are_the_same_are_drawn_the_same(epsilon: float, few: float) -> None:
    """Before: theta ended where its first step did, and 2 to 4 % of the rows said different things."""
    one = np.arange(3000) % 3
    rows = np.column_stack([one, one, np.where(np.arange(3000) < 30, 0, one)])

    tables, _ = ran(AdaptiveGibbs(epsilon=epsilon, delta=1e-9), schema_of(3, 3, 3), rows)
    drawn = sample(tables, 20_000, seed=1).values

    # Noise at epsilon 10 leaves .0024 of the rows beside the diagonal (sd .0008 in 60 runs).
    assert (drawn[:, 0] != drawn[:, 1]).mean() < few
    assert (drawn[:, 0] != drawn[:, 2]).mean() == pytest.approx(20 / 3000, abs=few + 0.003)


def test_the_plan_of_a_small_table_states_the_noise_of_the_one_table_that_is_bought() -> None:
    method, schema = AdaptiveGibbs(epsilon=1, delta=1e-6), schema_of(20, 2)
    rows = np.stack([np.arange(500) % 20, np.arange(500) % 2], axis=1)

    tables, _ = ran(method, schema, rows)
    errors = dict(method.plan(schema, 500).errors)

    (one,) = tables.items
    assert errors["noise sd of one cell, counts"] == pytest.approx(one.noise.variance**0.5)
    assert (
        one.noise.scale == 1.0
    )  # geometric, of all of epsilon: Gaussian noise is 4.2 here, and asks a delta
    assert errors["expected 2-way total variation error from noise"] < 0.2
