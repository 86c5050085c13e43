"""Multinomial fits against another library, closed forms, and where plain Newton steps break down."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gibbous.evaluation.model_fits import Multinomial, alike, multinomial, solved


def sample(rows: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A design with an intercept, a number and a contrast, and codes that depend on them."""
    rng = np.random.default_rng(seed)
    number, level = rng.normal(size=rows), rng.integers(0, 2, rows)
    design = np.column_stack([np.ones(rows), number, level]).astype(float)
    logits = design @ rng.normal(scale=0.7, size=(3, classes))
    return design, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def score(found: Multinomial, design: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return (np.eye(found.shares.shape[1])[codes] - found.shares).T @ design


@pytest.mark.parametrize("classes", [2, 4])
def test_it_is_what_statsmodels_finds(classes: int) -> None:
    discrete = pytest.importorskip("statsmodels.discrete.discrete_model")
    design, codes = sample(900, classes, seed=classes)

    found = multinomial(design, codes, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = discrete.MNLogit(codes, design).fit(method="newton", disp=0)

    np.testing.assert_allclose(found.estimate, np.asarray(other.params).T, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.se, np.asarray(other.bse).T, rtol=1e-6)
    np.testing.assert_allclose(found.shares, other.predict(), atol=1e-8)


def test_equal_rows_counted_once_give_each_row_its_own_shares() -> None:
    design, codes = sample(300, 3, seed=5)
    design[:, 1] = np.round(design[:, 1])

    found = multinomial(design, codes, 3)

    assert found.shares.shape == (300, 3)
    logits = np.column_stack([np.zeros(300), design @ found.estimate.T])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.shares, expected, atol=1e-12)


def test_classes_of_very_different_sizes_are_fitted() -> None:
    # 30,000 to 10 over five levels: from a start at zero, full steps diverge.
    rng = np.random.default_rng(3)
    level = rng.integers(0, 5, 30_000)
    codes = rng.choice(4, size=30_000, p=[0.0006, 0.98, 0.019, 0.0004])
    design = np.column_stack([np.ones(30_000), *(level == j for j in range(1, 5))]).astype(float)
    cells = np.bincount(level * 4 + codes, minlength=20).reshape(5, 4)
    assert (cells > 0).all()

    found = multinomial(design, codes, 4)

    # Saturated: the fitted odds are those of the cells.
    odds = np.log(cells[:, 1:] / cells[:, :1]).T
    expected = np.column_stack([odds[:, 0], odds[:, 1:] - odds[:, :1]])
    np.testing.assert_allclose(found.estimate, expected, atol=1e-6)
    np.testing.assert_allclose(found.se[:, 0] ** 2, 1 / cells[0, 0] + 1 / cells[0, 1:], rtol=1e-5)


def test_an_infinite_coefficient_leaves_the_others_at_their_maximum() -> None:
    design, codes = sample(2_000, 3, seed=8)
    codes = np.where((design[:, 2] == 1) & (codes == 2), 1, codes)  # class 2 lacks the level

    found = multinomial(design, codes, 3)

    assert found.estimate[1, 2] < -10
    assert found.se[1, 2] > 100
    assert np.isfinite(found.estimate).all()
    assert np.abs(score(found, design, codes)).max() < 1e-3


@pytest.mark.parametrize("step", [1.0, 0.1, 2.0**-40])
def test_rows_are_of_one_kind_where_they_are_equal(step: float) -> None:
    rows = np.random.default_rng(3).integers(-2, 3, (3_000, 4)) * step
    rows[rows == 0] *= np.where(np.arange((rows == 0).sum()) % 2, -1.0, 1.0)  # both zeros

    first, place = alike(rows)

    assert len(first) == len(np.unique(rows, axis=0)) == place.max() + 1
    assert (rows[first][place] == rows).all()


def test_coefficients_that_go_off_side_by_side_are_infinite() -> None:
    """Class 0 lacks a level that both others have. Before: each was held against all others, and finite."""
    codes = np.repeat([0, 1, 1, 2, 2], [100, 50, 60, 70, 80])
    x = np.repeat([0, 0, 1, 0, 1], [100, 50, 60, 70, 80]).astype(float)
    design = np.column_stack([np.ones(360), x])
    plain, three = np.random.default_rng(0).normal(size=500), np.arange(500) % 3

    found = solved("multinomial", design, codes.astype(float), classes=3)
    regular = solved("multinomial", np.column_stack([np.ones(500), plain]), three + 0.0, classes=3)

    assert found.infinite.tolist() == [[False, True], [False, True]]
    np.testing.assert_allclose(found.estimate[:, 0], np.log([0.5, 0.7]), atol=1e-6)
    assert not regular.infinite.any()
