"""Bounds of the auditor against closed forms, other formulas and enumeration of all outcomes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from scipy.stats import binom

from gibbous.contract.audit import lower_bound
from gibbous.contract.auditor.bounds import (
    diversity_bound,
    energy_of,
    expected_energy,
    guess_bound,
    guess_p_value,
    law_of,
    quick_bounds,
    scale_p_value,
)
from gibbous.contract.auditor.canaries import Seen, attacked
from gibbous.core.tables import NoiseInfo

LAWS = (NoiseInfo("geometric", 0.7), NoiseInfo("geometric", 5.0), NoiseInfo("gaussian", 1.3))


@pytest.mark.parametrize(("canaries", "level"), [(100, 0.05), (1000, 0.05), (40, 1e-4)])
def test_all_guesses_right_refute_what_the_closed_form_says(canaries: int, level: float) -> None:
    """q^m = level, hence epsilon = log(q / (1 - q)) with q = level^(1/m): 3.4930 for 100 at 95 %."""
    rate = level ** (1 / canaries)

    found = guess_bound(canaries, canaries, canaries, 0.0, level)

    assert found == pytest.approx(math.log(rate / (1 - rate)), abs=1e-6)
    if (canaries, level) == (100, 0.05):
        assert found == pytest.approx(3.4930, abs=5e-5)


@pytest.mark.parametrize(("guesses", "correct"), [(50, 40), (1000, 731), (7, 7), (30, 0), (10, 4)])
def test_without_delta_the_bound_is_clopper_pearsons(guesses: int, correct: int) -> None:
    quick = quick_bounds(np.array([guesses]), np.array([correct]), 1e-3)

    assert guess_bound(2 * guesses, guesses, correct, 0.0, 1e-3) == pytest.approx(
        quick[0], abs=1e-6
    )


def published(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Theorem 5.2 as it is printed, term by term, with exact binomial masses of scipy."""
    rate = math.exp(epsilon) / (math.exp(epsilon) + 1)
    sure = binom.sf(v - 1, r, rate)
    steepest = max(
        2 / i * (binom.cdf(v - 1, r, rate) - binom.cdf(v - i - 1, r, rate)) for i in range(1, m + 1)
    )
    return float(min(1.0, sure + steepest * m * delta))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(
    ("m", "r", "v"), [(100, 100, 80), (100, 40, 40), (12, 7, 5), (1000, 300, 250)]
)
def test_one_run_is_the_theorem_of_the_paper(m: int, r: int, v: int, epsilon: float) -> None:
    found = guess_p_value(m, r, v, epsilon, 1e-5)

    assert found == pytest.approx(published(m, r, v, epsilon, 1e-5), rel=1e-6, abs=1e-15)


def correct_guesses(canaries: int, epsilon: float, delta: float) -> np.ndarray:
    """Law of the right guesses on an (epsilon, delta) method: all coins told, or each by a lie.

    With probability delta it publishes every coin; else it answers each coin by randomized response.
    """
    rate = 1 / (1 + math.exp(-epsilon))
    law = (1 - delta) * binom.pmf(np.arange(canaries + 1), canaries, rate)
    law[canaries] += delta
    return law


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("runs", [1, 4])
def test_no_count_is_likelier_than_its_p_value_on_a_method_that_uses_all_of_delta(
    runs: int, delta: float
) -> None:
    """By convolution of the exact laws; the honest claim is never refuted more often than stated."""
    each, epsilon = 6, 1.0
    law = np.ones(1)
    for _ in range(runs):
        law = np.convolve(law, correct_guesses(each, epsilon, delta))
    tails = law[::-1].cumsum()[::-1]

    for v in range(1, runs * each + 1):
        bound = guess_p_value(runs * each, runs * each, v, epsilon, delta, runs)
        assert tails[v] <= bound * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_a_number_of_guesses_that_follows_the_outputs_is_paid_for_where_there_is_a_delta(
    delta: float,
) -> None:
    coins = np.arange(400) % 4 < 2  # as many heads among the canaries that are told as among others
    seen = Seen(coins, {("cell", 0): 100.0 * coins}, np.where(coins, 1.0, -1.0))

    found = attacked([seen], delta, 0.01)

    paid = 0.01 / 2 if delta else 0.01
    assert (found.correct, found.guesses) == (200, 200)
    assert found.lower == guess_bound(200, 200, 200, delta, paid) == found.ceiling


