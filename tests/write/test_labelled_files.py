"""SPSS, Stata and Excel files: what went in is read back by their own libraries, and verify compares."""

from __future__ import annotations

import datetime
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.cli import main
from gibbous.core.errors import EngineFailure, ModelRejected, UsageError
from gibbous.core.request import EXCEL_ROWS, Output
from gibbous.read.metadata.files import import_draft
from gibbous.write import manifest
from gibbous.write.labelled_files import labelled, variable_names
from tests.needs import need

SCHEMA = gb.Schema(
    (
        gb.Column("sex", "binary", levels=("f", "m"), label="Sex of the person",
                  level_labels=(("f", "female"), ("m", "male"))),
        gb.Column("grp 1", "ordinal", levels=(1, 2, 3), missing=True, label="Größe",
                  level_labels=((1, "low"), (2, "middle"), (3, "high"))),
        gb.Column("city", "nominal", levels=("=1+1", "Ulm"), other="else", missing=True),
        gb.Column("grade", "ordinal", levels=("poor", "good")),
        gb.Column("owns", "binary", levels=(False, True)),
        gb.Column.numeric("age", lower=0, upper=100, bins=10, integer=True),
        gb.Column.numeric("pay", lower=0, upper=9, bins=3, decimals=2, missing=True),
        gb.Column("day", "date", edges=(693596.0, 700000.0, 730000.0)),
    ),
    unit=gb.Unit("row"),
    name="People of a town",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _libraries() -> None:
    need("formats extra")


def records(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    days = [datetime.date.fromordinal(int(d)) for d in rng.integers(693596, 730000, rows)]
    holes = rng.random((2, rows)) < 0.2
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], rows),
            "grp 1": pl.Series(rng.integers(1, 4, rows)).set(pl.Series(holes[0]), None),
            "city": rng.choice(["=1+1", "Ulm", "Bern"], rows),
            "grade": rng.choice(["poor", "good"], rows),
            "owns": rng.random(rows) < 0.5,
            "age": rng.integers(0, 101, rows),
            "pay": pl.Series((rng.random(rows) * 9).round(2)).set(pl.Series(holes[1]), None),
            "day": days,
        }
    )  # fmt: skip


def made(out: Path, form: str, **more: Any) -> gb.Release:
    return gb.synthesize(
        records(), SCHEMA, "laplace", epsilon=8, rows=60, seed=2, format=form, out=out,
        ledger=gb.Ledger.ephemeral(), **more,
    )  # fmt: skip


