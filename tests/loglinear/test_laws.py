"""Balancing theta: the same distribution, by brute force; ties and layouts that are made once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear import laws
from gibbous.sampling.loglinear.fit import TIED, Target, _tie, blocks_of, systematic
from gibbous.sampling.loglinear.laws import balanced, law
from gibbous.sampling.loglinear.step_tables import planned

SIZES = (2, 3, 4, 2, 3)
CLIQUES = ((0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 1, 2), (1, 2, 3), (0, 2, 4), (0, 1, 4))


def random_model(seed: int) -> LogLinear:
    rng = np.random.default_rng(seed)
    theta = tuple(rng.normal(0, 2, tuple(SIZES[j] for j in clique)) for clique in CLIQUES)
    return LogLinear(SIZES, CLIQUES, theta)


def test_balancing_keeps_the_law() -> None:
    model = random_model(1)

    found = balanced(model)

    assert np.allclose(law(found, ()), law(model, ()), rtol=1e-9, atol=0)


@pytest.mark.parametrize("spread", [64.0, 16.0], ids=["as it is", "a cut that ties reach"])
def test_balancing_keeps_what_closely_tied_columns_say(
    spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns tied to 1e-7: means of theta move between their cliques, and contrasts grow past 16."""
    monkeypatch.setattr(laws, "LARGEST", spread)
    tied = np.full((30, 4), -16.0)
    tied[0, 0] = tied[1:, 1:] = 0.0
    cliques = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2))
    model = LogLinear(
        (30, 4, 30), cliques, (*map(np.zeros, (30, 4, 30)), tied, tied.T, np.zeros((30, 30)))
    )

    found = balanced(model)

    same = np.allclose(law(found, ()), law(model, ()), rtol=1e-6, atol=0)
    assert same == (spread > 16.0), "the cut is what breaks the law, and this test sees it"


def test_what_cliques_share_is_said_once_by_the_clique_of_just_these_columns() -> None:
    found = balanced(random_model(2))

    theta = dict(zip(found.cliques, found.theta, strict=True))
    assert np.allclose(theta[0, 1].sum(axis=1), 0.0)  # (0,) is a clique
    assert np.allclose(theta[0, 1, 2].sum(axis=2), 0.0)  # so is (0, 1)
    one, two = theta[0, 2, 4].mean(axis=1), theta[0, 1, 4].mean(axis=1)
    assert np.allclose(one, two)  # (0, 4) is none: both say half of it


def test_a_table_is_decomposed_only_where_its_columns_may_be_tied() -> None:
    rng = np.random.default_rng(3)
    tables = []
    for pair in itertools.combinations(range(8), 2):
        mixed = np.eye(6) * rng.uniform(0, 1) + rng.dirichlet(np.ones(36)).reshape(6, 6)
        tables.append((pair, mixed / mixed.sum()))

    found = {_tie(shares) > TIED for _, shares in tables}
    for _, shares in tables:
        rows, columns = (np.sqrt(shares.sum(axis=a, keepdims=True) + 1e-3) for a in (1, 0))
        second = np.linalg.svd(shares / rows / columns, compute_uv=False)[1] ** 2
        assert (_tie(shares) > TIED) == (second > TIED)

    assert found == {True, False}
    assert blocks_of((6,) * 8, [Target(*one) for one in tables])


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("count", [1, 2, 5000])
def test_draws_by_weight_are_those_that_a_search_of_their_running_sum_finds(
    count: int, offset: float
) -> None:
    weights = np.random.default_rng(count).gamma(0.3, 1.0, count)
    sums = np.cumsum(weights) * (count / weights.sum())

    found = systematic(weights, offset)

    searched = np.searchsorted(sums, np.arange(count) + offset, side="right")
    assert found.tolist() == np.minimum(searched, count - 1).tolist()
    often = np.bincount(found, minlength=count)
    assert np.abs(often - weights * count / weights.sum()).max() < 1.0


def test_every_clique_is_in_one_table_of_each_of_its_columns() -> None:
    steps = planned(CLIQUES, SIZES, ((0, 1),))

    for step in steps:
        held = [at for group in step.groups for at, _, _ in group.members]
        wanted = [at for at, one in enumerate(CLIQUES) if set(one) & set(step.columns)]
        assert sorted(held) == wanted
