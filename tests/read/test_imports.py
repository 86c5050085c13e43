"""Metadata of other tools: domain.json counts as declared, SDV metadata as inferred."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gibbous.core.schema import Unit
from gibbous.encode.encode import encode
from gibbous.read.metadata.files import import_draft, import_schema
from gibbous.read.schema_file import parse_schema, schema_toml
from gibbous.read.source import read_columns
from tests.read.refusal import refused

V2: dict[str, Any] = {
    "METADATA_SPEC_VERSION": "V2",
    "tables": {
        "guests": {
            "primary_key": "email",
            "columns": {
                "email": {"sdtype": "email", "pii": True},
                "room": {
                    "sdtype": "categorical",
                    "range_values": ["BASIC", "SUITE", "DELUXE"],
                    "range_is_nullable": True,
                },
                "stars": {"sdtype": "ordinal", "range_values": [1.0, 2.0, 3.0]},
                "rewards": {"sdtype": "boolean", "range_is_nullable": False},
                "nights": {
                    "sdtype": "numerical",
                    "range_min": 1,
                    "range_max": 33,
                    "decimal_places": 0,
                },
                "fee": {
                    "sdtype": "numerical",
                    "range_min": 0.0,
                    "range_max": 50.0,
                    "decimal_places": 2,
                },
                "arrival": {
                    "sdtype": "datetime",
                    "datetime_format": "%d %b %Y",
                    "range_min": "27 Dec 2019",
                    "range_max": "31 Dec 2020",
                },
                "note": {"sdtype": "unknown"},
            },
        }
    },
    "relationships": [],
}
V1: dict[str, Any] = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "columns": {
        "id": {"sdtype": "id"},
        "room": {"sdtype": "categorical"},
        "rate": {"sdtype": "numerical", "computer_representation": "Float"},
        "arrival": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    },
}
ROOMS = pl.DataFrame(
    {
        "id": [1, 2, 3],
        "room": ["BASIC", None, "SUITE"],
        "rate": [10.5, 20.0, 30.0],
        "arrival": ["27 Dec 2019", "01 Jan 2020", "02 Jan 2020"],
    }
)


def written(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps(document))
    return path


def test_domain_json_is_declared_codes_of_rows(tmp_path: Path) -> None:
    schema = import_schema(written(tmp_path, {"age": 4, "sex": 2, "one": 1}))

    assert schema.inferred() == ()
    assert schema["age"].levels == (0, 1, 2, 3)
    assert schema.sizes == (4, 2, 1)
    assert schema.unit == Unit()
    assert parse_schema(schema_toml(schema)) == schema


@pytest.mark.shared
def test_the_binned_adult_table_fits_its_domain(shared_data: Path) -> None:
    schema = import_schema(shared_data / "adult_binned.domain.json")

    codes = encode(read_columns(shared_data / "adult_binned_train.parquet", schema=schema), schema)

    assert (codes.rows, len(schema)) == (39_074, 15)


def test_sdv_v2_states_everything_and_all_of_it_is_inferred(tmp_path: Path) -> None:
    schema = import_schema(written(tmp_path, V2))

    assert schema.names == ("room", "stars", "rewards", "nights", "fee", "arrival")
    assert schema.ignore == ("email", "note")
    assert schema.unit is None
    assert len(schema.inferred()) == sum(4 if c.binned else 3 for c in schema)
    assert schema["room"].levels == ("BASIC", "SUITE", "DELUXE")
    assert schema["room"].missing
    assert (schema["stars"].kind, schema["stars"].levels) == ("ordinal", (1, 2, 3))
    assert schema["rewards"].levels == (False, True)
    assert schema["nights"].integer
    assert (schema["fee"].edges[-1], schema["fee"].bins, schema["fee"].decimals) == (50.0, 1, 2)
    assert schema["arrival"].date_format == "%d %b %Y"
    assert schema["arrival"].edges[0] == date(2019, 12, 27).toordinal()
    assert schema["arrival"].bins == 13
    assert parse_schema(schema_toml(schema)) == schema


def test_sdv_v1_without_data_is_a_draft_that_lists_what_is_open(tmp_path: Path) -> None:
    draft = import_draft(written(tmp_path, V1))

    assert draft.schema is None
    assert [one.name for one in draft.left_open] == ["room", "rate", "arrival"]
    for kind, todo in (("nominal", "levels ="), ("numeric", "lower ="), ("date", "upper =")):
        assert f'# kind = "{kind}"\n# {todo}' in draft.toml() or todo == "upper ="
    with refused(2, "CODEBOOK") as caught:
        import_schema(written(tmp_path, V1))
    assert "lists what is open" in caught.text


def test_a_block_that_was_left_open_is_read_once_it_is_finished(tmp_path: Path) -> None:
    text = import_draft(written(tmp_path, V1)).toml()

    block = text[text.index('# [[column]]\n# name = "rate"') :].split("\n\n")[0]
    block = block.replace("# ", "").replace("lower =", "lower = 0").replace("upper =", "upper = 9")

    assert parse_schema(text.replace('"rate", ', "") + block)["rate"].edges == (0, 9)


def test_sdv_v1_takes_what_it_does_not_state_from_the_data(tmp_path: Path) -> None:
    schema = import_schema(written(tmp_path, V1), data=ROOMS)

    assert schema["room"].levels == ("BASIC", "SUITE")
    assert schema["room"].missing
    assert schema["rate"].edges[0] == 10.5
    assert schema["arrival"].edges[-1] == date(2020, 1, 2).toordinal()
    assert encode(ROOMS, schema).rows == 3


WRONG: dict[str, object] = {
    "a list": [1, 2],
    "an empty object": {},
    "sizes that are text": {"a": "3"},
    "a size of 0": {"a": 0},
    "a size beyond the cap (C5)": {"a": 100_000},
    "two tables": {"tables": {"a": V1, "b": V1}},
    "columns that are a list": {"columns": []},
    "a newer version": V2 | {"METADATA_SPEC_VERSION": "V3"},
    "levels that are lists": {"columns": {"a": {"sdtype": "categorical", "range_values": [[1]]}}},
    "identifiers only": {"columns": {"a": {"sdtype": "id"}}},
}


@pytest.mark.parametrize("case", WRONG)
def test_other_documents_are_refused(case: str, tmp_path: Path) -> None:
    with refused(2):
        import_schema(written(tmp_path, WRONG[case]))


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, "\xff"])
def test_d2_hostile_json_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    path.write_bytes(text.encode("latin-1"))

    with refused(2, "IMPORTFILE"):
        import_schema(path)
