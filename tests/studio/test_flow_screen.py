"""Flows of a release on their map: drawn by a command, without a script, and only where there are flows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.flows import FlowEngine, Geography, flow_schema, places
from gibbous.mechanisms.onthemap import Onthemap
from gibbous.studio.app import Studio
from gibbous.studio.door import Door
from gibbous.studio.jobs import Jobs
from gibbous.studio.workplace import Workplace
from tests.studio.conftest import HOST, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A studio in a folder that has a release of flows, and places."""
    folder = tmp_path_factory.mktemp("flows")
    homes = places([f"h{k}" for k in range(6)], 45 + np.arange(6) / 50, [-93.0] * 6)
    work = places(["mill", "school"], [45.0, 45.1], [-93.0, -93.1])
    geography = Geography(homes, work, "home", "work", "jobs")
    gb.synthesize(
        pl.DataFrame({"work": ["mill"] * 3, "home": ["h1", "h2", "h5"], "jobs": [9, 5, 1]}),
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
    place = Workplace(folder)
    place.prepare()
    return Visitor(Studio(place, Jobs(place.scratch / "jobs", folder), Door(HOST)))


@pytest.mark.slow
def test_a_destination_is_drawn_by_the_command_and_shown_without_a_script(visitor: Visitor) -> None:
    assert "Flows on their map" in visitor.get("release").text
    assert visitor.get("document/flows").status_code == 404

    answer = visitor.do("release/map", destination="mill", coordinates="places.csv", once="one")
    visitor.settle()
    shown, page = visitor.get("document/flows"), visitor.get("release").text

    assert answer.status_code == 303
    assert shown.headers["content-type"].startswith("image/svg+xml")
    assert "sandbox" in shown.headers["content-security-policy"]
    assert shown.text.startswith("<svg")
    assert "<script" not in shown.text
    assert '<img src="/document/flows"' in page
    assert gb.verify(visitor.studio.place.release).sets == 1  # the map stands beside the release


@pytest.mark.slow
def test_a_board_sees_the_flows_on_their_map_and_the_release_stays_as_it_is(
    visitor: Visitor, tmp_path: Path
) -> None:
    folder = visitor.studio.place.folder
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if ".studio" not in p.parts}
    place = Workplace(folder, board="release", elsewhere=tmp_path)
    place.prepare()
    board = Visitor(Studio(place, Jobs(tmp_path / "jobs", folder), Door(HOST), board=True))
    assert "Flows on their map" in board.get("board").text
    assert board.get("document/flows").status_code == 404

    form = {"destination": "mill", "coordinates": "places.csv", "once": "one"}
    answer = board.send("board/map", key=board.key_of("board"), **form)
    board.settle()
    drawn, page = board.get("document/flows"), board.get("board").text

    assert answer.headers["location"] == "/board"
    assert drawn.text.startswith("<svg")
    assert "mill" in drawn.text
    assert '<img src="/document/flows"' in page
    assert board.send("release/map", key=board.key_of("board"), **form).status_code == 404
    after = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if ".studio" not in p.parts}
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("destination", ["harbor", "--help", "<script>alert(1)</script>"])
def test_a_destination_that_is_none_is_a_sentence_of_the_command(
    visitor: Visitor, destination: str
) -> None:
    visitor.do("release/map", destination=destination, coordinates="places.csv", once=destination)
    visitor.settle()
    page = visitor.get("release").text

    assert "<script>alert" not in page
    assert "There is no destination" in page
    job = visitor.studio.jobs.newest("map", "release")
    assert job is not None
    assert job.state != "done"


def test_a_release_without_flows_has_no_map(tmp_path: Path) -> None:
    schema = gb.Schema((gb.Column("a", "nominal", levels=("x", "y")),), unit=gb.Unit())
    records = pl.DataFrame({"a": ["x", "y"] * 50})
    method, ledger = gb.Laplace(epsilon=1), gb.Ledger.ephemeral()
    gb.synthesize(records, schema, method, rows=5, ledger=ledger, out=tmp_path / "release")
    place = Workplace(tmp_path)
    place.prepare()
    other = Visitor(Studio(place, Jobs(place.scratch / "jobs", tmp_path), Door(HOST)))

    assert "Flows on their map" not in other.get("release").text
