"""The law before clipping whose clipped values have the wanted mean and spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from gibbous.core.cell_model import CellModel
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.sampling.cells.clipped import FAR, MOST_CORRELATION, correlations, moments, unclipped
from gibbous.sampling.sample import sample


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 0.3), (-0.9, 0.7), (3.0, 2.0), (-40.0, 25.0)])
def test_moments_of_a_clipped_normal_are_those_of_numerical_integration(
    mean: float, spread: float
) -> None:
    law = stats.norm(mean, spread)

    def part(power: int) -> float:
        inside = integrate.quad(lambda x: x**power * law.pdf(x), -1, 1, epsabs=1e-13)[0]
        return float(inside + (-1) ** power * law.cdf(-1) + law.sf(1))

    first, second = moments(np.array([mean]), np.array([spread]))

    # The distribution function is good to 7.5e-8, times the mean or its square.
    allowed = 2e-7 * max(1.0, mean**2 + spread**2)
    assert first[0] == pytest.approx(part(1), abs=allowed)
    assert second[0] == pytest.approx(part(2), abs=allowed)


def test_every_mean_and_spread_that_bounds_allow_is_reached() -> None:
    mean, spread = np.meshgrid(np.linspace(-0.995, 0.995, 41), np.linspace(0.01, 0.97, 40))
    allowed = spread**2 < 0.97 * (1 - mean**2)

    found, wide = unclipped(mean, spread, np.array(-1.0), np.array(1.0))

    first, second = moments(found[allowed], wide[allowed])
    np.testing.assert_allclose(first, mean[allowed], atol=1e-9)
    np.testing.assert_allclose(second - first**2, spread[allowed] ** 2, atol=1e-9)


def test_what_no_clipped_law_has_is_replaced_by_the_nearest_that_one_has() -> None:
    mean, spread = np.array([9.0, -9.0, 0.5]), np.array([0.1, 5.0, 5.0])

    found, wide = unclipped(mean, spread, np.array(-1.0), np.array(1.0))

    assert np.isfinite(found).all()
    assert np.isfinite(wide).all()
    first, _ = moments(found, wide)
    np.testing.assert_allclose(first, [0.999, -0.999, 0.5], atol=1e-3)


def test_far_bounds_and_equal_bounds_change_nothing() -> None:
    mean, spread = np.array([0.0, 5.0]), np.array([1.0, 2.0])

    far = unclipped(mean, spread, np.array([-FAR, -9.0]), np.array([FAR, 19.0]))
    equal = unclipped(mean, spread, np.array([5.0, 5.0]), np.array([5.0, 5.0]))

    for found, wide in (far, equal):
        assert np.array_equal(found, mean)
        assert np.array_equal(wide, spread)


@pytest.mark.parametrize("target", [-0.6, -0.05, 0.3, 0.8])
def test_covariances_of_clipped_numbers_are_those_of_numerical_integration(target: float) -> None:
    """The wanted covariance is that of a correlation; the solver gives the correlation back."""
    low, high = np.array([-0.4, -2.0]), np.array([1.5, 0.9])
    place, weight = np.polynomial.hermite_e.hermegauss(150)
    weight = weight / weight.sum()
    other = target * place[:, None] + np.sqrt(1 - target**2) * place[None, :]
    one = np.clip(place, low[0], high[0])
    two = np.clip(other, low[1], high[1])
    joint = weight[:, None] * weight[None, :]
    mean_two = float((joint * two).sum())
    covariance = float((joint * two * one[:, None]).sum()) - float((weight * one).sum()) * mean_two
    wanted = np.array([[[1.0, covariance], [covariance, 1.0]]])

    found = correlations(wanted, low[None], high[None])

    assert found[0, 0, 1] == pytest.approx(target, abs=5e-3)


def test_a_covariance_that_clipped_numbers_cannot_have_gives_the_largest_correlation() -> None:
    found = correlations(np.full((1, 2, 2), 9.0), np.full((1, 2), -1.0), np.full((1, 2), 1.0))

    assert found[0, 0, 1] == pytest.approx(MOST_CORRELATION)


@pytest.mark.statistical
@pytest.mark.parametrize(("values", "right"), [("matched", True), ("clipped", False)])
def test_drawn_values_near_a_bound_have_the_moments_of_the_model_where_they_are_matched(
    values: Any, right: bool
) -> None:
    """60,000 rows: 5 standard errors of the mean, 3 % of the spread, 0.02 of the correlation."""
    column = Column("x", "numeric", edges=(0.0, 1000.0))
    spread = np.array([[150.0**2, 0.7 * 150**2], [0.7 * 150**2, 150.0**2]])
    model = CellModel(
        sizes=(1, 1),
        numbers=(0, 1),
        counts=np.ones(1),
        prior=0.0,
        means=np.array([[120.0, 200.0]]),
        support=np.ones(1),
        covariances=spread[None],
        freedom=np.array([9.0]),
        draws="fitted",
        values=values,
    )
    schema = Schema((column, replace(column, name="y")))

    drawn = sample(Tables(schema, (), Recipe("cells", ()), model=model), 60_000, seed=1)

    one, two = drawn.number(0), drawn.number(1)
    assert (abs(one.mean() - 120) < 5 * 150 / np.sqrt(60_000)) == right
    assert (abs(one.std() / 150 - 1) < 0.03) == right
    assert (abs(np.corrcoef(one, two)[0, 1] - 0.7) < 0.02) == right
