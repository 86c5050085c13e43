"""A folder or a pattern stands for its Parquet files, and for nothing that is not one of them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.schema import Column, Schema
from gibbous.read import parquet, parquet_child
from gibbous.read.files import files_of, is_many
from gibbous.read.fingerprint import Fingerprint
from gibbous.read.source import probe, read_columns, read_slices
from tests.read.refusal import MARKER, refused

SCHEMA = Schema(
    (
        Column("place", "nominal", levels=("north", "south")),
        Column("age", "numeric", edges=(0, 18, 65, 120), integer=True),
    )
)


def table(rows: int = 100) -> pl.DataFrame:
    """Random rows under SCHEMA."""
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {"place": rng.choice(["north", "south"], rows).tolist(), "age": rng.integers(0, 120, rows)}
    )


def spread(frame: pl.DataFrame, folder: Path, *cuts: int) -> Path:
    """The rows of a frame in several files of a folder."""
    folder.mkdir(parents=True)
    for i, (low, high) in enumerate(zip((0, *cuts), (*cuts, frame.height), strict=True)):
        frame.slice(low, high - low).write_parquet(folder / f"part-{i:02}.parquet")
    return folder


def mark(source: object) -> bytes:
    """Fingerprint of a source that is read in slices."""
    found = Fingerprint(bytes(32), "")
    with read_slices(source, schema=SCHEMA) as (rows, frames):
        assert sum([found.add(f) or f.height for f in frames]) == rows  # type: ignore[func-returns-value]
    return found.digest()


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 40, 1_000])
def test_the_fingerprint_does_not_depend_on_the_cut_into_files_or_slices(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "SLICE", size)
    frame = table()
    frame.write_parquet(tmp_path / "all.parquet")
    folder = spread(frame, tmp_path / "some", 0, 3, 30, 30, 99)  # two of six files are empty

    marks = {
        mark(source)
        for source in (
            frame,
            tmp_path / "all.parquet",
            folder,
            str(folder) + "/",
            folder / "*.parquet",
            folder / "part-0[0-9].parquet",
            spread(frame.reverse(), tmp_path / "other", 50),
        )
    }

    assert len(marks) == 1
    assert mark(folder / "part-0[0-4].parquet") not in marks


def test_rows_come_file_by_file_in_the_order_of_names(tmp_path: Path) -> None:
    frame = table()
    folder = spread(frame, tmp_path / "some", 10, 20)

    assert read_columns(folder, schema=SCHEMA).equals(frame)
    assert read_columns(folder / "part-*.parquet").equals(frame)
    assert probe(folder).names == ("place", "age")
    assert probe(folder).kind == "parquet"


def test_hidden_files_and_those_of_underscores_are_left_out(tmp_path: Path) -> None:
    frame = table()
    folder = spread(frame, tmp_path / "some", 10)
    for name in ("_SUCCESS", "_metadata", ".part-00.parquet.crc", ".hidden.parquet"):
        (folder / name).write_bytes(b"x")
    (folder / "_temporary").mkdir()

    assert read_columns(folder).height == frame.height
    assert [p.name for p in files_of(folder / "*.parquet")] == [
        "part-00.parquet",
        "part-01.parquet",
    ]


def test_columns_in_another_order_are_the_same_columns(tmp_path: Path) -> None:
    frame = table()
    folder = spread(frame, tmp_path / "some", 10)
    frame.slice(10).select("age", "place").write_parquet(folder / "part-01.parquet")

    assert read_columns(folder).equals(frame)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.with_columns(more=1), "'more' in one of them only"),
        (lambda f: f.drop("age"), "1 of 2 columns (names withheld"),
        (lambda f: f.with_columns(pl.col("age").cast(pl.Int32)), "'age' of another type"),
    ],
    ids=["more", "fewer", "type"],
)
def test_a_file_of_other_columns_is_named(change, said: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = spread(table().with_columns(place=pl.lit(MARKER)), tmp_path / "some", 10, 20)
    change(pl.read_parquet(folder / "part-02.parquet")).write_parquet(folder / "part-02.parquet")

    for read in (lambda: read_columns(folder), lambda: mark(folder)):
        with refused(4, "FILES") as caught:
            read()
        assert "'part-02.parquet'" in caught.text
        assert "'part-00.parquet'" in caught.text
        assert said in caught.text


def _other_file(folder: Path) -> None:
    (folder / "notes.txt").write_text("x")


def _partition(folder: Path) -> None:
    (folder / "year=2020").mkdir()


def _delta(folder: Path) -> None:
    (folder / "_delta_log").mkdir()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_other_file, "the file 'notes.txt'"),
        (_partition, "the folder 'year=2020'"),
        (_delta, "table of versions"),
    ],
    ids=["file", "partition", "delta"],
)
def test_a_folder_of_something_else_is_refused(spoil, said: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = spread(table(), tmp_path / "some", 10)
    spoil(folder)

    with refused(3, "FILES") as caught:
        read_columns(folder)

    assert said in caught.text


def test_nothing_found_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    for source in (
        tmp_path / "empty",
        tmp_path / "empty" / "*.parquet",
        tmp_path / "no" / "*.parquet",
        tmp_path / "e*" / "a.parquet.*.parquet",
    ):
        with refused(3, "FILES"):
            read_columns(source)


def test_rules_for_one_file_hold_for_each(tmp_path: Path) -> None:
    folder = spread(table(), tmp_path / "some", 10)
    outside = tmp_path / "outside.parquet"
    table(5).write_parquet(outside)
    (folder / "part-02.parquet").symlink_to(outside)
    assert read_columns(folder).height == 105

    outside.unlink()
    with refused(3, "NOTAFILE"):
        read_columns(folder)
    (folder / "part-02.parquet").unlink()
    os.mkfifo(folder / "part-02.parquet")
    with refused(3, "NOTAFILE"):
        read_columns(folder)
    (folder / "part-02.parquet").unlink()
    (folder / "part-02.parquet").write_bytes(b"PAR1 and no more")
    with refused(3, "PARQUET"):
        read_columns(folder)


def test_a23_one_file_of_many_that_changes_is_noticed(tmp_path: Path) -> None:
    folder = spread(table(), tmp_path / "some", 10)

    with refused(11, "INPUTCHANGED"), read_slices(folder, schema=SCHEMA) as (_, frames):
        list(frames)
        table(7).write_parquet(folder / "part-00.parquet")


def test_wide_tables_come_in_fewer_rows_a_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_child, "BATCH", 10_000)
    schema = Schema(tuple(Column(f"c{i}", "nominal", levels=(0, 1)) for i in range(50)))
    frame = pl.DataFrame({name: [0, 1] * 50 for name in schema.names})
    frame.write_parquet(tmp_path / "wide.parquet")

    with read_slices(tmp_path / "wide.parquet", schema=schema) as (rows, frames):
        heights = [f.height for f in frames]

    assert sum(heights) == rows == 100
    assert set(heights[:-1]) == {10_000 // (9 * 50)}


def test_only_folders_and_patterns_stand_for_many(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    (tmp_path / "b.parquet").mkdir()
    (tmp_path / "[c].parquet").write_bytes(b"")

    assert not is_many(tmp_path / "a.csv")
    assert is_many(tmp_path / "b.parquet")
    assert not is_many(tmp_path / "[c].parquet")
    assert is_many(tmp_path / "[d].parquet")
    assert not is_many(tmp_path / "d.parquet")
    assert is_many(tmp_path)
    assert not is_many(Path("n\0l.parquet"))
