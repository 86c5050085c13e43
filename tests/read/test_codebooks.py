"""Codebooks and metadata of other tools: what they state is declared, what they leave open is said."""

from __future__ import annotations

import json
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import UsageError
from gibbous.core.schema import Unit
from gibbous.encode.encode import encode
from gibbous.read.metadata.codebook import Codebook, Variable, draft_of
from gibbous.read.metadata.files import import_draft
from gibbous.read.schema_file import parse_schema
from tests.frame.tree import ROOT
from tests.needs import need
from tests.read.refusal import refused

SMARTNOISE: dict[str, Any] = {
    "": {
        "MySchema": {
            "MyTable": {
                "max_ids": 3,
                "rows": 1000,
                "user_id": {"private_id": True, "type": "int"},
                '"Sale-Amount"': {"type": "int", "lower": 0, "upper": 100},
                "weight": {"type": "float", "lower": 0.5, "upper": 9.5, "nullable": False},
                "married": {"type": "boolean"},
                "city": {"type": "string"},
                "blob": {"type": "unknown"},
            }
        }
    }
}
DPSYNTH: dict[str, Any] = {
    "age": {"clip_to_range": True, "dtype": "int", "max_value": 50.0, "min_value": 10.0},
    "gender": {"out_of_domain_index": 0, "possible_values": ["M", "F"]},
    "city": {"default_value": "<OOD>"},
}
CROISSANT: dict[str, Any] = {
    "@type": "sc:Dataset",
    "name": "stays",
    "description": "Stays in a hospital.",
    "recordSet": [
        {
            "@type": "cr:RecordSet",
            "@id": "sexes",
            "dataType": "sc:Enumeration",
            "field": [{"@id": "sexes/code"}, {"@id": "sexes/label"}],
            "data": [
                {"sexes/code": 1, "sexes/label": "male"},
                {"sexes/code": 2, "sexes/label": "female"},
            ],
        },
        {
            "@type": "cr:RecordSet",
            "@id": "stays",
            "key": {"@id": "stays/number"},
            "field": [
                {"@id": "stays/number", "dataType": "sc:Integer"},
                {
                    "@id": "stays/sex",
                    "description": "Sex in the register",
                    "dataType": "sc:Integer",
                    "references": {"field": {"@id": "sexes/code"}},
                },
                {"@id": "stays/urgent", "dataType": "sc:Boolean"},
                {"@id": "stays/days", "dataType": "sc:Integer"},
            ],
        },
    ],
}
DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5">
 <stdyDscr><citation><titlStmt><titl>Household survey</titl></titlStmt></citation></stdyDscr>
 <dataDscr>
  <var ID="V1" name="sex" intrvl="discrete"><labl>Sex of the
     respondent</labl>
   <catgry><catValu>1</catValu><labl>Male</labl></catgry>
   <catgry><catValu>2</catValu><labl>Female</labl></catgry>
   <catgry missing="Y"><catValu>9</catValu><labl>Not stated</labl></catgry>
   <varFormat type="numeric"/></var>
  <var name="age" intrvl="contin" dcml="0" measUnit="years"><labl>Age</labl>
   <valrng><range min="0" max="110"/></valrng></var>
  <var name="pay" intrvl="contin" dcml="2">
   <valrng><range min="3.5" max="99.25"/></valrng><sumStat type="min">3.5</sumStat></var>
  <var name="job"><varFormat type="character"/></var>
 </dataDscr>
