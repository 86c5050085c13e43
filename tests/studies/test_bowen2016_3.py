"""Study 3 of bowen2016: laws of mixed tables against brute force, and what the paper's picture shows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbous import studies
from gibbous.studies import bowen2016_3 as study
from gibbous.studies import histograms, mixed_laws
from gibbous.studies.seeded_draws import Draws

FEW = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str, int], list[Any]]:
    ran = studies.run("bowen2016-3", quick=True, reps=40, workers=1)
    rows: dict[tuple[str, str, int], list[Any]] = {}
    for row in ran.rows:
        key = (row["method"], row["parameter"], row["ln_epsilon"])
        rows.setdefault(key, []).append(row)
    return rows


@pytest.mark.slow
def test_the_perturbed_histogram_never_covers_the_covariance_and_modips_does(found: Any) -> None:
    def coverage(method: str, power: int) -> float:
        return float(np.mean([r["coverage"] for r in found[method, "Sigma", power]]))

    for method in study.HISTOGRAMS:
        assert coverage(method, 0) == 0.0
        assert coverage(method, 8) < 0.85  # "never reached the nominal level"
    for method in study.MODIPS:
        assert coverage(method, 4) > 0.88
        assert coverage(method, 8) > 0.88


@pytest.mark.slow
def test_the_perturbed_histogram_is_more_precise_for_the_means(found: Any) -> None:
    def rmse(method: str) -> float:
        return float(np.mean([r["rmse"] for r in found[method, "mu", 0]]))

    assert 3 * rmse(study.HISTOGRAMS[0]) < rmse(study.MODIPS[0])
    assert all(r["coverage"] > 0.85 for r in found[study.HISTOGRAMS[0], "mu", 0])


def test_chances_of_the_cells_have_the_printed_ends() -> None:
    chances = study.chances()

    assert chances.sum() == pytest.approx(1.0)
    assert chances.min() == pytest.approx(0.007, abs=5e-4)
    assert chances.max() == pytest.approx(0.076, abs=5e-4)


def test_summaries_are_those_of_numpy() -> None:
    held = mixed_laws.records(Draws(1, (1,)), 3, 60, FEW, 0.5)

    for t in range(3):
        x, cell = held.x[t], held.cell[t]
        inner = sum(
            (x[cell == k] - x[cell == k].mean(0)).T @ (x[cell == k] - x[cell == k].mean(0))
            for k in range(3)
        )
        assert held.summary.counts[0, t].tolist() == np.bincount(cell, minlength=3).tolist()
        for k in range(3):
            assert held.summary.means[0, t, k] == pytest.approx(x[cell == k].mean(0))
        expected = [inner[0, 0], inner[1, 1], inner[0, 1]]
        assert held.summary.pooled[0, t] * (60 - 3) == pytest.approx(expected)


def test_a_moved_record_changes_the_pooled_covariance_by_more_than_one_range_product() -> None:
    """Brute force over tables of corner points in two cells: 2 R^2 / (n - K) bounds, R^2 does not."""
    corners = [np.array(c) for c in itertools.product((-3.0, 3.0), repeat=2)]
    kept = [(0, corners[0])] * 3 + [(1, corners[1])] * 3

    def pooled(records: list[Any]) -> np.ndarray:
        cell = np.array([[k for k, _ in records]])
        x = np.array([[v for _, v in records]])
        found: np.ndarray = mixed_laws.summarized(cell, x, 2).pooled[0]
        return found

    most = np.zeros(3)
    for base in itertools.combinations(kept, 5):
        options = [pooled([*base, (k, c)]) for k in (0, 1) for c in corners]
        for one, two in itertools.combinations(options, 2):
            most = np.maximum(most, np.abs(one - two))

    reach = mixed_laws.RANGE**2 / (6 - 2)
    assert most[2] > 1.2 * reach
    assert most[2] <= 2 * reach
    assert (most[:2] <= reach * (1 + 1e-9)).all()


@pytest.mark.statistical
def test_sets_without_noise_follow_the_posterior_predictive_law() -> None:
    """The t-like spread of a cell's mean and the mean of the pooled covariance, at known statistics."""
    repeats, n = 4000, 400
    held = mixed_laws.records(Draws(3, (1,)), 1, n, FEW, 0.5)
    many = mixed_laws.Records(
        np.repeat(held.cell, repeats, 0), np.repeat(held.x, repeats, 0),
        mixed_laws.Summary(*(np.repeat(getattr(held.summary, k), repeats, 1)
                             for k in ("counts", "means", "pooled"))),
    )  # fmt: skip

    drawn = mixed_laws.multiple_synthesis(Draws(3, (2,)), many, 1)

    known, df = held.summary, n - 3
    error = drawn.pooled[0].mean(0) - known.pooled[0, 0] * df / (df - 3)
    assert (np.abs(error) < 5 * drawn.pooled[0].std(0) / repeats**0.5).all()
    sizes = known.counts[0, 0]
    expected = known.pooled[0, 0, 0] * (1 / sizes[0] + np.mean(1 / drawn.counts[0, :, 0]))
    spread = np.nanvar(drawn.means[0, :, 0, 0])
    assert spread == pytest.approx(expected * df / (df - 3), rel=5 * (2 / repeats) ** 0.5)
    covariance = np.cov(drawn.means[0, :, 0, 0], drawn.means[0, :, 0, 1])[0, 1]
    ratio = covariance / spread
    assert ratio == pytest.approx(known.pooled[0, 0, 2] / known.pooled[0, 0, 0], abs=0.08)


