"""Printed numbers of the paper and of the mathematical reference, reproduced or contradicted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.probabilistic import (
    alpha_printed,
    exact_delta,
    kept_mass,
    last_failure,
    odds,
    pure_alpha,
    reference_zero_sample,
    shrunken_loss,
    theorem44_limit,
)
from gibbous.privacy.calibrate.tails import beta_binomial_tail, log_beta_binomial

EPSILON, DELTA = 4.6, 1e-5


def alpha_exact(n: int, k: int, epsilon: float, delta: float) -> float:
    """Least virtual records of each of k equal origins by the exact tail, n records and people."""
    c = odds(epsilon)

    def passes(a: float) -> bool:
        return exact_delta(n, n, a, c, cells=float(k), others=(k - 1) * a) <= delta

    return last_failure(passes, pure_alpha(n, c))


def test_theorem_44_gives_the_least_alpha_that_the_paper_prints_for_experiment_2() -> None:
    found = alpha_printed(12, 120_690, EPSILON, DELTA)

    assert found == pytest.approx(0.039764, abs=1e-5)  # section VI: min alpha = 0.039764


@pytest.mark.slow
def test_no_destination_size_gives_the_alpha_that_the_paper_prints_for_experiment_1() -> None:
    found = [alpha_printed(n, 233_726, EPSILON, DELTA) for n in range(3, 25)]

    assert min(found) > 0.02 > 0.01245


@pytest.mark.parametrize(
    ("n", "k", "printed", "exact"),
    [(12, 120_690, 0.0398, 0.0306), (12, 233_726, 0.0374, 0.0291), (15, 233_726, 0.0386, 0.0305)],
)
def test_alphas_of_the_mathematical_reference(n: int, k: int, printed: float, exact: float) -> None:
    # Found there on a ladder of 0.5 %, from above.
    assert alpha_printed(n, k, EPSILON, DELTA) == pytest.approx(printed, rel=0.005)
    assert alpha_exact(n, k, EPSILON, DELTA) == pytest.approx(exact, rel=0.006)


def test_the_exact_alpha_is_where_the_bound_crosses_delta() -> None:
    c, k, n = odds(EPSILON), 120_690, 12

    def bound(a: float) -> float:
        return exact_delta(n, n, a, c, cells=float(k), others=(k - 1) * a)

    found = alpha_exact(n, k, EPSILON, DELTA)

    assert found == pytest.approx(3 / math.expm1(EPSILON), rel=1e-6)  # f(0) reaches 3 people
    assert bound(found) <= DELTA < bound(found * 0.999)


@pytest.mark.parametrize("n", [1, 2])
def test_the_printed_theorem_passes_nothing_for_tiny_destinations_and_says_why(n: int) -> None:
    with pytest.raises(ParameterError, match=r"never rare enough.*bound='exact'"):
        alpha_printed(n, 120_690, EPSILON, DELTA)

    assert alpha_exact(n, 120_690, EPSILON, DELTA) == pytest.approx(n / math.expm1(4.6), rel=1e-6)


def test_theorem_44_says_nothing_up_to_ln_3() -> None:
    with pytest.raises(ParameterError, match="ln 3"):
        theorem44_limit(math.log(3), 1e-5, 10)


def test_the_whole_epsilon_of_the_papers_shrinking() -> None:
    found = EPSILON + shrunken_loss(1.0, 15, 15, 0.0378, sharp=False)

    assert found == pytest.approx(8.569, abs=5e-4)


def test_the_sharper_bound_costs_hundredths_instead_of_ln_2() -> None:
    assert shrunken_loss(0.01245, 15, 15, 1.0) == pytest.approx(0.01245)
    assert shrunken_loss(0.01245, 15, 15, 1.0, sharp=False) == pytest.approx(math.log(2))


def test_pure_dp_of_a_million_people_needs_913_virtual_records_not_914() -> None:
    assert pure_alpha(10**6, odds(7)) == pytest.approx(912.71, abs=0.005)
    assert pure_alpha(20, odds(7)) == pytest.approx(0.01825, abs=5e-6)


def test_the_event_of_probability_e_minus_24_9_that_is_printed_as_e_minus_249() -> None:
    a = 20 / math.expm1(7)
    found = log_beta_binomial(np.array(20.0), 20.0, np.array(1 + a), np.array(19 + a))

    assert float(found) == pytest.approx(-24.92, abs=0.01)


def test_theorem_44_at_the_setting_where_shrinking_breaks_it() -> None:
    c, k = odds(3), 10_000
    zero = reference_zero_sample(50, 50, 0.3, 0.3 * (k - 1), c)

    assert zero * 2 * k / (1 - 2 * math.exp(-3)) == pytest.approx(1.76e-6, rel=0.005)


def test_tails_agree_with_another_library() -> None:
    from scipy.stats import betabinom

    limit = np.array([0.0, 2.5, 7.3, 19.2, 40.9])
    a, b = np.array([0.03, 1.2, 3.0, 0.5, 9.0]), np.array([900.0, 40.0, 2.0, 60.0, 5.0])

    found = beta_binomial_tail(limit, 60, a, b)

    truth = betabinom.sf(np.floor(limit), 60, a, b)
    assert found == pytest.approx(truth, rel=1e-5)
    assert (found >= truth * (1 - 1e-9)).all()


def test_chernoffs_bound_on_kept_origins_holds_in_simulation() -> None:
    kept = np.full(400, 0.2)
    n, delta = 10, 0.05

    bound = kept_mass(kept, n, delta)

    from scipy.stats import binom

    assert 0 < bound < 389 * 0.2
    assert binom.cdf(bound, 389, 0.2) < delta


def test_a_tiny_epsilon_falls_back_on_theorem_41_instead_of_filling_memory() -> None:
    n, c = 1_000_000, odds(1e-6)

    def bound(a: float) -> float:
        return exact_delta(n, n, a, c, cells=1000.0, others=999 * a)

    assert bound(pure_alpha(n, c)) == 0
    assert bound(pure_alpha(n, c) / 2) == 1