</codeBook>
"""
SHEET = """Variable,Variable label,Level,Level label,Kind,Lower,Upper,Measured in,Missing
smokes,Smoking,1,never,ordinal,,,,no
,,2,sometimes,,,,,
,,3,daily,,,,,
ward,,01,surgery,,,,,
ward,,02,medicine,,,,,
age,Age,,,,0,110,years,no
remark,Free text,,,,,,,
"""


def written(tmp_path: Path, name: str, text: object) -> Path:
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def test_smartnoise_states_bounds_missing_values_and_the_privacy_unit(tmp_path: Path) -> None:
    draft = import_draft(written(tmp_path, "meta.json", SMARTNOISE))

    schema = draft.schema
    assert schema.names == ("Sale-Amount", "weight", "married")
    assert schema.unit == Unit("person", "user_id", 3)
    assert schema.inferred() == ()
    assert schema["Sale-Amount"].edges == (0, 100)
    assert schema["Sale-Amount"].integer
    assert (schema["Sale-Amount"].clamp, schema["Sale-Amount"].missing) == (True, True)
    assert not schema["weight"].missing
    assert schema.ignore == ("city", "blob")
    assert "no levels and no bounds" in draft.notes["city"]
    assert parse_schema(draft.toml()) == schema


def test_the_same_smartnoise_table_in_yaml(tmp_path: Path) -> None:
    need("formats extra")
    import yaml

    path = written(tmp_path, "meta.yaml", yaml.safe_dump(SMARTNOISE, sort_keys=False))

    assert gb.import_schema(path) == gb.import_schema(written(tmp_path, "m.json", SMARTNOISE))


def test_row_privacy_is_a_unit_of_one_row_and_silence_is_none(tmp_path: Path) -> None:
    age = {"age": {"type": "int", "lower": 0, "upper": 100}}

    rows = gb.import_schema(written(tmp_path, "a.json", {"s": {"t": age | {"row_privacy": True}}}))
    open_ = gb.import_schema(written(tmp_path, "b.json", {"s": {"t": age}}))

    assert rows.unit == Unit()
    assert open_.unit is None


def test_dpsynth_states_values_and_ranges(tmp_path: Path) -> None:
    draft = import_draft(written(tmp_path, "domain.json", DPSYNTH))

    schema = draft.schema
    assert schema["gender"].levels == ("M", "F")
    assert schema["age"].edges == (10, 50)
    assert (schema["age"].integer, schema["age"].clamp) == (True, True)
    assert schema.ignore == ("city",)
    assert "schema discover" in draft.notes["city"]
    assert schema.inferred() == ()


def test_croissant_states_enumerations_and_texts(tmp_path: Path) -> None:
    draft = import_draft(written(tmp_path, "croissant.json", CROISSANT))

    schema = draft.schema
    assert (schema.name, schema.description) == ("stays", "Stays in a hospital.")
    assert schema["sex"].level_labels == ((1, "male"), (2, "female"))
    assert schema["sex"].description == "Sex in the register"
    assert schema["urgent"].levels == (False, True)
    assert schema.ignore == ("number", "days")


def test_ddi_states_labels_and_says_what_a_tool_counted(tmp_path: Path) -> None:
    schema = gb.import_schema(written(tmp_path, "ddi.xml", DDI))

    sex, age = schema["sex"], schema["age"]
    assert schema.name == "Household survey"
    assert (sex.label, sex.missing) == ("Sex of the respondent", True)
    assert sex.level_labels == ((1, "Male"), (2, "Female"))
    assert (age.edges[-1], age.integer, age.measured_in) == (110, True, "years")
    assert schema.inferred() == ("pay: bounds", "pay: bins")
    assert schema.ignore == ("job",)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa">]><codeBook/>',
        DDI.replace("<codeBook", "<!DOCTYPE codeBook SYSTEM 'http://x/y.dtd'>\n<codeBook", 1),
        "<codeBook><dataDscr>",
        "<codeBook/>",
        "",
    ],
)
def test_hostile_xml_is_refused(text: str, tmp_path: Path) -> None:
    with refused(2, "CODEBOOK"):
        gb.import_schema(written(tmp_path, "ddi.xml", text))


def test_a_sheet_states_levels_bounds_and_texts(tmp_path: Path) -> None:
    draft = import_draft(written(tmp_path, "codebook.csv", SHEET))

    schema = draft.schema
    assert schema["smokes"].kind == "ordinal"
    assert schema["smokes"].level_labels == ((1, "never"), (2, "sometimes"), (3, "daily"))
    assert not schema["smokes"].missing
    assert schema["ward"].levels == ("01", "02")
    assert schema["age"].integer
    assert (schema["age"].label, schema["age"].measured_in) == ("Age", "years")
    assert schema.ignore == ("remark",)
    assert schema.unit is None


def test_a_sheet_separated_by_semicolons_states_the_same(tmp_path: Path) -> None:
    other = written(tmp_path, "semicolons.csv", SHEET.replace(",", ";"))

    assert gb.import_schema(other) == gb.import_schema(written(tmp_path, "c.csv", SHEET))


def test_an_excel_sheet_states_the_same(tmp_path: Path) -> None:
    need("formats extra")
    import openpyxl

    book = openpyxl.Workbook()
    for row in SHEET.strip().split("\n"):
        cells = row.split(",")
        book.active.append([int(c) if c in "123" and c else c or None for c in cells])
    book.save(tmp_path / "codebook.xlsx")

    excel = gb.import_schema(tmp_path / "codebook.xlsx")

    assert excel == gb.import_schema(written(tmp_path, "c.csv", SHEET))


@pytest.mark.slow
def test_an_excel_file_that_unpacks_too_large_is_refused(tmp_path: Path) -> None:
    need("formats extra")
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for part in range(5):
            packed.writestr(f"{part}.xml", b"0" * (60 << 20))

    with refused(2, "CODEBOOK") as caught:
        gb.import_schema(path)

    assert "256 MB" in caught.text


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_labels_of_spss_and_stata_are_declared(ending: str, tmp_path: Path) -> None:
    need("formats extra")
    import pandas as pd
    import pyreadstat

    frame = pd.DataFrame({"sex": [1.0, 2.0, 9.0], "age": [17.0, 40.0, 80.0]})
    path = tmp_path / f"patients.{ending}"
    labels = {"sex": {1: "male", 2: "female"}}
    texts = {"sex": "Sex", "age": "Age in years"}
    if ending == "sav":
        labels["sex"][9] = "unknown"
        spans: Any = {"sex": [{"lo": 9, "hi": 9}]}
        pyreadstat.write_sav(
            frame, path, column_labels=texts, variable_value_labels=labels, missing_ranges=spans
        )
    else:
        pyreadstat.write_dta(frame, path, column_labels=texts, variable_value_labels=labels)

    draft = import_draft(path)

    sex = draft.schema["sex"]
    assert (sex.label, sex.level_labels) == ("Sex", ((1, "male"), (2, "female")))
    assert draft.schema is not None
    assert draft.schema.inferred() == ()
    assert draft.schema.ignore == ("age",)
    assert '# name = "age"\n# kind = "numeric"\n# label = "Age in years"\n# lower =' in draft.toml()
    assert ("SPSS" in draft.notes.get("sex", "")) == (ending == "sav")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["sav", "dta", "sas7bdat", "xpt", "por"])
def test_a_statistical_file_of_noise_is_refused(ending: str, tmp_path: Path) -> None:
    need("formats extra")

    with refused(2, "CODEBOOK"):
        gb.import_schema(written(tmp_path, f"noise.{ending}", "no such file format\n" * 200))


@pytest.mark.parametrize("name", ["a.yaml", "a.sav", "a.xlsx"])
def test_a_library_that_is_absent_is_named_with_the_line_that_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("yaml", "pyreadstat", "openpyxl"):
        monkeypatch.setitem(__import__("sys").modules, module, None)

    with pytest.raises(gb.GibbousError) as info:
        gb.import_schema(written(tmp_path, name, "a: 1\n"))

    assert 'pip install "gibbous[formats]"' in info.value.render()


def test_yaml_that_grows_is_refused(tmp_path: Path) -> None:
    need("formats extra")
    rows = ["b0: &b0 [x, x]"] + [
        f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 30)}]" for i in range(1, 9)
    ]

    with refused(2, "CODEBOOK"):
        gb.import_schema(written(tmp_path, "a.yaml", "\n".join(rows)))


def test_data_fill_what_a_codebook_leaves_open_and_only_that_is_inferred() -> None:
    codebook = Codebook(
        (
            Variable("sex", ("F", "M"), texts=(("label", "Sex"),)),
            Variable("town", texts=(("label", "Town"),)),
        ),
        Unit(),
    )
    data = pl.DataFrame({"sex": ["F", "M"] * 9, "town": ["Ulm", "Bern"] * 9, "more": [1, 2] * 9})

    draft = draft_of(codebook, data)

    assert draft.schema.inferred() == ("town: kind", "town: levels", "town: missing")
    assert draft.schema["town"].label == "Town"
    assert draft.schema.ignore == ("more",)
    assert encode(data.drop("more"), draft.schema).rows == 18


def test_texts_of_a_codebook_arrive_on_one_line_and_without_control_characters() -> None:
    texts = (("label", "Age\n at\u00a0entry \x1b[2J"), ("note", "x" * 9_000))

    column = draft_of(Codebook((Variable("age", (1, 2), texts=texts),))).schema["age"]

    assert column.label == "Age at entry [2J"
    assert column.note is not None
    assert len(column.note) == 5_000


@pytest.mark.slow
def test_a_dictionary_that_stops_the_reader_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """ReadStat ends its process with a signal on this file, which fuzzing found."""
    need("formats extra")
    path = tmp_path / "stops.sav"
    kept = ROOT / "tests" / "fuzz" / "corpus" / "request" / "spss-dictionary-that-aborts"
    path.write_bytes(kept.read_bytes().split(b"\n", 1)[1])

    with pytest.raises(UsageError, match="cannot be read"):
        gb.import_schema(path)


def _sized(columns: int) -> object:
    return {f"c{number}": 10_000 for number in range(columns)}


def _identifiers(columns: int) -> object:
    return {"d": {"t": {f"c{n}": {"type": "int", "private_id": True} for n in range(columns)}}}


def _enumerated(columns: int, rows: int = 2_000) -> dict[str, Any]:
    fields = [{"@id": f"t/f{n}", "references": {"field": {"@id": "L/x"}}} for n in range(columns)]
    listing = {"@id": "L", "dataType": "sc:Enumeration", "data": [{"L/x": n} for n in range(rows)]}
    return {"recordSet": [listing, {"@id": "t", "field": fields}]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "columns"), [(_sized, 20_000), (_identifiers, 20_000), (_enumerated, 3_000)]
)
def test_E_columns_are_counted_before_they_are_looked_at(
    tmp_path: Path, made: Any, columns: int
) -> None:
    """Before: 100,000 sizes took 5 GB, and other formats minutes, to be refused. Now: at once."""
    path = tmp_path / "d.json"
    path.write_text(json.dumps(made(columns)))
    start = time.process_time()

    with refused(2, "CODEBOOK"):
        import_draft(path)

    assert time.process_time() - start < 2


def test_E_a_listing_of_too_many_levels_leaves_its_column_out_unread(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(_enumerated(1_000, 10_001)))
    start = time.process_time()

    draft = import_draft(path)

    assert draft.schema is None
    assert set(draft.notes.values()) == {"left out (ignore): over 10,000 levels are listed."}
    assert time.process_time() - start < 4


def test_E_labels_of_many_levels_are_looked_up_not_searched(tmp_path: Path) -> None:
    """Before: each label was searched among all levels, 8 seconds for 20,000."""
    path = tmp_path / "d.csv"
    rows = "".join(f"a,v{number},l\n" for number in range(9_000))
    path.write_text("variable,level,level label\n" + rows)
    start = time.process_time()

    draft = import_draft(path)

    assert draft.schema is not None
    assert len(draft.schema["a"].level_labels) == 9_000
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "document",
    [
        {"a": {"min_value": 0, "max_value": 10**400}},
        {"d": {"t": {"a": {"type": "float", "lower": 0, "upper": 10**400}}}},
    ],
)
def test_E_a_bound_that_no_float_holds_is_no_bound(tmp_path: Path, document: object) -> None:
    """Before: an internal error."""
    path = tmp_path / "d.json"
    path.write_text(json.dumps(document))

    assert import_draft(path).schema is None


def test_E_a_sheet_that_states_a_huge_size_is_read_by_what_is_in_it(tmp_path: Path) -> None:
    """Before: a file of 5 kB was filled up to 16,384 columns and a million rows, in memory."""
    need("formats extra")
    import openpyxl

    book, wide, path = openpyxl.Workbook(), tmp_path / "0.xlsx", tmp_path / "wide.xlsx"
    book.active.append(["variable", "level"])
    book.active.append(["a", "x"])
    book.active.cell(500, 1, "b")
    book.active.cell(500, 2, "y")
    book.save(wide)
    with zipfile.ZipFile(wide) as read, zipfile.ZipFile(path, "w") as write:
        for name in read.namelist():
            write.writestr(name, read.read(name).replace(b'ref="A1:B500"', b'ref="A1:XFD500"'))
    tracemalloc.start()

    draft = import_draft(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert draft.schema is not None
    assert draft.schema.names == ("a", "b")
    assert most < 20 << 20
