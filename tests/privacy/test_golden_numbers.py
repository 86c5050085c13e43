"""Every number that the reference page of formulas quotes for these mechanisms, and mpmath's opinion."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.privacy import calibrate as c

MILLIONTH = "1e-6"


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def same(value, truth, relative=1e-9):
    """Agreement with a high-precision value."""
    return abs(mp.mpf(float(value)) / truth - 1) < relative


def test_alpha_of_one_row_at_epsilon_1_and_13_columns():
    assert float(c.pegs_alpha(1, 13)) == pytest.approx(12.506, abs=5e-4)
    assert c.pegs_alpha_published(1.0, 13) == pytest.approx(12.5064096, abs=1e-6)


def test_alpha_of_a_thousand_rows_at_a_file_budget_of_1():
    pure = c.pegs_alpha(1, 13, rows=1000)
    concentrated = c.pegs_alpha_zcdp(c.rho_from_approx(1, MILLIONTH), c.draws(1000, 13))

    assert float(pure) == pytest.approx(12999.5, abs=0.01)
    assert float(concentrated) == pytest.approx(257.8, abs=0.05)


def test_a_thousand_rows_at_epsilon_1_per_row_cost_1000_or_31_or_83():
    alpha, draws = c.pegs_alpha(1, 13), c.draws(1000, 13)
    one, two = c.pegs_zcdp(alpha, draws), c.pegs_zcdp(alpha, draws, "replace_one")

    assert float(c.pegs_pure(alpha, draws)) == pytest.approx(1000, rel=1e-9)
    assert float(one) == pytest.approx(9.615, abs=5e-4)
    assert float(two) == pytest.approx(38.44, abs=0.01)  # 38.46 with eps0^2 / 2
    assert float(c.epsilon_from_zcdp(one, MILLIONTH)) == pytest.approx(31.4, abs=0.05)
    assert float(c.epsilon_from_zcdp("38.46", MILLIONTH)) == pytest.approx(82.8, abs=0.05)


def test_several_sweeps_multiply_the_price_of_a_row():
    assert float(c.pegs_pure(1, c.draws(1, 2))) == pytest.approx(1.386, abs=5e-4)
    assert float(c.pegs_pure(1, c.draws(1, 2, sweeps=5))) == pytest.approx(5 * 1.3863, abs=1e-3)


def test_rho_for_epsilon_1_and_a_millionth():
    rho = c.rho_from_approx(1, MILLIONTH)

    assert float(rho) == pytest.approx(0.024356, abs=5e-7)
    assert c.delta_from_zcdp(rho, 1) <= Fraction(1, 10**6)
    assert c.delta_from_zcdp(rho * (1 + Fraction(1, 10**9)), 1) > Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("relation", "sigma", "scale"), [("add_remove", 16.34, 13), ("replace_one", 23.10, 26)]
)
def test_noise_of_thirteen_full_tables(relation, sigma, scale):
    rho = c.rho_from_approx(1, MILLIONTH)

    assert float(c.gaussian_sigma(rho, 13, relation)) == pytest.approx(sigma, abs=0.005)
    assert c.geometric_scale(1, 13, relation) == scale


@pytest.mark.parametrize(
    ("relation", "laplace", "sigma", "gaussian"),
    [("add_remove", 204.9, 16.83, 94.4), ("replace_one", 408.9, 23.81, 133.5)],
)
def test_thresholds_of_thirteen_tables(relation, laplace, sigma, gaussian):
    width, threshold = c.gaussian_threshold(1, MILLIONTH, 13, relation, delta_noise="5e-7")

    assert c.laplace_threshold(1, MILLIONTH, 13, relation)[1] == pytest.approx(laplace, abs=0.05)
    assert width == pytest.approx(sigma, abs=0.005)
    assert threshold == pytest.approx(gaussian, abs=0.05)


def test_the_papers_threshold_of_thirteen_tables():
    assert c.sba_threshold(1, MILLIONTH, "sbhg") == pytest.approx(28.6, abs=0.05)


@pytest.mark.parametrize(("form", "share"), [("sbhg", 0.5), ("vadhan", 0.25), ("tight", 1.0)])
def test_exact_delta_of_the_three_published_thresholds_of_one_table(form, share):
    threshold = c.sba_threshold(1, 1e-6, form)

    assert c.sba_delta(1, 2.0, threshold) == pytest.approx(share * 1e-6, rel=1e-9)


def test_the_tight_threshold_of_one_table_is_the_closed_form_for_one_table():
    assert c.laplace_threshold(1, 1e-6, 1, "replace_one")[1] == pytest.approx(
        c.sba_threshold(1, 1e-6, "tight"), rel=1e-12
    )


@pytest.mark.parametrize(
    ("epsilon", "published", "corrected"), [(6, 2946.2, 2967.8), (10, -83.7, 799.7)]
)
def test_proposition_1_of_sbhg_as_published_and_corrected(epsilon, published, corrected):
    cells = np.full(1000, 3.0)

    assert c.proposition1_published(cells, epsilon, "1e-4") == pytest.approx(published, abs=0.06)
    assert c.proposition1(cells, epsilon, "1e-4") == pytest.approx(corrected, abs=0.06)


def test_published_survival_is_right_up_to_the_threshold_and_above_one_beyond():
    scale, threshold = 0.5, c.sba_threshold(4, "1e-2", "sbhg")
    below, beyond = np.array([1.0, 2.0, 3.0]), np.array([5.0])

    assert c.survival_published(below, 4, "1e-2") == pytest.approx(
        c.survival(below, scale, threshold), rel=1e-12
    )
    assert c.survival_published(beyond, 4, "1e-2")[0] > 1 > c.survival(beyond, scale, threshold)[0]


QSTAR = {
    3: {1.5: 0.896, 2: 0.773},
    10: {1.5: 0.930, 2: 0.865, 3: 0.754, 5: 0.578},
    25: {1.5: 0.942, 2: 0.891, 3: 0.808, 5: 0.689, 10: 0.494},
}


@pytest.mark.parametrize("levels", sorted(QSTAR))
def test_largest_probability_that_entropy_diversity_allows(levels):
    for diversity, printed in QSTAR[levels].items():
        root = mp.findroot(
            lambda q, diversity=diversity: (
                -q * mp.log(q)
                - (1 - q) * mp.log(1 - q)
                + (1 - q) * mp.log(levels - 1)
                - mp.log(diversity)
            ),
            printed,
        )

        assert c.q_star(levels, diversity) == pytest.approx(printed, abs=6e-4)
        assert same(c.q_star(levels, diversity), root)
        assert c.q_star(levels, diversity) > 1 / diversity


def test_prior_counts_of_bowen2016():
    assert float(c.md_alpha(7, 10**6)) == pytest.approx(912.71, abs=0.005)
    assert float(c.md_alpha(7, 20)) == pytest.approx(0.01825, abs=5e-6)
    assert float(c.dp_prior_alpha(1, 10**6)) == pytest.approx(10**6 - 0.5, rel=1e-9)


def test_scales_of_truncated_noise():
    assert c.truncated_laplace_epsilon(1.0) == pytest.approx(1.49, abs=0.005)
    assert c.truncated_laplace_scale(1) == pytest.approx(1.6126, abs=5e-5)
    assert c.truncated_laplace_scale(0.1, width=40) == pytest.approx(19.44, abs=0.005)


def test_reset_blocks_under_replace_one_cost_more_than_published():
    assert float(c.block_pure(1, [2, 2])) == pytest.approx(1.386, abs=5e-4)
    assert float(c.block_pure(1, [2, 2], "replace_one")) > 1.609  # the exact loss at n <= 4, B = 3


def test_smoothing_share_tends_to_bins_over_bins_plus_epsilon():
    assert float(c.smoothed_lambda(2, 30, 10**9)) == pytest.approx(30 / 32, rel=1e-8)


@pytest.mark.parametrize("eps0", ["1e-12", "0.001", "0.0769230769", "1", "30", "699"])
@pytest.mark.parametrize("rows", [1, 3])
def test_alpha_agrees_with_mpmath_and_is_never_too_small(eps0, rows):
    alpha = c.alpha_from_eps0(eps0, rows)
    back = mp.log1p(rows / (mp.mpf(alpha.numerator) / alpha.denominator))

    assert same(alpha, rows / mp.expm1(mp.mpf(eps0)))
    assert back <= mp.mpf(eps0)
    assert c.eps0_from_alpha(alpha, rows) <= Fraction(eps0)
    assert same(c.eps0_from_alpha(alpha, rows), back)
    assert mp.mpf(c.eps0_from_alpha(alpha, rows).numerator) >= back * mp.mpf(
        c.eps0_from_alpha(alpha, rows).denominator
    )


def test_alpha_of_a_third_of_a_budget_is_covered_by_that_third():
    for columns in (3, 7, 13, 39):
        third = Fraction(1, columns)
        assert c.eps0_from_alpha(c.alpha_from_eps0(third)) <= third


def test_tiny_epsilon_gives_a_huge_alpha_and_huge_epsilon_is_refused():
    assert c.alpha_from_eps0("1e-300") > c.UNIFORM
    for bad in (701, 0, -1, float("nan"), float("inf"), "abc"):
        with pytest.raises(ParameterError):
            c.alpha_from_eps0(bad)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-9"), (8, "1e-5")])
def test_zcdp_conversion_agrees_with_a_minimum_found_by_mpmath(epsilon, delta):
    rho = c.rho_from_approx(epsilon, delta)
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
    assert same(c.delta_from_zcdp(rho, epsilon), bound(best))
    assert mp.mpf(float(c.delta_from_zcdp(rho, epsilon))) >= bound(best) * (1 - mp.mpf(10) ** -15)
    assert min(bound(best * x) for x in (0.9, 1.1)) > bound(best)


@pytest.mark.parametrize("epsilon", ["1e-200", "1e-9", "0.1", "1", "50", "3000"])
def test_pure_to_zcdp_agrees_with_mpmath_and_is_rounded_up(epsilon):
    rho = c.pure_to_zcdp(epsilon)
    truth = mp.mpf(epsilon) * mp.tanh(mp.mpf(epsilon) / 2)
    number = mp.mpf(rho.numerator) / rho.denominator

    assert number >= truth
    if truth > mp.mpf(10) ** -290:
        assert number <= truth * (1 + mp.mpf(10) ** -9)


@pytest.mark.parametrize(("epsilon", "width"), [("0.1", mp.inf), ("1", 40), ("5", 10)])
def test_truncated_scale_solves_its_equation(epsilon, width):
    scale = mp.mpf(c.truncated_laplace_scale(epsilon, width=float(width)))

    def inside(start):
        return 1 - mp.exp(-start / scale) / 2 - mp.exp((start - width) / scale) / 2

    assert same(float(1 / scale + mp.log(inside(1) / inside(0))), mp.mpf(epsilon))


def test_corrected_proposition_1_agrees_with_integration():
    counts, scale, threshold = [1, 4, 9], mp.mpf("0.7"), mp.mpf("5.3")

    def error(count):
        density = lambda e: mp.exp(-abs(e) / scale) / (2 * scale)  # noqa: E731
        gap = threshold - count
        edges = [gap, 0, mp.inf] if gap < 0 else [gap, mp.inf]
        kept = mp.quad(density, edges)
        return count * (1 - kept) + mp.quad(lambda e: abs(e) * density(e), edges)

    assert same(
        c.expected_l1(np.array(counts, float), 0.7, 5.3), sum(error(count) for count in counts)
    )
