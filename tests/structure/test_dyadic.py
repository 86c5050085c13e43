"""The dyadic guess against every division there is, and what it makes of tails and single values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gibbous.core.schema import Column
from gibbous.structure.dyadic import dyadic
from gibbous.structure.fine_bins import (
    PARTS,
    Steps,
    counted_edges,
    finer_edges,
    finer_steps,
    next_edges,
    rises_of,
)
from gibbous.structure.narrow_bins import narrow_edges


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
            fine = finer_edges(column, narrow, counts, 1.0, 32)
            parts = np.histogram(values, counted_edges(column, fine))[0].astype(float)

            steps = finer_steps(column, [(narrow, counts, 1e-4), (fine, parts, 1e-4)])

            held = dict(zip(steps.edges, steps.counts.tolist(), strict=True))
            for value in {a, b, 12}:
                assert held[value] == pytest.approx((values == value).sum(), rel=1e-6)


def distance(values: np.ndarray, steps: Steps) -> float:
    """Kolmogorov-Smirnov, of whole numbers and a law that is even within its steps."""
    shares = np.append(0.0, np.cumsum(steps.counts)) / steps.counts.sum()
    at = np.unique(values)
    ours = np.interp(at + 1, [*steps.edges, steps.edges[-1] + 1], shares)
    return float(
        np.abs(ours - np.searchsorted(np.sort(values), at, side="right") / len(values)).max()
    )


def looked(values: np.ndarray, column: Column, cut: tuple[float, ...]) -> list[tuple[Any, ...]]:
    """Five looks at values, the later ones with twice the noise of the first two, whose sigma is 15."""
    rng = np.random.default_rng(2)
    looks = list[tuple[Any, ...]]()
    for noise in (15.0, 15.0, 30.0, 30.0, 30.0):
        counts = np.histogram(values, counted_edges(column, cut))[0]
        looks.append((cut, counts + rng.normal(0, noise, len(cut)), noise))
        if len(looks) <= len(PARTS):
            cut = next_edges(column, looks)
    return looks


def test_a_shape_in_a_small_part_of_the_bounds_is_found_look_by_look() -> None:
    """Days as numbers (20011231) lie in one narrow bin of sixteen, and in a hundredth of their bounds.

    Of 4,096 parts of that bin none stands out: their law was even over the bin, .65 off.
    """
    rng = np.random.default_rng(1)
    years, months, days = (rng.integers(*ends, 2_000) for ends in ((1958, 2002), (1, 13), (1, 29)))
    values = years * 10_000 + months * 100 + days
    column = Column("x", "numeric", edges=(10_000_000, 99_999_999), integer=True)

    looks = looked(values, column, narrow_edges(column, "auto", 256))
    far = [
        distance(values, finer_steps(column, looks[:n], (2_000.0, 60.0))) for n in (1, 2, 3, 4, 5)
    ]

    assert far[0] > 0.3
    assert far[2] < 0.2
    assert far[4] < 0.2


def test_heaps_in_every_part_are_found_by_the_later_looks() -> None:
    """Quarters in a bin of many rows: each part holds as many rows, on few of its values."""
    column = Column("x", "numeric", edges=(0, 4_096), decimals=6)
    values = np.repeat(np.arange(0, 4_096, 0.25), 800)

    looks = looked(values, column, (0.0, 4_096.0))
    steps = finer_steps(column, looks, (float(len(values)), 60.0))

    assert len(looks[-1][0]) > 60_000
    assert (steps.counts > 700).sum() > 16_000  # of 16,384 quarters, one step each


def test_slopes_are_those_of_a_straight_line_and_none_at_a_peak_or_beside_nothing() -> None:
    """Density 1 + x on bins of several widths: half its rise is the width over twice the mean."""
    edges = np.array([0.0, 1, 3, 4, 8, 10, 10])
    widths, mass = np.diff(edges), np.diff(edges + edges**2 / 2)

    rises = rises_of(edges.tolist(), np.append(mass, 0.0))

    assert rises[1:4] == pytest.approx(widths[1:4] ** 2 / 2 / mass[1:4])
    assert rises_of([0.0, 1, 2, 3, 3], np.array([1.0, 5, 1, 0, 0]))[1] == 0
    assert not rises_of([0.0, 1, 1], np.array([1.0, 1, 0])).any()
    assert (abs(rises_of([0.0, 1, 2, 3, 3], np.array([0.0, 1, 50, 0, 0]))) <= 1).all()


@pytest.mark.parametrize("scale", [1.7e308, 5e-324 * 64, 1.0], ids=str)
def test_slopes_of_the_largest_and_smallest_floats_are_numbers(scale: float) -> None:
    edges = [-scale, float(np.nextafter(-scale, 0)), 0.0, 5e-324, scale / 2, scale, scale]

    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = rises_of(edges, np.array([3.0, 5, 4, 3, 1, 0, 0]))

    assert np.isfinite(found).all()
