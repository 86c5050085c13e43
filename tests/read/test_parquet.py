"""Parquet files: catalogue B of faults, and which types are taken."""

from __future__ import annotations

import datetime
import random
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from gibbous.core.errors import GibbousError
from gibbous.core.schema import Column, Schema
from gibbous.read.csv_file import ReadOptions
from gibbous.read.source import probe, read_columns
from tests.read.refusal import MARKER, refused


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"a": [MARKER, "x"] * 500, "b": list(range(1000))}).write_parquet(path)
    return path


def test_b1_truncated_and_garbled_files_are_rejected(sound: Path) -> None:
    whole = sound.read_bytes()
    faulty = [
        b"",
        b"PAR1",
        b"PAR1" + b"\0" * 20 + b"PAR1",
        whole[:-1],
        whole[: len(whole) // 2],
        whole[: len(whole) // 2] + whole[-8:],
        b"a,b\n1,2\n",
        b"PARE" + whole[4:],
        random.Random(1).randbytes(5_000),
    ]
    for content in faulty:
        sound.write_bytes(content)

        with refused(3):
            read_columns(sound)
        with refused(3):
            probe(sound)


def test_b1_garbled_pages_and_footers_never_escape_as_other_errors(sound: Path) -> None:
    whole, dice = sound.read_bytes(), random.Random(7)
    for _ in range(60):
        garbled = bytearray(whole)
        for _ in range(20):
            garbled[dice.randrange(4, len(whole) - 8)] = dice.randrange(256)
        sound.write_bytes(bytes(garbled))
        with suppress(GibbousError):
            read_columns(sound)


@pytest.mark.slow
def test_b2_a_small_file_with_huge_contents_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"a": pl.repeat("x" * 1_000, 3_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 100_000

    with refused(10, "TOOLARGE") as caught:
        read_columns(path, options=ReadOptions(max_bytes=10_000_000))

    assert "3,000,000" not in caught.text


UNUSABLE = {
    "list": pl.Series("c", [[1], [2]]),
    "struct": pl.Series("c", [{"a": 1}, {"a": 2}]),
    "binary": pl.Series("c", [b"x", b"y"]),
    "time": pl.Series("c", [datetime.time(1)] * 2),
    "duration": pl.Series("c", [datetime.timedelta(1)] * 2),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_b4_a_column_of_an_unusable_type_is_named_with_its_type(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    frame = pl.DataFrame([pl.Series("a", [1, 2]), UNUSABLE[kind]])
    frame.write_parquet(path)
    schema = Schema((Column("a", "nominal", (1, 2)),), ignore=("c",))

    for source in (path, frame, frame.to_arrow()):
        with refused(4, "TYPE") as caught:
            read_columns(source)
        assert f"Column 'c' has type {kind}" in caught.text
        assert read_columns(source, schema=schema).columns == ["a"]


def test_decimals_are_numbers_and_days_are_those_of_their_zone(tmp_path: Path) -> None:
    path, days = tmp_path / "d.parquet", pl.Series([datetime.datetime(2020, 1, 1)] * 2)
    frame = pl.DataFrame(
        {
            "zoned": days.dt.replace_time_zone("Asia/Tokyo"),
            "cents": pl.Series(["0.10", None]).cast(pl.Decimal(10, 2)),
            "large": pl.Series(["123456789012345678901", None]).cast(pl.Decimal(30, 0)),
        }
    )
    frame.write_parquet(path)

    for source in (path, frame, frame.to_arrow()):
        found = read_columns(source)
        assert found["zoned"].to_list() == days.to_list()
        assert found["cents"].to_list() == [0.1, None]
        assert found["large"].to_list() == [123456789012345678901, None]


def test_plain_and_dictionary_columns_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    frame = pl.DataFrame(
        {
            "text": ["NA", None],
            "cat": pl.Series(["x", None], dtype=pl.Categorical),
            "enum": pl.Series(["x", None], dtype=pl.Enum(["x"])),
            "small": pl.Series([1, None], dtype=pl.Int8),
            "real": [0.5, None],
            "flag": [True, None],
            "day": [datetime.date(2020, 1, 1), None],
        }
    )
    frame.write_parquet(path)

    found = read_columns(path)

    assert found.schema == frame.schema
    assert found.equals(frame)


def test_a4_a5_names_are_checked_in_parquet_too(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"a": [1], "A": [2]}).write_parquet(path)

    with refused(3, "NEARNAMES"):
        read_columns(path)


def test_a24_a_pattern_in_the_name_is_not_expanded(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"a": [2]}).write_parquet(tmp_path / "[1].parquet")

    assert read_columns(tmp_path / "[1].parquet")["a"].to_list() == [2]
