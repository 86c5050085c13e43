"""Frames of pandas, polars and pyarrow come in with their values; mixed columns do not."""

from __future__ import annotations

import datetime
from decimal import Decimal

import polars as pl
import pytest

from gibbous.core.schema import Column, Schema
from gibbous.read.source import probe, read_columns
from tests.read.refusal import MARKER, refused

pd = pytest.importorskip("pandas")
DAY = datetime.date(2020, 1, 1)


def test_pandas_columns_arrive_as_what_they_are() -> None:
    frame = pd.DataFrame(
        {
            "text": pd.array(["NA", None], dtype="string"),
            "object": pd.Series(["01", None], dtype=object),
            "category": pd.Categorical(["x", None]),
            "numbers": pd.Categorical([3, None], categories=[2, 3]),
            "int": pd.array([1, None], dtype="Int64"),
            "uint": pd.Series([2**64 - 1, 0], dtype="uint64"),
            "huge": pd.Series([2**70, 1], dtype=object),
            "float": [0.5, None],
            "bool": pd.array([True, None], dtype="boolean"),
            "flags": pd.Series([True, None], dtype=object),
            "day": pd.to_datetime(["2020-01-01", None]),
            "date": pd.Series([DAY, None], dtype=object),
        }
    ).set_axis([7, 8])
    before = frame.copy(deep=True)

    found = read_columns(frame)

    assert found.columns == list(frame.columns)
    assert found.row(0) == (
        *("NA", "01", "x", 3, 1, 2**64 - 1, 2**70, 0.5, True, True),
        datetime.datetime(2020, 1, 1),
        DAY,
    )
    assert found.row(1) == (None, None, None, None, None, 0, 1, None, None, None, None, None)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    "values",
    [
        [1, MARKER],
        [MARKER, 1.5],
        [[MARKER], [1]],
        [{MARKER: 1}, None],
        [Decimal("1.5"), MARKER],
        [b"x", None],
    ],
    ids=["int and text", "text and float", "lists", "dicts", "decimal and text", "bytes"],
)
def test_b4_object_columns_of_mixed_or_odd_types_are_refused(values: list[object]) -> None:
    with refused(4, "TYPE") as caught:
        read_columns(pd.DataFrame({"a": pd.Series(values, dtype=object)}))

    assert "Column 'a'" in caught.text


def test_decimals_of_pandas_objects_are_numbers() -> None:
    far = [Decimal("1.123456789012345678901234567890"), Decimal(10**12), Decimal("NaN"), None]
    whole = [Decimal(2**70), Decimal("3.00"), None, None]
    endless = [Decimal("Infinity"), Decimal(1), None, None]
    columns = {"far": far, "whole": whole, "endless": endless}

    found = read_columns(pd.DataFrame(columns, dtype=object))

    assert found["far"].to_list() == [1.1234567890123457, 1e12, None, None]
    assert found["whole"].to_list() == [2**70, 3, None, None]
    assert found["endless"].to_list() == [float("inf"), 1.0, None, None]


def test_b4_intervals_of_months_are_refused_unless_ignored() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "b": [1]})

    with refused(4, "TYPE"):
        read_columns(table)
    schema = Schema((Column("b", "ordinal", levels=(1, 2)),), ignore=("a",))
    assert read_columns(table, schema=schema).columns == ["b"]


def test_b4_period_and_duration_columns_of_pandas_are_refused() -> None:
    for values in (pd.period_range("2020", periods=1), pd.to_timedelta([1])):
        with refused(4, "TYPE"):
            read_columns(pd.DataFrame({"a": values}))


def test_a4_duplicate_and_numbered_columns_of_pandas_are_rejected() -> None:
    with refused(3, "DUPCOL"):
        read_columns(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with refused(3, "NAMES"):
        read_columns(pd.DataFrame([[1, 2]]))


def test_polars_pyarrow_and_lazy_frames_are_equal() -> None:
    frame = pl.DataFrame({"a": ["x", None], "b": [1, 2]})

    for source in (frame, frame.lazy(), frame.to_arrow(), frame.to_arrow().to_batches()[0]):
        assert read_columns(source).equals(frame)
    assert probe(frame).kind == "frame"


def test_something_else_is_no_source() -> None:
    for source in (None, [1], {"a": [1]}, 3, pd.Series([1]), pl.Series([1])):
        with refused(2, "SOURCE"):
            read_columns(source)
