"""The flow map without a browser: places on it, files, GeoJSON, what is refused, what is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import GibbousError, UsageError
from gibbous.flows import Flows, Geography, collected, miles, places
from gibbous.reporting import flow_map as maps
from gibbous.reporting.flow_map_data import map_data
from gibbous.reporting.flow_map_files import Named
from gibbous.reporting.flow_map_svg import RADIUS, SIZE, Scale, places_on, shade
from gibbous.reporting.geojson import read_outlines
from gibbous.reporting.html_page import INTERNAL
from tests.flows import made

NAMES = Named(destination="work", origin="home", count="jobs")
HOSTILE = '"><script>alert(1)</script>'
SQUARE = [[-93.2, 45.0], [-93.0, 45.0], [-93.0, 45.2], [-93.2, 45.2], [-93.2, 45.0]]


@pytest.fixture
def flows() -> pl.DataFrame:
    """Three pairs to one destination, one to another."""
    return pl.DataFrame(
        {
            "work": ["mill", "mill", "mill", "school"],
            "home": ["a", HOSTILE, "far", "a"],
            "jobs": [40, 2, 1, 3],
        }
    )


@pytest.fixture
def spots() -> pl.DataFrame:
    """Coordinates of all places but "far", which has none."""
    return pl.DataFrame(
        {
            "id": ["a", HOSTILE, "mill", "school", "far"],
            "lat": [45.1, 45.2, 45.0, 45.0, None],
            "lon": [-93.1, -93.0, -93.0, -93.2, None],
        }
    )


def geo(path: Path, *features: dict[str, Any]) -> Path:
    """A GeoJSON file."""
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def area(id: str, ring: list[list[float]]) -> dict[str, Any]:
    """A polygon of one ring."""
    shape = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "id": id, "properties": {}, "geometry": shape}


def test_every_origin_lies_at_its_distance_and_bearing() -> None:
    draws = np.random.default_rng(1)
    lat, lon = 45 + draws.uniform(-3, 3, 50), -93 + draws.uniform(-3, 3, 50)
    home = places([str(k) for k in range(50)], lat, lon)
    work = places(["w"], [45.0], [-93.0])
    data = map_data(
        collected(np.zeros(50, dtype=np.int64), np.arange(50)),
        Geography(home, work),
        destination="w",
    )

    x, y = places_on(data, 0, lat, lon, 100)

    away = np.hypot(x - SIZE / 2, y - SIZE / 2) * 100 / RADIUS
    np.testing.assert_allclose(away, miles(45.0, -93.0, lat, lon))
    assert ((y < SIZE / 2) == (lat > 45))[np.abs(lat - 45) > 0.2].all()
    assert ((x > SIZE / 2) == (lon > -93)).all()


def test_a_picture_has_origins_notes_and_no_markup_of_names(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    path = maps.flow_map(flows, "mill", spots, tmp_path / "m.svg", named=NAMES, view=20)

    root = ElementTree.fromstring(path.read_text())
    text = " ".join(e.text or "" for e in root.iter() if e.tag.endswith("text"))
    tags = {element.tag.split("}")[1] for element in root.iter()}
    titles = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert titles == ["a: 40, 8.5 miles", f"{HOSTILE}: 2, 13.8 miles"]
    assert "script" not in tags
    assert "43 people from 3 origins, mean distance 8.7 miles, 1 without coordinates." in text
    assert "CONFIDENTIAL" not in text


@pytest.mark.parametrize(
    ("most", "largest", "words"),
    [
        (1, 16.0, ["1 person"]),
        (5, 16.0, ["5 people", "1"]),
        (400, 16.0, ["400 people", "100", "1 to 6"]),
        (400, 5.0, ["400 people", "100", "1 to 64"]),
    ],
)
def test_the_sizes_of_a_legend_are_those_of_circles(
    most: int, largest: float, words: list[str]
) -> None:
    scale = Scale(most, largest)

    found = scale.legend()

    assert [text for _, text in found] == words
    for radius, text in found:
        low = int(text.split()[0])
        high = int(text.split()[-1]) if "to" in text else low
        assert scale.radius(low) == radius == pytest.approx(scale.radius(high))
    if "to" in words[-1]:
        high = int(words[-1].split()[-1])
        assert scale.radius(high + 1) > scale.radius(high)


def test_long_words_of_a_picture_are_broken_to_its_width(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    named = flows.with_columns(work=pl.col("work").replace("mill", "mill " * 30))
    where = spots.with_columns(id=pl.col("id").replace("mill", "mill " * 30))

    path = maps.flow_map(named, "mill " * 30, where, tmp_path / "m.svg", named=NAMES)

    texts = [e for e in ElementTree.parse(path).getroot() if e.tag.endswith("text")]
    wide = [len(e.text or "") * 0.5 * int(e.get("font-size", "0")) for e in texts]
    assert len(wide) >= 5
    assert max(wide) < SIZE


def test_a_png_is_a_png(flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path) -> None:
    path = maps.flow_map(flows, "mill", spots, tmp_path / "m.png", named=NAMES)

    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("kind", ["svg", "html"])
def test_a_map_with_real_flows_says_so_where_verify_looks(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path, kind: str
) -> None:
    path = maps.flow_map(flows, "mill", spots, tmp_path / f"m.{kind}", real=flows, named=NAMES)

    text = path.read_text()
    assert INTERNAL in text[:1000]
    assert "CONFIDENTIAL" in text


def test_the_page_allows_its_own_script_and_nothing_else(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    text = maps.flow_map(flows, "mill", spots, tmp_path / "m.html", named=NAMES).read_text()

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    script = re.findall(r"(?s)<script>(.*?)</script>", text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert f"script-src '{maps.allowed(script[-1])}'" in policy[1]
    assert "unsafe-inline" not in policy[1].split("script-src")[1]
    assert len(re.findall("<script", text)) == 2
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:|//)", text)
    payload = re.search(r'(?s)id="data">(.*?)</script>', text)
    assert payload is not None
    assert HOSTILE in json.loads(payload[1])["ids"]


def test_the_area_of_an_origin_is_shaded_in_place_of_its_circle(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    outlines = geo(tmp_path / "o.geojson", area("a", SQUARE), area("nobody", SQUARE))

    path = maps.flow_map(flows, "mill", spots, tmp_path / "m.svg", named=NAMES, outlines=outlines)

    text = path.read_text()
    paths = re.findall(r'<path d="M[^"]*Z" fill="([^"]*)"', text)
    assert paths == [shade(40), "none"]
    assert "a: 40, " not in text


def test_a_page_that_would_be_too_large_keeps_the_chosen_destination() -> None:
    pairs = np.arange(30)
    spots = [45 + 0.01 * k for k in range(30)]
    home = places([str(k) for k in pairs], spots, [-93.0] * 30)
    work = places(["big", "mid", "small"], [45.0] * 3, [-93.0] * 3)
    table = collected(
        np.repeat([0, 1, 2], [20, 8, 2]), np.concatenate([pairs[:20], pairs[:8], pairs[:2]])
    )

    data = map_data(table, Geography(home, work), destination="small", most=25)

    kept = [data.ids[at] for at in data.destinations]
    assert kept == ["big", "small"]
    assert data.left_out == 1
    assert len(data.layers[0].part(data.place("small"))[0]) == 2


def test_confidential_flows_cannot_stand_for_synthetic_ones() -> None:
    one = np.zeros(1, dtype=np.int64)
    where = places(["x"], [45.0], [-93.0])

    with pytest.raises(UsageError, match="Confidential flows"):
        map_data(Flows(one, one, one + 1, secret=True), Geography(where, where), destination="x")


def _no_such_destination(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    return maps.flow_map(flows, "harbor", spots, folder / "m.svg", named=NAMES)


def _no_columns(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    return maps.flow_map(flows, "mill", spots, folder / "m.svg")


def _no_kind(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    return maps.flow_map(flows, "mill", spots, folder / "m.pdf", named=NAMES)


def _no_view(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    return maps.flow_map(flows, "mill", spots, folder / "m.svg", named=NAMES, view=7)


def _swapped(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    wrong = spots.rename({"lat": "lon", "lon": "lat"})
    return maps.flow_map(flows, "mill", wrong, folder / "m.svg", named=NAMES)


def _text(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    wrong = spots.with_columns(lat=pl.lit("north"))
    return maps.flow_map(flows, "mill", wrong, folder / "m.svg", named=NAMES)


def _other_ids(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    wrong = spots.with_columns(id="x" + pl.col("id"))
    return maps.flow_map(flows, "mill", wrong, folder / "m.svg", named=NAMES)


def _negative(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    wrong = flows.with_columns(jobs=-pl.col("jobs"))
    return maps.flow_map(wrong, "mill", spots, folder / "m.svg", named=NAMES)


def _half_json(flows: pl.DataFrame, spots: pl.DataFrame, folder: Path) -> Path:
    wrong = folder / "o.json"
    wrong.write_text('{"type": "FeatureCollection", "features": [')
    return maps.flow_map(flows, "mill", spots, folder / "m.svg", named=NAMES, outlines=wrong)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (_no_such_destination, "NODESTINATION"),
        (_no_columns, "MAPCOLUMNS"),
        (_no_kind, "MAPNAME"),
        (_no_view, "MAPVIEW"),
        (_swapped, "PLACES"),
        (_text, "COORDINATES"),
        (_other_ids, "COORDINATES"),
        (_negative, "COUNT"),
        (_half_json, "GEOJSON"),
    ],
)
def test_what_cannot_be_drawn_is_refused_without_a_file(
    flows: pl.DataFrame,
    spots: pl.DataFrame,
    tmp_path: Path,
    wrong: Callable[[pl.DataFrame, pl.DataFrame, Path], Path],
    name: str,
) -> None:
    with pytest.raises(GibbousError) as caught:
        wrong(flows, spots, tmp_path)

    assert caught.value.name == name
    assert caught.value.fix
    assert not (tmp_path / "m.svg").exists()


def test_a_misspelled_destination_is_answered_with_a_near_synthetic_one(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    school = flows.filter(pl.col(NAMES.destination) == "school")

    with pytest.raises(GibbousError, match="Did you mean 'mill'"):
        maps.flow_map(flows, "mil", spots, tmp_path / "m.svg", named=NAMES)
    with pytest.raises(GibbousError) as real:
        maps.flow_map(school, "mil", spots, tmp_path / "m.svg", real=flows, named=NAMES)
    with pytest.raises(GibbousError, match="The flows have no rows"):
        maps.flow_map(flows.clear(), "mill", spots, tmp_path / "m.svg", named=NAMES)

    assert "mill" not in str(real.value)


def test_a_map_is_not_replaced_unless_asked(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    path = maps.flow_map(flows, "mill", spots, tmp_path / "m.svg", named=NAMES)

    with pytest.raises(GibbousError) as caught:
        maps.flow_map(flows, "school", spots, path, named=NAMES)
    maps.flow_map(flows, "school", spots, path, named=NAMES, overwrite=True)

    assert caught.value.name == "EXISTS"
    assert "school" in path.read_text()


@pytest.mark.parametrize(
    "ring",
    [[[45.0, -93.0, 0], [200.0, 1.0]], [["a", 1], [2, 3]], [[1], [2]], [[1, float("nan")], [2, 3]]],
    ids=["out of range", "text", "one number", "not a number"],
)
def test_outlines_with_wrong_points_are_refused(tmp_path: Path, ring: list[Any]) -> None:
    path = geo(tmp_path / "o.json", area("a", ring))

    with pytest.raises(GibbousError) as caught:
        read_outlines(path)

    assert caught.value.name == "GEOJSON"


def test_ids_of_outlines_come_from_the_feature_or_a_property(tmp_path: Path) -> None:
    named = area("a", SQUARE)
    del named["id"]
    named["properties"] = {"id": 17}
    line = {"type": "LineString", "coordinates": SQUARE}

    found = read_outlines(geo(tmp_path / "o.json", area("a", SQUARE), named, line))

    assert [(o.id, o.closed) for o in found] == [("a", True), ("17", True), ("", False)]


def test_distances_are_miles_or_kilometers_and_places_have_names(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    called = spots.with_columns(name=pl.Series(["Anoka", None, "The mill", "", "Far"]))
    named = Named(destination="work", origin="home", count="jobs", name="name")

    path = maps.flow_map(flows, "mill", called, tmp_path / "m.svg", named=named, view=30, unit="km")

    root = ElementTree.fromstring(path.read_text())
    text = " ".join(e.text or "" for e in root.iter() if e.tag.endswith("text"))
    titles = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert titles == ["Anoka (a): 40, 13.6 km", f"{HOSTILE}: 2, 22.2 km"]
    assert "30 km" in text
    assert "mean distance 14.0 km" in text  # 11.1 km north and 7.9 west are 13.6
    assert " mi" not in text.replace("mill", "")


def test_names_of_places_come_from_the_tables_of_a_geography(tmp_path: Path) -> None:
    geography = made.files(tmp_path)
    homes = pl.read_csv(tmp_path / "homes.csv")
    homes.with_columns(town=pl.lit("Town ") + pl.col("id")).write_csv(tmp_path / "homes.csv")
    release = made.release(tmp_path)

    path = maps.flow_map(release, "mill", geography, tmp_path / "m.html", named=Named(name="town"))

    assert re.search(r"Town h\d+ \(h\d+\)", path.read_text())


def test_a_column_of_names_that_is_none_is_refused(
    flows: pl.DataFrame, spots: pl.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(GibbousError, match="no column 'town'"):
        maps.flow_map(flows, "mill", spots, tmp_path / "m.svg", named=Named(name="town"))