def read_back(path: Path) -> tuple[dict[str, list[Any]], Any]:
    import pyreadstat

    frame, meta = {".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta}[path.suffix](str(path))
    return {name: [None if v != v else v for v in frame[name]] for name in frame}, meta


def test_spss_reads_every_value_and_every_label(tmp_path: Path) -> None:
    release = made(tmp_path / "out", "sav", sets=2)
    want = release.sets[1]
    found, meta = read_back(tmp_path / "out" / "synthetic_2.sav")

    assert list(found) == ["sex", "grp_1", "city", "grade", "owns", "age", "pay", "day"]
    assert found["sex"] == want["sex"].cast(pl.String).to_list()
    assert found["grp_1"] == want["grp 1"].to_list()
    assert found["city"] == want["city"].cast(pl.String).fill_null("").to_list()
    assert found["owns"] == [float(v) for v in want["owns"]]
    assert (found["age"], found["pay"]) == (want["age"].to_list(), want["pay"].to_list())
    assert found["day"] == want["day"].to_list()
    assert meta.file_label == SCHEMA.name
    assert meta.column_names_to_labels["sex"] == "Sex of the person"
    assert meta.column_names_to_labels["grp_1"] == "Größe"
    assert meta.variable_value_labels["sex"] == {"f": "female", "m": "male"}
    assert meta.variable_value_labels["grp_1"] == {1.0: "low", 2.0: "middle", 3.0: "high"}
    assert meta.variable_measure["grade"] == "ordinal"
    assert meta.variable_measure["age"] == "scale"


def test_stata_reads_every_value_and_labels_of_codes(tmp_path: Path) -> None:
    want = made(tmp_path / "out", "dta").sets[0]
    found, meta = read_back(tmp_path / "out" / "synthetic_1.dta")
    said = meta.variable_value_labels

    assert [said["sex"][v] for v in found["sex"]] == [
        {"f": "female", "m": "male"}[v] for v in want["sex"]
    ]
    assert [said["grade"][v] for v in found["grade"]] == want["grade"].cast(pl.String).to_list()
    assert said["grp_1"] == {1: "low", 2: "middle", 3: "high"}
    assert found["grp_1"] == want["grp 1"].to_list()
    assert (found["age"], found["pay"]) == (want["age"].to_list(), want["pay"].to_list())
    assert found["day"] == want["day"].to_list()
    assert meta.column_names_to_labels["grp_1"] == "Größe"


def test_a_spreadsheet_holds_the_rows_and_the_labels_and_no_formula(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    want = made(tmp_path / "out", "xlsx").sets[0]
    book = load_workbook(tmp_path / "out" / "synthetic_1.xlsx")
    names, *rows = ([cell.value for cell in row] for row in book["rows"].rows)

    assert names == list(SCHEMA.names)
    for at, name in enumerate(SCHEMA.names):
        values = [
            row[at].date() if isinstance(row[at], datetime.datetime) else row[at] for row in rows
        ]
        text = want[name].cast(pl.String) if name in ("sex", "city", "grade") else want[name]
        assert values == text.to_list(), name
    assert "=1+1" in {row[2] for row in rows}
    assert {cell.data_type for row in book["rows"].rows for cell in row} <= {"s", "n", "b", "d"}
    assert ["grp 1", 2, "middle"] in [[cell.value for cell in row] for row in book["levels"].rows]
    assert [c.value for c in list(book["columns"].rows)[1]][:2] == ["sex", "Sex of the person"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sav", "dta", "xlsx"])
def test_the_same_rows_give_the_same_bytes_at_another_hour(tmp_path: Path, form: str) -> None:
    frame = made(tmp_path / "out", form).sets[0]
    time.sleep(2.1)  # what these formats write of the clock has two seconds
    with labelled(tmp_path / f"again.{form}", SCHEMA, form=form) as writer:
        writer.add(frame[:25])
        writer.add(frame[25:])

    again, first = tmp_path / f"again.{form}", tmp_path / "out" / f"synthetic_1.{form}"
    assert again.read_bytes() == first.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sav", "dta", "xlsx"])
def test_verify_compares_the_labelled_file_with_the_rows(tmp_path: Path, form: str) -> None:
    made(tmp_path / "out", form, part_rows=25)
    assert gb.verify(tmp_path / "out").gaps == ()

    parts = tmp_path / "out" / f"synthetic_1_{form}"
    assert len(list(parts.iterdir())) == 3
    shutil.copy(parts / f"part-00001.{form}", parts / f"part-00000.{form}")
    for seal in manifest.SEALS:
        (tmp_path / "out" / seal).unlink(missing_ok=True)
    manifest.seal(tmp_path / "out")

    with pytest.raises(ModelRejected, match="does not hold the rows"):
        gb.verify(tmp_path / "out")


def test_verify_says_what_it_did_not_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "out", "sav")
    monkeypatch.setattr("gibbous.write.labelled_files.version", lambda _: "0.0")

    (gap,) = gb.verify(tmp_path / "out").gaps

    assert "sav files were not compared" in gap


def test_a_missing_library_is_said_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")

    with pytest.raises(EngineFailure, match="formats"):
        gb.synthesize(
            records(), SCHEMA, "laplace", epsilon=1, rows=5, format="sav", out=tmp_path / "out", ledger=ledger
        )  # fmt: skip
    assert ledger.entries() == ()


def test_names_are_what_the_programs_take_and_no_two_are_alike() -> None:
    names = ("a b", "a_b", "A-B", "1st", "_x", "ü" * 40, "n" * 70, "n" * 71)
    schema = gb.Schema(tuple(gb.Column(n, "binary", levels=("0", "1")) for n in names))

    for form, longest in (("sav", 64), ("dta", 32)):
        found = variable_names(schema, form)
        assert len({name.lower() for name in found}) == len(names)
        assert all(
            name.isascii() and name.isidentifier() and len(name) <= longest for name in found
        )
        assert found[:4] == ["a_b", "a_b_2", "A_B_3", "v_1st"]


def test_a_sheet_holds_no_more_rows_than_it_can() -> None:
    assert Output(format="xlsx").part_rows == EXCEL_ROWS
    assert Output(format="xlsx", part_rows=10).part_rows == 10


@pytest.mark.slow
def test_labels_of_an_spss_file_come_back_from_a_release(tmp_path: Path) -> None:
    """A labelled file in, its schema, a release, its codebook and reports, labelled files out and in."""
    import pyreadstat

    rows = records().with_columns(pl.col("sex").replace_strict({"f": 1.0, "m": 2.0}))
    labels = {"sex": {1.0: "female", 2.0: "male"}, "grp_1": {1.0: "low", 2.0: "mid", 3.0: "high"}}
    table = rows.select("sex", pl.col("grp 1").alias("grp_1"), "age").to_pandas()
    pyreadstat.write_sav(
        table, tmp_path / "in.sav", "A survey", column_labels=["Sex", "Group", "Age in years"],
        variable_value_labels=labels, variable_measure={"grp_1": "ordinal", "age": "scale"},
    )  # fmt: skip
    (tmp_path / "in.csv").write_text(
        pl.from_pandas(table).with_columns(pl.col("sex", "grp_1").cast(pl.Int64)).write_csv()
    )
    source, schema, book = (str(tmp_path / name) for name in ("in.csv", "s.toml", "in.sav"))
    assert main(["schema", "infer", source, "--out", schema]) == 0
    assert main(["schema", "declare", schema, "--all-of", book]) == 0
    release = gb.synthesize(
        tmp_path / "in.csv", tmp_path / "s.toml", "laplace", epsilon=9, rows=40, format="sav",
        out=tmp_path / "out", ledger=gb.Ledger.ephemeral(), accept_inferred=True,
    )  # fmt: skip
    _, meta = read_back(tmp_path / "out" / "synthetic_1.sav")
    codebook = (tmp_path / "out" / "codebook.html").read_text()

    assert meta.variable_value_labels == labels
    assert meta.column_names_to_labels == {"sex": "Sex", "grp_1": "Group", "age": "Age in years"}
    assert release.schema["grp_1"].ordered
    public, internal = tmp_path / "public.html", tmp_path / "internal.html"
    gb.report(release, "public", public)
    found = gb.evaluate(tmp_path / "in.csv", release)
    found.report(internal)
    for text in ("female", "male", "low", "mid", "high", "Sex", "Group", "Age in years"):
        assert text in codebook
        assert text in public.read_text()
        assert text in internal.read_text()
    for again in (str(tmp_path / "out" / "synthetic_1.sav"), str(tmp_path / "out" / "ddi.xml")):
        assert main(["schema", "import", again, "--out", f"{again}.toml"]) == 0
        text = Path(f"{again}.toml").read_text()
        for said in ("female", "male", "low", "mid", "high", "Sex", "Group", "Age in years"):
            assert f'"{said}"' in text


TOLD = gb.Schema(
    (
        gb.Column("sex", "binary", levels=("f", "m"), label="Sex", description="As it was said. " * 9 + "So.",
                  note="Not asked before 2010: ü" + " €€" * 30),
        gb.Column.numeric("pay 1", lower=0, upper=9, measured_in="euro", note="gross"),
    ),
    unit=gb.Unit("row"),
)  # fmt: skip


@pytest.mark.slow
def test_descriptions_units_and_notes_are_in_spss_excel_and_ddi_files(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    rows = pl.DataFrame({"sex": ["f", "m"] * 20, "pay 1": [1, 2] * 20})
    given = {"epsilon": 8, "rows": 9, "ledger": gb.Ledger.ephemeral()}
    for form in ("sav", "xlsx"):
        gb.synthesize(rows, TOLD, "laplace", out=tmp_path / form, format=form, **given)
        gb.verify(tmp_path / form)
    sheet = load_workbook(tmp_path / "xlsx" / "synthetic_1.xlsx")["columns"]
    spss = import_draft(tmp_path / "sav" / "synthetic_1.sav").left_open
    ddi = gb.import_schema(tmp_path / "sav" / "ddi.xml")

    release = gb.load(tmp_path / "sav")
    gb.report(release, "public", tmp_path / "public.html")
    gb.evaluate(rows, release, only="tv1").report(tmp_path / "internal.html")
    for page in (tmp_path / "public.html", tmp_path / "internal.html"):
        assert all(text in page.read_text() for text in ("As it was said.", "euro", "gross"))
    for at, column in enumerate(TOLD):
        texts = {key: getattr(column, key) for key in ("description", "measured_in", "note")}
        assert [sheet.cell(at + 2, place).value or None for place in (4, 3, 5)] == [*texts.values()]
        assert {key: spss[at].public_texts()[key] for key in texts} == texts
        assert {key: getattr(ddi[column.name], key) for key in texts} == texts


def test_a_level_that_means_missing_in_csv_is_refused_before_it_is_paid_for() -> None:
    """Before: the level and missing cells were one empty cell."""
    column = gb.Column("x", "nominal", ("", "a"), missing=True)
    frame, ledger = pl.DataFrame({"x": ["", "a", None] * 50}), gb.Ledger.ephemeral()
    method = gb.Laplace(epsilon=1)

    with pytest.raises(UsageError, match="has the level ''"):
        gb.synthesize(frame, gb.Schema((column,)), method, rows=5, format="csv", ledger=ledger)

    assert not ledger.entries()
    found = gb.synthesize(frame, gb.Schema((column,)), method, rows=90, ledger=ledger).sets[0]
    assert {"", "a", None} == set(found["x"].to_list())
