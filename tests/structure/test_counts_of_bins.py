"""Known counts of merged bins against generalized least squares, and against what repeated noise shows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from gibbous.structure.fine_bins import Looks
from gibbous.structure.known_counts import counts_of_bins
from gibbous.structure.narrow_bins import TAIL, merged_edges

ALPHA = 1e-6  # level of each test of a sum of squares
COARSE = (0.0, 4.0, 8.0, 16.0, 20.0)
FINE = (0.0, 1.0, 2.0, 3.0, 4.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0)
FINEST = (0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0)
TRUE = np.array([30.0, 5, 9, 7, 12, 60, 4, 8, 2, 6, 40, 17])
EACH = ((COARSE, 3.0), (FINE, 3.0), (FINEST, 6.0))


def looks_of(rng: np.random.Generator | None = None) -> Looks:
    """Three looks at the same cells; exact without a generator."""
    found = []
    for edges, noise in EACH:
        starts = np.searchsorted(np.array(FINEST), np.array(edges))
        counts = np.add.reduceat(TRUE, starts)
        found.append((edges, counts + (noise * rng.normal(size=len(edges)) if rng else 0), noise))
    return found


def sums(edges: Sequence[float]) -> np.ndarray:
    """Which finest cells are in each bin that begins at an edge."""
    at = np.searchsorted(np.array(edges), np.array(FINEST), side="right") - 1
    return (at == np.arange(len(edges))[:, None]).astype(np.float64)


def test_bins_of_whole_cells_are_those_of_least_squares() -> None:
    looks, cuts = looks_of(np.random.default_rng(1)), (0.0, 8.0, 16.0, 20.5)
    design = np.vstack([sums(edges) for edges, _ in EACH])
    counts = np.concatenate([counts for _, counts, _ in looks])
    weights = np.concatenate([np.full(len(edges), noise**-2) for edges, noise in EACH])
    spread = np.linalg.inv(design.T @ (weights[:, None] * design))
    best = spread @ (design.T @ (weights * counts))

    found = counts_of_bins(looks, cuts, 5)

    assert found is not None
    bins = sums(cuts[:-1])
    assert found.values[:3] == pytest.approx(bins @ best)
    assert found.variances[:3] == pytest.approx(np.diagonal(bins @ spread @ bins.T))
    assert np.isinf(found.variances[3:]).all()  # missing was not counted


@pytest.mark.statistical
@pytest.mark.parametrize("stated", [1.0, 0.5])
def test_the_stated_variances_are_those_of_repeated_noise(stated: float) -> None:
    """Edges divide cells of two looks. Level 1e-6 for each of four bins; half the variance would be seen."""
    rng, cuts = np.random.default_rng(2), (0.0, 2.5, 10.0, 14.0, 20.5)
    exact = counts_of_bins(looks_of(), cuts, 4)
    assert exact is not None
    errors = []
    for _ in range(2_000):
        one = counts_of_bins(looks_of(rng), cuts, 4)
        assert one is not None
        errors.append((one.values - exact.values) / np.sqrt(stated * exact.variances))

    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], 2_000)
    within = [bool(low < s < high) for s in np.square(errors).sum(axis=0)]
    apart = np.corrcoef(np.array(errors).T) - np.eye(4)

    assert exact.values == pytest.approx(sums(cuts[:-1]) @ TRUE)
    assert within == [stated == 1.0] * 4
    assert np.abs(apart).max() < 0.12  # five standard deviations


def test_bins_that_no_look_has_are_not_known() -> None:
    assert counts_of_bins(looks_of(), (0.0, 2.25, 20.5), 2) is None


def test_a_bin_on_which_the_mean_hangs_is_cut_where_rows_are_clear() -> None:
    """Few rows with large numbers: 300 of 10,000 at 99 to 1,000, the others below 46."""
    edges, counts = (*map(float, range(100)), 1_000.0), np.zeros(100)
    counts[:20], counts[30:46], counts[99] = 400.0, 106.25, 300.0

    found = merged_edges(edges, counts, 20.0, 16, within=True).edges
    hidden = merged_edges(edges, counts, 150.0, 16, within=True).edges
    few = merged_edges(edges, counts, 20.0, 3, within=True).edges

    assert found[-2] >= 46
    assert len(found) <= 17
    assert hidden[-2] < 46  # 300 rows may be noise
    assert len(few) <= 4


def test_bins_of_a_column_without_far_rows_are_of_equal_mass() -> None:
    edges, counts = tuple(map(float, range(65))), np.full(64, 100.0)

    found = merged_edges(edges, counts, 1.0, 16, within=True).edges

    assert found == tuple(4.0 * step for step in range(17))
    assert TAIL > 2 / 16  # of such a column, the last bin holds less


@pytest.mark.parametrize("counts", [[0.0] * 6, [100.0, 0, 0, 0, 50, 3], [1e12, 0, 0, 0, 0, 1e12]])
def test_bounds_as_far_as_floats_go_are_no_error(counts: list[float]) -> None:
    edges = (-1.7e308, -1e308, 0.0, 1e300, 1e308, 1.7e308)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = merged_edges(edges, np.array(counts), 1.0, 16, within=True).edges

    assert (found[0], found[-1]) == (edges[0], edges[-1])


def test_few_bins_of_a_skewed_column_are_of_equal_mass() -> None:
    """An eighth of log-normal numbers holds two fifths of the distances from the middle one, for all that."""
    edges = (0.0, *np.exp(np.linspace(-3, 3, 61)).tolist())
    counts = 10_000 * np.diff(ndtr(np.log(np.maximum(edges, 1e-9))))

    found = merged_edges(edges, counts, 20.0, 8, within=True).edges

    assert found[1:-1] == pytest.approx(np.exp(ndtri(np.arange(1, 8) / 8)), rel=0.1)
