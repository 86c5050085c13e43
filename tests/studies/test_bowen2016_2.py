"""Study 2 of bowen2016: smoothed histograms, noise on moments, and what the paper's picture shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous import studies
from gibbous.studies import bowen2016_2 as study
from gibbous.studies import histograms
from gibbous.studies.scores import scored, several, single
from gibbous.studies.seeded_draws import Draws

SMOOTHED, PERTURBED = study.SMOOTHED[0], study.PERTURBED[0]


@pytest.fixture(scope="module")
def found() -> dict[tuple[Any, ...], Any]:
    ran = studies.run("bowen2016-2", quick=True, reps=100, workers=1)
    keys = ("method", "bounds", "n", "parameter", "ln_epsilon")
    return {tuple(row[k] for k in keys): row for row in ran.rows}


@pytest.mark.slow
def test_the_smoothed_histogram_is_worse_as_n_grows(found: Any) -> None:
    for parameter in ("mean", "variance"):
        few, many = (found[SMOOTHED, "asymmetric", n, parameter, 3]["bias"] for n in (40, 1000))
        assert many > 1.5 * few > 0
    assert found[study.MODIPS[0], "asymmetric", 1000, "mean", 3]["rmse"] < 0.05


@pytest.mark.slow
def test_histograms_fail_to_cover_the_variance(found: Any) -> None:
    for bounds in study.BOUNDS:
        assert found[PERTURBED, bounds, 1000, "variance", 0]["coverage"] < 0.4
        assert found[SMOOTHED, bounds, 1000, "variance", 6]["coverage"] < 0.4
        assert found[study.MODIPS[0], bounds, 1000, "variance", 0]["coverage"] > 0.88


@pytest.mark.slow
def test_bias_is_positive_where_bounds_are_not_symmetric_and_absent_where_they_are(
    found: Any,
) -> None:
    for method in (*study.MODIPS, PERTURBED, SMOOTHED):
        one, two = (found[method, b, 1000, "mean", -6] for b in ("asymmetric", "symmetric"))
        assert one["bias"] > 0.25
        assert abs(two["bias"]) < 4 * two["bias_se"]


@pytest.mark.slow
def test_split_is_better_for_the_mean_and_non_split_for_the_variance(found: Any) -> None:
    split, whole = study.MODIPS

    def rmse(method: str, parameter: str) -> float:
        return float(found[method, "asymmetric", 1000, parameter, 0]["rmse"])

    assert rmse(split, "mean") < rmse(whole, "mean")
    assert rmse(whole, "variance") < rmse(split, "variance")


@pytest.mark.parametrize(("n", "bins"), study.PRINTED_BINS.items())
def test_scott_bins_are_the_printed_medians(n: int, bins: int) -> None:
    held = study.sample(Draws(2, (n,)), 201, n, 1.0, study.BOUNDS["asymmetric"])

    found = np.median(histograms.scott(np.sqrt(held.variance), n, 7.0))

    assert found == bins


def test_the_smoothed_share_is_the_exact_price() -> None:
    """n ln(1 + (1 - lambda) B / (n lambda)) = epsilon, and B / (B + epsilon) as n grows."""
    for epsilon, bins, n in ((1.0, 7, 40), (20.0, 21, 1000)):
        share = float(histograms.smoothed_share(epsilon, bins, n))
        assert n * math.log1p((1 - share) * bins / (n * share)) == pytest.approx(epsilon)
    assert float(histograms.smoothed_share(1.0, 7, 10**7)) == pytest.approx(7 / 8, rel=1e-6)


def test_mean_and_variance_change_by_no_more_than_their_scale_says() -> None:
    """Brute force: the largest change if one record of a table on a grid is replaced."""
    n, low, high = 4, -3.0, 4.0
    grid = np.linspace(low, high, 4)
    tables = np.stack(np.meshgrid(*[grid] * n, indexing="ij"), -1).reshape(-1, n)

    changed = [np.column_stack([np.full(len(tables), v), tables[:, 1:]]) for v in grid]

    width = high - low
    most_mean = max(np.abs(tables.mean(1) - c.mean(1)).max() for c in changed)
    most_variance = max(np.abs(tables.var(1, ddof=1) - c.var(1, ddof=1)).max() for c in changed)
    assert most_mean == pytest.approx(width / n)
    assert most_variance == pytest.approx(width**2 / n)
    assert tables.var(1, ddof=1).max() == pytest.approx(width**2 * n / (4 * (n - 1)))


@pytest.mark.statistical
@pytest.mark.parametrize("split", [True, False])
def test_sanitized_statistics_have_laplace_noise_of_the_right_scale(*, split: bool) -> None:
    """Kolmogorov-Smirnov at 1e-4 within the clipping bounds; at a tenth more scale it must fail."""
    n, epsilon, width = 50, 40.0, 7.0
    x = np.full((20_000, n), 0.5)
    x[:, ::2] = -0.5
    held = study.Sample(x, x.mean(1), x.var(1, ddof=1), -3.0, 4.0)

    mean, variance = study.sanitized(Draws(4, (1,)), held, epsilon, 1, split=split)

    reach = (width / n, width**2 / n)
    scales = [2 * r / epsilon if split else sum(reach) / epsilon for r in reach]
    for noise, scale in (
        (mean[0] - held.mean, scales[0]),
        (variance[0] - held.variance, scales[1]),
    ):
        near = noise[np.abs(noise) < 0.2 * 0.95]
        for factor, fits in ((1.0, True), (1.15, False)):
            law = stats.laplace(scale=scale * factor)
            ends = law.cdf([-0.19, 0.19])
            good = stats.kstest(near, lambda v, a=ends, f=law: (f.cdf(v) - a[0]) / (a[1] - a[0]))
            assert bool(good.pvalue > 1e-4) is fits


@pytest.mark.statistical
def test_rows_of_a_histogram_follow_its_density() -> None:
    """Mean and variance of many rows against the moments of the piecewise uniform law."""
    p, bins, n = np.array([[0.1, 0.6, 0.3, 0.0]]), np.array([3]), 200_000

    mean, variance = histograms.moments(Draws(6, (1,)), p, bins, n, -3.0, 3.0)

    centers = np.array([-2.0, 0.0, 2.0])
    truth = float(p[0, :3] @ centers)
    spread = float(p[0, :3] @ (centers - truth) ** 2 + 4 / 12)
    assert mean[0] == pytest.approx(truth, abs=5 * math.sqrt(spread / n))
    assert variance[0] == pytest.approx(spread, rel=0.01)


def test_counts_of_bins_are_those_of_numpy() -> None:
    x = Draws(8, (1,)).uniform(2, 500) * 7 - 3

    counts = histograms.counted(x, -3.0, 4.0, np.array([5, 9]))

    for row, bins in ((0, 5), (1, 9)):
        expected = np.histogram(x[row], bins=bins, range=(-3.0, 4.0))[0]
        assert (counts[row, :bins] == expected).all()
        assert counts[row, bins:].sum() == 0


def test_noisy_counts_without_anything_left_are_uniform() -> None:
    found = histograms.shares(np.array([[-1.0, -2.0, 5.0], [4.0, -1.0, 9.0]]), np.array([2, 2]))

    assert found.tolist() == [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]


@pytest.mark.statistical
def test_intervals_of_independent_sets_cover_at_their_level() -> None:
    """Reiter's rule on q_l ~ N(Q, B), v_l = W, Q ~ N(0, W): 95 % within four Monte Carlo errors."""
    many, sets, w, b = 20_000, 10, 2.0, 3.0
    draws = Draws(9, (1,))
    truth = draws.at(1).normal(many) * math.sqrt(w)
    q = truth + draws.at(2).normal(sets, many) * math.sqrt(b)

    inferred = several(q, np.full_like(q, w))

    assert scored(inferred, 0.0)["coverage"] == pytest.approx(0.95, abs=4 * 0.00154)
    one = single(q[0], np.full(many, w + b))
    assert scored(one, 0.0)["coverage"] == pytest.approx(0.95, abs=4 * 0.00154)


