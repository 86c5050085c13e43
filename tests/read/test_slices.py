"""Rows in slices: how a table is cut changes neither its name, nor its codes, nor what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.core.schema import Column, Schema, Unit
from gibbous.encode.encode import Encoder, encode
from gibbous.encode.levels import coded, dictionaries
from gibbous.read import parquet
from gibbous.read.fingerprint import Fingerprint, fingerprint
from gibbous.read.slices import SLICE, row_slices
from gibbous.read.source import read_columns, read_slices
from tests.read.refusal import MARKER, refused

KEY = b"k" * 32
ROWS = 60
SCHEMA = Schema(
    (
        Column("text", "nominal", ("a", "b", "7"), missing=True),
        Column("code", "ordinal", (3, 4, 5)),
        Column("gaps", "ordinal", (-1, 4, 900), missing=True),
        Column("age", "numeric", edges=(0, 10, 40, 100), integer=True),
        Column("real", "numeric", edges=(0.0, 0.5, 1.0)),
        Column("day", "date", edges=tuple(datetime.date(2020, m, 1).toordinal() for m in (1, 3))),
    ),
    ignore=("id", "huge"),
)


def table(rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    start = datetime.date(2020, 1, 1)
    return pl.DataFrame(
        {
            "id": [f"person {i}" for i in range(rows)],
            "huge": rng.integers(-(2**62), 2**62, rows),
            "text": rng.choice(["a", "b", "7", None], rows).tolist(),
            "code": pl.Series(rng.choice([3, 4, 5], rows), dtype=pl.UInt8),
            "gaps": pl.Series(rng.choice([-1, 4, 900, None], rows).tolist(), dtype=pl.Int16),
            "age": rng.integers(0, 100, rows),
            "real": rng.random(rows),
            "day": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 60, rows)],
        }
    )


@pytest.mark.slow
@given(st.lists(st.integers(0, ROWS), max_size=6))
def test_any_cut_gives_the_same_name_and_codes(cuts: list[int]) -> None:
    frame = table()
    whole, codes = fingerprint(frame, KEY, ""), encode(frame, SCHEMA).values
    mark, encoder, known = Fingerprint(KEY, ""), Encoder(SCHEMA, ROWS), dictionaries(SCHEMA)
    ends = sorted({*cuts, ROWS})

    for start, end in zip([0, *ends], ends, strict=False):
        part = coded(frame[start:end], known)
        mark.add(part)
        encoder.add(part)

    assert mark.digest() == whole
    assert np.array_equal(encoder.finish().values, codes)


def test_a_dictionary_has_the_codes_and_the_name_of_its_text() -> None:
    frame = table()
    short = coded(frame, dictionaries(SCHEMA))

    assert isinstance(short["text"].dtype, pl.Enum)
    assert short["text"].cast(pl.String).equals(frame["text"])
    assert fingerprint(short, KEY, "7") == fingerprint(frame, KEY, "7")
    assert np.array_equal(encode(short, SCHEMA).values, encode(frame, SCHEMA).values)


def test_text_outside_the_levels_stays_text_and_is_refused() -> None:
    frame = table().with_columns(text=pl.lit(MARKER))

    assert coded(frame, dictionaries(SCHEMA))["text"].dtype == pl.String
    with refused(4, "UNKNOWNLEVEL"):
        encode(coded(frame, dictionaries(SCHEMA)), SCHEMA)


def test_faults_of_all_slices_are_one_with_the_first_row_of_the_table() -> None:
    frame = table().with_columns(
        code=pl.Series([3] * 40 + [9] * 20, dtype=pl.UInt8),
        age=pl.Series([5] * 50 + [500] * 10),
    )
    encoder = Encoder(SCHEMA, ROWS)
    for start in range(0, ROWS, 7):
        encoder.add(frame[start : start + 7])

    with refused(4, "UNKNOWNLEVEL") as caught:
        encoder.finish()

    assert "column 'code': values outside its declared levels, first in data row 41" in caught.text
    assert "column 'age': values outside its declared bounds, first in data row 51" in caught.text


@pytest.mark.parametrize("levels", [(0, 1, 2), (1, 2, 3), (-120, -119, -118), (2, 1, 0)])
@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64])
def test_consecutive_levels_have_the_codes_of_their_order(
    levels: tuple[int, ...], dtype: type[pl.DataType]
) -> None:
    values = [levels[i] for i in (2, 0, 1, 1)]
    schema = Schema((Column("a", "nominal", levels),))

    found = encode(pl.DataFrame({"a": pl.Series(values, dtype=dtype)}), schema)

    assert found.values[:, 0].tolist() == [2, 0, 1, 1]


def test_a_person_is_bounded_over_all_slices() -> None:
    schema = Schema(
        (Column("a", "nominal", (0, 1)),), unit=Unit("person", column="who", max_rows=2)
    )
    frame = pl.DataFrame({"a": [0, 1] * 6, "who": ["x", "y", "x"] * 4})
    encoder = Encoder(schema, 12)
    for start in range(0, 12, 5):
        encoder.add(frame[start : start + 5])

    assert encoder.finish().rows == 4


def test_every_frame_is_sliced_whatever_its_types() -> None:
    long = pl.DataFrame({"a": pl.repeat(1, 2 * SLICE + 1, eager=True)})
    timed = long.with_columns(t=pl.lit(datetime.datetime(2020, 1, 1)))

    assert [f.height for f in row_slices(long)] == [SLICE, SLICE, 1]
    assert [f.height for f in row_slices(timed)] == [SLICE, SLICE, 1]
    assert [f.height for f in row_slices(long.clear())] == [0]


def test_a_parquet_file_in_slices_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "SLICE", 16)
    path, frame = tmp_path / "d.parquet", table()
    frame.write_parquet(path, row_group_size=25)

    with read_slices(path, schema=SCHEMA) as (rows, frames):
        parts = list(frames)

    assert rows == ROWS
    assert len(parts) > 1
    assert pl.concat(parts).equals(read_columns(path, schema=SCHEMA))


def test_an_empty_parquet_file_gives_one_empty_slice(tmp_path: Path) -> None:
    table().clear().write_parquet(tmp_path / "d.parquet")

    with read_slices(tmp_path / "d.parquet", schema=SCHEMA) as (rows, frames):
        assert [f.shape for f in frames] == [(0, len(table().columns))]
    assert rows == 0


def test_b1_a_garbled_page_is_refused_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"a": [MARKER, "x"] * 5_000}).write_parquet(path, compression="zstd")
    whole = bytearray(path.read_bytes())
    whole[4:60] = b"\xff" * 56
    path.write_bytes(bytes(whole))
    schema = Schema((Column("a", "nominal", (MARKER, "x")),))

    with refused(3, "PARQUET"), read_slices(path, schema=schema) as (_, frames):
        list(frames)
