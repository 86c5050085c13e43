"""How much uniform law makes conditionals l-diverse, against the definition and a root found by scipy."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate import diversity
from gibbous.privacy.calibrate.diversity import entropy_nats
from tests.privacy import closed_forms as c

COUNTS = np.array([[9, 1, 0, 0], [100, 0, 0, 0], [3, 3, 3, 3], [0, 0, 0, 0], [5, 4, 1, 0]])


def mixed(counts, beta):
    totals = counts.sum(axis=1, keepdims=True)
    law = np.where(totals > 0, counts / np.maximum(totals, 1), 1 / counts.shape[1])
    return (1 - beta)[:, None] * law + beta[:, None] / counts.shape[1]


@pytest.mark.parametrize("l", [1.0, 1.5, 2.0, 3.0, 3.99])
def test_beta_is_the_smallest_that_reaches_the_entropy(l):
    beta = diversity.diverse_beta(COUNTS, l)

    assert np.all(entropy_nats(mixed(COUNTS, beta)) >= math.log(l) - 1e-12)
    for row, share in zip(COUNTS[[0, 1, 4]], beta[[0, 1, 4]], strict=True):
        start = entropy_nats(mixed(row[None], np.zeros(1)))[0]
        if start >= math.log(l):
            assert share == 0
        else:
            root = brentq(
                lambda b, row=row: entropy_nats(mixed(row[None], np.array([b])))[0] - math.log(l),
                0,
                1,
                xtol=1e-14,
            )
            assert share == pytest.approx(root, abs=1e-9)


def test_full_diversity_is_the_uniform_law_and_none_is_a_copy():
    assert diversity.diverse_beta(COUNTS, 4.0).tolist() == [1, 1, 0, 1, 1]
    assert diversity.diverse_beta(COUNTS, 1.0).tolist() == [0, 0, 0, 1, 0]
    assert diversity.max_probability_beta(COUNTS, 4.0).tolist() == [1, 1, 0, 1, 1]


def test_more_diversity_never_takes_less_mixing():
    shares = [diversity.diverse_beta(COUNTS, l) for l in np.linspace(1, 4, 30)]

    assert np.all(np.diff(shares, axis=0) >= 0)


@pytest.mark.parametrize("l", [1.5, 2.0, 3.0])
def test_max_probability_criterion_holds_it_to_one_over_l_and_is_stricter(l):
    strict, loose = diversity.max_probability_beta(COUNTS, l), diversity.diverse_beta(COUNTS, l)
    top = mixed(COUNTS, strict).max(axis=1)

    assert np.all(top <= 1 / l + 1e-12)
    assert np.all(strict >= loose - 1e-12)
    assert mixed(COUNTS, loose).max(axis=1)[1] == pytest.approx(diversity.q_star(4, l), rel=1e-9)
    assert diversity.q_star(4, l) > 1 / l


def test_virtual_records_and_mixing_share_are_two_names_of_one_thing():
    totals = np.array([10.0, 100.0, 12.0])
    beta = np.array([0.3, 0.9, 0.0])

    alpha = diversity.alpha_from_beta(beta, totals, 4)

    assert c.beta_from_alpha(alpha, totals, 4) == pytest.approx(beta)
    virtual = (COUNTS[:3] + alpha[:, None]) / (totals + 4 * alpha)[:, None]
    assert virtual == pytest.approx(mixed(COUNTS[:3], beta))
    assert diversity.alpha_from_beta(np.ones(1), np.array([5.0]), 4)[0] == math.inf
    assert c.beta_from_alpha(np.array([math.inf, 0.0]), np.array([5.0, 0.0]), 4).tolist() == [1, 1]


def test_papers_fraction_of_entropy_as_l():
    assert c.l_from_fraction_published(0.5, 25) == pytest.approx(5)
    assert c.l_from_fraction_published(0, 25) == 1


@pytest.mark.parametrize(("levels", "l"), [(3, 3.1), (3, 0.9), (1, 1.5), (3, float("nan"))])
def test_infeasible_diversity_is_refused(levels, l):
    counts = np.ones((2, levels), dtype=np.int64)
    for function in (diversity.diverse_beta, diversity.max_probability_beta):
        with pytest.raises(ParameterError, match="number of levels"):
            function(counts, l)
    with pytest.raises(ParameterError):
        diversity.q_star(levels, l)


def test_one_level_is_one_diverse():
    counts = np.array([[7], [0]])

    assert diversity.diverse_beta(counts, 1.0).tolist() == [0, 1]
    assert diversity.max_probability_beta(counts, 1.0).tolist() == [0, 1]
    assert diversity.q_star(1, 1.0) == 1