def test_a_repeat_without_variance_is_not_usable() -> None:
    q = np.array([[0.0, 0.4], [0.0, 0.6]])

    score = scored(several(q, q * (1 - q)), 0.5)

    assert score["usable"] == 0.5
    assert score["bias"] == pytest.approx(0.0)
    assert scored(single(np.zeros(3), np.zeros(3)), 0.5)["bias"] is None


def test_rounded_rows_are_within_one_of_their_shares_and_drawn_ones_are_not() -> None:
    """The mean of rows in bins of width 1 can move by half a bin alone; drawn rows move it by chance, too."""
    p = histograms.shares(Draws(3, (1,)).laplace(400, 6) + 1, np.full(400, 6))
    n, bins = 50, np.full(400, 6)

    rows = histograms.rounded(p, n)
    rounded, drawn = (
        histograms.moments(Draws(3, (2,)), p, bins, n, 0.0, 6.0, drawn=d)[0] for d in (False, True)
    )

    assert (rows.sum(axis=1) == n).all()
    assert (np.abs(rows - n * p) <= 1).all()
    centers = p @ (np.arange(6) + 0.5)
    spread = p @ (np.arange(6) + 0.5) ** 2 - centers**2
    inside = 1 / 12 / n
    assert np.var(rounded - centers) < 2 * inside
    assert np.var(drawn - centers) == pytest.approx(float(spread.mean()) / n + inside, rel=0.3)


def test_rounded_rows_of_public_bins_cost_what_is_charged() -> None:
    assert study.true_epsilon(study.ROUNDED, 2.0) == 2.0
