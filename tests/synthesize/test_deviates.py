"""Normal and gamma deviates against scipy, and their places in a stream."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gibbous.core.stream import stream_key
from gibbous.sampling.cells.deviates import log_gammas, normal_quantile, normals, uniforms

LEVEL = 1e-6


def test_the_normal_quantile_is_that_of_scipy_from_the_far_tail_to_the_middle() -> None:
    shares = np.concatenate([[2.0**-53, 1e-12, 1e-9, 0.5], np.linspace(1e-4, 1 - 1e-4, 4001)])

    found = normal_quantile(shares)

    np.testing.assert_allclose(found, stats.norm.ppf(shares), rtol=4e-15, atol=1e-15)


def test_uniforms_are_never_0_and_never_1_and_take_their_place_alone() -> None:
    places = np.array([5, 0, 3], dtype=np.uint64)

    found = uniforms(places, 77)

    whole = uniforms(np.arange(6, dtype=np.uint64), 77)
    assert np.array_equal(found, whole[[5, 0, 3]])
    assert ((whole > 0) & (whole < 1)).all()


@pytest.mark.statistical
def test_normal_deviates_follow_the_normal_law_and_not_one_four_percent_wider() -> None:
    """Kolmogorov-Smirnov at 1e-6; 150,000 draws see a scale of 1.04 with power near 1."""
    found = normals(np.arange(150_000, dtype=np.uint64), stream_key(4, 1))

    assert stats.kstest(found, "norm").pvalue > LEVEL
    assert stats.kstest(found * 1.04, "norm").pvalue < LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("shape", [0.02, 0.5, 1.0, 3.7, 250.0])
def test_gamma_deviates_follow_the_gamma_law_and_not_one_of_another_shape(shape: float) -> None:
    """Kolmogorov-Smirnov at 1e-6 on logarithms; a shape 5 % larger is seen."""
    found = log_gammas(np.full(60_000, shape), 9, 1)

    def law(log: np.ndarray, of: float) -> np.ndarray:
        return np.asarray(stats.gamma.cdf(np.exp(log), of))

    kept = found[found > -600]  # below, exp() is 0
    scale = stats.gamma.cdf(np.exp(-600.0), shape)

    def of(x: np.ndarray, given: float) -> np.ndarray:
        return (law(x, given) - scale) / (1 - scale)

    assert stats.kstest(kept, lambda x: of(x, shape)).pvalue > LEVEL
    assert stats.kstest(kept, lambda x: of(x, shape * 1.05)).pvalue < LEVEL


def test_a_shape_of_0_has_weight_0_and_tiny_shapes_do_not_vanish() -> None:
    found = log_gammas(np.array([0.0, 1e-6, 1e-6]), 3)

    assert found[0] == -np.inf
    assert np.isfinite(found[1:]).all()
