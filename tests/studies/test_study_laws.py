"""Seeded draws follow their laws, and are the same whatever else is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous.studies.seeded_draws import Draws, beta, binomial, laplace, multinomial

DRAWS = Draws(11, (9, 1))
MANY = 20_000
LEVEL = 1e-4  # of each test, over fixed seeds

LAWS: dict[str, tuple[Any, Any, Any]] = {
    "normal": (DRAWS.at(1).normal(MANY), stats.norm(), stats.norm(scale=1.1)),
    "laplace": (DRAWS.at(2).laplace(MANY), stats.laplace(), stats.laplace(scale=0.9)),
    "gamma": (DRAWS.at(3).gamma(0.4, MANY), stats.gamma(0.4), stats.gamma(0.44)),
    "beta": (DRAWS.at(4).beta(0.4, 7.0, MANY), stats.beta(0.4, 7), stats.beta(0.44, 7)),
    "large beta": (
        DRAWS.at(5).beta(2e8, 6e8, MANY), stats.beta(2e8, 6e8), stats.beta(1.6e8, 4.8e8),
    ),
}  # fmt: skip


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_their_law_and_not_one_a_tenth_off(name: str) -> None:
    found, law, wrong = LAWS[name]

    assert stats.kstest(found, law.cdf).pvalue > LEVEL
    assert stats.kstest(found, wrong.cdf).pvalue < LEVEL


@pytest.mark.statistical
def test_binomial_and_multinomial_counts_follow_their_law() -> None:
    n, p = 30, np.array([0.05, 0.6, 0.0, 0.35])

    counts = multinomial(DRAWS.at(6), n, np.broadcast_to(p, (MANY, 4)))

    assert (counts.sum(axis=1) == n).all()
    assert (counts[:, 2] == 0).all()
    for cell in (0, 1, 3):
        seen = np.bincount(counts[:, cell].astype(int), minlength=n + 1)
        law = stats.binom.pmf(np.arange(n + 1), n, p[cell]) * MANY
        kept = law > 5
        observed = np.append(seen[kept], seen[~kept].sum())
        expected = np.append(law[kept], law[~kept].sum())
        assert stats.chisquare(observed, expected, sum_check=False).pvalue > LEVEL
    pair = np.cov(counts[:, 0], counts[:, 1])[0, 1]
    assert pair == pytest.approx(-n * p[0] * p[1], abs=5 * 1.3 * 2.7 / MANY**0.5)


def test_impossible_probabilities_are_exact() -> None:
    unit = np.array([1e-12, 0.5, 1 - 1e-12])

    assert (binomial(unit, 7, 0.0) == 0).all()
    assert (binomial(unit, 7, 1.0) == 7).all()
    assert (binomial(unit, 0, 0.3) == 0).all()


def test_the_normal_that_stands_for_a_large_beta_is_close_to_it() -> None:
    unit = np.array([0.001, 0.2, 0.5, 0.9, 0.9999])
    a, b = 1.5e7, 4.5e7

    spread = stats.beta(a, b).std()

    assert np.abs(beta(unit, a, b) - stats.beta(a, b).ppf(unit)).max() < 2e-3 * spread


def test_laplace_is_symmetric_and_has_the_right_quantiles() -> None:
    unit = np.array([0.1, 0.25, 0.5, 0.75, 0.9])

    assert laplace(unit) == pytest.approx(stats.laplace().ppf(unit), abs=1e-12)


def test_fewer_repeats_are_the_first_of_more() -> None:
    assert (DRAWS.uniform(5, 3) == DRAWS.uniform(9, 3)[:5]).all()
    assert (DRAWS.uniform(4, 3, start=5) == DRAWS.uniform(9, 3)[5:]).all()


def test_other_paths_and_seeds_are_other_draws() -> None:
    one = DRAWS.uniform(50)

    assert (one > 0).all()
    assert (one < 1).all()
    assert not (one == DRAWS.at(1).uniform(50)).any()
    assert not (one == Draws(12, DRAWS.path).uniform(50)).any()
