"""Values that do not fit: catalogue A, C and D; each is found before any charge and never shown."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.encode.encode import encode
from tests.read.refusal import MARKER, refused

AGE = Column("a", "numeric", edges=(0, 10, 20), integer=True)
REAL = Column("a", "numeric", edges=(0.0, 0.5, 1.0))
DAY = Column("a", "date", edges=tuple(datetime.date(2020, m, 1).toordinal() for m in (1, 7, 12)))
SEX = Column("a", "nominal", ("F", "M"))


def coded(column: Column, values: pl.Series | list[object]) -> list[int]:
    frame = pl.DataFrame({"a": values})
    return encode(frame, Schema((column,))).values[:, 0].tolist()


FAULTY: dict[str, tuple[Column, list[object], str, str]] = {
    "a13_late_word_in_a_number_column": (
        AGE,
        ["7"] * 30_000 + [MARKER, MARKER],
        "NOTANUMBER",
        ": values that are not numbers, first in data row 30,001",
    ),
    "a17_infinity": (REAL, [0.5, float("inf")], "NOTFINITE", "row 2"),
    "a17_nan_in_a_frame": (REAL, [float("nan")], "NOTFINITE", "row 1"),
    "a17_text_inf": (REAL, ["0.5", "-inf", "Infinity"], "NOTFINITE", "row 2"),
    "a17_text_nan": (REAL, ["NaN"], "NOTFINITE", "row 1"),
    "a17_text_1e400": (REAL, ["1e400"], "NOTFINITE", "row 1"),
    "a17_inf_in_a_whole_number_column": (AGE, [float("inf")], "NOTFINITE", "row 1"),
    "a18_days_without_a_declared_format": (
        DAY,
        ["01/02/2020", "13/02/2020"],
        "NOTADAY",
        "row 1",
    ),
    "a18_sloppy_iso_days": (DAY, ["2020-1-2", "2020-02-30", " 2020-02-03"], "NOTADAY", "row 1"),
    "c9_unknown_level": (SEX, ["F", MARKER, MARKER], "UNKNOWNLEVEL", "row 2"),
    "c11_above_the_bound": (AGE, [5, 21], "BOUNDS", "values outside its declared bounds"),
    "c11_below_the_bound": (REAL, [-1e-300], "BOUNDS", "row 1"),
    "c11_day_outside": (DAY, [datetime.date(2021, 1, 1)], "BOUNDS", "row 1"),
    "c13_case_and_blank_variants": (SEX, ["f", " M", "M "], "UNKNOWNLEVEL", "row 1"),
    "missing_where_it_is_not_declared": (SEX, ["F", None], "MISSINGVALUE", "row 2"),
    "missing_number": (AGE, [1, None], "MISSINGVALUE", "row 2"),
    "fraction_in_a_whole_number_column": (AGE, [1.5], "NOTWHOLE", "row 1"),
    "text_fraction_in_a_whole_number_column": (AGE, ["1.5"], "NOTWHOLE", "row 1"),
    "a16_float_beyond_2_53_in_a_whole_number_column": (AGE, [2.0**53 + 2], "NOTWHOLE", "row 1"),
    "decimal_comma": (REAL, ["0,5"], "NOTANUMBER", "row 1"),
    "blank_padded_number": (REAL, [" 0.5"], "NOTANUMBER", "row 1"),
    "digits_of_another_script": (AGE, ["\u0667"], "NOTANUMBER", "row 1"),
    "time_of_day": (DAY, [datetime.datetime(2020, 1, 1, 12)], "NOTADAY", "row 1"),
    "leading_zero_for_a_whole_number_level": (
        Column("a", "nominal", (1, 2)),
        ["1", "02"],
        "UNKNOWNLEVEL",
        "row 2",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_value_that_does_not_fit_is_refused(case: str) -> None:
    column, values, name, says = FAULTY[case]

    with refused(4, name) as caught:
        coded(column, values)

    assert says in caught.text
    assert "column 'a'" in caught.text


def test_every_faulty_column_is_reported_at_once() -> None:
    frame = pl.DataFrame({"a": [MARKER], "b": [99], "c": [None]})
    schema = Schema((SEX, replace(AGE, name="b"), replace(REAL, name="c")))

    with refused(4, "UNKNOWNLEVEL") as caught:
        encode(frame, schema)

    for part in ("column 'a'", "column 'b'", "column 'c'"):
        assert part in caught.text


def test_c9_a_declared_other_catches_unknown_levels_and_never_extends_the_domain() -> None:
    assert coded(replace(SEX, other="else"), ["M", MARKER, "else", "F"]) == [1, 2, 2, 0]


def test_c11_declared_clamping_moves_values_to_the_bounds() -> None:
    assert coded(replace(AGE, clamp=True), [-5, 5, 10**18]) == [0, 0, 1]
    assert coded(replace(REAL, clamp=True), [float("-inf"), 0.5, float("inf")]) == [0, 1, 1]
    assert coded(replace(REAL, clamp=True), ["-inf", "1e400", "9e15"]) == [0, 1, 1]
    with refused(4, "NOTFINITE"):
        coded(replace(REAL, clamp=True), [float("nan")])


def test_a16_whole_numbers_beyond_2_53_are_exact() -> None:
    big = 2**53
    levels = Column("a", "nominal", (big, big + 1, 2**63, 2**64 + 1))
    bins = Column("a", "numeric", edges=(big - 1, big + 1, big + 2, 2**63 - 1), integer=True)

    assert coded(levels, [str(v) for v in levels.levels]) == [0, 1, 2, 3]
    assert coded(levels, pl.Series([big + 1, 2**64 + 1], dtype=pl.Int128)) == [1, 3]
    assert coded(levels, pl.Series([2**63], dtype=pl.UInt64)) == [2]
    assert coded(bins, [big, big + 1, big + 2]) == [0, 1, 2]
    assert coded(bins, [str(big), str(big + 1), f"{big + 2}.0"]) == [0, 1, 2]
    with refused(4, "BOUNDS"):
        coded(bins, [str(2**63)])


def test_a16_cut_points_between_floats_are_respected_by_whole_numbers() -> None:
    column = Column("a", "numeric", edges=(0.0, 2.5, float(2**53), 2.0**60))

    assert coded(column, [2, 3, 2**53 - 1, 2**53, 2**53 + 1]) == [0, 1, 1, 2, 2]
    assert coded(column, ["2", "3", str(2**53 - 1), str(2**53 + 1)]) == [0, 1, 1, 2]


def test_a18_a_declared_format_reads_days_one_way() -> None:
    column = replace(DAY, date_format="%d/%m/%Y")

    assert coded(column, ["01/02/2020", "01/08/2020"]) == [0, 1]
    with refused(4, "NOTADAY"):
        coded(column, ["02/13/2020"])


def test_c5_too_many_levels_are_refused_with_advice() -> None:
    column = Column("a", "nominal", tuple(range(100_000)))

    with refused(4, "TOOMANYLEVELS") as caught:
        coded(column, [1])

    assert "public grouping" in caught.text


def test_c5_an_identifier_of_a_million_values_is_refused_quickly() -> None:
    with refused(4, "UNKNOWNLEVEL") as caught:
        coded(SEX, pl.Series([f"{MARKER}{i}" for i in range(1_000_000)]))

    assert "first in data row 1 " in caught.text


def test_c12_one_level_has_one_code_however_it_is_written() -> None:
    flag = Column("a", "binary", (False, True))
    code = Column("a", "binary", (0, 1))
    word = Column("a", "binary", ("false", "true"))
    real = Column("a", "nominal", (0.0, 0.5))

    for column in (flag, code):
        assert coded(column, [True, False]) == [1, 0]
        assert coded(column, [1, 0]) == [1, 0]
        assert coded(column, [1.0, -0.0]) == [1, 0]
    for text in ("True", "true", "TRUE", "1", "1.0"):
        assert coded(flag, [text]) == [1]
    assert coded(code, ["1", "1.0", "0"]) == [1, 1, 0]
    assert coded(word, [True, False]) == [1, 0]
    assert coded(real, [-0.0, 0.5]) == [0, 1]
    assert coded(real, ["-0.0", "0", "0.50", "5e-1"]) == [0, 0, 1, 1]
    assert coded(REAL, [-0.0, 5e-324]) == [0, 0]


def test_c13_unicode_variants_are_distinct_levels() -> None:
    column = Column("a", "nominal", ("\u00e9", "e\u0301", "\uff41", "a"))

    assert coded(column, list(column.levels)) == [0, 1, 2, 3]


def test_a14_text_levels_match_letter_by_letter() -> None:
    column = Column("a", "nominal", ("7", "07", "7.0", "NA", "nan", ""))

    assert coded(column, list(column.levels)) == [0, 1, 2, 3, 4, 5]
    with refused(4, "UNKNOWNLEVEL"):
        coded(column, ["7.00"])


def test_numbers_in_the_data_find_the_text_level_that_writes_them() -> None:
    column = Column("a", "nominal", ("07", "7", "0.5"))

    assert coded(column, [7]) == [1]
    assert coded(column, [7.0, 0.5]) == [1, 2]


def test_days_find_the_text_level_that_writes_them() -> None:
    column = Column("a", "nominal", ("2020-01-31",))

    assert coded(column, [datetime.date(2020, 1, 31)]) == [0]
    assert coded(column, [datetime.datetime(2020, 1, 31)]) == [0]


def test_d1_missing_and_extra_columns_are_listed() -> None:
    schema = Schema((SEX,), ignore=("known", "seen"))

    with refused(4, "COLUMNS") as caught:
        encode(pl.DataFrame({"b": ["F"], "known": [1], "seen": [1]}), schema)

    assert "missing from the data: 'a'" in caught.text
    assert "not in the schema: 'b'" in caught.text
    assert encode(pl.DataFrame({"a": ["F"], "known": [1]}), schema).rows == 1


def test_d7_a_structural_zero_that_the_data_contradict_is_refused() -> None:
    schema = Schema(
        (SEX, replace(AGE, name="b")), impossible=(Impossible((("a", (1,)), ("b", (0,)))),)
    )
    frame = pl.DataFrame({"a": ["F", "M", "M"], "b": [1, 15, 2]})

    with refused(4, "IMPOSSIBLE") as caught:
        encode(frame, schema)

    assert "occurs, first in data row 3" in caught.text


def test_a_date_in_a_number_column_is_a_mismatch_of_types() -> None:
    for column, values in ((AGE, [datetime.date(2020, 1, 1)]), (DAY, [1])):
        with refused(4, "TYPE"):
            coded(column, values)


def test_b4_a_nested_column_in_a_frame_is_refused_unless_ignored() -> None:
    with refused(4, "TYPE"):
        coded(SEX, pl.Series([["F"]]))


def test_c3_constant_and_all_missing_columns_are_encoded() -> None:
    assert coded(Column("a", "nominal", ("x",)), ["x", "x"]) == [0, 0]
    for dtype in (pl.Null, pl.String, pl.Float64):
        empty = pl.Series([None, None], dtype=dtype)
        assert coded(replace(SEX, missing=True), empty) == [2, 2]
        assert coded(replace(REAL, missing=True), empty) == [2, 2]
    assert coded(replace(DAY, missing=True), pl.Series([None], dtype=pl.Date)) == [2]


def test_an_empty_table_is_encoded() -> None:
    for column in (SEX, AGE, REAL, DAY, replace(DAY, date_format="%d/%m/%Y")):
        for dtype in (pl.String, pl.Null):
            assert coded(column, pl.Series([], dtype=dtype)) == []


def test_codes_are_secret_compact_and_leave_the_frame_alone() -> None:
    frame = pl.DataFrame({"a": ["F", "M"]})
    before = frame.clone()

    codes = encode(frame, Schema((SEX,)))

    assert codes.secret
    assert codes.values.dtype == np.uint8
    assert codes.by_column.flags.c_contiguous
    assert frame.equals(before)


def test_c18_codes_depend_on_the_schema_alone_not_on_other_rows() -> None:
    schema = Schema((Column("a", "nominal", ("x", "y", "rare")), replace(REAL, name="b")))
    frame = pl.DataFrame({"a": ["x", "y"], "b": [0.1, 0.9]})
    rare = pl.concat([frame, pl.DataFrame({"a": ["rare"], "b": [1.0]})])

    assert (encode(rare, schema).values[:2] == encode(frame, schema).values).all()


def test_a_person_column_is_needed_and_not_encoded() -> None:
    schema = Schema((SEX,), Unit("person", "who", 1))

    with refused(4, "COLUMNS"):
        encode(pl.DataFrame({"a": ["F"]}), schema)


@pytest.mark.parametrize("case", FAULTY)
def test_D_how_many_values_do_not_fit_is_not_told(case: str) -> None:
    column, values, _, _ = FAULTY[case]
    bad = pl.Series("a", values, strict=False)[-1:]
    told = []

    for count in (737, 919):
        with refused(4) as caught:
            coded(column, pl.concat([bad] * count))
        told.append(caught.text)

    assert told[0] == told[1]
    assert "first in data row 1 " in told[0]
