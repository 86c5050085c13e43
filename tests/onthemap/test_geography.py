"""Public geography: distances, regions, digests, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.errors import UsageError
from gibbous.structure.regions import Pairs, miles, places, regions
from gibbous.synthesize.flows.ground import Ground
from gibbous.synthesize.flows.scheme import Scheme


def test_great_circle_distances_are_those_of_known_cities() -> None:
    # Minneapolis to Chicago: 355 miles; to Saint Paul: 9; a quarter of the equator: 6218.5.
    lat, lon = np.array([41.8781, 44.9537, 0.0]), np.array([-87.6298, -93.0900, 90.0])

    found = miles(44.9778, -93.2650, lat, lon)

    assert found[:2] == pytest.approx([355, 8.7], abs=1)
    assert miles(0.0, 0.0, lat[2:], lon[2:])[0] == pytest.approx(6218.5, abs=0.5)


def test_an_unknown_coordinate_has_an_unknown_distance() -> None:
    assert np.isnan(miles(45.0, -93.0, np.array([np.nan]), np.array([np.nan]))[0])


def test_regions_have_weighted_centers_and_all_their_places() -> None:
    given = places(
        list("abcd"),
        [40, 44, 45, 46],
        [-90, -90, -91, -93],
        density=[1, 3, 2, 2],
        parents={"county": ["s", "s", "n", "n"]},
    )

    found = regions(given, "county")

    assert found.places.ids.tolist() == ["n", "s"]
    assert found.of.tolist() == [1, 1, 0, 0]
    assert found.places.lat == pytest.approx([45.5, 43.0])
    assert found.places.lon == pytest.approx([-92.0, -90.0])
    assert found.places.density.tolist() == [4, 4]
    assert found.order[found.starts[1] : found.starts[2]].tolist() == [0, 1]


def test_steps_and_reach_are_those_of_the_haversine_to_the_last_digit() -> None:
    draws = np.random.default_rng(3)
    lat, lon = draws.uniform(44, 46, 5000), draws.uniform(-94, -92, 5000)
    lat[:2], lon[:2] = np.nan, np.nan
    lat[2:4], lon[2:4] = 45.0, -93.0
    far = miles(45.0, -93.0, lat, lon)
    edges = sorted(far[4:7])  # limits that are distances themselves: equality decides
    origins = places(np.arange(5000), lat, lon)
    there = places(["d"], [45.0], [-93.0])
    keep = ((0.0, 1.0), (edges[0], 0.5), (edges[1], 0.25))
    scheme = Scheme(9.0, 1e-6, keep=keep, reach=edges[2], origins=origins, destinations=there)

    share, inside = Ground.of(scheme, 5000).shares(0)

    np.testing.assert_array_equal(inside, ~(far > edges[2]))
    step = np.where(far < edges[0], 1.0, np.where(far < edges[1], 0.5, 0.25))
    np.testing.assert_array_equal(share, step)
    assert Ground.of(scheme, 5000).covers(np.zeros(4, dtype=int), np.flatnonzero(inside)[:4])
    assert not Ground.of(scheme, 5000).covers(np.zeros(1, dtype=int), np.flatnonzero(~inside)[:1])


def test_equal_places_are_equal_and_a_moved_one_is_not() -> None:
    one, two = (places(["a", "b"], [1, 2], [3, 4]) for _ in range(2))
    moved = places(["a", "b"], [1, 2], [3, 4.001])

    assert one == two
    assert hash(one) == hash(two)
    assert one != moved
    assert one.to_json()["places"] == 2


def test_pairs_of_an_earlier_release_are_the_same_in_any_order() -> None:
    one = Pairs(np.array([0, 1, 1]), np.array([5, 2, 3]))
    two = Pairs(np.array([1, 0, 1]), np.array([3, 5, 2]))

    assert one == two
    assert one.of(1).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ids": ["a", "a"]}, "repeat an id"),
        ({"ids": []}, "are none"),
        ({"ids": ["a"], "lat": [91.0], "lon": [0.0]}, "out of range, first at position 0"),
        ({"ids": ["a"], "lat": [45.0], "lon": [-193.0]}, "out of range"),
        ({"ids": ["a"], "lat": [45.0]}, "one coordinate alone"),
        ({"ids": ["a"], "lat": [45.0], "lon": [np.nan]}, "half a coordinate"),
        ({"ids": ["a", "b"], "lat": [45.0], "lon": [1.0]}, "differ in number"),
        ({"ids": ["a"], "density": [-1.0]}, "density that is negative"),
        ({"ids": ["a"], "density": [0.0]}, "0 everywhere"),
        ({"ids": ["a", "b"], "parents": {"county": ["x", None]}}, "'county' in 1 places"),
        ({"ids": ["a", "b"], "parents": {"county": ["x"]}}, "1 regions of level 'county'"),
    ],
)
def test_wrong_places_are_refused_with_the_position(given: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        places(**given)  # type: ignore[arg-type]

    assert caught.value.allowed
    assert caught.value.fix


def test_an_unknown_level_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="Levels are: 'tract'"):
        regions(places(["a"], parents={"tract": ["t"]}), "county")
