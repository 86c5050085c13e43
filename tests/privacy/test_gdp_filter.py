"""Purchases priced by earlier results: the joint law by enumeration against the sum of squares."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from gibbous.privacy.calibrate import gdp

REACH = 60


def law(sigma, shift=0):
    """P(X + shift = x) for x = -60 .. 60."""
    x = np.arange(-REACH, REACH + 1) - shift
    weight = np.exp(-(x**2) / (2 * float(sigma) ** 2))
    return weight / weight.sum()


def joint(shift, first, second):
    """Law of (first, second): after outcome x of one count a second is bought with sigma second(x)."""
    rows = []
    for x, p in zip(range(-REACH, REACH + 1), law(first, shift), strict=True):
        sigma = second(x)
        point = np.eye(1, 2 * REACH + 1)[0]  # nothing bought: one public outcome
        rows.append(p * (point if sigma is None else law(sigma, shift)))
    return np.concatenate(rows)


def hockey(one, two, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())


def both_ways(first, second, epsilon):
    with_unit, without = joint(1, first, second), joint(0, first, second)
    return max(hockey(with_unit, without, epsilon), hockey(without, with_unit, epsilon))


FIRST = Fraction(1)
ONE = gdp.square_of_gaussian(FIRST)
RULES = {
    "stops unless the first looks like a unit": lambda x: Fraction(3, 4) if x >= 1 else None,
    "buys more of what looked dull": lambda x: Fraction(3, 4) if x <= 0 else Fraction(4),
    "finer the larger it was": lambda x: max(Fraction(3, 4), Fraction(6) - abs(x)),
    "always the same": lambda x: Fraction(3, 4),
}
DEAREST = gdp.square_of_gaussian(Fraction(3, 4))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 2), Fraction(2), Fraction(4)])
@pytest.mark.parametrize("name", RULES)
def test_prices_that_depend_on_results_cost_the_largest_sum_of_squares(name, epsilon):
    exact = both_ways(FIRST, RULES[name], epsilon)

    assert exact <= float(gdp.delta_of(ONE + DEAREST, epsilon)) + 1e-12


def test_a_filter_that_counts_the_average_price_is_caught():
    rule = RULES["stops unless the first looks like a unit"]
    average = ONE + DEAREST * Fraction(float(law(FIRST)[REACH + 1 :].sum()))

    assert both_ways(FIRST, rule, Fraction(4)) > 1.5 * float(gdp.delta_of(average, Fraction(4)))


@pytest.mark.parametrize("ranges", [(1,), (1, 2), (0.5, 0.5, 0.5)])
def test_choices_and_counts_add_up(ranges):
    """A choice of range e is at worst the event of L(e/2) against L(-e/2), L the logistic function."""
    square = ONE + sum(gdp.square_of_choice(Fraction(e)) for e in ranges)
    up = [1 / (1 + math.exp(-e / 2)) for e in ranges]
    for epsilon in (Fraction(0), Fraction(1), Fraction(2)):
        one, two = [], []
        for bits in itertools.product((0, 1), repeat=len(ranges)):
            one.append(
                law(FIRST, 1) * math.prod(u if b else 1 - u for u, b in zip(up, bits, strict=True))
            )
            two.append(
                law(FIRST) * math.prod(1 - u if b else u for u, b in zip(up, bits, strict=True))
            )
        exact = hockey(np.concatenate(one), np.concatenate(two), epsilon)

        assert exact <= float(gdp.delta_of(square, epsilon)) + 1e-12
        assert exact > 0.9 * float(gdp.delta_of(ONE, epsilon))


def test_deltas_add_beside_the_squares():
    """With chance d a step names its data set outright; else it is the noisy count."""
    d = 0.01

    def step(shift):
        return np.concatenate([[d * (shift == 1), d * (shift == 0)], (1 - d) * law(FIRST, shift)])

    one, two = np.outer(step(1), step(1)).ravel(), np.outer(step(0), step(0)).ravel()
    counts = [np.outer(law(FIRST, shift), law(FIRST, shift)).ravel() for shift in (1, 0)]
    for epsilon in (Fraction(0), Fraction(1), Fraction(3)):
        exact = hockey(one, two, epsilon)
        assert exact <= float(gdp.delta_of(2 * ONE, epsilon)) + 2 * d
        if epsilon == 3:  # one delta for both steps would be too little
            assert exact > hockey(*counts, epsilon) + 1.5 * d
