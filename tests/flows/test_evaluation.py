"""Findings about flows: closed forms, brute force, references, and what must not count as equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import UsageError
from gibbous.evaluation.flows import evaluate_flows, names
from gibbous.evaluation.flows_trips import Trips, resampled, shuffled, transport, transport_given
from gibbous.flows import Flows, Geography, collected, miles, places
from gibbous.reporting.internal_report import internal_report


@pytest.fixture
def geography() -> Geography:
    """Six homes north of two works; the last home has no coordinates."""
    lat = [45.1, 45.2, 45.3, 45.5, 46.0, np.nan]
    homes = places(list("abcdef"), lat, [-93.0] * 5 + [np.nan])
    return Geography(homes, places(["mill", "school"], [45.0, 45.0], [-93.0, -93.0]), count="count")


def flows(*rows: tuple[int, int, int], secret: bool = False) -> Flows:
    """From (destination, origin, count)."""
    there, here, count = np.array(rows, dtype=np.int64).T
    return collected(there, here, count, secret=secret)


def random_flows(seed: int, pairs: int = 60) -> Flows:
    """Two destinations and five located homes, counts from 1 to 4."""
    draws = np.random.default_rng(seed)
    return collected(
        draws.integers(0, 2, pairs), draws.integers(0, 5, pairs), draws.integers(1, 5, pairs)
    )


def expanded(one: Flows, geography: Geography, destination: int | None = None) -> np.ndarray:
    """The distance of every record, the slow way."""
    on = one.destinations >= 0 if destination is None else one.destinations == destination
    here, there = geography.origins, geography.destinations
    out = [
        float(miles(there.lat[d], there.lon[d], here.lat[o : o + 1], here.lon[o : o + 1])[0])
        for d, o, n in zip(one.destinations[on], one.origins[on], one.counts[on], strict=True)
        for _ in range(n)
    ]
    return np.array(out)


def test_equal_tables_have_no_distance_in_any_finding(geography: Geography) -> None:
    one = random_flows(1)

    found = evaluate_flows(one, one, geography)

    assert [f.name for f in found] == list(names())
    for finding in found:
        assert finding.value == pytest.approx(1.0 if finding.name == "occupied_pairs" else 0.0)
        assert finding.group == "flows"
        assert finding.confidential
        assert dict(finding.null).keys() == {"bootstrap", "independent"}


def test_mean_commutes_are_those_of_the_expanded_records(geography: Geography) -> None:
    real, other = random_flows(1), random_flows(2)

    found = evaluate_flows(real, other, geography)

    gaps = [
        expanded(other, geography, d).mean() - expanded(real, geography, d).mean() for d in (0, 1)
    ]
    assert found["commute_bias"].value == pytest.approx(np.mean(gaps))
    assert found["commute_error"].value == pytest.approx(np.mean(np.abs(gaps)))
    assert found["commute_bias"].interval == pytest.approx(
        (
            np.mean(gaps) - 1.96 * np.std(gaps, ddof=1) / 2**0.5,
            np.mean(gaps) + 1.96 * np.std(gaps, ddof=1) / 2**0.5,
        )
    )


def test_short_commutes_stop_below_the_first_cut(geography: Geography) -> None:
    real, other = random_flows(1), random_flows(2)

    found = evaluate_flows(real, other, geography, cuts=(15.0, 40.0))

    gaps = []
    for d in (0, 1):
        one, two = (expanded(t, geography, d) for t in (real, other))
        gaps.append(two[two < 15].mean() - one[one < 15].mean())
    assert found["commute_bias_short"].value == pytest.approx(np.mean(gaps))
    detail = found["commute_classes"].detail
    far = expanded(other, geography)
    assert detail[1]["synthetic"] == pytest.approx(((far >= 15) & (far < 40)).mean())


def test_transport_is_the_mean_gap_of_sorted_records(geography: Geography) -> None:
    real, other = random_flows(1), random_flows(2)

    whole = transport(Trips.of(real, geography), Trips.of(other, geography))
    each = transport_given(Trips.of(real, geography), Trips.of(other, geography))

    for value, at in ((whole, None), (each[0], 0), (each[1], 1)):
        one, two = (expanded(t, geography, at) for t in (real, other))
        pairs = np.sort(np.repeat(one, len(two))), np.sort(np.repeat(two, len(one)))
        assert value == pytest.approx(np.abs(pairs[0] - pairs[1]).mean())


def test_shares_of_origins_and_new_pairs_by_hand(geography: Geography) -> None:
    real = flows((0, 0, 2), (0, 1, 1), (0, 5, 1), (1, 2, 4))
    other = flows((0, 0, 1), (0, 1, 3), (1, 2, 2), (1, 3, 2))

    found = evaluate_flows(real, other, geography)

    # mill: (2, 1, 1 elsewhere) / 4 against (1, 3) / 4, half apart; school: half moved
    assert found["origin_given"].value == pytest.approx((4 * 0.5 + 4 * 0.5) / 8)
    # margins: (2, 1, 4, 0, 0, 1) and (1, 3, 2, 2, 0, 0) of 8
    assert found["origin_margin"].value == pytest.approx((1 + 2 + 2 + 2 + 1) / 16)
    assert found["new_pairs"].value == pytest.approx(2 / 8)
    assert found["occupied_pairs"].value == pytest.approx(4 / 4)
    assert found["single_pairs"].value == pytest.approx(1 / 4 - 2 / 4)
    assert found.facts["without_coordinates"] == 1


def test_destinations_are_grouped_by_their_people(geography: Geography) -> None:
    real = flows((0, 0, 3), (1, 2, 12))
    other = flows((0, 4, 3), (1, 2, 12))

    found = evaluate_flows(real, other, geography)["commute_error"]

    assert [row["people"] for row in found.detail] == ["1 to 4", "10 to 19"]
    assert found.detail[0]["error"] > 60
    assert found.detail[1]["error"] == 0


def test_a_place_without_coordinates_counts_among_origins_alone(geography: Geography) -> None:
    real = flows((0, 0, 5), (0, 5, 5))
    other = flows((0, 0, 9), (0, 5, 1))

    found = evaluate_flows(real, other, geography)

    assert found["commute_error"].value == pytest.approx(0, abs=1e-9)
    assert found["origin_given"].value == pytest.approx(0.4)


@pytest.mark.statistical
def test_the_bootstrap_keeps_totals_and_has_the_multinomial_mean(geography: Geography) -> None:
    """Level 1e-6, two-sided normal on the mean count of one pair; a wrong group would shift it."""
    one = flows((0, 0, 30), (0, 1, 10), (1, 1, 5), (1, 2, 35))
    repeats = 400

    drawn = [resampled(one, 5, k) for k in range(repeats)]

    assert all(d.totals(2).tolist() == [40, 40] for d in drawn)
    counts = [int(d.counts[(d.destinations == 0) & (d.origins == 1)].sum()) for d in drawn]
    error = (40 * 0.25 * 0.75 / repeats) ** 0.5
    assert abs(np.mean(counts) - 10) < 4.9 * error
    assert abs(np.mean(counts) - 10.0 * 1.25) > 4.9 * error


def test_the_independent_reference_keeps_both_margins(geography: Geography) -> None:
    one = random_flows(3)

    mixed = shuffled(one, 1)

    assert mixed.totals(2).tolist() == one.totals(2).tolist()
    np.testing.assert_array_equal(
        np.bincount(mixed.origins, mixed.counts, 6), np.bincount(one.origins, one.counts, 6)
    )
    assert not np.array_equal(mixed.counts, one.counts)


def test_confidential_flows_stay_secret_in_references() -> None:
    one = replace(random_flows(3), secret=True)

    assert resampled(one, 1).secret
    assert shuffled(one, 1).secret


def test_frames_of_pairs_are_read(geography: Geography) -> None:
    frame = pl.DataFrame({"destination": ["mill"], "origin": ["a"], "count": [4]})

    found = evaluate_flows(frame, [frame, frame], geography, only=["origin_margin"])

    assert found["origin_margin"].sets == (0.0, 0.0)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"only": ["speed"]}, "ONLY"),
        ({"cuts": (20.0, 10.0)}, "CUTS"),
    ],
    ids=["unknown finding", "cuts out of order"],
)
def test_wrong_options_are_refused(
    geography: Geography, wrong: dict[str, object], name: str
) -> None:
    one = random_flows(1)

    with pytest.raises(UsageError) as caught:
        evaluate_flows(one, one, geography, **wrong)  # type: ignore[arg-type]

    assert caught.value.name == name


def test_a_table_without_people_is_refused(geography: Geography) -> None:
    none = Flows(*(np.empty(0, dtype=np.int64) for _ in range(3)))

    with pytest.raises(UsageError, match="no people"):
        evaluate_flows(random_flows(1), none, geography)


@pytest.mark.slow
def test_findings_about_flows_have_a_place_in_the_internal_report(
    geography: Geography, tmp_path: Path
) -> None:
    found = evaluate_flows(random_flows(1), random_flows(2), geography)

    path = internal_report(found, tmp_path / "r.html")

    text = path.read_text()
    assert "Bias of mean commutes" in text
    assert "CONFIDENTIAL" in text
