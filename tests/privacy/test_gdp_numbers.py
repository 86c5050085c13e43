"""What a mu says: epsilon, delta, attack rates and choices, against 60 digits; always rounded against us."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate import gdp, zcdp
from tests.privacy.gaussian_tradeoff import tail, upper


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(120):
        yield


def number(value):
    return mp.mpf(value.numerator) / value.denominator


def true_delta(square, epsilon):
    mu = mp.sqrt(number(Fraction(square)))
    start = number(Fraction(epsilon)) / mu - mu / 2
    return tail(start) - mp.exp(number(Fraction(epsilon))) * tail(start + mu)


def covers(value, truth, digits=20):
    """At or above the truth, and equal to it in so many digits."""
    return truth <= number(value) <= truth * (1 + mp.mpf(10) ** -digits)


@pytest.mark.parametrize("square", ["1e-12", "1e-4", "0.033", "1", "9", "81"])
@pytest.mark.parametrize("epsilon", ["0", "1e-6", "0.1", "1", "10", "40"])
def test_delta_agrees_with_60_digits_and_is_rounded_up(square, epsilon):
    with mp.workdps(400):
        truth = true_delta(square, epsilon)
        ours = gdp.delta_of(square, Fraction(epsilon))

        assert covers(ours, truth) or (truth < 1e-300 and ours == Fraction(1, 10**300))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-60, 12).map(lambda k: Fraction(2) ** k),
    st.fractions(0, 30, max_denominator=999),
)
def test_delta_is_never_below_the_truth(square, epsilon):
    with mp.workdps(400):
        truth = true_delta(square, epsilon)

        assert truth <= number(gdp.delta_of(square, epsilon))


def test_delta_of_a_wide_mu_leaves_out_the_second_term_and_stays_above():
    for square, epsilon in ((400, 150), (900, 300), (10**4, 4500)):
        with mp.workdps(900):
            truth = true_delta(square, epsilon)

        assert truth <= number(gdp.delta_of(square, epsilon)) < 2 * truth


@pytest.mark.parametrize("delta", ["1e-30", "1e-9", "1e-6", "0.01", "0.6"])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "10", "300"])
def test_conversions_meet_each_other_from_the_safe_side(epsilon, delta):
    square = gdp.mu_squared_for(epsilon, delta)
    more = square * (1 + Fraction(1, 10**12))

    assert gdp.delta_of(square, epsilon) <= Fraction(delta) < gdp.delta_of(more, epsilon)
    found = gdp.epsilon_of(square, delta)
    assert found <= Fraction(epsilon) * (1 + Fraction(1, 10**13))
    assert gdp.delta_of(square, found) <= Fraction(delta)
    assert gdp.delta_of(square, found * (1 - Fraction(1, 10**9))) > Fraction(delta)


def test_epsilon_is_0_where_delta_covers_the_advantage():
    advantage = gdp.delta_of("0.01", 0)

    assert gdp.epsilon_of("0.01", advantage) == 0
    assert gdp.epsilon_of("0.01", advantage - Fraction(1, 10**6)) > 0
    assert float(advantage) == pytest.approx(0.0398776, abs=1e-7)  # 2 Phi(0.05) - 1


def test_gdp_is_never_dearer_than_the_zcdp_that_it_implies():
    for square in ("0.001", "0.03", "1", "30"):
        for delta in ("1e-9", "1e-6"):
            by_rho = zcdp.epsilon_from_zcdp(Fraction(square) / 2, delta)
            assert gdp.epsilon_of(square, delta) < by_rho


@pytest.mark.parametrize("epsilon", ["0.0001", "0.1", "1", "4", "20"])
def test_choice_costs_its_worst_two_point_law_and_one_percent_less_does_not(epsilon):
    """Ratios e^t and e^(t - epsilon), t from 0 to epsilon: an event of a becomes one of a e^t."""
    e = number(Fraction(epsilon))
    worst = mp.mpf(0)
    for part in range(1, 40):
        t = e * part / 40
        a = (mp.exp(-t) - mp.exp(-e)) / (1 - mp.exp(-e))
        worst = max(worst, upper(a) - upper(a * mp.exp(t)))
    ours = mp.sqrt(number(gdp.square_of_choice(epsilon)))

    assert worst <= ours <= worst * (1 + mp.mpf(10) ** -20)
    assert ours <= mp.sqrt(2 * mp.pi) / 4 * e * (1 + mp.mpf(10) ** -20)
    assert mp.mpf("0.99") * ours < worst


def test_a_choice_of_a_long_range_costs_at_most_four_epsilon():
    assert gdp.square_of_choice(1001) == 4004
    assert gdp.square_of_choice(999) < 4 * 999


def test_pure_dp_is_a_choice_of_twice_the_range():
    """Randomized response with epsilon: e^epsilon / (1 + e^epsilon) against the rest."""
    share = mp.e / (1 + mp.e)

    assert covers(gdp.square_of_choice(2), (upper(1 - share) - upper(share)) ** 2)


@pytest.mark.parametrize("false", ["1e-9", "0.01", "0.5", "0.9"])
@pytest.mark.parametrize("square", ["1e-8", "0.05", "4", "1600"])
def test_rate_of_true_positives_is_that_of_the_normal_pair(square, false):
    truth = 1 - tail(mp.sqrt(number(Fraction(square))) - upper(number(Fraction(false))))
    ours = gdp.rate_at(square, false)

    assert truth <= ours <= min(float(truth) * (1 + 1e-15), 1)


@pytest.mark.parametrize(("true", "false"), [("0.03", "0.01"), ("0.0101", "0.01"), ("0.9", "1e-5")])
def test_a_pair_of_rates_becomes_a_mu_that_keeps_it(true, false):
    square = gdp.mu_squared_for_rate(true, false)

    assert gdp.rate_at(square, false) <= float(true) * (1 + 4e-16)
    assert gdp.rate_at(square * (1 + Fraction(1, 10**12)), false) > float(true)


def test_rates_that_guessing_reaches_are_refused():
    with pytest.raises(ParameterError, match="Guessing"):
        gdp.mu_squared_for_rate("0.01", "0.01")
    with pytest.raises(ParameterError):
        gdp.mu_squared_for_rate(1, "0.01")


@pytest.mark.parametrize(
    "share", ["1e-280", "1e-9", "0.3", "0.4999999999999999999999", "0.5", "0.7"]
)
def test_quantile_has_50_digits(share):
    with mp.workdps(400):
        z = gdp._quantile(Fraction(share))
        back = 1 - tail(mp.mpf(str(z)))

        assert abs(back / number(Fraction(share)) - 1) < mp.mpf(10) ** -44


@pytest.mark.parametrize("x", ["-58", "-7", "-1e-30", "0", "0.3", "37"])
@pytest.mark.parametrize("digits", [60, 800])
def test_normal_law_errs_by_less_than_a_million_units_of_the_last_place(x, digits):
    from decimal import Context, Decimal, localcontext

    with localcontext(Context(prec=digits)):
        ours = str(gdp._cdf(Decimal(x)))
    with mp.workdps(digits + 60):
        assert abs(mp.mpf(ours) - (1 - tail(mp.mpf(x)))) < mp.mpf(10) ** (6 - digits)


@pytest.mark.parametrize("bad", [-1, 0, math.inf, "nan"])
def test_what_is_no_budget_is_refused(bad):
    for call in (
        lambda: gdp.square_of_gaussian(bad),
        lambda: gdp.square_of_choice(bad),
        lambda: gdp.delta_of(bad, 1),
        lambda: gdp.epsilon_of(bad, "1e-6"),
        lambda: gdp.mu_squared_for(bad, "1e-6"),
        lambda: gdp.mu_squared_for(1, bad),
        lambda: gdp.sigma_for(1, bad),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(ParameterError):
        gdp.delta_of(1, -1)
