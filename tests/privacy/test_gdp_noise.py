"""mu of discrete Gaussian noise: against trade-off functions at 60 digits and another library."""

import math
import random
from fractions import Fraction

import mpmath as mp
import pytest

from gibbous.core.errors import ParameterError
from gibbous.privacy import entropy
from gibbous.privacy.calibrate import gdp, scales, stable, zcdp
from tests.privacy import gaussian_pld as pld
from tests.privacy import gaussian_tradeoff as brute
from tests.privacy.exact_divergence import hockey_stick, kept_cell, noise_law, partitions


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(brute.DIGITS):
        yield


def seen(sigma):
    """The law of the noise, without the values that nobody sees."""
    return {x: p for x, p in noise_law(2 * float(sigma) ** 2, power=2).items() if p > 1e-16}


def covers_closely(sigma):
    """The constant charged covers brute force; one part in a hundred less does not."""
    truth, _ = brute.constant(sigma)
    ours = brute.charged(sigma)
    return truth <= ours and mp.mpf("0.99") * ours < truth and ours <= truth * mp.mpf("1.0002")


@pytest.mark.slow
@pytest.mark.parametrize("sigma", brute.SIGMAS[::6], ids=lambda s: f"{float(s):g}")
def test_constant_covers_brute_force_and_one_percent_less_does_not(sigma):
    assert covers_closely(sigma)


@pytest.mark.slow
def test_constant_of_60_sigmas_covers_brute_force_and_one_percent_less_does_not():
    assert len(set(brute.SIGMAS)) == 60
    assert all(entropy.noise_scale(sigma) == sigma for sigma in brute.SIGMAS[20:])
    assert [sigma for sigma in brute.SIGMAS if not covers_closely(sigma)] == []


def test_the_program_of_the_proof_page_prints_both_constants():
    _, half, one = brute.lines([Fraction(1, 2), Fraction(1)])

    assert half.split()[:4] == ["0.5", "0.244190952113", "1", "0.244190952113"]
    assert one.split()[:4] == ["1", "0.045760119516", "1", "0.04576013"]


def test_the_rest_of_the_series_is_certified_by_one_sum_of_fractions():
    """At sigma = 1 mu / 2 is below x = (1 + 1/24 + 7/1920 + R) / 2 iff e^(-t^2 / 2) has over 1/2 up to x."""
    half = (1 + Fraction(1, 24) + Fraction(7, 1920) + gdp._REST) / 2
    small = half - Fraction(1, 10**8)

    def area(x, terms):  # the series alternates and its terms fall: an even number of them is below
        return sum(
            (-1) ** n * x ** (2 * n + 1) / (2**n * math.factorial(n) * (2 * n + 1))
            for n in range(terms)
        )

    assert area(half, 10) > Fraction(1, 2)
    assert area(small, 11) < Fraction(1, 2)


def test_the_series_of_the_quantile_has_no_negative_coefficient():
    """z(y) = q(1/2 + y / sqrt(2 pi)) has z' = e^(z^2 / 2), so z'' = z z'^2: coefficients by recurrence."""
    a = [Fraction(0), Fraction(1)]
    for n in range(60):
        slope = [(i + 1) * a[i + 1] for i in range(n + 1)]
        product = sum(
            a[i] * slope[j] * slope[n - i - j] for i in range(n + 1) for j in range(n - i + 1)
        )
        a.append(product / ((n + 1) * (n + 2)))
    y = mp.mpf(1) / 2
    value = mp.fsum(mp.mpf(c.numerator) / c.denominator * y**n for n, c in enumerate(a))

    assert min(a) == 0
    assert (a[3], a[5]) == (Fraction(1, 6), Fraction(7, 120))
    assert abs(value - brute.upper(mp.mpf(1) / 2 - y / mp.sqrt(2 * mp.pi))) < 1e-20
    # y = 1 / (2 sigma), and 2 sigma z = 1 + c
    assert (a[3] / 4, a[5] / 16) == (Fraction(1, 24), Fraction(7, 1920))


def test_no_test_between_thresholds_beats_the_normal_pair():
    sigma = Fraction(7, 10)
    tails = brute.survival(sigma)
    square = gdp.square_of_gaussian(sigma)
    mu = mp.sqrt(mp.mpf(square.numerator) / square.denominator)
    rng = random.Random(5)
    for _ in range(100):
        k, part = rng.randrange(1, 7), mp.mpf(rng.random())
        before = tails[k - 2] if k > 1 else 1 - tails[1]  # S(k - 2); S(-1 + 1) = 1 - S(1)
        false = part * tails[k - 1] + (1 - part) * tails[k]
        missed = part * (1 - before) + (1 - part) * (1 - tails[k - 1])

        assert 1 - brute.tail(brute.upper(false) - mu) <= missed


@pytest.mark.parametrize("shifts", [(1,), (2,), (1, 1), (2, 1), (3,), (1, 1, 1)])
@pytest.mark.parametrize("sigma", ["0.6", "1", "2.5"])
def test_counts_that_change_together_cost_the_sum_of_their_squares(sigma, shifts):
    law = seen(sigma)
    cells = [(law, {x + shift: p for x, p in law.items()}) for shift in shifts]
    square = sum(shift**2 for shift in shifts) * gdp.square_of_gaussian(sigma)

    for epsilon in (0, 0.3, 1, 3):
        exact = hockey_stick(cells, epsilon)
        assert exact <= float(gdp.delta_of(square, epsilon)) + 1e-12


