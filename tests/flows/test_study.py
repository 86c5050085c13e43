"""The study of commutes: its constructed table, its laws, and the picture that the paper describes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous import studies
from gibbous.core.errors import UsageError
from gibbous.evaluation.flows_trips import Trips
from gibbous.structure.regions import miles
from gibbous.studies import onthemap_laws as laws
from gibbous.studies.onthemap_data import CENTER, Commutes, constructed, given, kept_steps
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import Settings
from tests.frame.tree import ROOT

LEVEL = 4.9  # standard errors: about 1e-6, two-sided


@pytest.fixture(scope="module")
def truth() -> Commutes:
    """A tenth of the constructed table, origins within 100 miles."""
    return constructed(1, 100.0, 0.1, 15.0)


def test_candidates_around_the_center_are_as_many_as_the_paper_has(truth: Commutes) -> None:
    homes = truth.geography.origins

    far = miles(*CENTER, homes.lat, homes.lon)

    assert (far <= 100).sum() == 12_069
    assert (far <= 200).sum() == 23_373
    assert (far > 200).any()


@pytest.mark.statistical
def test_commutes_have_the_printed_quantiles() -> None:
    """Binomial at 4.9 standard errors, widened by 2 percentage points for the nearest candidate."""
    one = constructed(3, 200.0, 0.1, 400.0)
    trips = Trips.of(one.flows, one.geography)
    far = np.repeat(trips.far, one.flows.counts)

    shares = [(far < q).mean() for q in (6.23, 13.1, 21.54)]

    for share, target in zip(shares, (0.5, 0.75, 0.9), strict=True):
        error = (target * (1 - target) / len(far)) ** 0.5
        assert abs(share - target) < LEVEL * error + 0.02
    assert abs(shares[0] - 0.6) > LEVEL * (0.24 / len(far)) ** 0.5 + 0.02


def test_the_function_that_keeps_origins_falls_to_the_printed_least() -> None:
    steps = kept_steps()

    assert steps[0] == (0.0, 1.0)
    assert [miles for miles, _ in steps] == [0.0, 6.23, 13.1, 21.54]
    assert steps[-1][1] == 0.0378
    assert np.log(1 / steps[-1][1]) == pytest.approx(3.276, abs=1e-3)  # as printed


def test_no_pair_is_beyond_reach(truth: Commutes) -> None:
    assert truth.flows.distances(truth.geography).max() <= 100


@pytest.mark.statistical
@pytest.mark.parametrize(("alpha", "fits"), [(0.5, True), (0.35, False)], ids=["same", "less"])
def test_the_urn_has_the_mean_of_its_law(alpha: float, fits: bool) -> None:
    """E[m_i] = m (n_i + a) / (n + k a), tested at 4.9 standard errors of 4,000 urns."""
    records, domain, repeats = np.array([3, 3, 3, 7]), np.arange(10), 4000

    counts = [
        (laws.urn(records, domain, 0.5, Draws(1, (9, k)).uniform(4, 2)) == 3).sum()
        for k in range(repeats)
    ]

    p, total = (3 + alpha) / (4 + 10 * alpha), 4 + 10 * alpha
    error = (4 * p * (1 - p) * (4 + total) / (1 + total) / repeats) ** 0.5
    assert (abs(np.mean(counts) - 4 * p) < LEVEL * error) == fits


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (1.15, False), (0.87, False)])
def test_noise_is_two_sided_geometric_of_its_scale(scale: float, fits: bool) -> None:
    """P(0) = (1 - q) / (1 + q) with q = e^(-1/b), at 4.9 standard errors of 20,000 draws."""
    drawn = laws._noise(20_000, Fraction(3, 2), Draws(2, (7,)))

    q = np.exp(-1 / (1.5 * scale))
    zero = (1 - q) / (1 + q)
    assert (abs((drawn == 0).mean() - zero) < LEVEL * (zero * (1 - zero) / 20_000) ** 0.5) == fits


@pytest.mark.statistical
def test_empty_pairs_survive_as_often_as_noise_on_every_cell_would(truth: Commutes) -> None:
    """Number of false cells is binomial: P(noise >= 1) of every empty cell; 4.9 standard errors."""
    width = len(truth.geography.origins)

    found = laws._grid(truth.flows, width, truth, 10.0, Draws(3, (1,)))

    held = truth.flows.destinations * width + truth.flows.origins
    false = ~np.isin(found.destinations * width + found.origins, held)
    q = np.exp(-5.0)
    cells = width * len(truth.geography.destinations) - len(held)
    least = int(found.counts.min())
    share = q**least / (1 + q)
    assert abs(false.sum() - cells * share) < LEVEL * (cells * share) ** 0.5
    assert false.sum() > 20


def test_a_threshold_lets_no_single_person_pass(truth: Commutes) -> None:
    found = laws.threshold(truth, 4.6, 1e-5, Draws(1, (1,)))

    held = set(zip(truth.flows.destinations.tolist(), truth.flows.origins.tolist(), strict=True))
    assert found.counts.min(initial=9) > 1
    assert set(zip(found.destinations.tolist(), found.origins.tolist(), strict=True)) <= held


@pytest.mark.parametrize("law", [laws.as_printed, laws.shrunk, laws.coarsened])
def test_draws_keep_totals_and_come_out_again(truth: Commutes, law: laws.Law) -> None:
    one, two = (law(truth, 8.569, 1e-5, Draws(1, (4,))) for _ in range(2))
    other = law(truth, 8.569, 1e-5, Draws(2, (4,)))

    np.testing.assert_array_equal(one.origins, two.origins)
    assert not np.array_equal(one.origins, other.origins)
    lost = truth.flows.records - one.records
    assert lost == 0 if law is not laws.coarsened else 0 <= lost < 0.2 * truth.flows.records
    assert one.distances(truth.geography).max() <= 100


@pytest.fixture(scope="module")
def ran() -> Any:
    """The quick setting with more destinations, of the printed run alone by its rows."""
    return studies.run("onthemap", quick=True, workers=1)


@pytest.mark.slow
def test_the_quick_study_shows_what_the_paper_describes(ran: Any) -> None:
    frame = ran.frame()
    table = frame.filter(pl.col("level") == "table")

    def of(reach: float, method: str) -> Any:
        return table.filter(reach=reach, method=method, epsilon=8.569).row(0, named=True)

    for method in ("as printed", "onthemap, shrunk", "onthemap, whole domain"):
        near, far = of(100.0, method), of(200.0, method)
        assert far["share_long"] > far["real_long"] + 0.1  # long commutes overestimated
        assert near["share_long"] - near["real_long"] < far["share_long"] - far["real_long"]


@pytest.mark.parametrize("law", [laws.as_printed, laws.every_cell])
def test_errors_shrink_as_destinations_grow(law: laws.Law) -> None:
    errors = []
    for jobs in (15.0, 600.0):
        one = constructed(2, 200.0, 0.1, jobs)
        drawn = Trips.of(law(one, 10.0, 1e-5, Draws(1, (6,))), one.geography)
        gap = drawn.means() - Trips.of(one.flows, one.geography).means()
        errors.append(np.nanmean(np.abs(gap)))

    assert errors[1] < errors[0] / 2


@pytest.mark.slow
def test_the_study_has_its_tables_and_figures(ran: Any) -> None:
    tables, figures = ran.tables(), ran.figures()

    assert [t.name for t in tables] == ["bias", "bias-short", "classes"]
    assert [f.name for f in figures] == [
        "onthemap-commutes", "onthemap-commutes-short", "onthemap-error", "onthemap-error-short",
    ]  # fmt: skip
    assert {row[2] for row in tables[0].rows} == {m.label for m in laws.METHODS}
    assert not any(r["method"] in ("as printed", "onthemap, shrunk") and r["epsilon"] != 8.569
                   for r in ran.rows)  # fmt: skip


def test_a_table_without_coordinates_beside_it_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "trips.csv"
    data.write_text("work,home,jobs\na,b,1\n")
    settings = Settings(1, 0, quick=True, values={"destinations": 2}, data=data)

    with pytest.raises(UsageError, match="no table of coordinates"):
        given(settings, 60.0)


def test_a_given_table_uses_the_coordinates_beside_it(tmp_path: Path) -> None:
    data = tmp_path / "trips_2019.csv"
    data.write_text("work,home,jobs\na,a,5\na,b,4\nb,a,3\nb,far,9\nelsewhere,a,9\nc,a,1\n")
    (tmp_path / "trips_places.csv").write_text(
        "id,lat,lon\na,45.0,-93.0\nb,45.1,-93.0\nc,45.2,-93\nfar,47,-93\n"
    )
    settings = Settings(1, 0, quick=True, values={"destinations": 2}, data=data)

    one = given(settings, 60.0)

    assert one.geography.destinations.ids.tolist() == ["b", "c"]  # the largest and the smallest
    assert one.flows.counts.tolist() == [3, 1]  # far is beyond 60 miles
    assert one.real


@pytest.mark.shared
def test_detroit_is_read_with_its_cells(shared_data: Path) -> None:
    data = shared_data / "lodes_detroit_2019.parquet"
    settings = Settings(1, 0, quick=True, values={"destinations": 12}, data=data)

    one = given(settings, 60.0)

    assert len(one.geography.destinations) == 12
    assert one.flows.records > 10_000
    assert one.flows.distances(one.geography).max() <= 60


def test_B4_what_the_page_says_of_real_flows_is_what_its_table_of_one_region_shows() -> None:
    page = (ROOT / "docs" / "studies" / "onthemap.md").read_text().split("## On real flows")[1]
    rows = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if "|" in line}

    def errors(method: str) -> list[list[float]]:
        cells = rows[method].strip("| ").split(" | ")[1:]
        return [[float(number) for number in one.split(", ")] for one in cells]

    drawn, noised = errors("onthemap, whole domain"), errors("Laplace, all pairs")

    assert [a < b for a, b in zip(drawn[0], noised[0], strict=True)] == [True, True, True, False]
    assert all(a >= b for a, b in zip(drawn[1], noised[1], strict=True))
    assert "In this one region and repeat" in page
    assert "On six further tables" in page
    assert "probabilistic DP is the better" not in page
