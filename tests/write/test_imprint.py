"""B7, B8: what METHODS.md and the public report say of assumptions, maturity and issuer, and where."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import polars as pl
import pytest

import gibbous as gb
from gibbous.cli.config import imprint_of, resolve
from gibbous.core.errors import ModelRejected, UsageError
from gibbous.core.request import LONGEST, Imprint
from gibbous.write import manifest
from gibbous.write.load import load
from gibbous.write.release_texts import release_texts
from tests.frame.tree import ROOT
from tests.write.test_verify import edit, reseal

SCHEMA = gb.Schema(tuple(gb.Column(name, "binary", levels=("a", "b")) for name in ("x", "y")))
ROWS = pl.DataFrame({"x": ["a", "b"] * 30, "y": ["a"] * 60})
ISSUER = Imprint("Office of *Data* <b>", "example.org/data", "2026-05-01", "CC BY 4.0")
CHOSEN = "method, budget, contexts and bins were chosen without looking at the records"
METHODS = {"tables": gb.NoisyPegs(epsilon=1, delta=1e-6), "rows": gb.Pegs(epsilon=0.1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("imprint")
    for name, method in METHODS.items():
        gb.synthesize(
            ROWS, SCHEMA, method, rows=5, sets=2, out=place / name, imprint=ISSUER,
            ledger=gb.Ledger.ephemeral(),
        )  # fmt: skip
    return place


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_B7_every_release_says_that_method_and_budget_were_chosen_without_the_records(
    folder: Path, name: str, tmp_path: Path
) -> None:
    rel = folder / name
    receipt = json.loads((rel / "ledger.json").read_text())
    report = gb.report(rel, "public", tmp_path / "public.html").read_text()

    assert CHOSEN in receipt["assumptions"]
    for text in ((rel / "METHODS.md").read_text(), report):
        assert CHOSEN[1:] in text


@pytest.mark.parametrize("name", METHODS)
def test_B7_verify_refuses_a_certificate_that_leaves_an_assumption_out(
    folder: Path, name: str, tmp_path: Path
) -> None:
    rel = Path(shutil.copytree(folder / name, tmp_path / "rel"))
    gb.verify(rel)

    edit(rel, "ledger.json", lambda receipt: receipt["assumptions"].remove(CHOSEN))

    with pytest.raises(ModelRejected, match="what its guarantee assumes"):
        gb.verify(rel)


@pytest.mark.slow
def test_B8_issuer_contact_date_and_license_stand_where_the_board_reads(
    folder: Path, tmp_path: Path
) -> None:
    rel = folder / "tables"
    receipt = json.loads((rel / "ledger.json").read_text())
    report = gb.report(rel, "public", tmp_path / "public.html").read_text()
    text = (rel / "METHODS.md").read_text()

    assert Imprint.from_json(receipt["imprint"]) == ISSUER
    assert "- Issued by: Office of \\*Data\\* \\<b\\>\n- Contact: example.org/data\n" in text
    assert "- Date: 2026-05-01\n- License: CC BY 4.0\n" in text
    for shown in ("Office of *Data* &lt;b&gt;", "example.org/data", "2026-05-01", "CC BY 4.0"):
        assert shown in report


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("issuer", "two\nlines"),
        ("issuer", "\x1b[31mred"),
        ("contact", "right \u202e to left"),
        ("license", "x" * (LONGEST + 1)),
        ("contact", " padded "),
        ("date", "1.5.2026"),
        ("date", "20260501"),
    ],
)
def test_B8_what_cannot_be_printed_is_refused_in_words_of_its_own(field: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        Imprint(**{field: value})

    assert caught.value.exit_code == 2
    assert value not in str(caught.value)


def test_B8_a_hostile_imprint_in_a_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    for number, wrong in enumerate(({"issuer": "a\nb"}, {"boss": "x"}, {"issuer": 7}, ["x"])):
        rel = Path(shutil.copytree(folder / "rows", tmp_path / str(number)))
        edit(rel, "ledger.json", lambda receipt, wrong=wrong: receipt.update(imprint=wrong))

        for reads in (gb.load, gb.verify):
            with pytest.raises(ModelRejected):
                reads(rel)


@pytest.mark.parametrize("name", METHODS)
def test_B8_the_page_is_a_function_of_what_the_folder_holds(folder: Path, name: str) -> None:
    release = load(folder / name)
    receipt = release.receipt.to_json()

    sums = manifest.digests(folder / name)
    made = release_texts(receipt, release.schema, release.tables, sums)

    assert made["METHODS.md"].decode() == (folder / name / "METHODS.md").read_text()


@pytest.mark.parametrize("name", METHODS)
def test_B8_the_guarantee_and_its_limits_stand_before_any_table(folder: Path, name: str) -> None:
    text = (folder / name / "METHODS.md").read_text()
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    table = text.index("\n|")

    for part in ("What the guarantee says", "What this does not protect", "Assumptions"):
        assert 0 < text.index(f"## {part}") < table
    assert (sections[-1] == "## Noise, table by table") == (name == "tables")


@pytest.mark.slow
def test_B8_page_and_report_state_maturity_as_the_readme_does(folder: Path, tmp_path: Path) -> None:
    report = gb.report(folder / "rows", "public", tmp_path / "public.html").read_text()
    readme = (ROOT / "README.md").read_text("utf-8")

    assert "no outside review. Alpha software" in " ".join(readme.replace(">", " ").split())
    for text in ((folder / "rows" / "METHODS.md").read_text(), report):
        assert "is alpha software" in text
        assert "no outside review" in text
    assert report.index("is alpha software") < report.index("The guarantee holds if")


def test_B8_request_file_and_flags_carry_the_imprint(tmp_path: Path) -> None:
    file = tmp_path / "release.toml"
    file.write_text('schema = "s.toml"\n[output]\nissuer = "A & B"\ndate = 2026-05-01\n')

    found = resolve(file, [], {"output.license": "CC0", "output.contact": None})

    assert imprint_of(found) == Imprint(
        issuer="A & B", date=date(2026, 5, 1).isoformat(), license="CC0"
    )
    file.write_text('schema = "s.toml"\n[output]\nissuer = 7\n')
    with pytest.raises(UsageError, match=r"output\.issuer"):
        resolve(file, [], {})


def test_B8_without_an_imprint_nothing_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"

    gb.synthesize(ROWS, SCHEMA, gb.Laplace(epsilon=1), out=out, ledger=gb.Ledger.ephemeral())
    reseal(out)

    assert "Issued by" not in (out / "METHODS.md").read_text()
    assert json.loads((out / "ledger.json").read_text())["imprint"] == {}
