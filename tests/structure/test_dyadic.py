"""The dyadic guess against every division there is, and what it makes of tails and single values."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.schema import Column
from gibbous.structure.dyadic import dyadic
from gibbous.structure.fine_bins import (
    COARSE,
    Steps,
    counted_edges,
    finer_edges,
    finer_steps,
    next_edges,
)


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


def distance(values: np.ndarray, steps: Steps) -> float:
    """Kolmogorov-Smirnov, of whole numbers and a law that is even within its steps."""
    shares = np.append(0.0, np.cumsum(steps.counts)) / steps.counts.sum()
    at = np.unique(values)
    ours = np.interp(at + 1, [*steps.edges, steps.edges[-1] + 1], shares)
    return float(
        np.abs(ours - np.searchsorted(np.sort(values), at, side="right") / len(values)).max()
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_bin_whose_parts_drown_in_their_noise_is_counted_in_few_by_the_last_look(
    seed: int,
) -> None:
    """Days as numbers (20011231) lie in one narrow bin: of 4,096 parts none stands out, of 64 some do."""
    rng = np.random.default_rng(seed)
    years, months, days = (rng.integers(*ends, 2_000) for ends in ((1958, 2002), (1, 13), (1, 29)))
    values = years * 10_000 + months * 100 + days
    column = Column("x", "numeric", edges=(10_000_000, 99_999_999), integer=True)
    cut: tuple[float, ...] = (10_000_000.0, 17_782_794.0, 20_535_250.0, 99_999_999.0)
    looks = []
    for noise in (15.0, 15.0, 30.0):
        counts = np.histogram(values, counted_edges(column, cut))[0] + rng.normal(
            0, noise, len(cut)
        )
        looks.append((cut, counts, noise))
        cut = next_edges(column, looks, (2_000.0, 60.0))

    inside = [edge for edge in looks[2][0] if 17_782_794 < edge < 20_535_250]
    assert len(inside) == COARSE - 1
    assert distance(values, finer_steps(column, looks[:2], (2_000.0, 60.0))) > 0.3
    assert distance(values, finer_steps(column, looks, (2_000.0, 60.0))) < 0.2


def test_parts_that_are_even_and_clear_are_cut_finer_by_the_last_look() -> None:
    """Quarters in a bin of many rows: each part holds as many rows, on few of its values."""
    rng = np.random.default_rng(1)
    column = Column("x", "numeric", edges=(0, 4_096), decimals=6)
    values = np.repeat(np.arange(0, 4_096, 0.25), 800)
    cut: tuple[float, ...] = (0.0, 4_096.0)
    looks = []
    for noise in (15.0, 15.0, 30.0):
        counts = np.histogram(values, counted_edges(column, cut))[0] + rng.normal(
            0, noise, len(cut)
        )
        looks.append((cut, counts, noise))
        cut = next_edges(column, looks, (float(len(values)), 60.0))

    steps = finer_steps(column, looks, (float(len(values)), 60.0))

    assert len(looks[2][0]) > 60_000
    assert (steps.counts > 700).sum() > 16_000  # of 16,384 quarters, one step each
