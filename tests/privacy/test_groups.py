"""B5: what a release promises to several units together; the old words, "g epsilon" alone, are false."""

import math
from fractions import Fraction

import mpmath as mp
import pytest

from gibbous.core.claim import Claim, approximate, l_diverse, pure, zcdp
from gibbous.core.errors import PrivacyRefused
from gibbous.privacy.accountant import for_group, within
from gibbous.privacy.calibrate import zcdp as conversions
from gibbous.privacy.calibrate.stable import stable_geometric
from tests.privacy.exact_divergence import hockey_stick, kept_cell, noise_law

MILLIONTH = Fraction(1, 10**6)
ONE = approximate(Fraction(1), MILLIONTH)


def _coins(epsilon, delta, units):
    """P_j of a chain of coins with P_units = 0: as far apart as (epsilon, delta)-neighbors can be."""
    chain = [mp.mpf(0)]
    for _ in range(units):
        chain.append(mp.exp(epsilon) * chain[-1] + delta)
    return chain[::-1]


@pytest.mark.parametrize("units", [1, 2, 5, 9])
def test_B5_the_group_bound_is_attained_by_a_chain_of_coins(units):
    found = for_group(ONE, units)
    coins = _coins(mp.mpf(1), mp.mpf(10) ** -6, units)

    assert coins[0] <= 1 - mp.exp(-1)  # so that neighbors are neighbors in the other direction, too
    assert found.epsilon == units
    assert mp.almosteq(mp.mpf(float(found.delta)), coins[0], 1e-12)
    assert units == 1 or coins[0] > 2 * mp.mpf(10) ** -6  # "g epsilon" with the old delta: refuted


def test_B5_parts_grow_by_their_own_rules():
    total = approximate(Fraction(1), MILLIONTH)
    parts = [pure(Fraction(1, 5)), approximate(Fraction(4, 5), MILLIONTH)]

    found = for_group(total, 3, parts)

    assert found.epsilon == 3
    wanted = 1e-6 * sum(math.exp(0.8 * j) for j in range(3))
    assert float(found.delta) == pytest.approx(wanted, rel=1e-12)
    assert for_group(zcdp(Fraction(1, 8)), 3).rho == Fraction(9, 8)
    assert for_group(pure(Fraction(2)), 4, [pure(Fraction(2))]) == pure(Fraction(8))


def _gaussian_delta(shift, sigma, epsilon):
    """Exact delta of normal noise at epsilon, by the distribution function [Balle, Wang 2018]."""
    a, b = shift / (2 * sigma), epsilon * sigma / shift
    return mp.ncdf(a - b) - mp.exp(epsilon) * mp.ncdf(-a - b)


@pytest.mark.parametrize("units", [1, 2, 5, 10])
def test_B5_own_accounting_of_groups_covers_gaussian_noise_and_is_near_it(units):
    """Groups of g move a sum by g; the exact delta of that is below, and not far below, what is told."""
    rho = conversions.rho_from_approx(1, MILLIONTH)
    sigma = mp.sqrt(1 / (2 * mp.mpf(float(rho))))

    found = for_group(ONE, units, [zcdp(rho / 3), zcdp(2 * rho / 3)])
    exact = _gaussian_delta(units, sigma, mp.mpf(float(found.epsilon)))

    assert found.delta == MILLIONTH
    assert exact <= float(found.delta)
    assert _gaussian_delta(units, sigma, mp.mpf(float(found.epsilon)) * 0.8) > float(found.delta)
    # Saboteur: rho that grows by g in place of g^2.
    wrong = mp.mpf(float(for_group(ONE, 1, [zcdp(rho * units)]).epsilon))
    assert units == 1 or _gaussian_delta(units, sigma, wrong) > float(found.delta)


@pytest.mark.parametrize("units", [1, 2, 3])
def test_B5_the_group_bound_covers_the_exact_law_of_thresholded_noise(units):
    """g records that share a lone cell, and g that are alone: the divergence is summed from the law."""
    delta = Fraction(1, 100)
    scale, threshold = stable_geometric(1, delta)
    noise = noise_law(float(scale))

    found = for_group(approximate(Fraction(1), delta), units)
    cells = {
        "together": [(kept_cell(units, noise, threshold), kept_cell(0, noise, threshold))],
        "alone": [(kept_cell(1, noise, threshold), kept_cell(0, noise, threshold))] * units,
        "in a crowd": [(kept_cell(40 + units, noise, threshold), kept_cell(40, noise, threshold))],
    }
    worst = max(hockey_stick(pair, float(found.epsilon)) for pair in cells.values())

    assert worst <= float(found.delta) * (1 + 1e-9)
    assert units == 1 or worst > float(delta)  # the old words, at the old delta, are refuted


def test_B5_a_probabilistic_claim_is_read_as_approximate_and_no_claim_is_refused():
    told = Claim("probabilistic", epsilon=Fraction(1), delta=MILLIONTH)

    assert for_group(told, 2) == for_group(ONE, 2)
    assert for_group(approximate(Fraction(9), Fraction(1, 10)), 40).delta == 1
    with pytest.raises(PrivacyRefused):
        for_group(l_diverse(Fraction(2)), 2)


def test_B5_a_group_of_one_costs_the_total():
    parts = [zcdp(conversions.rho_from_approx(1, MILLIONTH))]

    assert for_group(ONE, 1) == ONE
    assert within(ONE, parts)
    assert 0.999 < for_group(ONE, 1, parts).epsilon <= 1
