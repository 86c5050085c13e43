"""Smoothing against Bayes' rule where the law of the cells is known, and against plain projection."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gibbous.structure import table_kernels
from gibbous.structure.smoothing import denoised, estimated, one_way, simplex, smoothed
from gibbous.structure.table_kernels import LOOSE, Noisy, Ratios, State


def sparse_table(rng: np.random.Generator) -> np.ndarray:
    """2,000 cells, a tenth of them large."""
    return np.where(rng.random(2000) < 0.1, 400.0, 0.0)


@pytest.mark.statistical
def test_denoised_cells_come_near_the_posterior_mean_of_the_true_law() -> None:
    rng = np.random.default_rng(3)
    truth, sigma = sparse_table(rng), 100.0
    noisy = truth + rng.normal(0, sigma, truth.shape)
    likely = 0.1 * np.exp(-0.5 * ((noisy - 400) / sigma) ** 2)
    bayes = 400 * likely / (likely + 0.9 * np.exp(-0.5 * (noisy / sigma) ** 2))

    found = denoised(noisy, sigma, [np.full(truth.shape, 40.0)])

    best, mine = (float(((one - truth) ** 2).mean()) for one in (bayes, found))
    plain = float(((simplex(noisy, truth.sum()) - truth) ** 2).mean())
    assert mine < 1.15 * best
    assert mine < 0.6 * plain


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_a_wrong_scale_of_the_noise_is_worse(factor: float) -> None:
    rng = np.random.default_rng(4)
    truth, sigma = sparse_table(rng), 100.0
    noisy = truth + rng.normal(0, sigma, truth.shape)
    reference = [np.full(truth.shape, 40.0)]

    right, wrong = (
        float(((denoised(noisy, sigma * f, reference) - truth) ** 2).mean()) for f in (1.0, factor)
    )

    assert wrong > 1.05 * right


def test_the_likelier_reference_is_taken() -> None:
    rng = np.random.default_rng(5)
    good = np.geomspace(10, 3000, 300)
    noisy = good + rng.normal(0, 20, 300)

    both = denoised(noisy, 20.0, [good[::-1].copy(), good])

    assert np.allclose(both, denoised(noisy, 20.0, [good]))


def test_without_noise_the_counts_stay() -> None:
    counts = np.array([[5.0, 50.0], [500.0, 45.0]])

    found = denoised(counts, 1e-3, [np.outer([0.2, 0.8], [0.4, 0.6]) * 600])

    assert np.allclose(found, counts, rtol=0.2)


def test_cells_are_positive_whatever_the_noise() -> None:
    noisy = np.random.default_rng(6).normal(0, 1e6, (7, 5))

    assert (denoised(noisy, 1e6, [np.ones((7, 5))]) > 0).all()


@pytest.mark.statistical
def test_smoothing_helps_a_smooth_margin_and_leaves_a_rough_one() -> None:
    rng = np.random.default_rng(7)
    line, spikes = np.linspace(100, 300, 32), np.where(np.arange(32) % 5, 0.0, 4000.0)
    gains = []
    for truth in (line, spikes):
        noisy = truth + rng.normal(0, 60, (50, 32))
        plain = np.mean((noisy - truth) ** 2)
        gains.append(np.mean((np.array([smoothed(y, 60.0) for y in noisy]) - truth) ** 2) / plain)

    assert gains[0] < 0.35
    assert gains[1] < 1.02


def test_shares_of_a_column_are_a_distribution() -> None:
    counts = np.array([-40.0, 10.0, 300.0, 90.0, -5.0, 20.0])

    for ordered in (False, True):
        shares = one_way(counts, 30.0, 375.0, ordered=ordered)
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("levels", [5, 20, 60])
@pytest.mark.parametrize("ordered", [False, True])
def test_where_noise_is_loud_shares_are_nearer_than_the_projection(
    levels: int, ordered: bool
) -> None:
    rng, far = np.random.default_rng(levels), []
    for _ in range(30):
        truth = rng.dirichlet(np.full(levels, 0.7))
        counts, total = 500 * truth + rng.normal(0, 1500, levels), max(1.0, rng.normal(500, 500))
        found = one_way(counts, 1500.0, total, ordered=ordered), simplex(counts, total) / total
        far.append([np.abs(one - truth).sum() / 2 for one in found])

    shrunk, projected = np.mean(far, axis=0)
    assert shrunk < 0.75 * projected


@pytest.mark.parametrize(("levels", "factor"), [(300, 1.0), (300, 0.05), (5, 1.0)])
def test_many_levels_are_shrunk_at_noise_at_which_few_are_not(levels: int, factor: float) -> None:
    """Levels by Zipf's law, noise .075 % of the records; said a twentieth as loud, nothing is won."""
    total, rng = 100_000.0, np.random.default_rng(3)
    law = 1.0 / (1.0 + np.arange(levels))
    away = np.zeros(2)
    for _ in range(10):
        true = rng.multinomial(int(total), law / law.sum())
        counts = true + rng.normal(0.0, 75.0, levels)
        found = one_way(counts, 75.0 * factor, total, ordered=False), simplex(counts, total) / total
        away += [np.abs(one - true / total).sum() for one in found]

    if levels == 300 and factor == 1.0:
        assert away[0] < 0.85 * away[1]
    else:
        assert away[0] == pytest.approx(away[1])


