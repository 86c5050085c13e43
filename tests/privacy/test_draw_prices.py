"""Prices of draws from exact conditionals against the worst case, by enumeration."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate import gibbs
from tests.privacy import closed_forms as c
from tests.privacy.closed_forms import pmi_alpha

RELATIONS = ["add_remove", "replace_one"]


def vectors(total, levels):
    """All count vectors with at most `total` records."""
    return [v for v in product(range(total + 1), repeat=levels) if sum(v) <= total]


def pairs(rows, relation, levels, most):
    """Counts of one key without and with (or before and after) one unit of at most `rows` rows."""
    for rest in vectors(most, levels):
        for gained in vectors(rows, levels):
            base = np.array(rest)
            if relation == "add_remove":
                yield base, base + gained
            else:
                for lost in vectors(rows, levels):
                    yield base + lost, base + gained


def added(counts, alpha):
    return (counts + alpha) / (counts + alpha).sum()


def tilted(counts, epsilon):
    weights = np.exp(epsilon * (counts - counts.max()))
    return weights / weights.sum()


def ratios(law, rows, relation, most=4, levels=3):
    return [np.log(law(one)) - np.log(law(two)) for one, two in pairs(rows, relation, levels, most)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_one_draw_with_virtual_records_costs_what_is_charged(relation, rows, alpha):
    found = ratios(lambda n: added(n, alpha), rows, relation)
    worst = max(np.abs(r).max() for r in found)
    price = float(gibbs.eps0_from_alpha(alpha, rows))

    assert worst <= price * (1 + 1e-12)
    if relation == "replace_one":
        assert worst == pytest.approx(price, rel=1e-12)  # attained by an otherwise empty key
    else:
        assert max(np.ptp(r) for r in found) <= price * (1 + 1e-12)  # the range, for zCDP
        many = np.array([0, 10**7, 0])
        gained = np.log(added(many + np.array([rows, 0, 0]), alpha)) - np.log(added(many, alpha))
        assert gained.max() == pytest.approx(price, rel=1e-5)  # approached by a full key


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 2])
def test_one_tilted_draw_costs_what_is_charged(relation, rows):
    epsilon, steps = 0.7, 1 if relation == "add_remove" else 2
    found = ratios(lambda n: tilted(n, epsilon), rows, relation)
    price = float(gibbs.tilt_pure(Fraction("0.7"), 1, relation, rows))

    assert price == pytest.approx(steps * rows * epsilon)
    assert 0.6 * price < max(np.abs(r).max() for r in found) <= price
    assert max(np.ptp(r) for r in found) <= price * (1 + 1e-12)
    assert float(c.tilt_zcdp(Fraction("0.7"), 1, relation, rows)) == pytest.approx(price**2 / 8)


def renyi_bound(one, two):
    """Smallest rho for which the Renyi divergence is at most rho a at many orders a."""
    orders = np.concatenate([np.linspace(1.001, 3, 60), np.geomspace(3, 200, 60)])
    logs = [np.logaddexp.reduce(a * np.log(one) + (1 - a) * np.log(two)) for a in orders]
    return max(log / (a - 1) / a for a, log in zip(orders, logs, strict=True))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_zcdp_price_of_one_draw_covers_the_renyi_divergence(relation, alpha):
    price = float(gibbs.pegs_zcdp(alpha, 1, relation))

    worst = max(
        max(
            renyi_bound(added(a, alpha), added(b, alpha)),
            renyi_bound(added(b, alpha), added(a, alpha)),
        )
        for a, b in pairs(1, relation, 2, 4)
    )

    assert 0.3 * price < worst <= price * (1 + 1e-9)


def test_replace_one_is_never_priced_at_the_range_of_add_remove():
    """Two levels, an empty key: randomized response, whose rho is twice and more the range's."""
    one, two = added(np.array([1, 0]), 1.0), added(np.array([0, 1]), 1.0)

    assert renyi_bound(one, two) > float(gibbs.pegs_zcdp(1, 1, "add_remove"))
    assert renyi_bound(one, two) <= float(gibbs.pegs_zcdp(1, 1, "replace_one"))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
def test_block_alpha_solves_its_equation_from_the_safe_side(relation, rows, epsilon):
    sizes, budget = [2, 3, 25], Fraction(epsilon)
    alpha = gibbs.block_alpha(epsilon, sizes, relation, rows)

    assert (
        budget * (1 - Fraction(1, 10**9)) < gibbs.block_pure(alpha, sizes, relation, rows) <= budget
    )
    formula = len(sizes) * math.log1p(1 / float(alpha))
    if relation == "replace_one":
        formula += sum(math.log1p(1 / (size * float(alpha))) for size in sizes)
    assert float(gibbs.block_pure(alpha, sizes, relation, rows)) == pytest.approx(
        rows * formula, rel=1e-9
    )


def test_block_costs_grow_with_rows_of_a_person_and_with_the_relation():
    sizes = [4, 4]

    assert gibbs.block_pure(1, sizes, max_rows=3) == 3 * gibbs.block_pure(1, sizes)
    assert c.block_zcdp(1, sizes, max_rows=3) == pytest.approx(9 * c.block_zcdp(1, sizes))
    assert c.block_zcdp(1, sizes, "replace_one") == pytest.approx(4 * c.block_zcdp(1, sizes))
    assert float(c.block_zcdp(1, sizes)) == pytest.approx(2 * math.log(2) ** 2 / 8)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("rho", "draws"), [("1e-9", 10), ("0.024356", 13_000), (5, 3), (600, 1)])
def test_alpha_of_a_zcdp_budget_uses_it_up_and_no_more(relation, rho, draws):
    alpha = c.pegs_alpha_zcdp(rho, draws, relation)

    spent = gibbs.pegs_zcdp(alpha, draws, relation)
    assert Fraction(rho) * (1 - Fraction(1, 10**8)) < spent <= Fraction(rho)


def test_f1_a_thousand_rows_in_blocks_of_ten_at_epsilon_1_cost_a_hundred():
    alpha, blocks = gibbs.block_alpha(1, [2] * 5), 1000 // 10

    assert float(blocks * gibbs.block_pure(alpha, [2] * 5)) == pytest.approx(100, rel=1e-9)


def test_perturbed_model_costs_the_same_between_any_two_data_sets():
    alpha = float(pmi_alpha(2, 4))
    worst = (1 + alpha) / alpha  # p^ = 1 against p^ = 0

    assert 4 * math.log(worst) == pytest.approx(2, rel=1e-9)


def test_unusable_budgets_of_draws_are_refused():
    for bad in (0, -1, float("nan"), "abc", None):
        with pytest.raises(ParameterError):
            gibbs.eps0_from_alpha(bad)
    with pytest.raises(ParameterError):
        c.pegs_pure(1, 10) and gibbs.pegs_zcdp(1, 10, "both")
    with pytest.raises(ParameterError, match="700"):
        c.pegs_alpha(2000, 2)
