"""Public geography: distances, regions, digests, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gibbous.core.errors import UsageError
from gibbous.sampling.flows.reach import Ground
from gibbous.sampling.flows.scheme import Scheme
from gibbous.structure.regions import Pairs, Places, miles, places, regions


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


def _ground(seed: int, *, wide: bool) -> tuple[Places, Places, np.ndarray]:
    """Scattered origins, some unknown or at the destinations; destinations; and all distances."""
    draws = np.random.default_rng(seed)
    half = (80.0, 180.0) if wide else (1.0, 1.0)
    middle = (0.0, 0.0) if wide else (45.0, -93.0)
    lat, lon = (m + draws.uniform(-h, h, 3000) for m, h in zip(middle, half, strict=True))
    lat[:2], lon[:2] = np.nan, np.nan
    north = np.append(middle[0] + draws.uniform(-half[0], half[0], 4), [90.0, np.nan])
    east = np.append(middle[1] + draws.uniform(-half[1], half[1], 4), [0.0, np.nan])
    lat[2:6], lon[2:6] = north[:4], east[:4]
    lat[6:10], lon[6:10] = -north[:4], np.where(east[:4] > 0, east[:4] - 180, east[:4] + 180)
    far = np.stack([miles(a, b, lat, lon) for a, b in zip(north, east, strict=True)])
    return places(np.arange(3000), lat, lon), places(list("abcdef"), north, east), far


@pytest.mark.parametrize("wide", [False, True], ids=["a state", "the globe"])
@pytest.mark.parametrize("near", [(0.02, 0.2), (0.3, 0.6), (0.9, 1.0)], ids=str)
def test_steps_and_reach_are_those_of_the_haversine_to_the_last_digit(
    near: tuple[float, float], wide: bool
) -> None:
    origins, there, far = _ground(3, wide=wide)
    # Limits that are distances themselves: equality decides.
    step, reach = np.quantile(far[0, 2:], near, method="nearest")
    for keep in ((), ((0.0, 1.0), (step / 2, 0.5), (step, 0.25))):
        for limit in (reach, 0.0) if keep else (reach,):
            ground = Ground.of(Scheme(9.0, 1e-6, keep=keep, reach=limit, origins=origins,
                                      destinations=there), 3000)  # fmt: skip
            for group, miles_off in enumerate(far):
                domain, share = ground.domain(group)

                inside = ~(miles_off > limit) if limit else np.ones(3000, dtype=bool)
                steps = np.array([(miles_off >= at) | np.isnan(miles_off) for at, _ in keep[1:]])
                wanted = np.array([1.0, 0.5, 0.25])[steps.sum(axis=0).astype(int)]
                np.testing.assert_array_equal(domain, np.flatnonzero(inside))
                np.testing.assert_array_equal(share, (wanted if keep else np.ones(3000))[inside])


def test_a_destination_with_nothing_in_reach_has_all_origins() -> None:
    origins = places(["a", "b"], [45.0, 46.0], [-93.0, -93.0])
    scheme = Scheme(9.0, 1e-6, keep=((0.0, 1.0), (90.0, 0.5)), reach=10.0, origins=origins,
                    destinations=places(["d"], [46.5], [-93.0]))  # fmt: skip

    domain, share = Ground.of(scheme, 2).domain(0)

    assert domain.tolist() == [0, 1]
    assert share.tolist() == [0.5, 1.0]


def test_records_within_reach_are_known_to_be_so() -> None:
    origins, there, far = _ground(4, wide=False)
    reach = float(np.nanmedian(far[0]))
    scheme = Scheme(9.0, 1e-6, reach=reach, origins=origins, destinations=there)
    ground = Ground.of(scheme, 3000)
    inside = ground.domain(0)[0]
    outside = np.setdiff1d(np.arange(3000), inside)

    assert ground.covers(np.zeros(4, dtype=int), inside[:4])
    assert not ground.covers(np.zeros(1, dtype=int), outside[:1])


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
