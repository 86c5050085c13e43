"""Rows in files: cut anyhow, the same bytes; CSV that no spreadsheet runs; Parquet untouched."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.core.schema import Column, Schema
from gibbous.write import rows as writer
from gibbous.write.rows import guard, write_files
from tests.write import made

EVIL = ("=1+1", "+cmd", "-2+3", "@SUM(A1)", "\tx", "\rx", "\0x", "'=x", "plain", "", "-5", "+1.5e3")


def texts(levels: tuple[str, ...], *, null: str = "(none)", missing: bool = False) -> Codes:
    schema = Schema((Column("t", "nominal", levels=levels, missing=missing),), null=null)
    size = schema.sizes[0]
    return Codes(schema, np.arange(size, dtype=np.uint8).reshape(-1, 1))


def write(codes: Codes, path: Path, format: str, *, raw: bool = False, cut: int = 7) -> int:
    batches = [Codes(codes.schema, codes.values[i : i + cut]) for i in range(0, codes.rows, cut)]
    return write_files(batches, codes.schema, {format: path}, seed=3, csv_raw=raw).guarded_cells


def cells(path: Path) -> list[list[str]]:
    """What a reader of RFC 4180 sees."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_how_rows_are_cut_changes_no_byte(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = made.codes(1000, 1)
    for cut in (7, 300, 1000):
        write(codes, tmp_path / str(cut), format, cut=cut)
    monkeypatch.setattr(writer, "_CELLS", 500)  # as if the table were wide
    write(codes, tmp_path / "narrow", format, cut=1000)

    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_i8_text_that_looks_like_a_formula_is_prefixed_and_counted(tmp_path: Path) -> None:
    count = write(texts(EVIL), tmp_path / "a.csv", "csv")

    assert [row[0] for row in cells(tmp_path / "a.csv")[1:]] == [
        "'=1+1", "'+cmd", "'-2+3", "'@SUM(A1)", "'\tx", "'\rx", "'\0x", "'=x", "plain", "", "-5",
        "+1.5e3",
    ]  # fmt: skip
    assert count == 7


def test_i8_csv_raw_and_parquet_keep_the_text(tmp_path: Path) -> None:
    assert write(texts(EVIL), tmp_path / "a.csv", "csv", raw=True) == 0
    assert write(texts(EVIL), tmp_path / "a.parquet", "parquet") == 0

    assert [row[0] for row in cells(tmp_path / "a.csv")[1:]] == list(EVIL)
    assert pl.read_parquet(tmp_path / "a.parquet")["t"].cast(pl.String).to_list() == list(EVIL)


def test_i8_numbers_keep_their_sign_and_names_are_text(tmp_path: Path) -> None:
    schema = Schema((Column("=n", "numeric", edges=(-9.0, -1.0), integer=True),))
    codes = Codes(schema, np.zeros((5, 1), dtype=np.uint8))

    assert write(codes, tmp_path / "a.csv", "csv", cut=2) == 1
    rows = cells(tmp_path / "a.csv")
    assert rows[0] == ["'=n"]
    assert all(-9 <= int(row[0]) <= -1 for row in rows[1:])


def test_i9_quotes_separators_and_line_ends_survive(tmp_path: Path) -> None:
    levels = ('a"b', "a,b", "a\nb", "a\r\nb", " a ", "ünï😀", "a;b", "NA", '"', "\n")
    write(texts(levels, missing=True), tmp_path / "a.csv", "csv")

    assert [row[0] for row in cells(tmp_path / "a.csv")[1:]] == [*levels, "(none)"]


def test_m9_files_have_no_index_and_no_writer_metadata_that_varies(tmp_path: Path) -> None:
    write(made.codes(50, 1), tmp_path / "a.parquet", "parquet")

    assert pl.read_parquet(tmp_path / "a.parquet").columns == list(made.SCHEMA.names)
    said = pl.read_parquet_metadata(tmp_path / "a.parquet")
    assert '"index_columns": []' in said["pandas"]
    assert set(said) == {"ARROW:schema", "pandas"}


def test_n7_no_rows_give_a_file_with_a_header(tmp_path: Path) -> None:
    for kind in ("parquet", "csv"):
        done = write_files([], made.SCHEMA, {kind: tmp_path / kind}, seed=1)
        assert done.rows == 0

    assert pl.read_parquet(tmp_path / "parquet").columns == list(made.SCHEMA.names)
    assert cells(tmp_path / "csv") == [list(made.SCHEMA.names)]


def test_a_file_is_private_and_never_overwritten(tmp_path: Path) -> None:
    write(made.codes(5, 1), tmp_path / "a.csv", "csv")
    before = (tmp_path / "a.csv").read_bytes()

    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o600
    with pytest.raises(OutputNotWritten):
        write(made.codes(5, 2), tmp_path / "a.csv", "csv")
    assert (tmp_path / "a.csv").read_bytes() == before


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write(made.codes(5, 1), tmp_path / "a", "ods")
    assert not list(tmp_path.iterdir())


def test_the_guard_leaves_other_types_alone() -> None:
    frame = pl.DataFrame({"a": [-1, 2], "b": [True, None], "c": ["-x", None]})
    shown, count = guard(frame)

    assert shown.to_dict(as_series=False) == {"a": [-1, 2], "b": [True, None], "c": ["'-x", None]}
    assert count == 1
