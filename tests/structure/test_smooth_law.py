"""The smooth law against a general optimizer, an exact integral and known laws; extremes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from gibbous.core.schema import Column
from gibbous.structure.fine_bins import Looks, Steps, counted_edges, finer_steps, next_edges
from gibbous.structure.narrow_bins import narrow_edges
from gibbous.structure.smooth_law import SMALL, _newton, _scale, smooth_law
from gibbous.structure.stretches import stretches

NOISE = 40.0


def counted(edges: tuple[float, ...], numbers: np.ndarray) -> np.ndarray:
    """Numbers at or above each edge and below the next."""
    at = np.searchsorted(np.array(edges, dtype=np.float64), numbers, side="right") - 1
    return np.bincount(at, minlength=len(edges)).astype(np.float64)


def law(column: Column, numbers: np.ndarray, rng: np.random.Generator) -> Steps:
    """As paid_bins finds it, of three looks with normal noise."""
    rows, looks = (float(len(numbers)), 10.0), list[tuple[tuple[float, ...], np.ndarray, float]]()
    edges = narrow_edges(column, "auto", 256)
    for noise in (NOISE, NOISE, 2 * NOISE):
        counts = counted(edges, numbers) + noise * rng.normal(size=len(edges))
        looks.append((edges, counts, noise))
        edges = next_edges(column, looks)
    return finer_steps(column, looks, rows)


def mean(found: Steps) -> float:
    """Of whole numbers that are even in each step."""
    low = np.array(found.edges)
    high = np.maximum(np.append(low[1:] - 1, low[-1]), low)
    return float(found.counts @ (low + high)) / 2 / float(found.counts.sum())


def problem(seed: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy counts of a falling law, ends of cells, and a matrix that charges for bending."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(np.append(1.0, rng.uniform(1, 3, cells)))
    counts = 300 * np.exp(-ends[:-1] / 4) + 30 * rng.normal(size=cells)
    bends = np.diff(np.eye(cells), n=3, axis=0)
    return counts, ends, 3.0 * bends.T @ bends


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [2, None])
@pytest.mark.parametrize(("low", "high", "size"), [(-1e9, 1e6, -400.0), (0.0, 1e7, 10.0)])
def test_small_amounts_with_decimals_are_found_between_bounds_far_beyond_them(
    decimals: int | None, low: float, high: float, size: float
) -> None:
    """Six in ten have none; bins that grow from a part of the range put all others in one."""
    column = Column("x", "numeric", edges=(low, high), decimals=decimals)
    rng = np.random.default_rng(1)
    amounts = np.where(rng.random(20_000) < 0.6, 0, np.exp(1.2 * rng.normal(size=20_000)))
    numbers = np.round(size * amounts, 2)

    means = [mean(law(column, numbers, rng)) / numbers.mean() for _ in range(10)]

    assert 0.9 < np.median(means) < 1.1
    assert np.abs(means).max() < 2


def grid(first: float, far: float) -> np.ndarray:
    """Distances that grow in equal ratios."""
    return np.asarray(first * np.expm1(np.log1p(far / first) * np.arange(1, 20) / 20))


def test_evidence_of_cells_of_very_unlike_widths_is_about_that_of_a_fit() -> None:
    """Most rows are in the cell below 0, a million times as wide as that above: differences round off."""
    ends = np.unique(
        np.concatenate(
            [-grid(1e5, 1e9), [-1e9, 0, 0.01, 1e6 - 0.01, 1e6, 1e6 + 0.01], grid(100, 1e6)]
        )
    )
    zero = int(np.searchsorted(ends, 0.0))
    rng, true = np.random.default_rng(0), np.zeros(len(ends) - 1)
    true[zero - 1 : zero + 1] = 12_000, 18_000
    for _ in range(8):
        counts = true + NOISE * rng.normal(size=len(true))
        alone = np.isin(ends[:-1], (0.0, 1e6 - 0.01, 1e6))

        found, gain = smooth_law(counts, NOISE, ends, (30_000.0, NOISE), alone=alone, first=1e5)

        assert gain <= float(found @ (2 * counts - found)) / NOISE**2 + 101


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("first", [None, 1.0])
def test_no_general_optimizer_finds_a_likelier_law(seed: int, first: float | None) -> None:
    counts, ends, smooth = problem(seed, 12)
    scale = _scale(counts, 30.0, ends, np.arange(12), first, dates=False)
    variance, even, rows = 900.0 * scale.cells, scale.widths / scale.widths.mean(), 900.0

    def loss(logs: np.ndarray) -> float:
        mass = even * np.exp(np.clip(logs, -40, 40))
        apart = np.sum((scale.counts - mass) ** 2 / variance) + ((mass.sum() - rows) / 50.0) ** 2
        steep = sum(50.0 * max(0.0, one @ logs + most) ** 2 for one, most in scale.slopes)
        return float(apart + steep + logs @ smooth @ logs) / 2 + SMALL * float(
            mass @ scale.logs / mass.sum()
        )

    start = np.full(12, np.log(rows / even.sum()))
    found, _ = _newton(scale, variance, even, smooth, rows, 50.0, start)
    others = [minimize(loss, s, method="L-BFGS-B").fun for s in (start, found, start + 0.3)]

    assert len(scale.slopes) == 1  # nothing is seen of the last cells
    assert loss(found) < min(others) + 0.01


def test_the_evidence_is_the_integral_over_all_laws() -> None:
    """By importance sampling in six cells; a tenth of a nat would be seen."""
    counts, ends, smooth = problem(3, 6)
    smooth = smooth + 0.5 * np.eye(6)
    scale = _scale(counts, 3.0, ends, np.arange(6), 1.0, dates=False)
    variance, even = 9.0 * scale.cells, scale.widths / scale.widths.mean()
    logs, evidence = _newton(scale, variance, even, smooth, 1000.0, 50.0, np.full(6, 5.0))

    mass = even * np.exp(logs)
    second = smooth + np.diag(mass**2 / variance) + np.outer(mass, mass) / 50.0**2
    for one, _ in scale.slopes:
        second = second + 50.0 * np.outer(one, one)
    rng = np.random.default_rng(1)
    draws = np.linalg.solve(np.linalg.cholesky(second).T, rng.normal(size=(6, 200_000)))
    at = logs[:, None] + 1.2 * draws
    masses = even[:, None] * np.exp(at)
    loss = (
        ((scale.counts[:, None] - masses) ** 2 / variance[:, None]).sum(0) / 2
        + ((masses.sum(0) - 1000.0) / 50.0) ** 2 / 2
        + (at * (smooth @ at)).sum(0) / 2
        + SMALL * (scale.logs @ masses) / masses.sum(0)
        + sum(25.0 * np.maximum(0.0, one @ at + most) ** 2 for one, most in scale.slopes)
    )
    proposal = -(draws * (second @ draws)).sum(0) / 2 - 6 * np.log(1.2)
    weights = np.exp(-loss - proposal - evidence - np.linalg.slogdet(second)[1] / 2)

    assert np.log(weights.mean()) == pytest.approx(0.0, abs=0.1)  # Laplace's is an approximation
    assert weights.std() / weights.mean() / np.sqrt(weights.size) < 0.05


@pytest.mark.parametrize("first", [None, 1.0])
def test_a_density_falls_towards_far_bounds_and_not_towards_zero(first: float | None) -> None:
    """Few numbers are near -40 or 0; the upper bound is 0, and the last cell ends just above it."""
    ends = np.append(np.arange(-40.0, 0.0), 1e-9)
    counts = 500 * np.exp(-(((ends[:-1] + 20) / 4) ** 2)) + np.random.default_rng(1).normal(size=40)

    found = _scale(counts, 10.0, ends, np.arange(40), first, dates=False)

    assert [np.flatnonzero(slope).tolist() for slope, _ in found.slopes] == [[0, 1]]


@pytest.mark.slow
def test_a_few_rows_over_decades_have_about_their_mean() -> None:
    """600 of 20,000 rows are log-normal, the others 0; no bin of them stands out of the noise by much.

    Measured, of the mean's relative error in 20 draws: .26 in the median, below .16 in 9. By stretches alone
    (and with rows that these do not show even on the logarithm): .45, and 3.
    """
    rng = np.random.default_rng(5)
    spent = np.zeros(20_000)
    spent[:600] = np.floor(np.exp(8 + rng.normal(size=600))).clip(0, 200_000)
    column = Column("spent", "numeric", edges=(0, 200_000), integer=True)

    errors = [abs(mean(law(column, spent, rng)) / spent.mean() - 1) for _ in range(20)]

    assert np.median(errors) < 0.35
    assert np.mean(np.array(errors) < 0.16) >= 0.3


@pytest.mark.parametrize("far", [1e6, 1e8])
def test_parts_of_a_row_next_to_far_bounds_are_none(far: float) -> None:
    """Where less than one row is left, nothing is: a tenth of one at 10^8 would be a mean of its own."""
    column = Column("x", "numeric", edges=(0, int(far)), integer=True)
    rng = np.random.default_rng(4)
    numbers = np.minimum(np.floor(100 * rng.random(6_000) ** (-1 / 1.6)), far)

    for _ in range(5):
        found = law(column, numbers, rng)

        assert found.counts.sum() == pytest.approx(6_000, rel=0.1)
        last = np.flatnonzero(found.counts)[-1]
        assert found.edges[last] < far / 3


@pytest.mark.slow
def test_few_amounts_in_far_bounds_are_not_even_in_them() -> None:
    """Most of them in one cell of a linear scale, which a logarithm divides."""
    column = Column("x", "numeric", edges=(0, 10**8), integer=True)
    rng = np.random.default_rng(2)
    paid = rng.random(6_000) < 0.03
    numbers = np.where(paid, np.floor(np.exp(8 + rng.normal(size=6_000))), 0.0)

    means = [mean(law(column, numbers, rng)) / numbers.mean() for _ in range(12)]

    assert max(means) < 6


def test_a_smooth_law_leaves_jumps_to_stretches() -> None:
    """Numbers that end within their bounds, far above the noise: no parabola says where."""
    rng = np.random.default_rng(2)
    ends = np.arange(41, dtype=np.float64)
    counts = np.where(ends[:-1] < 13, 1_000.0, 0.0) + NOISE * rng.normal(size=40)
    rows = (13_000.0, 100.0)

    other = smooth_law(counts, NOISE, ends, rows, alone=np.zeros(40, dtype=bool), first=None)
    found = stretches(counts, NOISE, rows=rows, other=other)

    assert found[13:].sum() < 40
    assert found[:13] == pytest.approx(1_000, abs=40)


def test_heaps_of_a_bound_or_zero_are_no_part_of_it() -> None:
    """A tenth of the rows at 0, and few at the upper bound: the others are what they are without these."""
    ends = np.arange(32, dtype=np.float64)
    bell = 500 * np.exp(-(((ends[:-1] - 15) / 6) ** 2))
    heaped = bell.copy()
    heaped[0], heaped[-1] = 900.0, 300.0
    alone = np.zeros(31, dtype=bool)
    alone[[0, -1]] = True

    found, gain = smooth_law(
        heaped, 20.0, ends, (float(heaped.sum()), 10.0), alone=alone, first=None
    )

    assert found[[0, -1]] == pytest.approx([900, 300])
    assert found[1:-1] == pytest.approx(bell[1:-1], abs=8)
    assert gain > 1_000


@pytest.mark.parametrize("first", [None, 1.0])
def test_thousands_of_cells_have_a_law_of_few(first: float | None) -> None:
    """A matrix of all of them would take hours; a bell over 4,096 cells is known as well by 64."""
    ends = np.arange(1, 4_098, dtype=np.float64)
    bell = 30 * np.exp(-(((ends[:-1] - 2_000) / 500) ** 2))
    counts = bell + 20 * np.random.default_rng(1).normal(size=4_096)

    found, gain = smooth_law(
        counts,
        20.0,
        ends,
        (float(bell.sum()), 50.0),
        alone=np.zeros(4_096, dtype=bool),
        first=first,
    )

    assert np.abs(np.cumsum(found - bell)).max() < 0.02 * bell.sum()
    assert gain > 1_000


@pytest.mark.parametrize("rows", [0.0, -50.0, 20.0])
def test_no_law_of_rows_that_may_not_exist(rows: float) -> None:
    counts, ends = np.zeros(20), np.arange(21, dtype=np.float64)

    found, gain = smooth_law(
        counts, 5.0, ends, (rows, 15.0), alone=np.zeros(20, dtype=bool), first=1.0
    )

    assert not found.any()
    assert gain == -np.inf


@pytest.mark.parametrize(
    ("low", "high", "integer"),
    [
        (0, 2**40, True),
        (-(2**40), 3, True),
        (-1e300, 1e300, False),
        (1e-300, 1e-290, False),
        (-1e-3, 1e9, False),
        (5, 6, True),
        (0.0, 1e-300, False),
    ],
)
@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("size", [1.0, 3_000.0, 1e12])
def test_extremes_of_bounds_noise_and_rows_are_no_error(
    low: float, high: float, integer: bool, noise: float, size: float
) -> None:
    column = Column("x", "numeric", edges=(low, high), integer=integer)
    edges = narrow_edges(column, "auto", 256)
    rng = np.random.default_rng(1)
    counts = np.rint(size * rng.random(len(edges)) ** 8 + noise * rng.normal(size=len(edges)))
    looks: Looks = [(edges, counts, noise)]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = finer_steps(column, looks, (float(counts.sum()), noise))

    assert np.isfinite(found.counts).all()
    assert (found.counts >= 0).all()
    assert len(counted_edges(column, edges)) == len(edges) + 1
