"""The map of flows in headless Chromium, from disk: search, keyboard, markup in names, no request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.reporting import flow_map as maps
from gibbous.reporting.flow_map_data import map_data
from gibbous.reporting.flow_map_files import Named, opened
from gibbous.reporting.flow_map_svg import panel, shade
from tests.browser.test_reports import NARROW, Visit, browser

__all__ = ["browser"]  # the fixture

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
NAMES = Named(destination="work", origin="home", count="jobs")
CIRCLES = """[...document.querySelectorAll('#panel-synthetic .origin')].map(
    e => ['cx', 'cy', 'r'].map(k => Number(e.getAttribute(k))))"""
SHADED = """[...document.querySelectorAll('#panel-synthetic path.origin')].map(
    e => e.getAttribute('fill'))"""


TEXTS = "[...document.querySelectorAll('#panel-synthetic text')].map(e => e.textContent)"


def tables() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Synthetic flows, real flows and coordinates; one home has markup for a name, one no place."""
    homes = [f"home {k}" for k in range(12)] + [HOSTILE, "elsewhere"]
    angle = np.arange(14) * 2 * np.pi / 14
    away = np.linspace(0.02, 0.5, 14)
    lat, lon = 45 + away * np.cos(angle), -93 + away * np.sin(angle)
    places = pl.DataFrame(
        {
            "id": [*homes[:13], "mill", "school"],
            "lat": [*lat[:13], 45.0, 44.7],
            "lon": [*lon[:13], -93.0, -93.1],
        }
    )
    rows = [("mill", home, k + 1) for k, home in enumerate(homes)]
    rows += [("school", home, 2) for home in homes[:3]]
    flows = pl.DataFrame(rows, schema=["work", "home", "jobs"], orient="row")
    real = flows.with_columns(pl.col("jobs") + 1)
    return flows, real, places


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A public and an internal map on disk."""
    folder = tmp_path_factory.mktemp("maps")
    flows, real, places = tables()
    return {
        "public": maps.flow_map(flows, "mill", places, folder / "p.html", named=NAMES),
        "internal": maps.flow_map(flows, "mill", places, folder / "i.html", real=real, named=NAMES),
    }


def test_a_destination_is_chosen_by_keyboard_and_its_origins_appear(
    browser: Any, pages: dict[str, Path]
) -> None:
    with Visit(browser, pages["public"]) as visit:
        page = visit.page
        before = len(page.evaluate(CIRCLES))
        page.keyboard.press("Tab")  # the skip link
        page.keyboard.press("Tab")
        page.keyboard.press("Control+A")
        page.keyboard.type("SCH")
        page.keyboard.press("Enter")

        which, after, said = (
            page.inner_text("#which"),
            page.evaluate(CIRCLES),
            page.inner_text("#said"),
        )
        page.click("#before")
        back = page.inner_text("#which")

    assert before == 13  # one of 14 homes has no coordinates
    assert which == "school"
    assert len(after) == 3
    assert "6 people from 3 origins" in said
    assert back == "mill"
    assert visit.asked == [pages["public"].as_uri()]
    assert visit.said == []


def test_the_script_draws_what_the_picture_without_a_script_shows(
    browser: Any, pages: dict[str, Path]
) -> None:
    flows, _, places = tables()
    found = opened(flows, places, real=None, named=NAMES, options=None)
    data = map_data(found.synthetic, found.geography, destination="school")
    at = data.place("school")
    still = panel(data, data.layers[0], at, data.view(at))
    told = maps.facts(data, 0, at, data.view(at))

    with Visit(browser, pages["public"]) as visit:
        visit.page.fill("#ask", "school")
        visit.page.keyboard.press("Enter")
        drawn, said = visit.page.evaluate(CIRCLES), visit.page.inner_text("#said")
        texts = visit.page.evaluate(TEXTS)

    marks = [re.findall(r' (?:cx|cy|r)="([\d.]+)"', tag)
             for tag in re.findall(r"<circle [^>]*class=\"origin\"[^>]*>", still)]  # fmt: skip
    np.testing.assert_allclose(
        sorted(drawn), sorted([[float(v) for v in m] for m in marks]), atol=0.11
    )
    assert said.endswith(told)
    assert texts == re.findall(r"<text [^>]*>([^<]*)</text>", still)  # rings and sizes


def test_the_asked_view_stays_when_the_script_has_drawn(browser: Any, tmp_path: Path) -> None:
    flows, _, places = tables()
    path = maps.flow_map(flows, "mill", places, tmp_path / "m.html", named=NAMES, view=300)

    with Visit(browser, path) as visit:
        first = visit.page.evaluate(TEXTS)
        visit.page.select_option("#view", "40")
        later = visit.page.evaluate(TEXTS)

    assert first[:4] == ["75 mi", "150 mi", "225 mi", "300 mi"]
    assert later[:4] == ["10 mi", "20 mi", "30 mi", "40 mi"]


def test_all_origins_are_listed_when_asked_and_ids_that_fit_are_counted(
    browser: Any, tmp_path: Path
) -> None:
    homes = [f"home {k}" for k in range(30)]
    flows = pl.DataFrame(
        {"work": ["mill 1"] * 30 + ["mill 2"], "home": [*homes, "home 3"], "jobs": range(1, 32)}
    )
    ids = ["mill 1", "mill 2", *homes]
    spots = pl.DataFrame({"id": ids, "lat": 45 + np.arange(32) / 100, "lon": np.full(32, -93.0)})
    path = maps.flow_map(flows, "mill 1", spots, tmp_path / "m.html", named=NAMES)

    with Visit(browser, path) as visit:
        page = visit.page
        some, more = len(page.query_selector_all("#rows tr")), page.inner_text("#more")
        page.click("#all")
        every, rest = len(page.query_selector_all("#rows tr")), page.inner_text("#more")
        page.fill("#ask", "mill")
        page.keyboard.press("Enter")
        said = page.inner_text("#said")
        page.click("#after")
        left = len(page.query_selector_all("#panel-synthetic .origin"))

    assert (some, more) == (20, "10 more origins are not listed.")
    assert (every, rest) == (30, "")
    assert said.endswith("2 ids fit; this is the first.")
    assert left == 1  # nothing stays of the destination before
    assert visit.said == []


def test_the_script_shades_the_area_of_an_origin(browser: Any, tmp_path: Path) -> None:
    flows, _, places = tables()
    ring = [[-93.1, 45.0], [-92.9, 45.0], [-92.9, 45.1], [-93.1, 45.1], [-93.1, 45.0]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    area = {"type": "Feature", "id": "home 1", "geometry": shape}
    (tmp_path / "o.json").write_text(json.dumps({"type": "FeatureCollection", "features": [area]}))
    path = maps.flow_map(
        flows, "mill", places, tmp_path / "m.html", named=NAMES, outlines=tmp_path / "o.json"
    )

    with Visit(browser, path) as visit:
        mill = visit.page.evaluate(SHADED)
        visit.page.click("#after")
        school = visit.page.evaluate(SHADED)
        circles = len(visit.page.evaluate(CIRCLES)) - len(school)

    assert mill == [shade(2)]
    assert school == [shade(2)]
    assert circles == 2  # of three homes, one has an area
    assert visit.said == []


def test_no_markup_in_a_name_acts_and_the_policy_refuses_other_scripts(
    browser: Any, pages: dict[str, Path]
) -> None:
    with Visit(browser, pages["public"]) as visit:
        page = visit.page
        listed = page.inner_text("#rows")
        images = page.evaluate("document.images.length")
        page.evaluate("document.body.appendChild(Object.assign(document.createElement('script'),"
                      " {textContent: 'window.acted = true'}))")  # fmt: skip
        acted = page.evaluate("window.acted === true")
        page.evaluate("fetch('https://example.org/').catch(() => 0)")
        refused = [words for words in visit.said if "Content Security Policy" in words]

    assert HOSTILE in listed
    assert images == 0
    assert not acted
    assert len(refused) >= 2
    assert visit.asked == [pages["public"].as_uri()]


def test_real_flows_stand_beside_synthetic_ones_under_a_watermark(
    browser: Any, pages: dict[str, Path]
) -> None:
    with Visit(browser, pages["internal"]) as visit:
        page = visit.page
        real = len(page.query_selector_all("#panel-real .origin"))
        banner, marks = page.inner_text(".banner"), len(page.query_selector_all(".watermark span"))
        heads = page.inner_text("thead")

    assert real == 13
    assert "CONFIDENTIAL" in banner
    assert marks == 6
    assert "real" in heads
    assert visit.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_shows_the_map_without_scrolling_sideways(
    browser: Any, pages: dict[str, Path], scheme: str
) -> None:
    with Visit(browser, pages["internal"], viewport=NARROW, color_scheme=scheme) as visit:
        width = visit.page.evaluate("document.documentElement.scrollWidth")

    assert width == NARROW["width"]


def test_a_printed_page_has_the_map_and_no_controls(browser: Any, pages: dict[str, Path]) -> None:
    with Visit(browser, pages["public"]) as visit:
        visit.page.emulate_media(media="print")
        controls = visit.page.query_selector("#controls").is_visible()
        drawn = visit.page.query_selector("#panel-synthetic svg").bounding_box()

    assert not controls
    assert drawn["width"] > 200


def test_without_a_script_the_first_destination_is_there(
    browser: Any, pages: dict[str, Path]
) -> None:
    with Visit(browser, pages["public"], java_script_enabled=False) as visit:
        dots = visit.page.query_selector_all("#panel-synthetic .origin")
        controls = visit.page.query_selector("#controls").is_visible()

    assert len(dots) == 13
    assert not controls


def test_kilometers_and_names_are_those_of_the_picture_too(browser: Any, tmp_path: Path) -> None:
    flows, _, places = tables()
    called = places.with_columns(name=pl.concat_str(pl.lit("Saint "), pl.col("id")))
    named = Named(destination="work", origin="home", count="jobs", name="name")
    path = maps.flow_map(flows, "mill", called, tmp_path / "k.html", named=named, unit="km")
    found = opened(flows, called, real=None, named=named, options=None)
    data = map_data(
        found.synthetic, found.geography, destination="school", names=found.names, unit="km"
    )
    at = data.place("school")
    still = panel(data, data.layers[0], at, data.view(at))

    with Visit(browser, path) as visit:
        visit.page.fill("#ask", "school")  # the id finds the place, whatever it is called
        visit.page.keyboard.press("Enter")
        texts, which = visit.page.evaluate(TEXTS), visit.page.inner_text("#which")
        said, first = visit.page.inner_text("#said"), visit.page.inner_text("#rows th")

    assert which == "Saint school (school)"
    assert first == "Saint home 0 (home 0)"
    assert maps.facts(data, 0, at, data.view(at)) in said
    assert re.findall(r">([^<>]* km)</text>", still) == [one for one in texts if " km" in one]
    assert visit.said == []
