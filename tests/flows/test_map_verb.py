"""`gibbous map` as a function: what it says, JSON alone with --json, releases on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.cli import map_verb
from gibbous.cli.flags import ReadingFlags, ScreenFlags
from gibbous.cli.measuring_verbs import MapFlags
from gibbous.core.errors import ModelRejected, UsageError
from gibbous.flows import FlowEngine, Geography, coarse, flow_schema, load_geography, places
from gibbous.mechanisms.onthemap import Onthemap
from tests.flows import made


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> MapFlags:
    """A release of flows on disk, and coordinates."""
    folder = tmp_path_factory.mktemp("map")
    homes = places([f"h{k}" for k in range(20)], 45 + np.arange(20) / 50, [-93.0] * 20)
    work = places(["mill", "school"], [45.0, 45.1], [-93.0, -93.1])
    geography = Geography(homes, work, "home", "work", "jobs")
    pairs = pl.DataFrame(
        {"work": ["mill"] * 3 + ["school"], "home": ["h1", "h2", "h9", "h4"], "jobs": [9, 5, 1, 2]}
    )
    pairs.write_csv(folder / "pairs.csv")
    gb.synthesize(
        pairs,
        flow_schema(geography, "commutes"),
        Onthemap(epsilon=4.6, delta=1e-5, destination="work"),
        engine=FlowEngine(geography),
        ledger=gb.Ledger.ephemeral(),
        out=folder / "release",
    )
    pl.DataFrame(
        {
            "id": [*homes.ids, *work.ids],
            "lat": [*homes.lat, *work.lat],
            "lon": [*homes.lon, *work.lon],
        }
    ).write_csv(folder / "places.csv")
    return MapFlags(folder / "release", "mill", folder / "places.csv")


def test_a_release_folder_needs_no_names_of_columns(
    asked: MapFlags, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    map_verb.run(asked, tmp_path / "m.html", False, ReadingFlags(), ScreenFlags(quiet=True))

    text = (tmp_path / "m.html").read_text()
    assert "synthetic: 15 people" in text  # as many as records: totals are public
    assert "probabilistic" in text  # the guarantee of the release
    assert capsys.readouterr().out == f"Made from the given flows alone. {tmp_path / 'm.html'}\n"


def test_json_is_one_document_and_real_flows_are_named_confidential(
    asked: MapFlags, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = replace(asked, real=asked.coordinates.with_name("pairs.csv"), count="jobs")
    map_verb.run(both, tmp_path / "a.svg", False, ReadingFlags(), ScreenFlags(json=True))
    told = json.loads(capsys.readouterr().out)
    map_verb.run(both, tmp_path / "b.svg", False, ReadingFlags(), ScreenFlags())

    assert told["audience"] == "internal"
    assert capsys.readouterr().out.startswith("Confidential: real flows")
    assert "real: 15 people from 3 origins" in (tmp_path / "a.svg").read_text()


def test_a_geography_file_names_places_and_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    geography = made.files(tmp_path)
    asked = MapFlags(tmp_path / "flows.csv", "mill", geography, real=tmp_path / "flows.csv")

    map_verb.run(asked, tmp_path / "m.svg", False, ReadingFlags(), ScreenFlags(quiet=True))

    text = (tmp_path / "m.svg").read_text()
    assert "synthetic: 15 people from 3 origins" in text
    assert "real: 15 people from 3 origins" in text
    assert capsys.readouterr().out.startswith("Confidential")


def test_a_set_that_is_not_there_is_refused(asked: MapFlags, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no set 2"):
        map_verb.run(
            replace(asked, number=2),
            tmp_path / "m.svg",
            False,
            ReadingFlags(),
            ScreenFlags(quiet=True),
        )


def _county(folder: Path) -> Path:
    """The same geography with counties in place of homes, and a release of it beside it."""
    geography = made.files(folder)
    path = folder / "county.toml"
    path.write_text('level = "county"\n' + geography.read_text())
    found = load_geography(path)
    seen = coarse(found, found.level)
    gb.synthesize(
        folder / "flows.csv",
        flow_schema(seen),
        Onthemap(destination="work", origins=seen.origins, destinations=seen.destinations),
        engine=FlowEngine(found, level=found.level),
        ledger=gb.Ledger.ephemeral(),
        out=folder / "release",
    )
    return path


def test_a_release_of_regions_is_drawn_and_evaluated_with_the_real_people_in_them(
    tmp_path: Path,
) -> None:
    path = _county(tmp_path)
    asked = MapFlags(tmp_path / "release", "mill", path, real=tmp_path / "flows.csv")

    map_verb.run(asked, tmp_path / "m.svg", False, ReadingFlags(), ScreenFlags(quiet=True))
    found = gb.evaluate(tmp_path / "flows.csv", tmp_path / "release", load_geography(path))

    text = (tmp_path / "m.svg").read_text()
    assert "real: 15 people from 2 origins" in text
    assert "south: 14, " in text
    assert found.facts["places"] == {"destinations": 2, "origins": 2}
    assert found.facts["pairs"]["real"] == 3


def test_another_geography_and_a_changed_release_are_refused(
    tmp_path: Path, asked: MapFlags
) -> None:
    geography = made.files(tmp_path)
    made.release(tmp_path)
    mine = replace(asked, release=tmp_path / "release", coordinates=geography)
    map_verb.run(mine, tmp_path / "a.svg", False, ReadingFlags(), ScreenFlags(quiet=True))

    plants = tmp_path / "plants.csv"
    plants.write_text(plants.read_text().replace("45.1", "45.2"))
    with pytest.raises(UsageError, match="destinations of the geography are not those"):
        map_verb.run(mine, tmp_path / "b.svg", False, ReadingFlags(), ScreenFlags(quiet=True))
    rows = tmp_path / "release" / "synthetic_1.parquet"
    data = bytearray(rows.read_bytes())
    data[len(data) // 2] ^= 1
    rows.write_bytes(bytes(data))
    with pytest.raises(ModelRejected, match="was changed"):
        map_verb.run(
            replace(mine, coordinates=asked.coordinates),
            tmp_path / "c.svg",
            False,
            ReadingFlags(),
            ScreenFlags(quiet=True),
        )

    assert not list(tmp_path.glob("[bc].svg"))


def test_counts_that_were_not_named_are_not_read_as_one_person_each(
    asked: MapFlags, tmp_path: Path
) -> None:
    both = replace(asked, real=asked.coordinates.with_name("pairs.csv"))

    with pytest.raises(UsageError, match="beside a column of numbers 'jobs'") as caught:
        map_verb.run(both, tmp_path / "m.svg", False, ReadingFlags(), ScreenFlags(quiet=True))

    assert "--count jobs" in caught.value.fix
