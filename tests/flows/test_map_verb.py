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
from gibbous.core.errors import UsageError
from gibbous.flows import FlowEngine, Geography, flow_schema, places
from gibbous.mechanisms.onthemap import Onthemap
from gibbous.read.source import ReadOptions

from . import made


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> map_verb.Asked:
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
    return map_verb.Asked(folder / "release", "mill", folder / "places.csv", {}, ReadOptions)


def test_a_release_folder_needs_no_names_of_columns(
    asked: map_verb.Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    map_verb.run(asked, tmp_path / "m.html", False, False, True)

    text = (tmp_path / "m.html").read_text()
    assert "synthetic: 15 people" in text  # as many as records: totals are public
    assert "probabilistic" in text  # the guarantee of the release
    assert capsys.readouterr().out == f"Made from the given flows alone. {tmp_path / 'm.html'}\n"


def test_json_is_one_document_and_real_flows_are_named_confidential(
    asked: map_verb.Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = replace(asked, real=asked.coordinates.with_name("pairs.csv"), columns={"count": "jobs"})
    map_verb.run(both, tmp_path / "a.svg", False, True, False)
    told = json.loads(capsys.readouterr().out)
    map_verb.run(both, tmp_path / "b.svg", False, False, False)

    assert told["audience"] == "internal"
    assert capsys.readouterr().out.startswith("Confidential: real flows")
    assert "real: 15 people from 3 origins" in (tmp_path / "a.svg").read_text()


def test_a_geography_file_names_places_and_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    geography = made.files(tmp_path)
    asked = map_verb.Asked(
        tmp_path / "flows.csv", "mill", geography, {}, ReadOptions, real=tmp_path / "flows.csv"
    )

    map_verb.run(asked, tmp_path / "m.svg", False, False, True)

    text = (tmp_path / "m.svg").read_text()
    assert "synthetic: 15 people from 3 origins" in text
    assert "real: 15 people from 3 origins" in text
    assert capsys.readouterr().out.startswith("Confidential")


def test_a_set_that_is_not_there_is_refused(asked: map_verb.Asked, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no set 2"):
        map_verb.run(replace(asked, columns={"set": 2}), tmp_path / "m.svg", False, False, True)
