"""A Parquet file -> a frame of plain columns; size and types are checked before anything is decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gibbous.core.errors import InputRejected, ResourceLimit, SchemaMismatch
from gibbous.read.conform import check_types
from gibbous.read.csv_file import ReadOptions
from gibbous.read.fields import shown
from gibbous.read.files import opened
from gibbous.read.names import check_names
from gibbous.read.slices import SLICE, whole_only

if TYPE_CHECKING:
    import polars as pl

_MAGIC = b"PAR1"


def read_parquet(path: Path, options: ReadOptions, *, skip: frozenset[str]) -> pl.DataFrame:
    """Read a Parquet file.

    Args:
        path: the file.
        options: limits.
        skip: columns that the schema ignores; they are left out when their type is not usable.
    Returns:
        Columns with the types of the file.
    Raises:
        InputRejected: not a sound Parquet file.
        SchemaMismatch: a column of a nested, decimal, binary, zoned or other unusable type.
        ResourceLimit: too many columns, or rows that need too much memory.
    """
    with opened(path) as file:
        source, _, _ = _source(file, path, options, skip)
        frame: pl.DataFrame = _guarded(source.collect, path)
    return frame


@contextmanager
def parquet_slices(
    path: Path, options: ReadOptions, *, skip: frozenset[str]
) -> Iterator[tuple[int, Iterator[pl.DataFrame]]]:
    """Read a Parquet file in slices of rows, so that the whole of it is never held.

    Args:
        path, options, skip: as for `read_parquet`.
    Yields:
        The number of rows, and the slices in order; that the file did not change is checked at
        the end of the block.
    Raises:
        InputRejected, SchemaMismatch, ResourceLimit: as `read_parquet`; what is wrong inside a
            page is found on the way.
    """
    with opened(path) as file:
        source, rows, columns = _source(file, path, options, skip)
        yield rows, _batches(source, rows, path, whole=rows == 0 or whole_only(columns.values()))


def _source(
    file: BinaryIO, path: Path, options: ReadOptions, skip: frozenset[str]
) -> tuple[pl.LazyFrame, int, dict[str, pl.DataType]]:
    """The checked file: its columns that are kept, not yet read; the number of rows; their types."""
    import polars as pl

    columns = _columns(file, path, options)
    kept = {n: dtype for n, dtype in columns.items() if n not in skip or _usable(n, dtype)}
    check_types(kept)
    source = pl.scan_parquet(path, glob=False, hive_partitioning=False)
    rows = int(_guarded(lambda: source.select(pl.len()).collect().item(), path))
    _check_memory(rows, list(kept.values()), options.limit)
    return source.select(list(kept)), rows, kept


def _batches(source: pl.LazyFrame, rows: int, path: Path, *, whole: bool) -> Iterator[pl.DataFrame]:
    if whole or not hasattr(source, "collect_batches"):  # polars before 1.34
        yield _guarded(source.collect, path)
        return
    batches = _guarded(lambda: source.collect_batches(chunk_size=SLICE, maintain_order=True), path)
    seen = 0
    while (frame := _guarded(lambda: next(batches, None), path)) is not None:
        seen += frame.height
        if seen > rows:
            break
        yield frame
    if seen != rows:
        raise _damaged(path)


def parquet_names(path: Path, options: ReadOptions) -> list[str]:
    """The column names of a Parquet file, checked.

    Raises:
        InputRejected, ResourceLimit: as `read_parquet`.
    """
    with opened(path) as file:
        return list(_columns(file, path, options))


def _columns(file: BinaryIO, path: Path, options: ReadOptions) -> dict[str, pl.DataType]:
    import polars as pl

    _check_magic(file, path)
    columns: dict[str, pl.DataType] = dict(_guarded(lambda: pl.read_parquet_schema(path), path))
    check_names(list(columns), options.max_columns)
    return columns


def _check_magic(file: BinaryIO, path: Path) -> None:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    head = file.read(4)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    footer = int.from_bytes(tail[:4], "little") if len(tail) == 8 else 0
    if size == 0:
        raise InputRejected(
            "EMPTY", "The file is empty.", "It is a Parquet file.", "Check the export."
        )
    if head != _MAGIC or tail[4:] != _MAGIC or not 0 < footer <= size - 12:
        raise _damaged(path)


def _guarded(action: Any, path: Path) -> Any:
    """Run a step of the reader; whatever it raises is replaced, because its text may hold values."""
    import polars as pl

    try:
        return action()
    except MemoryError:
        memory = True
    except (pl.exceptions.PolarsError, OSError, ValueError, OverflowError):
        memory = False
    except BaseException as error:
        # A panic inside the reader is not an Exception; anything else goes on as it is.
        if type(error).__name__ != "PanicException":
            raise
        memory = False
    if memory:
        raise ResourceLimit(
            "MEMORY",
            "Memory ran out while reading the Parquet file.",
            "The table is held in memory.",
            "Keep the columns and rows that are needed, or use a larger machine.",
        )
    raise _damaged(path)


def _damaged(path: Path) -> InputRejected:
    return InputRejected(
        "PARQUET",
        f"The file {shown(path)} is not a sound Parquet file.",
        "It is one complete, unencrypted Parquet file.",
        "Fetch or write it again; text files end in .csv.",
    )


def _check_memory(rows: int, dtypes: list[Any], limit: int) -> None:
    import polars as pl

    text = (pl.String, pl.Categorical, pl.Enum)
    needed = rows * sum(24 if dtype in text else 9 for dtype in dtypes)
    if needed > limit:
        raise ResourceLimit(
            "TOOLARGE",
            f"The file holds {rows:,} rows, which need about {needed:,} bytes of memory.",
            f"At most {limit:,} bytes are used here.",
            "Raise max_bytes if memory allows, or keep the columns and rows that are needed.",
        )


def _usable(name: str, dtype: Any) -> bool:
    try:
        check_types({name: dtype})
    except SchemaMismatch:
        return False
    return True