@pytest.mark.parametrize("ordered", [False, True])
def test_where_noise_is_quiet_shares_are_projected(ordered: bool) -> None:
    counts = np.array([400.0, 320.0, 10.0, -4.0, 90.0, 184.0])

    shares = one_way(counts, 5.0, 1000.0, ordered=ordered)

    expected = simplex(smoothed(counts, 5.0) if ordered else counts, 1000.0)
    assert shares == pytest.approx(expected / expected.sum())


def test_cells_known_better_than_the_grid_of_ratios_keep_what_was_measured() -> None:
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.full(100, 0.5)) * 40_000
    reference = true * np.exp(rng.normal(0, 0.5, 100))
    noisy = true + rng.normal(0, 1.0, 100)

    found = denoised(noisy, 1.0, [reference])

    assert np.abs(found - true).sum() <= np.abs(noisy - true).sum()


@pytest.mark.parametrize("shape", [(1,), (7,), (4, 9), (2, 3, 5)])
@pytest.mark.parametrize("sigma", [0.01, 20.0, 1e5])
def test_the_compiled_kernel_equals_its_numpy_twin(
    shape: tuple[int, ...], sigma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    references = [rng.gamma(0.5, 50.0, shape), rng.gamma(2.0, 20.0, shape).T.copy().T]
    noisy = references[0] + rng.normal(0, sigma, shape)

    margins = [np.full(size, references[0].sum() / size) for size in shape]
    fast = [estimated(noisy, sigma, references, given) for given in ((), margins)]
    monkeypatch.setattr(
        table_kernels,
        "posterior",
        lambda given, ratios, state, room, steps: posterior_means(given, ratios, state, steps),
    )
    plain = [estimated(noisy, sigma, references, given) for given in ((), margins)]

    for one, other in zip(fast, plain, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-3, abs=1e-7 * sigma)
        assert one[1] == pytest.approx(other[1], rel=1e-2, abs=1e-4 * sigma)


def posterior_means(given: Noisy, ratios: Ratios, state: State, steps: int) -> float:
    """Twin of `table_kernels.posterior`."""
    noisy, base, sigma, sizes, sums = given
    atoms, width, before, expected = ratios
    law, shifts, means, variances = state
    cells, ends = base[:, None] * atoms, np.cumsum(sizes)
    between = (cells * width) ** 2
    spread = between + sigma**2
    places = [end - size + at for end, size, at in zip(ends, sizes, _codes(sizes), strict=True)]
    for step in range(steps + 1):
        moved = noisy + sum(shifts[at] for at in places)
        logs = -0.5 * ((moved[:, None] - cells) ** 2 / spread + np.log(spread / sigma**2))
        top = logs.max(axis=1)
        likely = np.exp(logs - top[:, None]) * law
        mixed = likely.sum(axis=1)
        likely /= mixed[:, None]
        kept = between / spread
        within = cells + kept * (moved[:, None] - cells)
        means[:] = (likely * within).sum(axis=1)
        square = (likely * (within**2 + kept * sigma**2)).sum(axis=1)
        variances[:] = np.maximum(square - means**2, 0.0)
        found = np.log(mixed) + top + (moved**2 - noisy**2) / (2.0 * sigma**2)
        likelihood = float(found.sum() - (shifts * sums).sum() / sigma**2)
        if step == steps:
            break
        law[:] = likely.sum(axis=0) + expected * before
        law /= law.sum()
        if len(sizes):
            freedom = variances / sigma**2
            at, size = places[step % len(sizes)], len(sums)
            have, loose = (np.bincount(at, weights=w, minlength=size) for w in (means, freedom))
            change = np.clip((sums - have) / np.maximum(loose, LOOSE), -sigma, sigma)
            held = np.unique(at)
            shifts[held] += change[held]
    return likelihood


def _codes(sizes: np.ndarray) -> tuple[np.ndarray, ...]:
    """The code of each cell on each axis."""
    return np.unravel_index(np.arange(math.prod(sizes.tolist())), sizes) if len(sizes) else ()
