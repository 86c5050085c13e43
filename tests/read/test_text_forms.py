"""Drafts of text that people read as numbers or days: read where it is plain, else said, with a way out."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from gibbous.core.errors import SchemaMismatch
from gibbous.core.schema import Column, Schema
from gibbous.encode.decode import decode
from gibbous.encode.encode import encode
from gibbous.read.infer import Draft, propose
from gibbous.read.schema_file import parse_schema
from gibbous.read.source import read_columns

ROWS = 400
FIRST = datetime.date(2019, 1, 1)


def column(write: Callable[[int], str | None]) -> Draft:
    """The draft of one column beside another one, from all its rows."""
    frame = pl.DataFrame({"a": [write(i) for i in range(ROWS)], "b": ["x", "y"] * (ROWS // 2)})
    draft = propose(frame)
    encode(frame, draft.schema)  # a draft describes the data it was read from
    assert parse_schema(draft.toml()) == draft.schema
    return draft


def kept(write: Callable[[int], str | None]) -> Column:
    return column(write).schema["a"]


def day(i: int) -> datetime.date:
    return FIRST + datetime.timedelta(i)


def test_whole_numbers_written_with_a_point_are_whole() -> None:
    few, many = kept(lambda i: f"{i % 4}.0"), kept(lambda i: f"{i % 90}.0")

    assert few.levels == (0, 1, 2, 3)
    assert few.kind == "ordinal"
    assert many.integer
    assert (many.edges[0], many.edges[-1]) == (0, 89)


def test_whole_numbers_in_a_frame_of_floats_are_whole_and_no_identifier() -> None:
    frame = pl.DataFrame({"days": [None, *(float(i) for i in range(99))], "c": [1.5, 2.0] * 50})

    schema = propose(frame).schema

    assert schema["days"].integer
    assert schema["days"].missing
    assert schema["c"].decimals == 1
    assert encode(frame, schema).rows == 100


def test_numbers_with_a_sign_or_an_exponent_are_whole_bins_that_take_them() -> None:
    assert kept(lambda i: f"+{i % 3}").integer
    assert kept(lambda i: f"{i % 3}e0").integer
    assert kept(lambda i: ("1.0", "1", "01")[i % 3]).kind == "nominal"
    assert kept(lambda _: "+5").bins == 1


def test_numbers_beyond_exact_floats_stay_floats() -> None:
    assert not kept(lambda i: f"{2.0**60 * (i + 1):.1f}").integer


@pytest.mark.parametrize(
    ("write", "how"),
    [
        (lambda i: f"{i},{i % 100:02d}", "comma"),
        (lambda i: f"1.{i:03d},50", "comma"),
        (lambda i: f"{i * 50:,}", "comma"),
        (lambda i: f"1 {i:03d}", "comma"),
        (lambda i: f"1'{i:03d}", "comma"),
        (lambda i: f"{i % 100}%", "sign"),
        (lambda i: f"${i}.50", "sign"),
        (lambda i: f"{i} €", "sign"),
        (lambda i: f"EUR {i},00", "sign"),
        (lambda i: f"{i % 60} kg", "unit"),
        (lambda i: f" {i % 60}", "blanks"),
        (lambda i: f"{i % 24:02d}:{i % 60:02d}", "times of day"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_numbers_in_a_form_that_no_kind_reads_are_left_out_with_a_way_out(
    write: Callable[[int], str], how: str
) -> None:
    draft = column(write)

    assert draft.schema.ignore == ("a",)
    assert how in draft.notes["a"]
    assert "draft again" in draft.notes["a"]


def test_few_numbers_in_such_a_form_are_levels_with_a_note() -> None:
    draft = column(lambda i: f"{i % 4},5")

    assert draft.schema["a"].kind == "nominal"
    assert "words without an order" in draft.notes["a"]


@pytest.mark.parametrize(
    "write",
    [lambda i: f"0{i % 50:03d}", lambda i: f"{i % 60}A", lambda i: f"A{i % 60}"],
    ids=["zeros", "letter behind", "letter before"],
)
def test_codes_are_levels_without_a_note(write: Callable[[int], str]) -> None:
    draft = column(write)

    assert draft.schema["a"].kind == "nominal"
    assert draft.notes == {}


@pytest.mark.parametrize(
    ("form", "noted"),
    [
        ("%Y-%m-%d 00:00:00", False),
        ("%Y-%m-%dT00:00:00", False),
        ("%Y/%m/%d", False),
        ("%Y%m%d", True),
        ("%m/%d/%Y", True),
        ("%d.%m.%Y", True),
        ("%d %b %Y", True),
        ("%d%b%Y", True),
        ("%b %d, %Y", True),
        ("%m/%d/%Y 0:00", True),
    ],
)
def test_days_in_the_only_form_that_all_fit_are_drafted_in_it(form: str, noted: bool) -> None:
    frame = pl.DataFrame({"a": [day(i).strftime(form) for i in range(ROWS)]})

    draft = propose(frame)

    found = draft.schema["a"]
    assert (found.kind, found.date_format) == ("date", form)
    assert ("a" in draft.notes) == noted
    assert found.edges[0] == FIRST.toordinal()
    schema = Schema(draft.schema.columns)
    codes = encode(frame, schema)
    assert (encode(decode(codes, seed=1), schema).values == codes.values).all()


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda i: f"{1 + i % 12:02d}/{1 + i % 11:02d}/2020", "'%d/%m/%Y' and '%m/%d/%Y'"),
        (lambda i: day(i).strftime("%d/%m/%y"), "two digits"),
        (lambda i: f"{day(i)} {i % 24:02d}:30", "times of day"),
        (lambda i: f"{1 + i % 28}/{1 + i % 12}/2020" if i else "31/31/2020", "no usual format"),
    ],
    ids=["two orders", "short years", "times", "one error"],
)
def test_days_in_a_form_of_doubt_are_left_out_with_the_reason(
    write: Callable[[int], str], said: str
) -> None:
    draft = column(write)

    assert draft.schema.ignore == ("a",)
    assert said in draft.notes["a"]


def test_a_word_among_numbers_or_days_is_named_with_the_flag_that_makes_it_missing() -> None:
    numbers = column(lambda i: "NA" if i % 9 == 0 else str(i * 3 % 301))
    days = column(lambda i: "-" if i % 9 == 0 else str(day(i)))
    levels = column(lambda i: ("1", "2", "NA")[i % 3])

    assert numbers.schema.ignore == days.schema.ignore == ("a",)
    assert "If 'NA' means missing, draft again with --null NA." in numbers.notes["a"]
    assert "looks like days" in days.notes["a"]
    assert levels.schema["a"].levels == ("1", "2", "NA")
    assert "--null NA" in levels.notes["a"]


def test_only_one_text_means_missing_and_the_note_says_so() -> None:
    frame = pl.DataFrame({"a": ["1", "NA", "", "2"] * 9})

    draft = propose(frame, null="NA")

    assert "only one text can (now 'NA')" in draft.notes["a"]


def test_words_that_are_levels_as_often_get_no_note() -> None:
    assert column(lambda i: ("none", "some", "many")[i % 3]).notes == {}


def test_numbers_beside_other_texts_are_levels_with_a_note() -> None:
    draft = column(lambda i: "90+" if i % 90 == 0 else str(i % 90))

    assert draft.schema["a"].kind == "nominal"
    assert "(90+ as 90)" in draft.notes["a"]


def test_levels_that_differ_by_capitals_or_blanks_are_counted() -> None:
    draft = column(lambda i: ("Male", "male ", "F", "f")[i % 4])

    assert "2 of its levels" in draft.notes["a"]


def test_true_and_false_in_any_capitals_are_one_pair() -> None:
    assert kept(lambda i: ("True", "true", "FALSE", "false")[i % 4]).levels == (False, True)
    assert kept(lambda i: ("true", "T", "false")[i % 3]).kind == "nominal"


def test_bins_over_codes_by_name_and_over_a_stopgap_number_are_noted() -> None:
    frame = pl.DataFrame(
        {
            "zip_code": [10_000 + i % 99 for i in range(ROWS)],
            "weight": [999 if i % 50 == 0 else 40 + i % 60 for i in range(ROWS)],
            "plain": [900 + i % 100 for i in range(ROWS)],
            "until": ["9999-12-31" if i % 9 == 0 else str(day(i)) for i in range(ROWS)],
        }
    )

    notes = propose(frame).notes

    assert set(notes) == {"zip_code", "weight", "until"}
    assert "codes" in notes["zip_code"]
    assert notes["weight"].startswith("999 stands far")
    assert "after the year 2200" in notes["until"]


def test_days_as_numbers_and_identifiers_of_many_digits_are_no_measurements() -> None:
    frame = pl.DataFrame(
        {
            "day": [20240101 + i % 28 for i in range(ROWS)],
            "claim": [f"{10**24 + i}" for i in range(ROWS)],
            "ssn": [f"{100 + i}-{10 + i % 80}-{1000 + i}" for i in range(ROWS)],
        }
    )

    draft = propose(frame)

    assert "20240131" in draft.notes["day"]
    assert draft.schema.ignore == ("claim", "ssn")
    assert "declare it in [unit]" in draft.notes["claim"]
    assert "declare it in [unit]" in draft.notes["ssn"]


@pytest.mark.parametrize("form", ["polars", "lazy", "arrow", "parquet"])
def test_columns_of_other_types_are_left_out_and_the_draft_works(form: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 9, "b": [[1]] * 18, "c": [datetime.time(1)] * 18})
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    source = {"polars": frame, "lazy": frame.lazy(), "arrow": frame.to_arrow(), "parquet": path}

    draft = propose(source[form])

    assert draft.schema.names == ("a",)
    assert draft.schema.ignore == ("b", "c")
    assert draft.notes["b"].startswith("left out (ignore): its type is not read")
    assert encode(read_columns(source[form], schema=draft.schema), draft.schema).rows == 18


def test_mixed_objects_of_pandas_are_left_out() -> None:
    frame = pd.DataFrame({"a": [1, "x", None], "b": ["u", "v", "v"]})

    assert propose(frame).schema.ignore == ("a",)


def test_a_table_of_unusable_types_only_has_no_draft() -> None:
    with pytest.raises(SchemaMismatch, match="type that is not read"):
        propose(pl.DataFrame({"b": [[1]] * 3}))


def test_columns_of_one_value_and_of_none() -> None:
    assert kept(lambda _: "x").levels == ("x",)
    assert kept(lambda _: "7.0").levels == (7,)
    assert kept(lambda _: "7.5").levels == (7.5,)
    assert column(lambda _: None).schema.ignore == ("a",)