def test_a_square_counted_once_for_two_counts_is_caught():
    law = seen(2.5)
    cells = [(law, {x + 1: p for x, p in law.items()})] * 2

    assert hockey_stick(cells, 0.3) > 1.2 * float(gdp.delta_of(gdp.square_of_gaussian("2.5"), 0.3))


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_thresholded_noise_costs_mu_and_a_delta_beside_it(tables, rows):
    sigma, threshold = 1.5, 4
    law = seen(sigma)
    one = gdp.square_of_gaussian(sigma)
    beside = stable.new_cells_delta(sigma, threshold, tables, rows)
    square = scales.l2_squared(tables, "add_remove", rows) * one
    worst = []
    for counts in partitions(rows):
        lone = [(kept_cell(c, law, threshold), kept_cell(0, law, threshold)) for c in counts]
        shared = [(kept_cell(3 + c, law, threshold), kept_cell(3, law, threshold)) for c in counts]
        for cells in (lone * tables, shared * tables, lone + shared * (tables - 1)):
            for epsilon in (0.0, 2.0):
                bound = float(gdp.delta_of(square, epsilon) + beside)
                back = [(b, a) for a, b in cells]
                exact = max(hockey_stick(cells, epsilon), hockey_stick(back, epsilon))
                assert exact <= bound + 1e-9
                worst.append(exact / float(beside) if cells[0] in lone else 0)

    assert max(worst) > 0.95  # a unit alone in its cells is seen with this chance


def test_delta_of_a_threshold_is_the_chance_that_lone_cells_survive():
    law = seen(1.5)
    q = {c: sum(p for x, p in law.items() if x > 4 - c) for c in (1, 3)}

    assert float(stable.new_cells_delta(1.5, 4)) == pytest.approx(q[1], rel=1e-10)
    assert float(stable.new_cells_delta(1.5, 4, 2, 3)) == pytest.approx(2 * q[3], rel=1e-10)
    wide = sum(p for x, p in seen(5).items() if x > 8)
    assert float(stable.new_cells_delta(5, 9, 1, 2)) == pytest.approx(2 * wide, rel=1e-10)
    with pytest.raises(ParameterError):
        stable.new_cells_delta(1.5, 0, 3)


def test_constant_falls_from_a_quarter_to_nothing_and_zcdp_takes_over_below():
    found = [math.sqrt(gdp.square_of_gaussian(s)) * float(s) - 1 for s in brute.SIGMAS]

    assert found == sorted(found, reverse=True)
    assert gdp.square_of_gaussian(Fraction(499, 1000)) is None
    assert found[0] == pytest.approx(0.24419095, abs=1e-8)
    assert found[20] == pytest.approx(0.04576012, abs=2e-8)


@pytest.mark.parametrize("sigma", [10**6, 2**61])
def test_the_largest_scales_keep_their_excess(sigma):
    ours = gdp.square_of_gaussian(sigma) * sigma**2 - 1

    assert 1 - Fraction(1, 1000) < ours * 12 * sigma**2 or ours < Fraction(1, 10**22)
    assert ours >= 0


@pytest.mark.parametrize("squared", [1, 2, 13, 52])
@pytest.mark.parametrize("square", ["1e-6", "0.02", "0.9", "1.0936141", "1.09361424", "4", "90"])
def test_sigma_is_the_smallest_that_fits(square, squared):
    sigma = gdp.sigma_for(square, squared)

    assert squared * gdp.square_of_gaussian(sigma) <= Fraction(square)
    assert entropy.noise_scale(sigma) == sigma
    smaller = sigma * (1 - Fraction(1, 10**7))
    assert sigma == gdp.LEAST_SIGMA or squared * gdp.square_of_gaussian(smaller) > Fraction(square)


def test_price_falls_where_the_series_takes_over():
    sigmas = [1 + Fraction(k, 10**9) for k in range(-30, 31)]
    found = [gdp.square_of_gaussian(sigma) for sigma in sigmas]

    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]
    goal = gdp.square_of_gaussian(1 - Fraction(1, 10**10))
    assert gdp.square_of_gaussian(gdp.sigma_for(goal, 1)) <= goal


def ours_and_cells(epsilon, delta, tables, relation):
    cells = pld.cells_of(tables, relation)
    return gdp.sigma_for(gdp.mu_squared_for(epsilon, delta), cells), cells


@pytest.mark.parametrize("case", pld.CASES, ids=str)
def test_calibration_is_never_below_privacy_loss_distributions_and_close(case):
    ours, cells = ours_and_cells(*case)
    theirs = pld.SMALLEST[case]  # a bound from above, whose grid adds up to 6e-5

    assert float(ours) >= theirs * (1 - 1e-4)
    assert float(ours) <= theirs * 1.01 or theirs <= 3
    assert cells == scales.l2_squared(case[2], case[3])


@pytest.mark.slow
def test_privacy_loss_distributions_agree_at_our_sigmas():
    pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for case in pld.CASES:
        ours, cells = ours_and_cells(*case)
        epsilon, goal = case[0], float(case[1])
        assert pld.delta_at(float(ours), epsilon, cells, above=False) <= goal
        assert pld.delta_at(float(ours), epsilon, cells) <= goal * 1.005
        if ours > 3:
            assert pld.delta_at(float(ours) / 1.01, epsilon, cells, above=False) > goal


def test_noise_for_one_and_a_billionth_is_five_percent_less_than_by_zcdp():
    square = gdp.mu_squared_for(1, "1e-9")
    rho = zcdp.rho_from_approx(1, "1e-9")

    assert float(square / 2) == pytest.approx(0.016557, abs=5e-7)
    assert float(rho) == pytest.approx(0.014973, abs=5e-7)
    ratio = gdp.sigma_for(square, 13) / scales.gaussian_sigma(rho, 13)
    assert float(ratio) == pytest.approx(math.sqrt(0.0149731 / 0.0165574), abs=2e-4)
