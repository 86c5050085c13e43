"""A CSV file is checked whole, then read again in slices: the rows that Python reads, and all refusals."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import polars as pl
import pytest

from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.read import csv_file, files
from gibbous.read.csv_file import DroppedLines, ReadOptions
from gibbous.read.source import read_columns, read_slices
from tests.read.refusal import MARKER, refused
from tests.read.test_csv import REFUSED, TWO, written

KEY = b"k" * 32
ROWS = 500


@pytest.fixture(autouse=True)
def every_file_is_many_blocks_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 64)  # bytes


def whole(text: str) -> pl.DataFrame:
    """What the csv module of Python makes of it."""
    names, *rows = (row for row in csv.reader(io.StringIO(text, newline="")) if row)
    nulls = [[cell or None for cell in row] for row in rows]
    return pl.DataFrame(nulls, schema=dict.fromkeys(names, pl.String), orient="row")


TEXTS = {
    "plain": "a,b\n" + "1,x\n2,y\n" * ROWS,
    "quoted": 'a,b\r\n"1","x"\r\n' + '2,"y\r\n"\r\n' * 40,
    "blank end": "a,b\n" + "1,x\n" * 40 + "\n\n",
    "missing": "a,b\n" + ",x\n1,\n" * 40,
    "no rows": "a,b\n",
    "no line end": "a,b\n1,x\n2,y",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_slices_are_the_rows_of_the_file(tmp_path: Path, text: str, packed: bool) -> None:
    content = gzip.compress(text.encode()) if packed else text.encode()
    path = written(tmp_path, content, "d.csv.gz" if packed else "d.csv")

    with read_slices(path, schema=TWO) as (rows, frames):
        parts = list(frames)

    assert pl.concat(parts).equals(whole(text))
    assert read_columns(path, schema=TWO).equals(whole(text))
    assert rows == sum(part.height for part in parts)
    assert len(parts) > 1 or len(text) < 64


@pytest.mark.parametrize("case", REFUSED)
def test_a_faulty_file_is_refused_as_ever_before_the_first_row_is_given(
    case: str, tmp_path: Path
) -> None:
    content, code, name, says = REFUSED[case]
    path = written(tmp_path, content)
    given = []

    with refused(code, name) as caught, read_slices(path, schema=TWO) as (_, frames):
        given += list(frames)

    assert says in caught.text
    assert not given


def test_a_fault_at_the_end_of_a_long_file_is_found_before_anything_is_encoded(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "a,b\n" + "1,x\n" * ROWS + f"1,x,{MARKER}\n")

    with (
        refused(3, "RAGGED") as caught,
        read_slices(path, schema=TWO, options=ReadOptions()) as (_, frames),
    ):
        next(frames)

    assert f"line {ROWS + 2}" in caught.text
    with (
        pytest.warns(DroppedLines, match="1 such line"),
        read_slices(path, schema=TWO, options=ReadOptions(on_bad_line="drop")) as (rows, frames),
    ):
        assert rows == ROWS == pl.concat(list(frames)).height


def test_only_what_unpacks_is_limited_by_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "a,b\n" + "1,x\n" * ROWS
    monkeypatch.setattr(csv_file, "memory_limit", lambda: 100)
    plain = written(tmp_path, text)
    packed = written(tmp_path, gzip.compress(text.encode()), "d.csv.gz")

    with read_slices(plain, schema=TWO) as (rows, frames):
        assert rows == ROWS == pl.concat(list(frames)).height
    with refused(10, "TOOLARGE"), read_slices(packed, schema=TWO) as (_, frames):
        next(frames)
    few = ReadOptions(max_bytes=100)
    with refused(10, "TOOLARGE"), read_slices(plain, schema=TWO, options=few) as (_, frames):
        next(frames)


def test_names_are_compared_before_the_first_row(tmp_path: Path) -> None:
    path = written(tmp_path, "a,c\n" + "1,x\n" * ROWS)

    with refused(4, "COLUMNS"), read_slices(path, schema=TWO) as (_, frames):
        next(frames)


def test_a_file_that_changes_between_the_two_passes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n" + "1,x\n" * ROWS)

    with refused(11, "INPUTCHANGED"), read_slices(path, schema=TWO) as (_, frames):
        with path.open("a") as more:
            more.write("2,y\n")
        list(frames)


@pytest.mark.slow
def test_codes_and_fingerprint_are_those_of_the_same_rows_read_whole(
    tmp_path: Path,
) -> None:
    schema = Schema(
        (
            Column("a", "nominal", levels=("1", "2")),
            Column("n", "numeric", edges=(0, 10, 99), integer=True),
        ),
        ignore=("b",),
    )
    rows = {"a": ["1", "2"] * ROWS, "n": [i % 99 for i in range(2 * ROWS)], "b": ["z"] * 2 * ROWS}
    pl.DataFrame(rows).write_csv(tmp_path / "d.csv")
    engines = [LocalEngine(scratch=tmp_path, held=above, threads=1) for above in (0, 1 << 20)]

    marks = [engine.scan(tmp_path / "d.csv", schema, key=KEY) for engine in engines]
    truth = LocalEngine(threads=1)
    marks.append(truth.scan(pl.DataFrame(rows), schema, key=KEY))

    assert len(set(marks)) == 1
    stores = [engine._store for engine in (*engines, truth)]
    assert [store.rows for store in stores] == [2 * ROWS] * 3
    assert (stores[1].values == stores[2].values).all()  # type: ignore[union-attr]
    for engine in (*engines, truth):
        engine.close()
