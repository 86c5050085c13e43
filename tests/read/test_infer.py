"""Drafts: kinds are decided by all values, every fact is inferred, identifiers are not guessed."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

from gibbous.core.schema import Column
from gibbous.encode.decode import decode
from gibbous.encode.encode import encode
from gibbous.read.infer import describe, infer_schema, propose
from gibbous.read.schema_file import parse_schema
from gibbous.read.source import read_columns
from tests.read.refusal import MARKER, refused

MANY = [str(i) for i in range(100)]


def text(values: list[str | None]) -> Column | str:
    return describe(pl.Series("a", values, dtype=pl.String))


def test_text_is_described_by_all_its_values() -> None:
    kinds = {
        "binary": ["True", "False", "True"],
        "ordinal": ["3", "1", "2"],
        "numeric": ["0.5", "1", "2.25"],
        "date": ["2020-01-01", "2020-03-01"],
        "nominal": ["x", "y", "z"],
    }
    for kind, values in kinds.items():
        found = text(values)

        assert isinstance(found, Column)
        assert found.kind == kind


def test_one_late_word_makes_a_column_of_numbers_nominal_or_left_out() -> None:
    assert isinstance(text(["1.5", "2.5", "x"]), Column)
    assert isinstance(text([*MANY, "x"]), str)


def test_a14_codes_with_leading_zeros_stay_text() -> None:
    found = text(["01", "02", "10"])

    assert isinstance(found, Column)
    assert found.kind == "nominal"
    assert found.levels == ("01", "02", "10")


def test_few_whole_numbers_are_levels_and_many_have_bounds_alone() -> None:
    few, many = text(["2", "10", "9"] * 9), text(MANY * 2)

    assert isinstance(few, Column)
    assert few.levels == (2, 9, 10)
    assert isinstance(many, Column)
    assert many.integer
    assert many.edges == (0, 99)


def test_decimals_are_those_of_the_data() -> None:
    found = describe(pl.Series("a", [0.25, 1.5, 3.0]))

    assert isinstance(found, Column)
    assert found.decimals == 2


def test_a18_days_in_another_form_are_not_guessed() -> None:
    days = [f"{d:02d}/{m:02d}/2020" for d in range(1, 13) for m in range(1, 13)]

    found = text(days)

    assert isinstance(found, str)
    assert "format" in found


def test_identifiers_and_free_text_are_left_out_with_a_reason() -> None:
    data = pl.DataFrame(
        {
            "patient_id": [i // 2 for i in range(100)],
            "code": [f"c{i}" for i in range(100)],
            "row": list(range(1000, 1100)),
            "remark": [f"{'long text ' * 5}{i % 30}" for i in range(100)],
            "empty": pl.Series([None] * 100, dtype=pl.String),
            "sex": ["F", "M"] * 50,
        }
    )

    draft = propose(data)

    assert draft.schema.names == ("sex",)
    assert set(draft.schema.ignore) == set(draft.notes) == set(data.columns) - {"sex"}
    assert "declare it in [unit]" in draft.notes["patient_id"]
    assert "It repeats" in draft.notes["patient_id"]
    assert "It repeats" not in draft.notes["row"] + draft.notes["code"]
    assert "every value is missing" in draft.notes["empty"]


def test_every_fact_is_inferred_and_the_unit_is_undeclared() -> None:
    data = pl.DataFrame({"a": ["x", None], "b": [0.5, 1.5], "c": [datetime.date(2020, 1, 1)] * 2})

    draft = propose(data)

    assert len(draft.schema.inferred()) == 3 + 4 + 4
    assert draft.schema.unit is None
    assert draft.schema["a"].missing
    assert parse_schema(draft.toml()) == draft.schema
    assert "# To do; then delete source" in draft.toml()


def test_a_draft_describes_the_data_it_was_read_from(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text("age,zip,when\n31,01234,2020-02-29\n45,99999,NA\n")

    schema = infer_schema(path, null="NA")
    codes = encode(read_columns(path, schema=schema), schema)

    assert schema.name == "claims"
    assert schema.null == "NA"
    assert codes.rows == 2


def test_a2_a_header_without_rows_gives_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n")

    with refused(3, "NOROWS"):
        infer_schema(path)


def test_c5_a_table_of_identifiers_only_gives_no_draft() -> None:
    with refused(4, "NOCOLUMNS"):
        infer_schema(pl.DataFrame({"a": [f"{MARKER}{i}" for i in range(50)]}))


@pytest.mark.shared
@pytest.mark.parametrize("name", ["acs_ma2019", "adult", "sparcs_msk", "claims7"])
def test_real_tables_round_trip_under_their_draft(name: str, shared_data: Path) -> None:
    path = shared_data / f"{name}.parquet"
    schema = infer_schema(path)
    codes = encode(read_columns(path, schema=schema), schema)

    again = encode(decode(codes, seed=1), type(schema)(schema.columns))

    assert (again.values == codes.values).all()
