"""Each text is in one class, in a fixed order; codes under a column never refuse."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gibbous.core.column import Column
from gibbous.encode.cell_text import CLASSES, COMPACT, classes, lenient_codes, moved, whole_text
from gibbous.encode.encode import encode_column

TEXTS = {
    None: "missing",
    "": "missing",
    "  ": "missing",
    "NA": "missing",
    "?": "missing",
    "0": "whole",
    "-17": "whole",
    "+3": "whole",
    " 12 ": "whole",
    "3.0": "whole",
    "3.5": "decimals 1",
    "3.50": "decimals 1",
    "-0.25": "decimals 2",
    ".125": "decimals 3",
    "0.1234567": "more decimals",
    "1e5": "more decimals",
    "123456789012345": "whole",
    "4111111111111111": "text",
    "-900000000000207008": "text",
    "41111111111111.11": "decimals 2",
    "1e999": "text",
    "1234567890123456789": "text",
    "007": "padded",
    "02134": "padded",
    "00.5": "padded",
    "2020-02-29": "%Y-%m-%d",
    "2021-02-29": "text",
    "2020-02-29 00:00:00": "%Y-%m-%d %H:%M:%S",
    "2020-02-29 13:45:10.250+02:00": "%Y-%m-%d %H:%M:%S",
    "2020-02-29T13:45:10Z": "%Y-%m-%dT%H:%M:%S",
    "2020-02-29 13:45": "%Y-%m-%d %H:%M",
    "2020-02-29T13:45": "%Y-%m-%dT%H:%M",
    "12/31/2020 13:45": "%m/%d/%Y %H:%M",
    "31/12/2020 13:45:59": "%d/%m/%Y %H:%M:%S",
    "1/2/2020 3:04": "%m/%d/%Y %H:%M or %d/%m/%Y %H:%M",
    "01/02/2020 03:04:05 PM": "%m/%d/%Y %I:%M:%S %p",
    "03/14/2019 8:15 AM": "%m/%d/%Y %I:%M %p",
    "14/03/2019 08:15 pm": "%d/%m/%Y %I:%M %p",
    "3/4/2019 12:00 AM": "%m/%d/%Y %I:%M %p or %d/%m/%Y %I:%M %p",
    "03/14/2019 13:15 PM": "text",
    "31.12.2020 13:45": "%d.%m.%Y %H:%M",
    "31.12.2020 13:45:59": "%d.%m.%Y %H:%M:%S",
    "14-MAR-2019 08:15:00": "%d-%b-%Y %H:%M:%S",
    "2020-02-29 25:00:00": "text",
    "13:45": "clock",
    "3:04:59.5": "clock",
    "24:00": "text",
    "12:60": "text",
    "12/31/2020": "%m/%d/%Y",
    "31/12/2020": "%d/%m/%Y",
    "01/02/2020": "%m/%d/%Y or %d/%m/%Y",
    "31.12.2020": "%d.%m.%Y",
    "05-JUN-2020": "%d-%b-%Y",
    "21/06/20": "text",
    "15.11.23": "text",
    "15-Nov-23": "text",
    "23-11-15": "text",
    "0001-01-01": "%Y-%m-%d",
    "V57": "text",
    "1,234": "amounts, whole",
    "$12.00": "amounts, whole",
    "$1,234.50": "amounts, decimals 1",
    "12.25 %": "amounts, decimals 2",
    "(3.125)": "amounts, decimals 3",
    "1 234 567.1234567": "amounts, more decimals",
    "0,125": "text",
    "$007": "text",
    "1,50": "text",
    "$9999999999999999": "text",
    "none": "text",
    "inf": "text",
}


def test_every_text_is_in_the_class_that_its_form_says() -> None:
    found = classes(pl.Series(list(TEXTS), dtype=pl.String))

    assert {text: CLASSES[code] for text, code in zip(TEXTS, found, strict=True)} == TEXTS


@pytest.mark.slow
@pytest.mark.parametrize("form", [None, COMPACT])
def test_the_class_of_a_text_does_not_hang_on_others(form: str | None) -> None:
    column, texts = Column("x", "nominal", CLASSES, date_format=form), [*TEXTS, "20240501"]
    alone = [int(classes(pl.Series([text], dtype=pl.String), column)[0]) for text in texts]

    assert alone == classes(pl.Series(texts, dtype=pl.String), column).tolist()
    assert CLASSES[alone[-1]] == (form or "whole")


@pytest.mark.parametrize(
    "column",
    [
        Column("x", "numeric", edges=(0, 3, 100, 2_000), clamp=True, missing=True),
        Column("x", "ordinal", (0, 3, 12, 1_234), missing=True),
    ],
)
def test_the_code_of_a_text_does_not_hang_on_others_and_amounts_are_read(column: Column) -> None:
    """A column without any sign is read by a shorter way, which finds the same."""
    alone = [int(lenient_codes(pl.Series([text], dtype=pl.String), column)[0]) for text in TEXTS]
    signs = pl.Series(["$12.00", "1,234", "12 %", "(5)", "3"])

    assert alone == lenient_codes(pl.Series(list(TEXTS), dtype=pl.String), column).tolist()
    found = lenient_codes(signs, column).tolist()
    assert found == ([1, 2, 1, 0, 1] if column.binned else [2, 3, 2, column.missing_code, 1])


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (Column("x", "numeric", edges=(0, 1, 2, 3), clamp=True, missing=True), [0, 2, 1, 3, 3]),
        (Column("x", "numeric", edges=(0, 1, 2, 3), clamp=True), [0, 2, 1, 1, 1]),
        (Column("x", "ordinal", (0, 1, 2), missing=True), [0, 2, 3, 3, 3]),
        (Column("x", "nominal", ("-7", "1.5"), other="other", missing=True), [0, 2, 1, 2, 3]),
        (Column("x", "nominal", ("-7",)), [0, 0, 0, 0, 0]),
    ],
)
def test_no_text_is_refused(column: Column, codes: list[int]) -> None:
    texts = pl.Series(["-7", "250", "1.5", "word", None])

    assert lenient_codes(texts, column).tolist() == codes


def test_days_are_read_in_their_form_and_moved_to_the_bounds() -> None:
    first = 737425.0  # 2020-01-01
    column = Column(
        "x", "date", edges=(first, first + 10, first + 20), clamp=True, date_format="%d/%m/%Y"
    )

    codes = lenient_codes(
        pl.Series(["01/01/1990", "05/01/2020", "15/01/2020", "2020-01-01"]), column
    )

    assert codes.tolist() == [0, 0, 1, 1]


def test_whole_numbers_are_counted_as_they_are_written_shortest() -> None:
    texts = pl.Series(["3", "3.0", "+3", " 3.00", "-0", "3.5", "x", None])

    assert whole_text(texts).to_list() == ["3", "3", "3", "3", "0", None, None, None]


FOUND = (("levels", "discovered"), ("missing", "discovered"))


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (Column("x", "numeric", edges=(0, 1, 2, 3), clamp=True, sources=FOUND), ["1.5", "2.0"]),
        (Column("x", "ordinal", (0, 1, 2), missing=True, sources=FOUND), ["2.0", None]),
        (Column("x", "nominal", ("-7", "word"), other="o", sources=FOUND), ["-7", "word"]),
        (Column("x", "nominal", ("-7",), other="o", missing=True), ["-7", None]),
    ],
)
def test_cells_that_a_schema_shows_as_something_else(
    column: Column, shown: list[str | None]
) -> None:
    texts = pl.Series(["-7", "250", "1.5", "2.0", "word", None])
    codes, _ = encode_column(texts, column) if not column.binned else (np.zeros(6, int), [])

    found = moved(texts, column, codes)

    kept = [text for text, gone in zip(texts.to_list(), found, strict=True) if not gone]
    assert sorted(map(str, kept)) == sorted(map(str, shown))


def test_a_stated_level_may_be_a_word_for_missing_and_a_number_may_have_a_point() -> None:
    column = Column(
        "a", "nominal", ("NA", "1", "2.0", "v1.0"), missing=True, other="other",
        sources=(("missing", "discovered"),),
    )  # fmt: skip
    texts = pl.Series(["NA", "n/a", None, "1", "1.0", "2", "2.00", "v1.0", "v1", "01"])

    codes = lenient_codes(texts, column)

    missing, other = column.missing_code, column.other_code
    assert codes.tolist() == [0, missing, missing, 1, 1, 2, 2, 3, other, other]
    assert moved(texts, column, codes).tolist() == [False] * 8 + [True] * 2
