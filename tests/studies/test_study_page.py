"""Pages of studies: a verdict a row from its numbers, one file alone, and its data in the title."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gibbous import studies
from gibbous.cli import study_verb
from gibbous.cli.flags import ScreenFlags
from gibbous.reporting import html_page
from gibbous.reporting.page_parts import Page
from gibbous.studies import bowen2016_1
from gibbous.studies.study_page import page_of
from gibbous.studies.study_parts import Printed, summary
from tests.report.test_pages import Reader

TITLES = {
    "sbhg-1": "Proposition 1: the L1 error of the stability-based algorithm (constructed data)",
    "park2013": "Marginals and LASSO from l-diverse and exponential Gibbs samplers (a stand-in "
    "constructed like claims7)",
}


@pytest.fixture(scope="module", params=TITLES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a short run by the verb."""
    folder = tmp_path_factory.mktemp("pages") / str(request.param)
    settings = {"quick": True, "workers": 1, "reps": 1}
    study_verb.run(request.param, folder, settings, ScreenFlags(quiet=True))
    return folder


@pytest.mark.parametrize(
    ("side", "inside", "outside"),
    [("near", 0.52, 0.54), ("near", 0.48, 0.46), ("above", 0.48, 0.46), ("below", 0.52, 0.54)],
)
def test_a_verdict_flips_where_ours_is_moved_beyond_the_tolerance(
    side: Any, inside: float, outside: float
) -> None:
    row = Printed("table 1", "share", 0.5, inside, 0.03, side)

    assert row.verdict == "agrees"
    assert replace(row, ours=outside).verdict == "differs"
    assert replace(row, ours=outside, tolerance=0.05).verdict == "agrees"
    assert replace(row, ours=float("nan")).verdict == "differs"
    assert replace(row, ours=None).verdict == "not in this run"


@pytest.mark.slow
def test_the_verdicts_of_a_study_follow_its_rows() -> None:
    """Table 1 of the supplement: a share of usable repeats that is moved no longer agrees."""
    ran = studies.run("bowen2016-1", quick=True, workers=1)
    name = "n = 1000, π = 0.15, ln ε = -5"

    def found(rows: Any) -> Printed:
        return next(p for p in replace(ran, rows=rows).printed() if p.quantity == name)

    at = {"method": "Laplace sanitizer", "n": 1000, "pi": 0.15, "ln_epsilon": -5}
    moved = tuple(
        {**row, "usable": row["usable"] - 0.1} if at.items() <= row.items() else row
        for row in ran.rows
    )
    gone = tuple(row for row in ran.rows if not at.items() <= row.items())

    verdicts = [found(rows).verdict for rows in (ran.rows, moved, gone)]
    assert verdicts == ["agrees", "differs", "not in this run"]
    assert found(ran.rows).value == 0.8078
    assert summary(replace(ran, rows=moved).printed()) != summary(ran.printed())


@pytest.mark.slow
def test_a_page_of_a_study_asks_for_nothing_outside_itself(written: Path) -> None:
    text = (written / "study.html").read_text()
    found = Reader(text)
    empty = Page("public", "", "", "", (), ())

    def policy(page: str) -> list[Any]:
        tags = Reader(page).tags
        return [a for t, a in tags if a.get("http-equiv") == "Content-Security-Policy"]

    assert set(re.findall(r"[a-z]+://[^\s\"'<>]+", text)) <= {"http://www.w3.org/2000/svg"}
    for tag, attributes in found.tags:
        assert tag not in {"script", "iframe", "object", "embed", "img", "link", "base", "form"}
        assert not {"src", "srcset", "action", "background"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    assert policy(text) == policy(html_page.html(empty)) != []
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(ids) == len(set(ids))
    used = {str(a["href"])[1:] for t, a in found.tags if t in ("a", "use")}
    assert used <= set(ids)


def test_a_page_shows_the_title_each_verdict_figures_and_how_it_was_run(written: Path) -> None:
    found = Reader((written / "study.html").read_text())
    words = {text.strip() for text in found.texts}
    tables = json.loads((written / "tables.json").read_text())

    assert TITLES[written.name] in words
    assert {p["quantity"] for p in tables["printed"]} <= words
    marks = [t.replace("\N{NO-BREAK SPACE}", " ")[2:] for t in found.texts if t[:1] in "✓✗–"]
    assert marks == [p["verdict"] for p in tables["printed"]]
    assert len({*marks}) == 3  # each occurs in both
    kinds = [t for t, _ in found.tags]
    assert kinds.count("figure") == len(list(written.glob("*.svg")))
    assert any(w.startswith(f"gibbous study {written.name} --quick --reps 1") for w in words)
    assert not (written / "study.html").stat().st_mode & 0o077


@pytest.mark.slow
def test_a_page_of_a_resumed_run_is_the_same(written: Path) -> None:
    before = (written / "study.html").read_bytes()
    (written / "study.html").unlink()

    studies.run(written.name, quick=True, workers=1, reps=1, out=written)

    assert (written / "study.html").read_bytes() == before


def test_a_page_of_a_given_table_is_marked_confidential_and_names_it(
    tmp_path: Path, monkeypatch: Any
) -> None:
    bare = replace(bowen2016_1.STUDY, takes_data=True, figures=lambda rows, settings: ())
    monkeypatch.setattr(bowen2016_1, "STUDY", bare)
    (tmp_path / "mine.csv").write_text("a\n1\n")

    ran = studies.run("bowen2016-1", quick=True, reps=3, workers=1, data=tmp_path / "mine.csv")

    text = page_of(ran).decode()
    assert html_page.INTERNAL in text
    assert "(mine.csv, as given)" in text
    assert str(tmp_path) not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", studies.names())
def test_every_study_has_printed_rows_that_its_short_setting_decides(name: str) -> None:
    ran = studies.run(name, quick=True, workers=1)

    printed = ran.printed()

    assert len({(p.place, p.quantity) for p in printed}) == len(printed) > 5
    assert sum(p.ours is not None for p in printed) > 4
