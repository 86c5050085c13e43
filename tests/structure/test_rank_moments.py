"""Rank dependence of two ordered columns, against Spearman's correlation before noise was added."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from gibbous.structure.rank_moments import contrast, halved, halves, ranked
from gibbous.structure.smoothing import estimated, rake


def normal_cells(correlation: float, bins: int = 16) -> np.ndarray:
    """Shares of a normal pair over bins of equal mass."""
    ends = norm.ppf(np.linspace(1e-9, 1 - 1e-9, bins + 1))
    law = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    below = np.array([[law.cdf([a, b]) for b in ends] for a in ends])
    cells: np.ndarray = np.maximum(np.diff(np.diff(below, axis=0), axis=1), 0)
    return cells / cells.sum()


def spearman(shares: np.ndarray) -> float:
    """Of cells, with mean ranks of ties."""
    ranks = [np.cumsum(one) - one / 2 - 0.5 for one in (shares.sum(1), shares.sum(0))]
    spreads = [
        float(own @ r**2) for own, r in zip((shares.sum(1), shares.sum(0)), ranks, strict=True)
    ]
    return float(ranks[0] @ shares @ ranks[1]) / float(np.sqrt(np.prod(spreads)))


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.8])
def test_rank_dependence_that_single_cells_lose_comes_back(correlation: float) -> None:
    """Twelve draws: 30,000 rows, noise of 36 a cell, whose correlation is off by about .02 alone."""
    cells = normal_cells(correlation)
    own = [cells.sum(1), cells.sum(0)]
    before, now = list[float](), list[float]()
    for seed in range(12):
        counts = 30_000 * cells + np.random.default_rng(seed).normal(0, 36, cells.shape)
        even = 30_000 * np.multiply.outer(*own)
        smooth = rake(estimated(counts, 36.0, [even], [30_000 * one for one in own])[0], own)
        found = ranked(smooth, counts, 36.0, own, (16, 16))
        assert np.allclose(found.sum(0), own[1])
        assert np.allclose(found.sum(1), own[0], atol=1e-6)
        assert found.min() >= 0
        before.append(abs(spearman(smooth) - spearman(cells)))
        now.append(abs(spearman(found) - spearman(cells)))

    assert np.mean(now) < 0.03
    if correlation:
        assert np.mean(now) < np.mean(before) / 2


def test_what_noise_explains_and_codes_without_a_rank_change_nothing() -> None:
    cells = normal_cells(0.0, 8)
    own = [cells.sum(1), cells.sum(0)]

    assert ranked(cells, 1_000 * cells, 50.0, own, (8, 8)) is cells
    # A column of which one level alone is in order has no ranks to follow.
    counts = 1_000 * cells + 300 * np.eye(8)
    assert np.allclose(ranked(cells, counts, 1.0, own, (1, 8)), cells)


def sides(shares: np.ndarray) -> float:
    """Covariance of being above the middle, by a loop over cells."""
    own = (shares.sum(1), shares.sum(0))
    cuts = [halves(one, len(one)) for one in own]
    above = [float(one[cut == 1].sum()) for one, cut in zip(own, cuts, strict=True)]
    both = sum(
        shares[i, j]
        for i in range(len(shares))
        for j in range(len(shares.T))
        if cuts[0][i] and cuts[1][j]
    )
    return float(both) - above[0] * above[1]


@pytest.mark.parametrize("correlation", [0.1, -0.5])
def test_the_sides_of_two_middles_bring_back_the_rank_dependence_of_independent_cells(
    correlation: float,
) -> None:
    cells = normal_cells(correlation)
    own = [cells.sum(1), cells.sum(0)]
    even = np.multiply.outer(*own)

    found = halved(even, own, (16, 16), sides(cells), 1e-9)

    assert sides(found) == pytest.approx(sides(cells), abs=1e-4)
    assert spearman(found) == pytest.approx(spearman(cells), abs=0.005)
    assert np.allclose(found.sum(0), own[1])
    assert np.allclose(found.sum(1), own[0], atol=1e-6)
    # Of what is left, as much is kept as noise does not explain.
    error = abs(sides(cells)) / 2
    assert sides(halved(even, own, (16, 16), sides(cells), error)) == pytest.approx(
        sides(cells) * 3 / 4, abs=1e-4
    )
    assert halved(even, own, (16, 16), sides(cells), 2.1 * error) is even


def test_halves_are_cut_nearest_to_the_middle_and_codes_after_the_levels_have_no_side() -> None:
    own = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])

    assert halves(own, 5).tolist() == [
        0,
        0,
        1,
        1,
        1,
        2,
    ]  # .3 / .9 below; .6 / .9 is further from a half
    assert halves(np.array([0.9, 0.05, 0.05]), 3).tolist() == [0, 1, 1]
    assert halves(np.array([0.05, 0.05, 0.9]), 3).tolist() == [0, 0, 1]
    weights = contrast(own, halves(own, 5))[halves(own, 5)]
    assert float(weights @ own) == pytest.approx(0)
    assert weights[2] - weights[0] == pytest.approx(1)
    assert weights[5] == 0


@pytest.mark.parametrize("most", [0.95, 1 - 1e-6, 1 - 1e-12])
@pytest.mark.parametrize("place", [0, 2, 5])
def test_columns_of_nearly_one_value_keep_finite_shares_and_their_margins(
    most: float, place: int
) -> None:
    one = np.full(6, (1 - most) / 5)
    one[place] = most
    for other in (one[::-1].copy(), np.array([0.2, 0.1, 0.3, 0.3, 0.05, 0.05])):
        for covariance in (-0.01, 0.2):
            found = halved(np.outer(one, other), [one, other], (6, 6), covariance, 1e-4)

            assert np.isfinite(found).all()
            assert np.allclose(found.sum(0), other, atol=1e-6)
