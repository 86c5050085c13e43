"""The dyadic guess against every division there is, and what it makes of tails and single values."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.schema import Column
from gibbous.structure.dyadic import dyadic
from gibbous.structure.fine_bins import counted_edges, finer_edges, finer_steps


def best(counts: np.ndarray, price: float) -> float:
    """Least cost over all divisions into dyadic stretches, by trying them all."""
    whole = [float((counts**2).sum())]
    if counts.sum() > 0:
        whole.append(float(((counts - counts.mean()) ** 2).sum()) + price)
    if len(counts) > 1:
        half = len(counts) // 2
        whole.append(best(counts[:half], price) + best(counts[half:], price))
    return min(whole)


@pytest.mark.parametrize("seed", range(20))
def test_no_division_costs_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.normal(scale=2.0, size=8) + rng.choice([0, 0, 5], 8)

    found = dyadic(counts, 1.0, 6.0)

    stretches = 0
    edges = np.flatnonzero(np.diff(found, prepend=np.nan) != 0)
    stretches = int((found[edges] > 0).sum())
    # Neighboring stretches of one value cannot be told apart: never more than what was paid for.
    cost = float(((counts - found) ** 2).sum()) + 6.0 * stretches
    assert cost <= best(counts, 6.0) + 1e-9


def test_an_empty_tail_is_exactly_empty_and_a_single_value_stays_alone() -> None:
    counts = np.random.default_rng(1).normal(scale=10.0, size=500)
    counts[0] += 5_000.0
    counts[300] += 200.0

    found = dyadic(counts, 10.0, 20.0)

    assert np.flatnonzero(found).tolist() == [0, 300]
    assert found[300] == pytest.approx(counts[300])


def test_one_cell_is_possible() -> None:
    assert dyadic(np.array([-3.0]), 1.0, 6.0).tolist() == [0.0]
    assert dyadic(np.array([30.0]), 1.0, 6.0).tolist() == [30.0]


def test_all_parts_of_tiny_grids_are_found_without_noise() -> None:
    """Brute force on a grid of 13 values: every law on three values comes back as it is."""
    column = Column("x", "numeric", edges=(0, 12), integer=True)
    narrow = (0.0, 1.0, 4.0, 12.0)
    for a in range(13):
        for b in range(a):
            values = np.array([12] * 700 + [a] * 900 + [b] * 400)
            counts = np.histogram(values, counted_edges(column, narrow))[0].astype(float)
            fine = finer_edges(column, narrow, counts, 1.0)
            parts = np.histogram(values, counted_edges(column, fine))[0].astype(float)

            steps = finer_steps(column, [(narrow, counts, 1.0), (fine, parts, 1.0)])

            held = dict(zip(steps.edges, steps.counts.tolist(), strict=True))
            for value in {a, b, 12}:
                assert held[value] == pytest.approx((values == value).sum())
