"""Noise objects: prices from the scale alone, builders within budget, thresholds on the cells that occur."""

from fractions import Fraction

import numpy as np
import pytest

from gibbous.core.claim import approximate, pure
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.tables import Dense, Sparse
from gibbous.privacy import accountant
from gibbous.privacy.calibrate.tails import geometric_tail_exact
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.noise import (
    Gaussian,
    Geometric,
    Thresholded,
    gaussian_for,
    geometric_for,
    stable_gaussian_for,
    stable_geometric_for,
)

RELATIONS = ["add_remove", "replace_one"]


def seen(values):
    cells = np.arange(len(values), dtype=np.uint64)
    return Sparse(cells, cells % 3, np.asarray(values, dtype=np.int64))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("tables", [1, 3, 13])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "1", "8"])
def test_builders_never_exceed_the_budget_and_waste_almost_none(relation, tables, rows, epsilon):
    budget = Fraction(epsilon)
    rho = rho_from_approx(epsilon, "1e-6")

    one = geometric_for(epsilon, tables, relation, rows).cost(tables, relation, rows)
    two = gaussian_for(rho, tables, relation, rows).cost(tables, relation, rows)
    three = stable_geometric_for(epsilon, "1e-6", tables, relation, rows)
    four = stable_gaussian_for(epsilon, "1e-6", tables, relation, rows)

    assert budget * (1 - Fraction(1, 10**9)) < one.epsilon <= budget
    assert rho * (1 - Fraction(1, 10**8)) < two.rho <= rho
    for noise in (three, four):
        price = noise.cost(tables, relation, rows)
        assert price.kind == "approximate"
        assert price.relation == relation
        assert price.epsilon <= budget
        assert 0 < price.delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("relation", RELATIONS)
def test_prices_are_those_of_sensitivity(relation):
    steps = 1 if relation == "add_remove" else 2

    assert Geometric(Fraction(2)).cost(3, relation, 5).epsilon == Fraction(3 * 5 * steps, 2)
    assert Gaussian(Fraction(2)).cost(3, relation, 5).rho == Fraction(3 * 25 * steps, 8)


def test_e13_a_person_with_k_rows_pays_k_times_or_k_squared():
    one, many = Geometric(Fraction(7)), Gaussian(Fraction(7))

    assert one.cost(2, "add_remove", 4).epsilon == 4 * one.cost(2, "add_remove", 1).epsilon
    assert many.cost(2, "add_remove", 4).rho == 16 * many.cost(2, "add_remove", 1).rho


def test_f3_noise_of_one_table_used_for_three_is_not_within_the_budget():
    noise = geometric_for(1, 1)

    assert accountant.within(pure(Fraction(1)), [noise.cost(1, "add_remove", 1)])
    assert not accountant.within(pure(Fraction(1)), [noise.cost(3, "add_remove", 1)])


def test_e14_noise_for_one_relation_costs_more_under_the_other():
    noise = stable_geometric_for(1, "1e-6", 3, "add_remove")
    budget = approximate(Fraction(1), Fraction(1, 10**6), relation="replace_one")

    assert not accountant.within(budget, [noise.cost(3, "replace_one", 1)])


def test_information_published_is_the_law_and_scale_that_is_used():
    noise = stable_geometric_for(1, "1e-6", 13)

    assert Geometric(Fraction(1, 3)).info().scale == float(Geometric(Fraction(1, 3)).scale)
    assert noise.info().law == "geometric"
    assert (noise.info().scale, noise.info().threshold) == (13.0, noise.threshold)
    assert Gaussian(Fraction(2)).info().variance == 4


def test_every_cell_of_a_dense_table_gets_noise_zero_cells_too():
    """F9, and mutant 4: a zero cell stays 0 with probability 5e-7 at scale 1e6."""
    noisy = Geometric(Fraction(10**6)).add(Dense(np.zeros((10, 10), dtype=np.int64)))

    assert np.count_nonzero(noisy.values) > 95


def test_plain_noise_on_only_the_cells_that_occur_is_refused():
    for noise in (Geometric(Fraction(1)), Gaussian(Fraction(1))):
        with pytest.raises(PrivacyRefused, match="stability threshold"):
            noise.add(seen([5, 6]))


def test_thresholded_noise_keeps_a_cell_iff_it_exceeds_the_threshold():
    noise = Thresholded(Geometric(Fraction(1, 50)), 10)  # noise is 0 but for 4e-22

    kept = noise.add(seen([9, 10, 11, 500]))

    assert kept.values.tolist() == [11, 500]
    assert kept.keys.tolist() == [2, 3]
    assert kept.levels.tolist() == [2, 0]


def test_f9_listing_an_empty_cell_changes_nothing():
    noise = Thresholded(Geometric(Fraction(100)), 0)

    kept = noise.add(seen([0] * 500))

    assert kept.values.size == 0


def test_dense_cells_below_the_threshold_become_zero():
    noise = Thresholded(Geometric(Fraction(1, 50)), 10)

    noisy = noise.add(Dense(np.array([[0, 10, 11]])))

    assert noisy.values.tolist() == [[0, 0, 11]]


def test_f8_a_unique_cell_survives_as_often_as_its_price_says():
    """40,000 unique cells, level 1e-6: thresholds one off are over 14 errors away."""
    noise, cells = Thresholded(Geometric(Fraction(1)), 4), 40_000
    share = float(noise.cost(1, "add_remove", 1).delta)

    kept = noise.add(seen([1] * cells)).values.size / cells

    error = (share * (1 - share) / cells) ** 0.5
    assert share == pytest.approx(float(geometric_tail_exact(Fraction(1), 3)), rel=1e-12)
    assert abs(kept - share) < 4.9 * error
    assert abs(kept - float(geometric_tail_exact(Fraction(1), 2))) > 4.9 * error
    assert abs(kept - float(geometric_tail_exact(Fraction(1), 4))) > 4.9 * error


def test_thresholded_noise_that_is_incomplete_or_hopeless_is_refused():
    with pytest.raises(ParameterError):
        Thresholded(Geometric(Fraction(2)), 10, Fraction(1))
    with pytest.raises(ParameterError):
        Thresholded(Geometric(Fraction(2)), -1)
    with pytest.raises(ParameterError):
        Thresholded(Geometric(Fraction(20)), 1).cost(1, "add_remove", 1)
    with pytest.raises(ParameterError):
        Thresholded(Gaussian(Fraction(2)), 1, Fraction(5)).cost(1, "add_remove", 1)


def test_e1_noise_without_a_scale_is_refused():
    for bad in (0, -1, float("nan"), float("inf")):
        for law in (Geometric, Gaussian):
            with pytest.raises(ParameterError):
                law(bad)
        with pytest.raises(ParameterError):
            geometric_for(bad, 1)


def test_unknown_relations_and_counts_of_tables_are_refused():
    with pytest.raises(ParameterError, match="relation"):
        Geometric(Fraction(1)).cost(1, "swap", 1)
    for tables, rows in ((0, 1), (1, 0), (1.5, 1), (True, 1)):
        with pytest.raises(ParameterError):
            Geometric(Fraction(1)).cost(tables, "add_remove", rows)
