"""Tilt: the integer ladder keeps every ratio below e**epsilon exactly, and follows exp closely."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.perturb.tilt import Tilt
from gibbous.privacy.calibrate.rounding import exp_down


def shares(tilt: Tilt, counts: list[int]) -> list[Fraction]:
    weights = [int(w) for w in tilt.weights(np.array([counts]))[0]]
    return [Fraction(w, sum(weights)) for w in weights]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_weights_follow_the_exponential_of_the_counts(epsilon: str) -> None:
    tilt = Tilt(Fraction(epsilon))
    counts = np.array([0, 1, 2, 5])
    exact = np.exp(float(epsilon) * (counts - 5))

    drawn = np.array([float(s) for s in shares(tilt, counts.tolist())])

    assert drawn == pytest.approx(exact / exact.sum(), rel=1e-8)


def test_large_counts_do_not_overflow() -> None:
    assert [float(s) for s in shares(Tilt(Fraction(50)), [10**9, 0])] == pytest.approx([1, 0])


def test_a_key_without_records_is_uniform() -> None:
    assert shares(Tilt(Fraction(1)), [0, 0, 0]) == [Fraction(1, 3)] * 3


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "1", "2.5", "9"])
def test_the_loss_of_one_draw_is_at_most_epsilon_add_remove_and_twice_that_replace_one(
    epsilon: str,
) -> None:
    tilt, bound = Tilt(Fraction(epsilon)), exp_down(Fraction(epsilon))
    grid = [(a, b, c) for a in (0, 1, 2, 9) for b in (0, 1, 8, 40) for c in (0, 10, 36)]
    worst = Fraction(1)
    for counts in grid:
        for place in range(3):
            more = [n + (i == place) for i, n in enumerate(counts)]
            one, two = shares(tilt, list(counts)), shares(tilt, more)
            ratios = [max(a / b, b / a) for a, b in zip(one, two, strict=True)]
            assert max(ratios) <= bound  # exactly, in integers
            for other in range(3):
                moved = [n + (i == other) for i, n in enumerate(counts)]
                three = shares(tilt, moved)
                worst = max(worst, *(a / b for a, b in zip(two, three, strict=True)))

    assert math.log(worst) <= 2 * float(epsilon) * (1 + 1e-12)
    if epsilon in ("0.3", "1", "2.5"):  # the factor 2 is needed: one record moved to another level
        assert math.log(worst) >= 1.2 * float(epsilon)


def test_the_bounded_range_of_one_draw_is_at_most_epsilon_add_remove() -> None:
    tilt, bound = Tilt(Fraction(1, 2)), exp_down(Fraction(1, 2))
    for counts in [(0, 0, 0), (5, 5, 1), (90, 0, 3), (0, 4, 4)]:
        for place in range(3):
            more = [n + (i == place) for i, n in enumerate(counts)]
            one, two = shares(tilt, list(counts)), shares(tilt, more)
            ratios = [b / a for a, b in zip(one, two, strict=True)]

            assert max(ratios) / min(ratios) <= bound


@pytest.mark.slow
def test_a_tiny_epsilon_is_close_to_uniform() -> None:
    drawn = [float(s) for s in shares(Tilt(Fraction(1, 10**7)), [1000, 0])]

    assert drawn == pytest.approx([0.5, 0.5], abs=1e-4)
    assert drawn[0] > drawn[1]


def test_losses() -> None:
    tilt = Tilt(Fraction(1, 4))

    assert tilt.loss(2, "add_remove") == Fraction(1, 4)
    assert tilt.loss(2, "replace_one") == Fraction(1, 2)
    assert tilt.loss(1, "replace_one") == 0


def test_epsilon_must_be_a_positive_fraction() -> None:
    with pytest.raises(ParameterError, match="must be a fraction > 0"):
        Tilt(Fraction(0))
