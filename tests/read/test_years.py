"""Days that no calendar writes are refused in words, before anything is hashed or encoded."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

from gibbous.core.errors import SchemaMismatch
from gibbous.core.schema import Column, Schema
from gibbous.read.source import read_columns, read_slices

SCHEMA = Schema((Column("day", "date", edges=(18262.0, 18628.0)),))


@pytest.mark.parametrize("number", [2**62, -(2**62), 260_000_000_000_000_000])
def test_an_infinite_time_in_a_file_is_refused(number: int, tmp_path: Path) -> None:
    path = tmp_path / "days.parquet"
    pl.DataFrame({"day": pl.Series([0, number]).cast(pl.Datetime("us"))}).write_parquet(path)

    with pytest.raises(SchemaMismatch, match="infinite"):
        read_columns(path)
    with (
        pytest.raises(SchemaMismatch, match="infinite"),
        read_slices(path, schema=SCHEMA) as (_, slices),
    ):
        list(slices)


def test_the_last_year_is_a_year() -> None:
    days = [datetime.date(9999, 12, 31), datetime.date(1, 1, 1)]
    times = [datetime.datetime(9999, 12, 31, 23, 59, 59), datetime.datetime(1, 1, 1)]

    assert read_columns(pl.DataFrame({"day": days})).height == 2
    assert read_columns(pl.DataFrame({"time": times})).height == 2
    assert (
        read_columns(pl.DataFrame({"time": pl.Series(times).cast(pl.Datetime("ms"))})).height == 2
    )
