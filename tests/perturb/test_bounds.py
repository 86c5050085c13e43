"""Exponentials and logarithms on the safe side, against mpmath with 80 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from gibbous.perturb.bounds import exp_down, log1p_up

POINTS = ["0", "1e-15", "1/13", "1/3", "1", "1.5", "20", "63.9"]


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("point", POINTS)
def test_exp_down_is_below_and_within_100_bits(point: str) -> None:
    with mpmath.workdps(80):
        x = Fraction(point)
        gap = mpmath.exp(real(x)) - real(exp_down(x))

        assert 0 <= gap <= mpmath.exp(real(x)) * mpmath.mpf(2) ** -100


def test_exp_down_stays_below_where_it_is_cut_off() -> None:
    with mpmath.workdps(80):
        assert real(exp_down(Fraction(1000))) < mpmath.exp(65)


@pytest.mark.parametrize("point", ["1e-18", "1e-6", "1/12", "1", "999983", "1e30"])
def test_log1p_up_is_above_and_within_twelve_digits(point: str) -> None:
    with mpmath.workdps(80):
        x = Fraction(point)
        exact = mpmath.log1p(real(x))

        assert 0 <= real(log1p_up(x)) - exact <= exact * mpmath.mpf("2e-11")


def test_log1p_up_of_zero_is_zero() -> None:
    assert log1p_up(Fraction(0)) == 0


def test_negative_points_are_a_fault_of_the_caller() -> None:
    for bound in (exp_down, log1p_up):
        with pytest.raises(ValueError, match="x must be"):
            bound(Fraction(-1))
