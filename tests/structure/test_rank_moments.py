"""Rank dependence of two ordered columns, against Spearman's correlation before noise was added."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from gibbous.structure.rank_moments import ranked
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
