"""Maps inside reports: whose people they show, who may see them, and numbers for those who cannot."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.cli import evaluate_verb, report_verb
from gibbous.cli.flags import ReadingFlags, ScreenFlags
from gibbous.cli.measuring_verbs import EvaluateFlags, ReportFlags
from gibbous.cli.output_flags import SignFlags
from gibbous.core.errors import UsageError
from gibbous.flows import Geography, flow_schema, load_geography, places
from gibbous.reporting import flow_map
from gibbous.reporting import html_page as page
from gibbous.reporting.html_page import INTERNAL
from gibbous.reporting.page_parts import Page, Section
from gibbous.reporting.public_report import public_report
from tests.flows import made

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with flows, their geography and a release of them."""
    folder = tmp_path_factory.mktemp("flows")
    made.files(folder)
    made.release(folder)
    return folder


def _figures(twin: Path) -> list[dict[str, Any]]:
    sections = json.loads(twin.read_text())["sections"]
    mine = next(s for s in sections if s["name"] == "flows")
    return [b for b in mine["blocks"] if b["kind"] == "figure"]


@pytest.mark.slow
def test_the_public_report_maps_synthetic_people_alone_with_all_their_numbers(
    flows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "public.html"

    gb.report(flows / "release", "public", out, geography=flows / "geography.toml")

    first, _ = _figures(out.with_suffix(".json"))
    rows = pl.read_parquet(flows / "release" / "synthetic_1.parquet")
    people = rows.filter(pl.col("work") == "mill")["home"].value_counts()
    assert first["title"] == "Origins around mill"  # the largest first
    assert first["numbers"]["head"] == ["origin", "miles", "synthetic"]
    assert {r[0]: r[2] for r in first["numbers"]["rows"]} == dict(people.iter_rows())
    text = out.read_text()
    assert 'class="origin"' in text
    assert "<script" not in text
    assert INTERNAL not in text


@pytest.mark.slow
def test_the_internal_report_has_real_people_beside_them(flows: Path, tmp_path: Path) -> None:
    geography = load_geography(flows / "geography.toml")
    found = gb.evaluate(flows / "flows.csv", flows / "release", geography)

    found.report(tmp_path / "internal.html")

    first, _ = _figures(tmp_path / "internal.json")
    real = {row[0]: row[3] for row in first["numbers"]["rows"] if row[3]}
    assert [part["title"] for part in first["panels"]] == ["synthetic", "real"]
    assert real == {"h1": 9, "h2": 5, "h19": 1}
    assert "commute_bias" in {one.name for one in found}
    with pytest.raises(TypeError, match="confidential"):
        pickle.dumps(found)
    assert INTERNAL in (tmp_path / "internal.html").read_text()


def test_confidential_flows_never_enter_a_public_report(flows: Path, tmp_path: Path) -> None:
    out, geography = tmp_path / "p.html", load_geography(flows / "geography.toml")

    with pytest.raises(UsageError, match="confidential flows"):
        gb.report(flows / "release", "public", out, geography=geography, flows=flows / "flows.csv")
    mapped = flow_map.Mapped(geography, real=flows / "flows.csv")
    with pytest.raises(UsageError, match="Confidential flows"):
        public_report(flows / "release", out, mapped=mapped)

    assert not out.exists()


def test_another_geography_than_that_of_the_release_is_refused(flows: Path, tmp_path: Path) -> None:
    path = made.files(tmp_path)
    homes = pl.read_csv(tmp_path / "homes.csv").with_columns(lat=pl.col("lat") + 1)
    homes.write_csv(tmp_path / "homes.csv")
    out = tmp_path / "p.html"

    with pytest.raises(UsageError, match="origins of the geography are not those"):
        gb.report(flows / "release", "public", out, geography=path)


def test_an_id_that_is_markup_stays_text(flows: Path) -> None:
    geography = Geography(places([HOSTILE], [45.0], [-93.0]), places(["mill"], [45.1], [-93.0]))
    release = gb.load(flows / "release")
    rows = pl.DataFrame({"destination": ["mill"], "origin": [HOSTILE]})
    odd = replace(
        release, sets=(rows,), schema=flow_schema(geography), plan=replace(release.plan, params={})
    )

    found = flow_map.flow_figures(odd, flow_map.Mapped(geography, real=rows))

    section = Section("flows", "Flows", found)
    text = page.html(Page("public", "", "", "", (), (section,)))
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)") >= 3  # two drawings and the table


def test_a_map_of_regions_adds_up_the_real_people_in_them(flows: Path) -> None:
    geography = load_geography(flows / "geography.toml")
    rows = pl.DataFrame({"work": ["mill"] * 3, "home": ["south", "south", "north"]})
    release = gb.load(flows / "release")
    coarser = replace(
        release, sets=(rows,), schema=flow_schema(flow_map.coarse(geography, "county")),
        plan=replace(release.plan, params={}),
    )  # fmt: skip

    (figure,) = flow_map.flow_figures(coarser, flow_map.Mapped(geography, real=flows / "flows.csv"))

    assert [(r[0], r[2], r[3]) for r in figure.numbers.rows] == [("south", 2, 14), ("north", 1, 1)]


def test_destinations_whose_circles_would_not_fit_are_left_to_the_map(
    flows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_map, "MOST", 0)
    mapped = flow_map.Mapped(load_geography(flows / "geography.toml"))

    (only,) = flow_map.flow_blocks(gb.load(flows / "release"), mapped)

    assert only.kind == "text"
    assert "gibbous map" in only.words


def _flags(flows: Path, **given: Any) -> EvaluateFlags:
    return EvaluateFlags(real=flows / "flows.csv", synth=[flows / "release"], **given)


def test_evaluate_with_a_geography_compares_flows(
    flows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = _flags(
        flows, geography=flows / "geography.toml", only=["commute_classes,commute_bias,new_pairs"]
    )

    evaluate_verb.run(flags, ReadingFlags(), tmp_path / "out", ScreenFlags())

    told = capsys.readouterr().out
    assert told.startswith("17 real people in 4 pairs; 1 synthetic set of 17 in ")
    assert "Flows: origins and distances, by destination" in told
    assert "commute_bias" in told
    assert "commute_error" not in told
    assert "Origins around mill" in (tmp_path / "out" / evaluate_verb.REPORT).read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: {"keys": ["home"], "geography": f / "geography.toml"}, "keys"),
        (lambda f: {"schema": f / "s.toml", "geography": f / "geography.toml"}, "Two schemas"),
        (lambda f: {}, "No schema"),
        (lambda f: {"cuts": "9,6", "geography": f / "geography.toml"}, "two distances in order"),
        (lambda f: {"cuts": "6,9", "schema": f / "s.toml"}, "was given without geo"),
    ],
)
def test_what_has_no_part_in_flows_is_refused(
    flows: Path, change: Callable[[Path], dict[str, Any]], words: str
) -> None:
    given = change(flows)

    with pytest.raises(UsageError, match=words):
        evaluate_verb.run(_flags(flows, **given), ReadingFlags(), None, ScreenFlags(quiet=True))


@pytest.mark.slow
def test_report_verb_draws_named_destinations(
    flows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.html"
    flags = ReportFlags(geography=flows / "geography.toml", destination=["school"])

    page = report_verb.Page(flows / "release", "public", out, overwrite=False, signing=SignFlags())
    report_verb.run(page, flags, ReadingFlags(), ScreenFlags(quiet=True))

    (figure,) = _figures(out.with_suffix(".json"))
    assert figure["title"] == "Origins around school"
    assert capsys.readouterr().out.startswith("Public: made from the release and public places")