def test_randomized_response_of_all_coins_attains_the_p_value() -> None:
    """Enumeration of 2^5 coins and 2^5 answers: with delta = 0 the p-value is exact."""
    epsilon = Fraction(3)  # e^epsilon = 3 in exact arithmetic
    truth = Fraction(3, 4)
    tails = [Fraction(0)] * 6
    for lies in itertools.product((0, 1), repeat=5):
        chance = truth ** lies.count(0) * (1 - truth) ** lies.count(1)
        tails[lies.count(0)] += chance

    at_least_four = float(tails[4] + tails[5])
    assert guess_p_value(5, 5, 4, math.log(epsilon), 0.0) == pytest.approx(at_least_four)


def test_many_small_runs_waste_less_delta_than_one_large_run() -> None:
    one = guess_bound(40_000, 10_000, 7_800, 1e-6, 1e-5)
    many = guess_bound(40_000, 10_000, 7_800, 1e-6, 1e-5, runs=625)
    none = guess_bound(40_000, 10_000, 7_800, 0.0, 1e-5)

    assert one < many < none
    assert none - many < 0.1


def test_pairs_bound_is_clopper_pearson_on_both_rates() -> None:
    """200 of 200 against 0 of 200 at level 0.05: log of (0.025^(1/200)) / (1 - 0.025^(1/200))."""
    edge = 0.025 ** (1 / 200)

    assert lower_bound(200, 0, 200, 0.0, 0.05) == pytest.approx(math.log(edge / (1 - edge)))
    assert lower_bound(200, 0, 200, 0.5, 0.05) < lower_bound(200, 0, 200, 0.0, 0.05)
    assert lower_bound(100, 100, 200, 0.0, 0.05) == 0.0


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.law}-{law.scale}")
def test_the_stated_law_is_normalized_and_has_its_variance(law: NoiseInfo) -> None:
    values, chances = law_of(law)

    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    if law.law == "geometric":  # the discrete Gaussian's variance is a little below sigma^2
        assert chances @ values**2 == pytest.approx(law.variance, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.law}-{law.scale}")
@pytest.mark.parametrize("cells", [1, 2, 3])
def test_no_energy_is_likelier_than_its_p_value(law: NoiseInfo, cells: int) -> None:
    """All outcomes of up to three cells, truncated at twelve counts each way."""
    values, chances = law_of(law)
    near = np.abs(values) <= 12
    values, chances = values[near], chances[near]
    energies, weights = np.zeros(1), np.ones(1)
    for _ in range(cells):
        one = np.array([energy_of(law, np.array([v])) for v in values])
        energies = np.add.outer(energies, one).ravel()
        weights = np.multiply.outer(weights, chances).ravel()

    for cut in np.quantile(energies, [0.0, 0.01, 0.1, 0.3]):
        exact = weights[energies <= cut + 1e-9].sum()
        assert exact <= scale_p_value({law: cells}, float(cut) + 1e-9) * (1 + 1e-9)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.law}-{law.scale}")
def test_a_tenth_less_noise_is_shown_by_few_thousand_cells_and_the_right_noise_is_not(
    law: NoiseInfo,
) -> None:
    mean, variance = expected_energy(law)
    cells = 20_000
    less = mean * (0.9 if law.law == "geometric" else 0.81) * cells

    assert scale_p_value({law: cells}, less) < 1e-6
    assert scale_p_value({law: cells}, (mean - 2 * math.sqrt(variance / cells)) * cells) > 1e-3
    assert scale_p_value({law: cells}, 1.1 * mean * cells) == 1.0


@pytest.mark.parametrize("kind", ["geometric", "gaussian"])
def test_A_more_noise_than_stated_is_likely_on_every_processor(
    kind: Literal["geometric", "gaussian"],
) -> None:
    """Sums of probabilities round one way or the other: by the processor, and by the scale."""
    for k in range(1, 40):
        law = NoiseInfo(kind, k / 7)
        mean, _ = expected_energy(law)

        assert scale_p_value({law: 10**6}, 1.1e6 * mean) == 1.0


def test_diversity_is_bounded_by_the_most_even_law_with_that_likeliest_level() -> None:
    """10,000 draws of a law with q = 0.9 over 3 levels: entropy of (0.9, 0.05, 0.05) and a little."""
    exact = math.exp(-0.9 * math.log(0.9) - 0.1 * math.log(0.05))

    found = diversity_bound(3, 9_000, 10_000, 1e-4)

    assert exact < found < exact + 0.06
    assert diversity_bound(3, 3_334, 10_000, 1e-4) == 3.0
    assert diversity_bound(3, 10_000, 10_000, 1e-4) < 1.02
