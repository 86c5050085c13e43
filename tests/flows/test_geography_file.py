"""Geography files: what they declare, what they refuse, and what they add to a method."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.flows import FlowEngine, coarse, flow_schema, level_of, load_geography, miles, placed
from gibbous.flows.geography_file import cuts_of
from tests.flows import made


def test_places_columns_and_hierarchy_are_read_in_the_order_of_their_tables(tmp_path: Path) -> None:
    found = load_geography(made.files(tmp_path, "reach = 50\n" + made.FORM))

    assert (found.origin, found.destination, found.count, found.reach) == (
        "home",
        "work",
        "jobs",
        50,
    )
    assert found.origins.ids.tolist()[:2] == ["h0", "h1"]
    assert found.destinations.ids.tolist() == ["mill", "school"]
    np.testing.assert_allclose(found.origins.lat[3], 45.06)
    assert found.origins.density.tolist() == list(range(1, 21))
    assert found.origins.parents["county"].tolist() == ["south"] * 10 + ["north"] * 10


def test_cuts_of_trips_are_two_distances_in_order(tmp_path: Path) -> None:
    assert load_geography(made.files(tmp_path, "cuts = [6, 21.5]\n" + made.FORM)).cuts == (6, 21.5)
    assert cuts_of("6,21.5") == (6, 21.5)

    for wrong in ("[21.5, 6]", "[6]", "6", '"near,far"', "[-1, 6]", "[6, inf]", "[true, 6]"):
        with pytest.raises(UsageError, match="not two distances in order"):
            load_geography(made.files(tmp_path, f"cuts = {wrong}\n" + made.FORM))


def test_places_without_coordinates_stay_without_them(tmp_path: Path) -> None:
    path = made.files(tmp_path)
    (tmp_path / "homes.csv").write_text("id,residents,county\na,1,x\nb,2,y\n")

    found = load_geography(path)

    assert not found.origins.located
    assert found.destinations.located


def test_an_empty_coordinate_is_unknown_and_a_word_is_refused_by_its_row(tmp_path: Path) -> None:
    path = made.files(tmp_path)
    table = tmp_path / "plants.csv"
    table.write_text("plant,lat,lon\nmill,45,-93\nschool,,\n")
    assert np.isnan(load_geography(path).destinations.lat[1])

    table.write_text("plant,lat,lon\nmill,45,-93\nschool,zz-north,-93\n")
    with pytest.raises(UsageError, match="data row 2") as refused:
        load_geography(path)

    assert "zz-north" not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[origins]", "[homes]", "unknown key 'homes'"),
        ('file = "homes.csv"', "", "no \\[origins\\] with a file"),
        ('density = "residents"', 'weight = "residents"', "unknown key 'weight'"),
        ('"residents"', '"people"', "column 'people'"),
        ('levels = ["county"]', 'levels = "county"', "not a list of columns"),
        ('count = "jobs"', 'count = "jobs"\nreach = "far"', "not a number"),
        ('count = "jobs"', 'count = "jobs"\nbeyond = "nearest"', "a beyond that is not one"),
        (
            'count = "jobs"',
            'count = "jobs"\nreach = 9\nbeyond = "drop"',
            "a beyond that is not one",
        ),
        ('count = "jobs"', "count = 3", "not a name"),
        ('count = "jobs"', 'level = "state"', "has a level 'state'"),
        ('count = "jobs"', "count = ", "not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = made.files(tmp_path, made.FORM.replace(old, new))

    with pytest.raises(UsageError, match=words):
        load_geography(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'none\.toml' is missing or cannot be read"):
        load_geography(tmp_path / "none.toml")


def test_a_method_of_places_gets_them_and_others_get_nothing(tmp_path: Path) -> None:
    geography = load_geography(made.files(tmp_path))

    found = placed(gb.Onthemap, {"epsilon": 4.6}, geography)

    assert found == {
        "origins": geography.origins,
        "destinations": geography.destinations,
        "destination": "work",
        "reach": 0.0,
    }
    assert placed(gb.Sba, {}, geography) == {}
    assert "destination" not in placed(gb.Onthemap, {"destination": "work"}, geography)
    with pytest.raises(UsageError, match="the method another one"):
        placed(gb.Onthemap, {"destination": "home"}, geography)
    with pytest.raises(UsageError, match="reach of 0 miles"):
        placed(gb.Onthemap, {"reach": 50.0}, geography)


def test_pairs_of_an_earlier_release_are_kept_where_the_domain_is_shrunk(tmp_path: Path) -> None:
    path = made.files(tmp_path, 'earlier = "2018.csv"\n' + made.FORM)
    (tmp_path / "2018.csv").write_text("work,home\nmill,h3\nmill,h3\nschool,h12\n")

    found = load_geography(path)
    keep = {"keep": [[0, 0.5]]}
    places = placed(gb.Onthemap, keep, found)["earlier"]
    regions = placed(gb.Onthemap, {**keep, "level": "county"}, found)["earlier"]

    assert (places.destinations.tolist(), places.origins.tolist()) == ([0, 1], [3, 12])
    assert regions.origins.tolist() == [1, 0]  # south, north
    assert "earlier" not in placed(gb.Onthemap, {}, found)
    (tmp_path / "2018.csv").write_text("work,home\nmill,elsewhere\n")
    with pytest.raises(SchemaMismatch, match="unknown or missing place"):
        load_geography(path)


def test_a_release_of_regions_is_known_by_its_level(tmp_path: Path) -> None:
    geography = load_geography(made.files(tmp_path))

    assert level_of(geography, flow_schema(geography)) == ""
    assert level_of(geography, flow_schema(coarse(geography, "county"))) == "county"
    with pytest.raises(UsageError, match="other places"):
        level_of(geography, gb.Schema((gb.Column("a", "binary", levels=("x", "y")),)))


def test_shrinking_follows_the_distances_of_earlier_pairs(tmp_path: Path) -> None:
    """Counted by hand: homes lie 1.38 miles apart on a meridian, the mill at the first of them."""
    path = made.files(tmp_path, 'earlier = "2018.csv"\nkeep = "earlier"\n' + made.FORM)
    (tmp_path / "2018.csv").write_text(
        "work,home\nmill,h0\nmill,h1\nmill,h4\nmill,h19\nschool,h5\nschool,h12\n"
    )
    found = load_geography(path)
    given = placed(gb.Onthemap, {}, found)
    homes, plants = found.origins, found.destinations
    shares = []
    for low, high in itertools.pairwise((0, 5, 10, 15, 25, 40)):
        inside = [
            (plant, home)
            for plant in range(2)
            for home in range(20)
            if low
            <= miles(plants.lat[plant], plants.lon[plant], homes.lat[home], homes.lon[home])
            < high
        ]
        pairs = {(0, 0), (0, 1), (0, 4), (0, 19), (1, 5), (1, 12)}
        shares.append(sum(one in pairs for one in inside) / max(len(inside), 1))
    falling = [max(shares[k:]) for k in range(len(shares))]

    steps = dict(given["keep"])
    kept = 1.0
    for low, share in zip((0.0, 5.0, 10.0, 15.0, 25.0), falling, strict=True):
        kept = steps.get(low, kept)  # a step that does not change is not repeated
        assert kept == pytest.approx(max(share / falling[0], 0.1), abs=1e-4)
    assert given["earlier"] is found.earlier
    assert placed(gb.Onthemap, {"keep": [[0, 0.5]]}, found)["earlier"] is found.earlier
    assert "keep" not in placed(gb.Onthemap, {"keep": [[0, 0.5]]}, found)
    assert placed(gb.Sba, {}, found) == {}


@pytest.mark.parametrize("keys", ['keep = "earlier"', 'earlier = "2018.csv"\nkeep = 0.5'])
def test_a_keep_without_earlier_pairs_is_refused(keys: str, tmp_path: Path) -> None:
    path = made.files(tmp_path, f"{keys}\n{made.FORM}")
    (tmp_path / "2018.csv").write_text("work,home\nmill,h3\n")

    with pytest.raises(UsageError, match="keep that is not from its earlier pairs"):
        load_geography(path)


def test_records_beyond_reach_are_read_where_the_geography_says_what_becomes_of_them(
    tmp_path: Path,
) -> None:
    """The mill and h0 are at 45 degrees, h14 lies 19.3 miles north, and h19 26."""
    path = made.files(tmp_path, "reach = 20\n" + made.FORM)
    pl.DataFrame({"work": ["mill", "school"], "home": ["h19", "h4"], "jobs": [15, 2]}).write_csv(
        tmp_path / "flows.csv"
    )
    with pytest.raises(SchemaMismatch, match="farther apart than 20 miles"):
        made.release(tmp_path, "refused")
    path.write_text('reach = 20\nbeyond = "nearest"\n' + made.FORM)
    geography = load_geography(path)
    schema = flow_schema(geography)

    method = gb.Onthemap(epsilon=40, delta=1e-5, **placed(gb.Onthemap, {}, geography))
    release = gb.synthesize(
        tmp_path / "flows.csv",
        schema,
        method,
        engine=FlowEngine(geography),
        ledger=gb.Ledger.ephemeral(),
        out=tmp_path / "release",
    )

    assert "one from beyond 20 miles counts at the nearest origin within" in (
        tmp_path / "release" / "METHODS.md"
    ).read_text(encoding="utf-8")
    rows = release.sets[0].select("work", "home").cast(pl.String).rows()
    assert rows == [("mill", "h14")] * 15 + [("school", "h4")] * 2  # at epsilon = 40 nobody moves
    with pytest.raises(UsageError, match="knows no reach"):
        placed(gb.Sba, {}, geography)
