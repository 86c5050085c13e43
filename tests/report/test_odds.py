"""Odds against the mechanism that attains them: randomized response, enumerated."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy.stats import norm

from gibbous.core.claim import approximate, l_diverse, pure, zcdp
from gibbous.reporting import odds


def _after(before: float, epsilon: float, answer: int) -> float:
    """Bayes' rule by enumeration: the true answer is told with probability e^eps / (1 + e^eps)."""
    truth = exp(epsilon) / (1 + exp(epsilon))
    told = {1: truth if answer else 1 - truth, 0: 1 - truth if answer else truth}
    joint = {state: prior * told[state] for state, prior in ((1, before), (0, 1 - before))}
    return joint[1] / sum(joint.values())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("before", [0.001, 0.3, 0.5, 0.95])
def test_randomized_response_attains_the_bounds_on_beliefs(before: float, epsilon: float) -> None:
    found = odds.belief(before, epsilon)

    assert found.high == pytest.approx(_after(before, epsilon, 1), rel=1e-12)
    assert found.low == pytest.approx(_after(before, epsilon, 0), rel=1e-12)
    assert found.low <= before <= found.high


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.0), (1.0, 0.01), (2.0, 0.3)])
def test_the_best_guess_is_that_of_the_worst_mechanism(epsilon: float, delta: float) -> None:
    """The dominating pair of (epsilon, delta): states that give the input away, else two answers."""
    p = (1 - delta) * exp(epsilon) / (1 + exp(epsilon))
    one = {"sure 1": delta, "sure 0": 0.0, "1": p, "0": 1 - delta - p}
    zero = {"sure 1": 0.0, "sure 0": delta, "1": 1 - delta - p, "0": p}

    best = sum(max(one[k], zero[k]) for k in one) / 2

    assert odds.right_guess(epsilon, delta) == pytest.approx(best, rel=1e-12)
    assert odds.advantage(epsilon, delta) == pytest.approx(
        sum(abs(one[k] - zero[k]) for k in one) / 2, rel=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_odds_beyond_twice_the_factor_are_at_most_two_delta_likely(epsilon: float) -> None:
    """By enumeration of Gaussian noise on a count; beyond the factor itself they are likelier than delta."""
    outputs = np.arange(-60, 62)
    one, two = np.exp(-(outputs**2) / 18.0), np.exp(-((outputs - 1) ** 2) / 18.0)
    one, two = one / one.sum(), two / two.sum()
    delta = np.maximum(one - np.exp(epsilon) * two, 0).sum()

    beyond = one[one > np.exp(epsilon) * two].sum()
    far_beyond = one[one > 2 * np.exp(epsilon) * two].sum()

    assert far_beyond <= odds.exceeded(Fraction(delta))
    assert beyond > delta


def test_only_claims_that_bound_odds_are_stated() -> None:
    assert odds.stated(pure(Fraction(1, 2))) == (0.5, 0.0)
    assert odds.stated(approximate(Fraction(1), Fraction(1, 10**6))) == (1.0, 1e-6)
    assert odds.stated(zcdp(Fraction(1, 2))) is None
    assert odds.stated(l_diverse(Fraction(3))) is None
    assert odds.stated(pure(Fraction(400))) is None


def test_a_huge_epsilon_gives_no_overflow() -> None:
    assert odds.belief(0.5, 1e6).high == pytest.approx(1.0)
    assert odds.right_guess(1e6) == 1.0


@pytest.mark.parametrize("mu", [0.05, 0.4456, 3.0])
def test_the_advantage_from_mu_is_that_of_the_best_test_of_two_normal_laws(mu: float) -> None:
    false_alarms = np.linspace(1e-6, 1 - 1e-6, 200_001)
    best = float((norm.cdf(norm.ppf(false_alarms) + mu) - false_alarms).max())

    assert odds.advantage(50.0, 0.0, mu) == pytest.approx(best, abs=1e-8)
    assert odds.advantage(50.0, 0.0, mu) >= best
    assert odds.advantage(0.01, 0.0, 3.0) == odds.advantage(0.01), "the smaller of two bounds"
