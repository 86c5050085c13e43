"""Mix: randomized response, exact weights, a bound between any two tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.perturb.mix import Mix


def shares(mix: Mix, counts: tuple[int, ...]) -> list[Fraction]:
    weights = [int(w) for w in mix.weights(np.array([counts]))[0]]
    return [Fraction(w, sum(weights)) for w in weights]


def test_weights_are_the_mixture() -> None:
    assert shares(Mix(Fraction(1, 4)), (3, 1, 0)) == [
        Fraction(3, 4) * Fraction(n, 4) + Fraction(1, 12) for n in (3, 1, 0)
    ]


def test_no_records_and_full_mixing_are_uniform() -> None:
    assert shares(Mix(Fraction(1, 4)), (0, 0)) == [Fraction(1, 2)] * 2
    assert shares(Mix(Fraction(1)), (9, 0)) == [Fraction(1, 2)] * 2


def test_no_mixing_copies_and_has_no_price() -> None:
    assert shares(Mix(Fraction(0)), (9, 1)) == [Fraction(9, 10), Fraction(1, 10)]
    with pytest.raises(ParameterError, match="copies records"):
        Mix(Fraction(0)).loss(2, "add_remove")


def test_the_loss_bounds_any_two_tables_and_is_attained() -> None:
    mix = Mix(Fraction(1, 4))
    laws = [shares(mix, c) for c in itertools.product((0, 1, 7, 1000), repeat=3)]
    worst = max(
        abs(math.log(a / b)) for one in laws for two in laws for a, b in zip(one, two, strict=True)
    )

    assert worst <= float(mix.loss(3, "add_remove"))
    assert worst == pytest.approx(float(mix.loss(3, "add_remove")), rel=1e-9)


def test_a_reset_table_costs_twice_under_replace_one() -> None:
    mix = Mix(Fraction(1, 2))

    assert mix.reset_loss(3, "replace_one") == 2 * mix.reset_loss(3, "add_remove")
    assert mix.loss(1, "add_remove") == 0


@pytest.mark.parametrize("beta", [Fraction(-1), Fraction(2), 0.5])
def test_beta_must_be_a_share(beta: object) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        Mix(beta)  # type: ignore[arg-type]
