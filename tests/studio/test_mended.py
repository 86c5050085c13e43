"""Faults that an audit found on the screens, each with what holds now."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from gibbous.read.schema_file import load_schema
from gibbous.studio.app import Studio
from tests.studio.conftest import SCHEMA, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")

SCREENS = ("data", "describe", "budget", "method", "run", "compare", "ledger")


def shown(visitor: Visitor, screen: str) -> str:
    """The text of a screen, without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", " ", visitor.get(screen).text))


def test_copy_buttons_have_a_word_and_no_page_shows_an_object(described: Studio) -> None:
    visitor = Visitor(described)

    for screen in SCREENS:
        page = visitor.get(screen).text
        assert not re.search(r"built-in|object at 0x|namespace\(", page), screen
    assert re.search(r'data-copy="shell">Copy<', visitor.get("budget").text)


@pytest.mark.parametrize("words", ["abc", "nan", "1e400", "1,5", "-1", "0", "1 zwei"])
def test_epsilons_of_a_study_are_numbers(described: Studio, words: str) -> None:
    visitor = Visitor(described)

    answer = visitor.do(
        "compare/start",
        **{"methods[]": "noisy_pegs"},
        epsilons=words,
        repeats="1",
        once=f"k{words}",
    )

    assert answer.status_code == 422
    assert "-NUMBER<" in answer.text
    assert described.jobs.newest("compare") is None


@pytest.mark.slow
def test_a_study_reads_the_file_as_it_was_mended(described: Studio, folder: Path) -> None:
    from tests.studio.conftest import CSV

    (folder / "people.csv").write_text(CSV.replace(",", ";"))
    described.place.save({"studio.sep": ";"})
    visitor = Visitor(described)

    form = {"methods[]": "noisy_pegs", "epsilons": "1, 2", "repeats": "1", "once": "c"}
    assert visitor.do("compare/start", **form).status_code == 303
    visitor.settle()

    assert '[reading]\nsep = ";"' in (folder / "study.toml").read_text()
    answer = described.jobs.answer(described.jobs.newest("compare"))
    assert {p["epsilon"] for p in answer["points"] if p.get("mechanism")} == {1, 2}
