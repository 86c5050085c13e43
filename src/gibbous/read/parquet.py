"""A Parquet file -> a frame of plain columns; size and types are checked before anything is decoded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gibbous.core.errors import InputRejected, ResourceLimit, SchemaMismatch
from gibbous.read.conform import check_types
from gibbous.read.csv_file import ReadOptions
from gibbous.read.fields import shown
from gibbous.read.files import opened
from gibbous.read.names import check_names

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
    import polars as pl

    with opened(path) as file:
        columns = _columns(file, path, options)
        kept = [n for n, dtype in columns.items() if n not in skip or _usable(n, dtype)]
        check_types({n: columns[n] for n in kept})
        source = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        rows = int(_guarded(lambda: source.select(pl.len()).collect().item(), path))
        _check_memory(rows, [columns[n] for n in kept], options.limit)
        frame: pl.DataFrame = _guarded(lambda: source.select(kept).collect(), path)
    return frame


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
