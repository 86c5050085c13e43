"""Projected tables against true errors: the choice must know which of two estimates is nearer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest

from gibbous.contract.saboteurs import patched
from gibbous.structure import projection
from gibbous.structure.projection import Estimated, projected
from gibbous.structure.smoothing import simplex

TABLES, DRAWS, ROWS, SIGMA = 8, 60, 500.0, 50.0
SPARSE = np.diag([200.0, 150.0, 100.0, 50.0])
EVEN = np.full((4, 4), ROWS / 16)


def drawn(truth: np.ndarray, rng: np.random.Generator) -> list[Estimated]:
    """Noisy tables and their posterior means under a normal law as wide as the truth."""
    held = truth.var() / (truth.var() + SIGMA**2)
    errors = np.full(truth.shape, np.sqrt(held) * SIGMA)
    noisy = [truth + rng.normal(0.0, SIGMA, truth.shape) for _ in range(TABLES)]
    return [(one, SIGMA, truth.mean() + held * (one - truth.mean()), errors) for one in noisy]


def chosen(truth: np.ndarray) -> tuple[float, float]:
    """How often tables are projected, and how often that is nearer to the truth."""
    rng, taken, nearer = np.random.default_rng(4), 0, 0
    for _ in range(DRAWS):
        tables = drawn(truth, rng)
        taken += projected(tables, ROWS)[0] is not tables[0]
        near = sum(np.square(simplex(one[0], ROWS) - truth).sum() for one in tables)
        nearer += near < sum(np.square(one[2] - truth).sum() for one in tables)
    return taken / DRAWS, nearer / DRAWS


def without_freedom() -> AbstractContextManager[None]:
    """A broken build: what follows the noise more closely counts as nearer."""
    return patched(np, "count_nonzero", value=lambda cells: 1)


@pytest.mark.parametrize(
    ("truth", "build", "right"),
    [
        (SPARSE, nullcontext, True),
        (EVEN, nullcontext, True),
        (EVEN, without_freedom, False),
    ],
)
def test_tables_are_projected_where_that_is_nearer_to_the_truth(
    truth: np.ndarray, build: Callable[[], AbstractContextManager[None]], right: bool
) -> None:
    _, nearer = chosen(truth)
    with build():
        taken, _ = chosen(truth)

    assert abs(nearer - 0.5) > 0.4
    assert bool(abs(taken - nearer) < 0.15) is right


def test_projected_tables_add_up_have_no_negative_cell_and_lose_no_possible_one() -> None:
    tables = projected(drawn(SPARSE, np.random.default_rng(5)), ROWS)

    for counts, sigma, cells, errors in tables:
        assert cells.sum() == pytest.approx(ROWS + projection.UNSEEN * 4)
        assert cells.min() == pytest.approx(projection.UNSEEN / 4)
        assert (counts.shape, sigma, errors.any()) == ((4, 4), SIGMA, False)
