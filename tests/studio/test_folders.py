"""Folders of the studio: walked into and never out of, and opened, or sent, as one table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gibbous.read.schema_file import load_schema
from gibbous.studio.app import Studio
from gibbous.studio.screens import folders
from tests.studio.conftest import CSV, ORIGIN, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")

OUT = ("..", "../", "year/..", "year/../..", "/etc", "/", "year//../..", ".studio", "year/.hidden",
       "away", "year/away", "\0", "year\0", "people.csv", "none", "a" * 5000)  # fmt: skip


@pytest.fixture
def parts(folder: Path) -> Path:
    """Folders of parts, with what is hidden, links out of the place, and one that mixes kinds."""
    head, *rows = CSV.splitlines()
    year = folder / "year"
    for path in (year / "parts", year / ".hidden", folder / "mixed"):
        path.mkdir(parents=True)
    for place in range(4):
        text = "\n".join([head, *rows[100 * place : 100 * (place + 1)]])
        (year / "parts" / f"p{place}.csv").write_text(text + "\n")
    (year / "parts" / ".p9.csv").write_text("other\n1\n")
    (folder / "mixed" / "a.csv").write_text(CSV)
    (folder / "mixed" / "b.tsv").write_text(CSV)
    for made in ("internal", "study", "older"):  # by the studio
        (folder / made).mkdir()
    (folder / "older" / "manifest.json").write_text("{}")
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.csv").write_text(CSV)
    (folder / "away").symlink_to(elsewhere)
    (year / "away").symlink_to(folder.parent)
    (year / "link.csv").symlink_to(elsewhere / "secret.csv")
    return year


def listed(visitor: Visitor, at: str) -> list[str]:
    """Folders that the screen offers to walk into."""
    page = visitor.get("data", params={"at": at}).text
    return re.findall(r"<bdi>([^<]+)</bdi>/</a>", page)


def test_folders_are_walked_into_and_up_to_that_of_the_studio(studio: Studio, parts: Path) -> None:
    visitor = Visitor(studio)

    assert listed(visitor, "") == ["mixed", "year"]
    assert listed(visitor, "year") == ["parts"]
    page = visitor.get("data", params={"at": "year/parts"}).text
    assert re.findall(r'<option value="([^"]+)"', page) == [
        f"year/parts/p{place}.csv" for place in range(4)
    ]
    assert 'href="/data?at=year"' in page
    assert "Open its 4 files as one table" in page
    assert "link.csv" not in visitor.get("data", params={"at": "year"}).text
    assert "as one table" not in visitor.get("data", params={"at": "mixed"}).text


@pytest.mark.parametrize("at", OUT)
def test_no_path_leads_out(studio: Studio, parts: Path, at: str) -> None:
    visitor = Visitor(studio)

    page = visitor.get("data", params={"at": at}).text
    refused = visitor.do("data/choose", folder=at, once=at[:40])

    assert listed(visitor, at) == ["mixed", "year"]
    assert "elsewhere" not in page
    assert "secret" not in page
    assert refused.status_code == 422
    assert studio.place.data() == ""
    assert folders.shown(studio.place, at)["files"] == ["people.csv"]


@pytest.mark.slow
def test_a_folder_of_parts_is_drafted_and_run_as_the_one_file_is(
    studio: Studio, folder: Path, parts: Path
) -> None:
    visitor = Visitor(studio)

    visitor.do("data/choose", folder="year/parts", once="a")
    visitor.settle()
    many = load_schema(folder / "schema.toml")
    visitor.do("budget/unit", unit="row")
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="50", sets="1")
    visitor.do("run/start", confirm="1", accept="yes", once="r")
    visitor.settle()

    assert studio.place.data() == "year/parts/*.csv"
    assert many.name == "parts"
    job = studio.jobs.newest("synthesize")
    assert job is not None
    assert (job.state, job.error) == ("done", ("", ""))
    assert "year/parts/*.csv" in (folder / "release.toml").read_text()
    page = visitor.get("assess").text  # parts of the table are offered as held-out records
    assert '<option value="year/parts/p0.csv"' in page


def sent(visitor: Visitor, body: bytes, name: str, within: str) -> str:
    """One part of a folder."""
    headers = {
        "origin": ORIGIN, "content-type": "application/octet-stream", "x-studio-key": visitor.key,
        "x-studio-name": name, "x-studio-folder": within,
    }  # fmt: skip
    answer = visitor.client.post("/upload", content=body, headers=headers)
    return answer.text if answer.status_code == 200 else str(answer.status_code)


@pytest.mark.slow
def test_a_folder_that_is_sent_is_one_table_and_swept_when_it_is_closed(
    studio: Studio, folder: Path
) -> None:
    visitor = Visitor(studio)
    head, *rows = CSV.splitlines()
    halves = ["\n".join([head, *rows[:200]]) + "\n", "\n".join([head, *rows[200:]]) + "\n"]

    first = sent(visitor, halves[0].encode(), "a.csv", "my survey")
    again = sent(visitor, halves[1].encode(), "a.csv", first)
    stray = sent(visitor, b"x\n1\n", "b.csv", "../../year")
    visitor.do("data/choose", upload=first, once="a")
    visitor.settle()

    assert again == first
    assert re.fullmatch(r"[0-9a-f]{8}/my-survey", first)
    assert re.fullmatch(r"[0-9a-f]{8}/year", stray)
    uploads = folder / ".studio" / "uploads"
    assert [str(p.relative_to(uploads)) for p in sorted(uploads.rglob("*.csv"))] == [
        f"{first}/0000-a.csv",
        f"{first}/0001-a.csv",
    ]
    assert load_schema(folder / "schema.toml").name == "my-survey"
    assert "Open: <bdi>my-survey</bdi>" in visitor.get("data").text
    assert visitor.studio.jobs.answer(studio.jobs.newest("schema", "infer")) is not None
    visitor.do("data/forget")
    assert list(uploads.iterdir()) == []


def test_a_folder_that_is_sent_holds_no_more_than_one_file_may(studio: Studio) -> None:
    visitor = Visitor(
        Studio(studio.place, studio.jobs, studio.door, upload_bytes=1000), entered=True
    )

    first = sent(visitor, b"a\n" + b"1\n" * 300, "a.csv", "big")

    assert "/big" in first
    assert sent(visitor, b"a\n" + b"1\n" * 300, "b.csv", first) == "413"
    assert sent(visitor, b"a\n" + b"1\n" * 100, "c.csv", first) == first
