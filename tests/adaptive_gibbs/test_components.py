"""Components against generalized least squares on the full cross table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbous.structure.smoothing import Components, added, centered, subsets

SIZES = (2, 3, 4)
CLIQUES = (((0,), 2.0), ((1,), 3.0), ((0, 1), 1.0), ((1, 2), 2.5), ((1, 2), 0.7), ((0, 2), 4.0))


def measurements(rng: np.random.Generator) -> list[tuple[tuple[int, ...], np.ndarray, float]]:
    truth = rng.integers(0, 30, SIZES).astype(float)
    found = []
    for clique, sd in CLIQUES:
        out = tuple(a for a in range(3) if a not in clique)
        exact = truth.sum(axis=out)
        found.append((clique, exact + rng.normal(0, sd, exact.shape), sd**2))
    return found


def design(clique: tuple[int, ...]) -> np.ndarray:
    """Matrix that sums the full table to a clique's cells."""
    rows = []
    for cell in itertools.product(*(range(SIZES[a]) for a in clique)):
        one = np.ones(SIZES)
        for a, code in zip(clique, cell, strict=True):
            mask = np.zeros(SIZES[a])
            mask[code] = 1
            one = one * mask.reshape([-1 if k == a else 1 for k in range(3)])
        rows.append(one.ravel())
    return np.array(rows)


@pytest.mark.parametrize("clique", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_a_combined_table_is_the_generalized_least_squares_estimate(
    clique: tuple[int, ...],
) -> None:
    tables = measurements(np.random.default_rng(1))
    stacked = np.vstack([design(c) / np.sqrt(v) for c, _, v in tables])
    values = np.concatenate([y.ravel() / np.sqrt(v) for _, y, v in tables])
    full = np.linalg.pinv(stacked) @ values

    found, sd = added(Components(), tables).table(clique)

    assert np.allclose(found.ravel(), design(clique) @ full, atol=1e-8)
    covariance = design(clique) @ np.linalg.pinv(stacked.T @ stacked) @ design(clique).T
    assert sd == pytest.approx(np.sqrt(np.mean(np.diag(covariance))), rel=1e-8)


def test_combined_tables_agree_on_what_they_share() -> None:
    known = added(Components(), measurements(np.random.default_rng(2)))

    left, right = known.table((0, 1))[0].sum(axis=0), known.table((1, 2))[0].sum(axis=1)

    assert np.allclose(left, right)
    assert np.allclose(left.sum(), known.total())


def test_one_table_alone_comes_back_as_it_was() -> None:
    values = np.arange(12.0).reshape(3, 4) - 5

    found, sd = added(Components(), [((3, 7), values, 9.0)]).table((3, 7))

    assert np.allclose(found, values)
    assert sd == pytest.approx(3.0)


def test_what_was_not_measured_together_is_not_there() -> None:
    known = added(Components(), [((0,), np.ones(2), 1.0), ((1,), np.ones(3), 1.0)])

    assert not known.holds((0, 1))
    with pytest.raises(KeyError):
        known.table((0, 1))


def test_adding_leaves_what_was_there_alone() -> None:
    before = added(Components(), [((0,), np.ones(2), 1.0)])

    added(before, [((0,), np.full(2, 9.0), 1.0)])

    assert np.allclose(before.table((0,))[0], 1.0)


def test_subsets_are_all_and_centering_removes_every_mean() -> None:
    assert subsets((4, 6)) == [(), (4,), (6,), (4, 6)]
    part = centered(np.random.default_rng(0).normal(size=(3, 4, 2)))
    assert all(np.allclose(part.mean(axis=a), 0) for a in range(3))
