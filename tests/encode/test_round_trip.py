"""Encode and decode: exact for levels, within the bin for numbers and days, the same however cut."""

from __future__ import annotations

import datetime
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.schema import Column, Schema
from gibbous.encode.decode import decode
from gibbous.encode.encode import encode, encode_column
from gibbous.read.source import read_columns

texts = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=6
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


def codes_of(schema: Schema, rows: int = 200, seed: int = 0) -> Codes:
    values = empty_codes(schema, rows)
    made = np.random.default_rng(seed)
    for index, size in enumerate(schema.sizes):
        values[:, index] = made.integers(0, size, rows)
    return Codes(schema, values)


def through_csv(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    path = Path(os.environ["GIBBOUS_HOME"]) / "round.csv"
    frame.write_csv(path, null_value=schema.null, quote_style="necessary")
    return read_columns(path, schema=schema)


def assert_round_trip(column: Column, values: list[object], dtype: pl.DataType | None) -> None:
    schema = Schema((column,), null="<null>")
    frame = pl.DataFrame({column.name: pl.Series(values, dtype=dtype, strict=True)})

    codes = encode(frame, schema)
    back = decode(replace(codes, secret=False), seed=1)

    assert back[column.name].to_list() == values
    assert [type(v) for v in back[column.name]] == [type(v) for v in values]
    assert (encode(through_csv(back, schema), schema).values == codes.values).all()


@pytest.mark.slow
@given(st.lists(texts, min_size=1, max_size=6, unique=True), st.booleans())
def test_text_levels_come_back_letter_by_letter(levels: list[str], missing: bool) -> None:
    column = Column("a", "nominal", tuple(levels), missing=missing)

    assert_round_trip(column, [*levels, None, levels[0]] if missing else levels, pl.String)


def test_a14_a15_hard_texts_come_back() -> None:
    levels = (
        "NA",
        "NULL",
        "None",
        "nan",
        "01234",
        "1e5",
        "e\u0301",
        "\u00e9",
        " x",
        "x ",
        '"',
        "a,b\nc",
    )

    assert_round_trip(Column("a", "nominal", levels), list(levels), pl.String)


@pytest.mark.slow
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True))
def test_a16_whole_number_levels_come_back_exactly(levels: list[int]) -> None:
    assert_round_trip(Column("a", "ordinal", tuple(levels)), levels, pl.Int64)


@pytest.mark.slow
@given(st.lists(numbers, min_size=1, max_size=6, unique=True))
def test_number_levels_come_back_exactly(levels: list[float]) -> None:
    assert_round_trip(Column("a", "ordinal", tuple(levels)), levels, pl.Float64)


def test_boolean_levels_come_back() -> None:
    column = Column("a", "binary", (False, True), missing=True)

    assert_round_trip(column, [True, False, None], pl.Boolean)


def test_whole_numbers_beyond_64_bits_come_back_as_exact_text() -> None:
    for levels, dtype in (((2**64 - 1, 0), pl.UInt64), ((2**70, -1), pl.String)):
        schema = Schema((Column("a", "nominal", levels),))
        frame = decode(codes_of(schema), seed=1)

        assert frame["a"].dtype == dtype
        assert set(map(int, frame["a"].to_list())) == set(levels)
        assert (encode(frame, schema).values == codes_of(schema).values).all()


def test_a_declared_other_makes_the_column_text() -> None:
    column = Column("a", "nominal", (1, 2), other="else", missing=True)
    schema = Schema((column,))
    codes = codes_of(schema)

    frame = decode(codes, seed=1)

    assert frame["a"].dtype == pl.String
    assert set(frame["a"].to_list()) == {"1", "2", "else", None}
    assert (encode(frame, schema).values == codes.values).all()


def test_levels_of_several_types_keep_apart() -> None:
    schema = Schema((Column("a", "nominal", ("x", 1, 2.5, True, False)),))
    codes = codes_of(schema)

    assert (encode(decode(codes, seed=1), schema).values == codes.values).all()


@st.composite
def binned(draw: st.DrawFn) -> Column:
    kind = draw(st.sampled_from(["real", "decimal", "whole", "date"]))
    numbers = {
        "real": st.floats(-1e300, 1e300),
        "decimal": st.decimals(-1000, 1000, places=3).map(float),
        "whole": st.integers(-(2**63), 2**63 - 1),
        "date": st.integers(1, datetime.date.max.toordinal()),
    }[kind]
    edges = sorted(
        {v + 0.0 if kind in ("real", "decimal") else v for v in draw(st.lists(numbers, min_size=2))}
    )
    if len(edges) < 2:
        edges = [0, 1]
    return Column(
        "a",
        "date" if kind == "date" else "numeric",
        edges=tuple(edges),
        integer=kind == "whole",
        decimals=draw(st.integers(0, 4)) if kind == "decimal" else None,
        missing=draw(st.booleans()),
    )


