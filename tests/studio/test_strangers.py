"""What somebody who had never seen gibbous stumbled over, each with what holds now."""

from __future__ import annotations

import html
import json
import os
import re
import socket
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
from gibbous.studio.door import Door
from gibbous.studio.jobs import Jobs
from gibbous.studio.workplace import Workplace
from tests.studio.conftest import HOST, SCHEMA, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")


@pytest.fixture(autouse=True)
def a_ledger_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path / "home"))


def shown(visitor: Visitor, screen: str) -> str:
    """The text of a screen, without its tags."""
    return text(visitor.get(screen).text)


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def handles() -> int:
    """Open handles of this process on the files of the ledger of this test, and of no earlier one."""
    found, name = 0, str(default_path().resolve())
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


@pytest.mark.slow
def test_no_page_keeps_the_ledger_open(entered: Visitor) -> None:
    before = handles()
    for _ in range(15):
        assert "epsilon = 4, delta = 1e-08" in entered.get("ledger").text
        entered.get("describe")

    assert handles() == before


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_bar_never_says_nothing_after_a_run(
    described: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(described)
    assert "Spent being read" in shown(visitor, "data") or "Spent could not" in shown(
        visitor, "data"
    )
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_signed_release_gets_its_report_and_a_board_checks_the_key(
    described: Studio, folder: Path, tmp_path: Path
) -> None:
    visitor = Visitor(described)
    visitor.do("run/key", name="Ana", passphrase="secret words", once="k")
    visitor.settle()
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="50", sets="1")
    sheet = {"title": "people", "format": "csv", "out": "first", "seed": "", "sign": "sign.key"}
    visitor.do("run/start", **sheet, passphrase="secret words", confirm="1", once="r")
    visitor.settle()
    assert (folder / "first" / "manifest.sig").exists(), described.jobs.all()
    assert "Your release is ready" in shown(visitor, "run")
    page = shown(visitor, "release")
    assert "send it on its own way" in page
    assert "gibbous studio --board first" in page
    assert visitor.get("document/key").content == (folder / "sign.key.pub").read_bytes()

    refused = visitor.do("release/report", sign="", passphrase="", once="p")
    assert refused.status_code == 422
    visitor.do("release/report", sign="sign.key", passphrase="secret words", once="q")
    visitor.settle()
    assert (folder / "first" / "report.public.html").exists()
    methods = visitor.get("document/methods")
    assert "<h1>" in methods.text
    assert "text/html" in methods.headers["content-type"]

    place = Workplace(folder, board="first", elsewhere=tmp_path / "board")
    (tmp_path / "board").mkdir()
    place.prepare()
    board = Visitor(Studio(place, Jobs(place.scratch / "jobs", folder), Door(HOST), board=True))
    key = board.key_of("board")
    board.send("board/verify", key=key, public="", once="v")
    board.settle()
    assert "signature not checked" in (page := shown(board, "board"))
    assert "None" not in page
    board.send("board/verify", key=key, public=str(folder / "sign.key.pub"), once="w")
    board.settle()
    assert "signed by Ana" in shown(board, "board")
    assert board.send("board/verify", key=key, public="none.pub", once="x").status_code == 422


@pytest.mark.slow
def test_spend_uses_what_the_form_shows(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="50", sets="1")
    visitor.do("run/texts", title="old", out="first", format="csv")
    sheet = {"title": "new", "contact": "Ana", "format": "csv", "out": "second", "seed": "0"}

    refused = visitor.do("run/start", **sheet, sign="", confirm="2", once="a")
    assert refused.status_code == 422
    assert 'value="new"' in refused.text
    visitor.do("run/start", **sheet, sign="", confirm="1", once="b")
    visitor.settle()

    assert not (folder / "first").exists()
    assert load_schema(folder / "second" / "schema.toml").name == "new"
    assert described.place.value("output.seed") == 0