@pytest.mark.statistical
def test_inverse_wishart_variances_follow_their_law_and_not_one_a_tenth_off() -> None:
    """A diagonal entry is scale over chi-square with df - 1 degrees of freedom, two columns."""
    many, df = 20_000, 30.0
    pooled = np.broadcast_to([1.0, 1.0, 0.5], (1, many, 3))

    root = mixed_laws._inverse_wishart(Draws(5, (1,)), pooled, np.full((1, many), df))

    variances = mixed_laws._product(root)
    for j in (0, 1):
        ratio = df / variances[0, :, j]
        assert stats.kstest(ratio, stats.chi2(df - 1).cdf).pvalue > 1e-4
        assert stats.kstest(ratio * 1.1, stats.chi2(df - 1).cdf).pvalue < 1e-4
    assert variances[..., 2].mean() == pytest.approx(0.5 * df / (df - 3), rel=0.02)


@pytest.mark.statistical
def test_rows_of_squares_follow_the_squares() -> None:
    p = np.zeros((1, 2, 9))
    p[0, 0, [0, 4, 5]] = 0.2, 0.5, 0.3  # the squares (0, 0), (1, 1) and (1, 2) of three times three
    p[0, 1, 0] = 1.0  # one square
    sizes, bins = np.array([[60_000, 10]]), np.array([[[3, 3], [1, 1]]])

    cell, x = mixed_laws._rows(Draws(7, (1,)), p, sizes, bins, 0)

    place = ((x[0][cell[0] == 0] + 3) // 2).astype(int)
    seen = np.bincount(place[:, 0] * 3 + place[:, 1], minlength=9)
    assert seen[[1, 2, 3, 6, 7, 8]].sum() == 0
    assert stats.chisquare(seen[[0, 4, 5]], 60_000 * p[0, 0, [0, 4, 5]]).pvalue > 1e-4
    assert (cell[0] == 1).sum() == 10


def test_sizes_of_cells_are_whole_and_sum_to_n() -> None:
    chances = np.array([[0.2501, 0.4999, 0.25], [0.0, 0.0, 1.0]])

    assert histograms.rounded(chances, 101).tolist() == [[25, 51, 25], [0, 0, 101]]


def test_sanitized_covariances_are_possible_ones() -> None:
    wild = np.array([[-5.0, 2.0, 9.0], [100.0, 0.5, -9.0]])

    found = mixed_laws._possible(wild)

    assert (found[:, :2] > 0).all()
    assert (found[:, 2] ** 2 < found[:, 0] * found[:, 1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bowen2016-2", "bowen2016-3"])
def test_every_table_and_figure_can_be_made(name: str) -> None:
    ran = studies.run(name, quick=True, reps=2, workers=1)

    for table in ran.tables():
        assert table.rows
        assert all(len(row) == len(table.headers) for row in table.rows)
    for figure in ran.figures()[:3]:  # one of each measure
        assert figure.chart.to_dict()["concat"]


def test_cells_of_a_sanitized_table_are_rounded_or_drawn() -> None:
    """Without noise: rounded cells are those of the records; drawn ones have the multinomial spread."""
    held = mixed_laws.records(Draws(8, (1,)), 1, 200, FEW, 0.5)
    many = 300
    repeated = mixed_laws.Records(
        np.repeat(held.cell, many, 0), np.repeat(held.x, many, 0),
        mixed_laws.Summary(*(np.repeat(getattr(held.summary, k), many, 1)
                             for k in ("counts", "means", "pooled"))),
    )  # fmt: skip

    rounded, drawn = (
        mixed_laws.histogram(Draws(8, (2,)), repeated, 1e9, 1, sound=True, drawn=d).counts[0]
        for d in (False, True)
    )

    counts = held.summary.counts[0, 0]
    assert (rounded == counts).all()
    assert (drawn.sum(axis=1) == 200).all()
    assert drawn.var(axis=0) == pytest.approx(counts * (1 - counts / 200), rel=0.4)
