"""What somebody who had never seen gibbous stumbled over, each with what holds now."""

from __future__ import annotations

import html
import os
import re
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gibbous.core.errors import LedgerUnusable
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.files import default_path
from gibbous.read.schema_file import load_schema
from gibbous.studio import accounts, commands
from gibbous.studio.app import Studio
from tests.studio.conftest import SCHEMA, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")


def shown(visitor: Visitor, screen: str) -> str:
    """The text of a screen, without its tags."""
    return text(visitor.get(screen).text)


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def handles() -> int:
    """Open handles of this process on the files of the ledger."""
    found, name = 0, default_path().name
    for one in Path("/proc/self/fd").iterdir():
        try:
            found += name in os.readlink(one)
        except OSError:
            continue
    return found


def opened(studio: Studio) -> None:
    """As if the open data set had been named by a job: the ledger knows it, with a cap."""
    data = studio.place.data()
    book = Ledger.open()
    name = book.dataset(str(studio.place.folder / data))
    book.cap(name, Fraction(4), Fraction("1e-8"), "add_remove")
    book.close()
    studio.jobs.start(commands.account(data, ()), "data")


@pytest.fixture
def entered(described: Studio) -> Visitor:
    """Somebody before the open data set, whose account has a cap."""
    opened(described)
    visitor = Visitor(described)
    visitor.settle()
    return visitor


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="handles are counted by /proc")
def test_no_page_keeps_the_ledger_open(entered: Visitor) -> None:
    before = handles()
    for _ in range(15):
        assert "epsilon = 4, delta = 1e-08" in entered.get("ledger").text
        entered.get("describe")

    assert handles() == before


def test_screens_read_a_ledger_that_is_being_written(entered: Visitor, folder: Path) -> None:
    book = Ledger.open()
    name = book.dataset(str(folder / "people.csv"))

    def write() -> None:
        for count in range(30):
            book.nickname(name, f"name-{count}")

    writer = threading.Thread(target=write)
    writer.start()
    pages = [entered.get("ledger").text for _ in range(10)]
    writer.join()
    book.close()

    assert not [page for page in pages if 'role="alert"' in page or "could not be read" in page]
    assert "name-29" in entered.get("ledger").text


def test_the_bar_never_says_nothing_after_a_run(
    described: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(described)
    assert "Spent being read" in shown(visitor, "data") or "Spent could not" in shown(visitor, "data")
    opened(described)
    visitor.settle()
    assert "Spent nothing yet Left epsilon = 4" in shown(visitor, "data")
    described.jobs.start(commands.account("people.csv", ()), "data")
    assert "Left epsilon = 4, delta = 1e-08" in shown(visitor, "data")
    visitor.settle()

    def broken() -> Any:
        raise LedgerUnusable("DAMAGED", "It is.", "It is not.", "Mend it.")

    monkeypatch.setattr(accounts, "ledger", broken)
    page = shown(visitor, "data")
    assert "Data set people.csv Spent could not be read Left could not be read" in page


def test_what_worked_is_said_and_an_old_refusal_goes(described: Studio, folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace("upper = 5000", "upper = 1500"))
    visitor = Visitor(described)
    visitor.do("describe/check", once="a")
    visitor.settle()
    assert "Refused:" in shown(visitor, "describe")
    wider = {"column": "income", "kind": "numeric", "lower": "0", "upper": "5000", "bins": "10"}
    answer = visitor.do("describe/declare", **wider, reason="codebook", label="", missing="no")
    page = shown(visitor, answer.headers["location"].lstrip("/"))
    assert "Saved: income" in page
    assert "Refused:" not in page
    visitor.do("describe/check", once="b")
    visitor.do("budget/cap", epsilon="3", delta="1e-8", once="c")
    visitor.do("run/key", name="Ana", passphrase="", once="d")
    visitor.settle()

    assert "The data fit the schema" in shown(visitor, "describe")
    assert "The cap is set" in shown(visitor, "budget")
    page = visitor.get("run").text
    assert "The key is made, and chosen to sign with" in page
    assert '<option value="sign.key" selected>' in page