def test_a_refused_budget_is_said_beside_it_and_not_kept(described: Studio) -> None:
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="", sets="1")

    form = {"epsilon": "1", "delta": "1e-9", "size": "77", "sets": "3"}
    answer = visitor.do("budget/spend", **form, own="1000")
    card = answer.text[answer.text.index("budget/spend") :]
    assert "Choose an epsilon near 1" in text(card)
    assert "i-understand" not in answer.text
    assert all(f'value="{value}"' in card for value in ("1000", "77", "3"))
    assert described.place.value("privacy.epsilon") == 1
    assert "Another epsilon is '-1'" in text(visitor.do("budget/spend", **form, own="-1").text)
    assert "written with a point" in visitor.do("budget/spend", **form, own="1,5").text


@pytest.mark.slow
def test_numbers_beyond_the_bounds_become_the_bound(described: Studio, folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace("upper = 5000", "upper = 1500"))
    visitor = Visitor(described)
    visitor.do("describe/check", once="a")
    visitor.settle()
    page = shown(visitor, "describe")
    assert "tick that numbers beyond the bounds become the bound" in page
    assert "2019-01-31" in page
    form = {"column": "income", "kind": "numeric", "lower": "0", "upper": "1500", "bins": "10"}
    visitor.do("describe/declare", **form, clamp="yes", missing="no", reason="", label="")
    assert load_schema(folder / "schema.toml")["income"].clamp
    visitor.do("describe/check", once="b")
    visitor.settle()
    assert "The data fit the schema" in shown(visitor, "describe")
    visitor.do("describe/declare", **form, missing="no", reason="", label="")
    assert not load_schema(folder / "schema.toml")["income"].clamp


def test_a_refused_form_of_a_column_keeps_what_was_typed(described: Studio) -> None:
    form = {"column": "sex", "kind": "date", "lower": "01/02/2018", "upper": "2023-12-31"}

    page = Visitor(described).do("describe/declare", **form, bins="12", reason="wards", label="x")

    assert page.status_code == 422
    assert all(f'value="{value}"' in page.text for value in ("01/02/2018", "2023-12-31", "wards"))
    assert "least value is not a day" in page.text


COSTS = "patient;age;cost\n" + "".join(
    f"{7919 * i};[{10 * (i % 9)}-{10 * (i % 9) + 10});{i % 70},{i % 7}5\n" for i in range(300)
)


@pytest.mark.slow
def test_a_left_out_column_says_why_and_one_click_reads_its_commas(
    studio: Studio, folder: Path
) -> None:
    (folder / "costs.csv").write_text(COSTS)
    studio.place.save({"studio.sep": ";"})
    visitor = Visitor(studio)
    visitor.do("data/choose", file="costs.csv", once="a")
    visitor.settle()
    page = visitor.get("describe").text
    assert "looks like an identifier" in page
    assert "looks like numbers written with a comma" in page
    assert '<input type="hidden" name="decimal" value=",">' in page
    assert text(page).index("Looking has a price") < text(page).index("Show what the records hold")

    visitor.do("describe/suggest", once="s")
    visitor.settle()
    assert not load_schema(folder / "schema.toml")["age"].binned
    visitor.do("data/mend", decimal=",", redraft="yes", sure="yes", once="b")
    visitor.settle()

    assert load_schema(folder / "schema.toml")["cost"].kind == "numeric"


@pytest.mark.slow
def test_what_names_say_is_taken_back(described: Studio, folder: Path) -> None:
    draft = SCHEMA.replace("bins = 10", 'bins = 10\nsource = "inferred"')
    (folder / "schema.toml").write_text(draft)
    visitor = Visitor(described)
    visitor.do("describe/suggest", once="s")
    visitor.settle()
    assert load_schema(folder / "schema.toml")["age"].edges[-1] == 120
    assert 'action="/describe/unsuggest"' in visitor.get("describe").text
    visitor.do("describe/unsuggest")

    assert (folder / "schema.toml").read_text() == draft
    assert 'action="/describe/unsuggest"' not in visitor.get("describe").text


@pytest.mark.slow
def test_who_looked_reads_what_the_text_for_a_board_will_say(described: Studio) -> None:
    visitor = Visitor(described)
    warning = "You have looked at results on these records."
    assert warning not in shown(visitor, "run")
    visitor.do("describe/look", column="sex")

    assert warning in shown(visitor, "run")


