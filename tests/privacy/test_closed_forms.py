"""Closed forms against high precision; the printed numbers are in tests/golden."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate import dirichlet, gibbs, sba, stable, zcdp
from gibbous.privacy.calibrate import diversity as laws
from tests.privacy import closed_forms as c

MILLIONTH = "1e-6"


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def same(value, truth, relative=1e-9):
    """Agreement with a high-precision value."""
    return abs(mp.mpf(float(value)) / truth - 1) < relative


def test_rho_for_epsilon_1_and_a_millionth():
    rho = zcdp.rho_from_approx(1, MILLIONTH)

    assert float(rho) == pytest.approx(0.024356, abs=5e-7)
    assert zcdp.delta_from_zcdp(rho, 1) <= Fraction(1, 10**6)
    assert zcdp.delta_from_zcdp(rho * (1 + Fraction(1, 10**9)), 1) > Fraction(1, 10**6)


def test_the_tight_threshold_of_one_table_is_the_closed_form_for_one_table():
    assert c.laplace_threshold(1, 1e-6, 1, "replace_one")[1] == pytest.approx(
        sba.sba_threshold(1, 1e-6, "tight"), rel=1e-12
    )


@pytest.mark.parametrize(
    ("levels", "diversity"), [(3, 1.5), (3, 2.9), (10, 2), (25, 10), (1000, 3)]
)
def test_largest_probability_that_entropy_diversity_allows(levels, diversity):
    q = laws.q_star(levels, diversity)
    root = mp.findroot(
        lambda q: (
            -q * mp.log(q)
            - (1 - q) * mp.log(1 - q)
            + (1 - q) * mp.log(levels - 1)
            - mp.log(diversity)
        ),
        q * 1.001,
    )

    assert same(q, root)
    assert q > 1 / diversity


@pytest.mark.parametrize("l", [1.0, 1 + 2**-52])
def test_no_diversity_allows_certainty(l):
    assert laws.q_star(3, l) == pytest.approx(1, abs=1e-12)


def test_prior_counts_of_bowen2016():
    assert float(dirichlet.dirichlet_alpha(7, 10**6)) == pytest.approx(912.71, abs=0.005)
    assert float(dirichlet.dirichlet_alpha(7, 20)) == pytest.approx(0.01825, abs=5e-6)
    assert float(dirichlet.prior_alpha(1, 10**6)) == pytest.approx(10**6 - 0.5, rel=1e-9)


def test_smoothing_share_tends_to_bins_over_bins_plus_epsilon():
    assert float(dirichlet.smoothed_share(2, 30, 10**9, 10**9)) == pytest.approx(30 / 32, rel=1e-8)


@pytest.mark.parametrize("eps0", ["1e-12", "0.001", "0.0769230769", "1", "30", "699"])
@pytest.mark.parametrize("rows", [1, 3])
def test_alpha_agrees_with_mpmath_and_is_never_too_small(eps0, rows):
    alpha = gibbs.alpha_from_eps0(eps0, rows)
    back = mp.log1p(rows / (mp.mpf(alpha.numerator) / alpha.denominator))

    assert same(alpha, rows / mp.expm1(mp.mpf(eps0)))
    assert back <= mp.mpf(eps0)
    assert gibbs.eps0_from_alpha(alpha, rows) <= Fraction(eps0)
    assert same(gibbs.eps0_from_alpha(alpha, rows), back)
    assert mp.mpf(gibbs.eps0_from_alpha(alpha, rows).numerator) >= back * mp.mpf(
        gibbs.eps0_from_alpha(alpha, rows).denominator
    )


def test_alpha_of_a_third_of_a_budget_is_covered_by_that_third():
    for columns in (3, 7, 13, 39):
        third = Fraction(1, columns)
        assert gibbs.eps0_from_alpha(gibbs.alpha_from_eps0(third)) <= third


def test_tiny_epsilon_gives_a_huge_alpha_and_huge_epsilon_is_refused():
    assert gibbs.alpha_from_eps0("1e-300") > gibbs.UNIFORM
    for bad in (701, 0, -1, float("nan"), float("inf"), "abc"):
        with pytest.raises(ParameterError):
            gibbs.alpha_from_eps0(bad)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-9"), (8, "1e-5")])
def test_zcdp_conversion_agrees_with_a_minimum_found_by_mpmath(epsilon, delta):
    rho = zcdp.rho_from_approx(epsilon, delta)
    rate, epsilon_ = mp.mpf(rho.numerator) / rho.denominator, mp.mpf(epsilon)

    def bound(order):
        return (
            mp.exp((order - 1) * (order * rate - epsilon_)) * (1 - 1 / order) ** order / (order - 1)
        )

    best = mp.findroot(
        lambda order: (2 * order - 1) * rate - epsilon_ + mp.log(1 - 1 / order),
        (epsilon_ + rate) / (2 * rate),
    )

    assert bound(best) <= mp.mpf(delta)
    assert same(zcdp.delta_from_zcdp(rho, epsilon), bound(best))
    assert mp.mpf(float(zcdp.delta_from_zcdp(rho, epsilon))) >= bound(best) * (
        1 - mp.mpf(10) ** -15
    )
    assert min(bound(best * x) for x in (0.9, 1.1)) > bound(best)


@pytest.mark.parametrize("rho", ["1e-300", "1e-14", "2e-12"])
def test_a_rho_within_delta_by_total_variation_costs_no_epsilon(rho):
    """Pinsker: total variation is at most sqrt(rho / 2), here at most 1e-6."""
    assert zcdp.epsilon_from_zcdp(rho, MILLIONTH) == 0


@pytest.mark.parametrize(("rho", "delta"), [("2.1e-12", "1e-6"), ("1e-30", "1e-20"), (5, "0.5")])
def test_a_small_rho_beyond_that_costs_an_epsilon_that_covers_delta(rho, delta):
    epsilon = zcdp.epsilon_from_zcdp(rho, delta)

    assert 0 < epsilon <= Fraction(rho) + 2 * mp.sqrt(mp.mpf(rho) * -mp.log(delta)) * mp.mpf(1.01)
    assert zcdp.delta_from_zcdp(rho, epsilon) <= Fraction(delta)
    assert zcdp.delta_from_zcdp(rho, epsilon * Fraction(999, 1000)) > Fraction(delta)


def test_a_delta_beyond_float64_is_refused_and_not_searched_for():
    for ask in (
        lambda: zcdp.rho_from_approx(1, "1e-305"),
        lambda: zcdp.epsilon_from_zcdp(1, "1e-305"),
        lambda: stable.stable_geometric(1, "1e-305"),
        lambda: stable.stable_gaussian(1, "1e-305"),
    ):
        with pytest.raises(ParameterError, match="1e-290"):
            ask()


def test_published_alpha_of_a_huge_epsilon_is_nearly_nothing():
    assert 0 < gibbs.pegs_alpha_published(1e4, 2) < 1e-300


@pytest.mark.parametrize("x", ["1e-15", "1/13", "1", "63.9", "1000"])
def test_exp_down_is_below_and_close(x):
    from gibbous.privacy.calibrate.rounding import exp_down

    with mp.workdps(80):
        found, point = exp_down(Fraction(x)), Fraction(x)
        exact = mp.exp(mp.mpf(point.numerator) / point.denominator)
        gap = exact - mp.mpf(found.numerator) / found.denominator

        assert 0 <= gap <= exact * mp.mpf(10) ** -38


@pytest.mark.parametrize("epsilon", ["1e-200", "1e-9", "0.1", "1", "50", "3000"])
def test_pure_to_zcdp_agrees_with_mpmath_and_is_rounded_up(epsilon):
    rho = zcdp.pure_to_zcdp(epsilon)
    truth = mp.mpf(epsilon) * mp.tanh(mp.mpf(epsilon) / 2)
    number = mp.mpf(rho.numerator) / rho.denominator

    assert number >= truth
    if truth > mp.mpf(10) ** -290:
        assert number <= truth * (1 + mp.mpf(10) ** -9)


def test_corrected_proposition_1_agrees_with_integration():
    counts, scale, threshold = [1, 4, 9], mp.mpf("0.7"), mp.mpf("5.3")

    def error(count):
        density = lambda e: mp.exp(-abs(e) / scale) / (2 * scale)  # noqa: E731
        gap = threshold - count
        edges = [gap, 0, mp.inf] if gap < 0 else [gap, mp.inf]
        kept = mp.quad(density, edges)
        return count * (1 - kept) + mp.quad(lambda e: abs(e) * density(e), edges)

    assert same(
        sba.expected_l1(np.array(counts, float), 0.7, 5.3), sum(error(count) for count in counts)
    )
