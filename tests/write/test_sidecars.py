"""Descriptions for other programs: well formed, complete, and read by those programs."""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gibbous.core.schema import Column, Schema, Unit
from gibbous.privacy.ledger import Ledger
from gibbous.write.sidecars import SIDECARS, sidecars
from gibbous.write.verify import verify
from tests.needs import need
from tests.write import made

DAY = datetime.date(2020, 1, 1).toordinal()
SCHEMA = Schema(
    (
        Column(
            "age", "numeric", edges=(0, 50, 100), integer=True, label="Age at visit", missing=True
        ),
        Column(
            'the "sex"',
            "nominal",
            levels=("f", "m"),
            level_labels=(("f", "female <&>"), ("m", "männlich")),
        ),
        Column("severity", "ordinal", levels=("lo", "hi"), missing=True),
        Column("visit", "date", edges=(DAY, DAY + 30)),
        Column("cost", "numeric", edges=(0.0, 9.5), decimals=2),
        Column("ill", "binary", levels=(False, True)),
    ),
    Unit("row"),
    name="visits",
)
RECEIPT: dict[str, Any] = {
    "guarantee": "epsilon = 1",
    "rows": [3, 3],
    "sets": 2,
    "files": {"csv": True, "part_rows": 10},
    "imprint": {"issuer": "Office", "date": "2026-05-01", "license": "CC-BY-4.0"},
}
SUMS = {f"synthetic_{n}.{form}": f"{n}" * 64 for n in (1, 2) for form in ("csv", "parquet")}
CSV = 'age,"the ""sex""",severity,visit,cost,ill\n3,f,hi,2020-01-02,1.25,true\n,m,,2020-01-03,2,false\n'


def test_every_description_is_well_formed_whatever_names_and_levels_are() -> None:
    odd = "a\0\x1b\u202e\"'<>&{{}}\\"
    schema = Schema((Column(odd, "nominal", levels=(odd, "b")), *SCHEMA.columns[1:]), name=odd)

    for one in (SCHEMA, schema):
        texts = {n: t.encode("utf-8", "replace") for n, t in sidecars(RECEIPT, one, SUMS).items()}
        assert texts.keys() == SIDECARS.keys()
        for name in ("croissant.json", "datacite.json", "datapackage.json"):
            json.loads(texts[name])
        ElementTree.fromstring(texts["ddi.xml"].decode())
        assert b"\0" not in texts["read.R"]


def test_the_data_package_says_types_limits_and_levels() -> None:
    package = json.loads(sidecars(RECEIPT, SCHEMA, SUMS)["datapackage.json"])

    assert [one["path"] for one in package["resources"]] == ["synthetic_1.csv", "synthetic_2.csv"]
    fields = package["resources"][0]["schema"]["fields"]
    assert [one["name"] for one in fields] == list(SCHEMA.names)
    kinds = ["integer", "string", "string", "date", "number", "boolean"]
    assert [one["type"] for one in fields] == kinds
    assert fields[0]["title"] == "Age at visit"
    assert fields[0]["constraints"] == {"required": False, "minimum": 0, "maximum": 100}
    assert fields[2]["constraints"]["enum"] == ["lo", "hi"]
    assert fields[3]["constraints"]["minimum"] == "2020-01-01"
    assert [one["hash"] for one in package["resources"]] == ["sha256:" + n * 64 for n in "12"]


def test_a_file_is_named_with_its_digest_in_croissant(tmp_path: Path) -> None:
    made.write(tmp_path / "rel", Ledger.ephemeral())
    croissant = json.loads((tmp_path / "rel" / "croissant.json").read_text())

    file = croissant["distribution"][0]
    data = (tmp_path / "rel" / file["contentUrl"]).read_bytes()
    assert (file["@type"], file["sha256"]) == ("cr:FileObject", hashlib.sha256(data).hexdigest())
    source = croissant["recordSet"][0]["field"][0]["source"]
    assert source["fileObject"] == {"@id": file["@id"]}