def test_compare_starts_with_the_methods_that_method_recommends(described: Studio) -> None:
    from gibbous.studio.screens.method import RECOMMENDED

    page = Visitor(described).get("compare").text

    ticked = re.findall(r'name="methods\[\]" value="(\w+)" checked', page)
    assert sorted(ticked) == sorted(RECOMMENDED)


def test_cards_say_what_a_figure_is_worth() -> None:
    from gibbous.studio.screens.assess import _verdict

    beside = {"bootstrap": 0.0196, "independent": 0.0457}
    assert _verdict(0.0454, beside) == "nobetter"
    assert _verdict(0.0198, beside) == "anew"
    assert _verdict(0.03, beside) == ""
    rising = {"bootstrap": 0.95, "independent": 0.5}
    assert _verdict(0.9, rising, "higher") == ""
    assert _verdict(0.45, rising, "higher") == "nobetter"
    assert _verdict(0.45, rising, "near") == ""
    assert _verdict(0.0036, {"bootstrap": 0.0069, "independent": 0.0062}) == ""
    assert _verdict(0.0036, {"bootstrap": 0.0062, "independent": 0.0069}) == ""


def test_analyse_knows_terms_that_no_released_table_joins(described: Studio, folder: Path) -> None:
    from gibbous.studio.screens.analyse import _apart

    tables = folder / "release" / "tables"
    tables.mkdir(parents=True)
    contexts = [{"targets": [0], "parents": [1]}, {"targets": [2], "parents": []}]
    said = {"items": [{"context": one} for one in contexts]}
    (tables / "tables.json").write_text(json.dumps(said))
    names = ("age", "sex", "in come")

    assert _apart(described, "age ~ sex", names) == []
    assert _apart(described, "`in come` ~ age + sex", names) == ["age", "sex"]


@pytest.mark.slow
def test_another_file_is_opened_over_declared_facts_only_when_asked(
    described: Studio, folder: Path
) -> None:
    (folder / "other.csv").write_text("x,y\n" + "1,a\n2,b\n" * 200)
    visitor = Visitor(described)
    answer = visitor.do("data/choose", file="other.csv", once="a")

    assert answer.status_code == 422
    assert (folder / "schema.toml").read_text() == SCHEMA
    assert described.place.data() == "people.csv"
    assert '<input type="hidden" name="file" value="other.csv">' in answer.text
    assert visitor.do("data/choose", file="other.csv", sure="yes", once="b").status_code == 303
    assert described.place.data() == "other.csv"


def test_the_first_screen_says_what_gibbous_is_and_the_bar_what_is_public(studio: Studio) -> None:
    page = shown(Visitor(studio), "data")

    assert "alpha software" in page
    assert "This page: nothing confidential" in page


def test_a_page_of_markdown_shows_no_tag_picture_or_link_of_its_text() -> None:
    from gibbous.studio.rendered import page

    made = page(
        "# A\n\n**b** `c<d` e\\_f <script>x</script>\n\n- one\n- two\n\n| h | i |\n|---|---|\n| 1 | 2 |\n\n"
        "[a](https://example.org) ![p](https://example.org/p.png) <https://example.org> [r]\n\n"
        "[r]: javascript:alert(1)\n"
    )

    assert "<h1>A</h1>" in made
    assert (
        "<p><strong>b</strong> <code>c&lt;d</code> e_f &lt;script&gt;x&lt;/script&gt;</p>" in made
    )
    assert made.count("<li>") == 2
    assert "<td>1</td>" in made
    assert not re.search("<(a|img|script)[ >]|href=|src=", made)


def test_a_port_is_free_again_at_once() -> None:
    from gibbous.studio.server import _bound

    first = _bound(None)
    port = first.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as caller:
        served, _ = first.accept()
        served.close()  # this side ends first: its port lingers
        assert caller.recv(1) == b""
    first.close()

    _bound(port).close()