@given(binned(), st.integers(0, 2**64))
def test_numbers_and_days_come_back_within_their_bin(column: Column, seed: int) -> None:
    schema = Schema((column,))
    codes = codes_of(schema, 50)

    frame = decode(codes, seed=seed)

    assert frame["a"].dtype == (
        pl.Date if column.kind == "date" else pl.Int64 if column.integer else pl.Float64
    )
    assert (encode(frame, schema).values == codes.values).all()
    assert frame["a"].null_count() == np.count_nonzero(codes.values == column.missing_code)


def test_decimals_are_honored_also_at_the_edges() -> None:
    column = Column("a", "numeric", edges=(0.1, 0.3, 0.7, 1.0), decimals=1)

    values = decode(codes_of(Schema((column,)), 2_000), seed=3)["a"]

    assert set(values.to_list()) == {i / 10 for i in range(1, 11)}


def test_every_value_of_a_whole_number_bin_is_drawn() -> None:
    column = Column("a", "numeric", edges=(0, 4, 9), integer=True)

    values = decode(codes_of(Schema((column,)), 2_000), seed=3)["a"]

    assert set(values.to_list()) == set(range(10))


@pytest.mark.statistical
def test_values_are_uniform_within_their_bin() -> None:
    """Kolmogorov distance of 20,000 draws under 0.0192 (level 1e-6); half the bin would give 0.5."""
    schema = Schema(
        (
            Column("a", "numeric", edges=(2.0, 6.0)),
            Column("b", "numeric", edges=(0, 7), integer=True),
        )
    )
    rows = 20_000

    frame = decode(Codes(schema, empty_codes(schema, rows)), seed=11)

    real = np.sort((frame["a"].to_numpy() - 2) / 4)
    assert np.abs(real - np.arange(rows) / rows).max() < 0.0192
    counts = np.bincount(frame["b"].to_numpy(), minlength=8)
    assert ((counts - rows / 8) ** 2 / (rows / 8)).sum() < 40.5  # chi-square, 7 degrees, 1 - 1e-6


def test_a_row_is_the_same_however_the_set_is_cut() -> None:
    schema = Schema(
        (
            Column("a", "numeric", edges=(0.0, 1.0, 2.0), missing=True),
            Column("b", "numeric", edges=(0, 50, 99), integer=True),
            Column("c", "date", edges=(700_000, 710_000, 720_000)),
            Column("d", "nominal", ("x", "y")),
            Column("e", "numeric", edges=(0.0, 1.0), decimals=3),
        )
    )
    codes = codes_of(schema, 1_000)
    whole = decode(codes, seed=5, set_index=2)

    for cut in (1, 137, 999):
        parts = [
            decode(Codes(schema, codes.values[:cut]), seed=5, set_index=2),
            decode(Codes(schema, codes.values[cut:]), seed=5, set_index=2, start_row=cut),
        ]
        assert pl.concat(parts).equals(whole)
    assert not decode(codes, seed=5, set_index=3).equals(whole)
    assert not decode(codes, seed=6, set_index=2).equals(whole)


def test_dictionaries_hold_the_same_text() -> None:
    schema = Schema(
        (Column("a", "nominal", ("x", "y"), missing=True), Column("b", "nominal", (1, 2)))
    )
    codes = codes_of(schema)

    plain, packed = decode(codes, seed=1), decode(codes, seed=1, dictionary=True)

    assert packed["a"].dtype == pl.Enum(["x", "y"])
    assert packed.with_columns(pl.col("a").cast(pl.String)).equals(plain)


def test_an_empty_set_has_its_columns_and_types() -> None:
    schema = Schema((Column("a", "nominal", ("x",)), Column("b", "numeric", edges=(0.0, 1.0))))

    frame = decode(Codes(schema, empty_codes(schema, 0)), seed=1)

    assert frame.schema == {"a": pl.String, "b": pl.Float64}


@pytest.mark.parametrize("levels", [("1", "2"), ("1.0", "2.0"), ("01", "02"), (1, 2), (1.0, 2.0)])
def test_whole_numbers_are_the_same_levels_as_integers_and_as_floats(
    levels: tuple[Any, ...],
) -> None:
    """One missing cell makes the integers of a pandas frame floats."""
    column = Column("a", "nominal", levels, other="other", missing=True)

    whole, floats = (
        encode_column(pl.Series([1, 2, 3], dtype=kind), column)[0].tolist()
        for kind in (pl.Int64, pl.Float64)
    )

    assert whole == floats


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_text_of_a_midnight_does_not_hang_on_the_times_of_others(unit: Any) -> None:
    """Before: one time of day made text with a clock of all days of the column, and levels of none."""
    day = datetime.datetime(2024, 5, 1)
    column = Column("x", "nominal", ("2024-05-01", "2024-05-02"), missing=True, other="else")
    values = [day, day + datetime.timedelta(days=1), None, day]
    frame = pl.Series("x", values, dtype=pl.Datetime(unit))
    timed = pl.Series("x", [*values, day.replace(hour=7)], dtype=pl.Datetime(unit))

    assert encode_column(frame, column)[0].tolist() == [0, 1, 3, 0]
    assert encode_column(timed, column)[0].tolist() == [0, 1, 3, 0, 2]