def test_a_release_of_parts_is_described_by_all_of_its_files() -> None:
    texts = sidecars(RECEIPT | {"files": {"csv": False, "part_rows": 2}}, SCHEMA, SUMS)

    package, croissant = json.loads(texts["datapackage.json"]), json.loads(texts["croissant.json"])
    folder = "synthetic_1/part-0000"
    assert package["resources"][0]["path"] == [f"{folder}0.parquet", f"{folder}1.parquet"]
    assert croissant["distribution"][0]["includes"] == "synthetic_1/*.parquet"


FORMULAS = Schema(
    (
        Column("=q1", "nominal", levels=("-9", "+2", "-refused", "a"), missing=True),
        Column("-7", "nominal", levels=("@x", "b"), level_labels=(("@x", "at"),), other="=other"),
        Column("plain", "ordinal", levels=("lo", "hi")),
    ),
    null="-",
)


def r_texts(script: str, before: str) -> list[list[str]]:
    """What `c(...)` holds after some words of an R script."""
    return [json.loads(f"[{one}]") for one in re.findall(re.escape(before) + r"c\((.*)\)", script)]


@pytest.mark.parametrize("raw", [False, True])
def test_a_csv_file_holds_what_its_descriptions_say(tmp_path: Path, *, raw: bool) -> None:
    drawn = made.codes(100, 1, FORMULAS)
    folder = tmp_path / "rel"
    made.write(folder, Ledger.ephemeral(), result=drawn, schema=FORMULAS, format="csv", csv_raw=raw)
    verify(folder)
    with (folder / "synthetic_1.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    seen = [set(values) for values in zip(*rows, strict=True)]
    assert ("'-refused" in seen[0], "-refused" in seen[0]) == (not raw, raw)

    resource = json.loads((folder / "datapackage.json").read_text("utf-8"))["resources"][0]
    fields, null = resource["schema"]["fields"], set(resource["schema"]["missingValues"])
    assert [field["name"] for field in fields] == head
    for values, field in zip(seen, fields, strict=True):
        assert values - null <= set(field["constraints"]["enum"])

    script = (folder / "read.R").read_text("utf-8")
    for values, levels in zip(seen, r_texts(script, "levels = "), strict=True):
        assert values - null <= set(levels)
    plain = [["-9", "+2", "-refused", "a"], ["at", "b", "=other"], ["lo", "hi"]]
    assert r_texts(script, "labels = ") == plain
    assert r_texts(script, "names(rows) <- ") == ([] if raw else [["=q1", "-7", "plain"]])
    assert 'rows[["=q1"]] <- factor(' in script


def test_a_script_shows_letters_that_nobody_sees() -> None:
    odd = "a\u202eb\ufeff\u2028\x7f\U000e0041ä"
    schema = Schema((Column("sex", "nominal", levels=(odd, "b")),), name=odd)

    script = sidecars(RECEIPT, schema, SUMS)["read.R"]

    assert script.replace("\n", "").isprintable()
    assert r'"a\U0000202eb\U0000feff\U00002028\U0000007f\U000e0041ä"' in script


def test_ddi_has_the_labels_of_columns_and_categories() -> None:
    book = ElementTree.fromstring(sidecars(RECEIPT, SCHEMA, SUMS)["ddi.xml"])

    space = {"d": "ddi:codebook:2_5"}
    variables = book.findall("d:dataDscr/d:var", space)
    assert [one.get("name") for one in variables] == list(SCHEMA.names)
    assert variables[0].findtext("d:labl", namespaces=space) == "Age at visit"
    assert [one.text for one in variables[1].findall("d:catgry/d:labl", space)] == [
        "female <&>",
        "männlich",
    ]


def test_datacite_names_issuer_year_and_license() -> None:
    found = json.loads(sidecars(RECEIPT, SCHEMA, SUMS)["datacite.json"])

    assert found["creators"][0]["name"] == found["publisher"]["name"] == "Office"
    assert (found["publicationYear"], found["rightsList"]) == ("2026", [{"rights": "CC-BY-4.0"}])


FORMS = {"visit": "%d.%m.%Y", "left": "%m/%d/%Y %H:%M"}
FORMED = "visit,left\n31.01.2020,01/02/2020 00:00\n"


def package_of_days(*, csv: bool) -> str:
    days = [
        Column(name, "date", edges=(DAY, DAY + 30), date_format=form)
        for name, form in FORMS.items()
    ]
    receipt = RECEIPT | {"sets": 1, "rows": [1], "files": {"csv": csv, "part_rows": 10}}
    sums = dict.fromkeys(SUMS, hashlib.sha256(FORMED.encode()).hexdigest())
    return sidecars(receipt, Schema(tuple(days), Unit()), sums)["datapackage.json"]


def test_days_of_another_form_have_their_bounds_in_that_form() -> None:
    text = package_of_days(csv=True)

    first, second = json.loads(text)["resources"][0]["schema"]["fields"]
    assert (first["type"], second["type"]) == ("date", "datetime")
    for field in (first, second):
        limits = [field["constraints"][end] for end in ("minimum", "maximum")]
        read = [datetime.datetime.strptime(end, field["format"]).toordinal() for end in limits]
        assert read == [DAY, DAY + 30]
    for field in json.loads(package_of_days(csv=False))["resources"][0]["schema"]["fields"]:
        assert field["type"] == "date"
        assert "format" not in field


def test_frictionless_reads_days_of_another_form(tmp_path: Path) -> None:
    need("frictionless")
    import frictionless

    (tmp_path / "synthetic_1.csv").write_text(FORMED, "utf-8")
    (tmp_path / "datapackage.json").write_text(package_of_days(csv=True), "utf-8")
    report = frictionless.Package(str(tmp_path / "datapackage.json")).validate()
    assert report.valid, report.flatten(["message"])


def test_frictionless_reads_rows_by_the_data_package(tmp_path: Path) -> None:
    need("frictionless")
    import frictionless

    for number in (1, 2):
        (tmp_path / f"synthetic_{number}.csv").write_text(CSV, "utf-8")
    path = tmp_path / "datapackage.json"
    sums = dict.fromkeys(SUMS, hashlib.sha256(CSV.encode()).hexdigest())
    path.write_text(sidecars(RECEIPT, SCHEMA, sums)["datapackage.json"], "utf-8")

    report = frictionless.Package(str(path)).validate()

    assert report.valid, report.flatten(["message"])


@pytest.mark.filterwarnings("ignore")  # of its own libraries
def test_mlcroissant_takes_the_description(tmp_path: Path) -> None:
    need("mlcroissant")
    import mlcroissant

    path = tmp_path / "croissant.json"
    path.write_text(sidecars(RECEIPT, SCHEMA, SUMS)["croissant.json"], "utf-8")

    found = mlcroissant.Dataset(str(path))

    assert not found.metadata.ctx.issues.errors
    assert {one.name for one in found.metadata.record_sets} == {"synthetic_1", "synthetic_2"}


def test_r_reads_factors_labels_days_and_missing(tmp_path: Path) -> None:
    need("R")
    (tmp_path / "synthetic_1.csv").write_text(CSV, "utf-8")
    (tmp_path / "read.R").write_text(sidecars(RECEIPT, SCHEMA, SUMS)["read.R"], "utf-8")
    ask = (
        'source("read.R", encoding = "UTF-8"); x <- read_set(1); cat(is.ordered(x$severity), '
        'is.ordered(x[[2]]), levels(x[[2]])[1], class(x$visit), attr(x$age, "label"), '
        'sum(is.na(x$age)), sum(is.na(x$severity)), x$ill, sep = ";")'
    )

    done = subprocess.run(
        ["Rscript", "-e", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout == "TRUE;FALSE;female <&>;Date;Age at visit;1;1;TRUE;FALSE"
