"""Parquet files -> frames of plain columns; sizes and types are checked before anything is decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gibbous.core.errors import InputRejected, ResourceLimit, SchemaMismatch
from gibbous.read.conform import check_names, check_types, plain, undeclared, usable
from gibbous.read.csv_file import ReadOptions
from gibbous.read.fields import listed, shown
from gibbous.read.files import check_unchanged, files_of, is_many, opened
from gibbous.read.parquet_child import Trial, tried, width_of
from gibbous.read.slices import SLICE

if TYPE_CHECKING:
    import polars as pl

_MAGIC = b"PAR1"


def read_parquet(path: Path, options: ReadOptions, *, skip: frozenset[str]) -> pl.DataFrame:
    """Read a Parquet file, or all files of a folder or pattern (`read.files`), with their types.

    Args:
        skip: columns that the schema ignores; they are left out when their type is not usable.
    Raises:
        InputRejected: not a sound Parquet file.
        SchemaMismatch: a column of a nested, binary or other unusable type, or files whose columns
            differ.
        ResourceLimit: too many columns, or rows that need too much memory.
    """
    files = _sources(path, options, skip)
    _check_memory(files, options.limit)
    frame = _joined(files)
    for file in files:
        check_unchanged(file.path, file.facts)
    return frame


@contextmanager
def parquet_slices(
    path: Path, options: ReadOptions, *, skip: frozenset[str]
) -> Iterator[tuple[int, Iterator[pl.DataFrame]]]:
    """Read Parquet files in slices of rows, the next one decoded while the last one is used.

    Yields the number of rows, and the slices in order. What is raised is that of `read_parquet`;
    what is wrong inside a page is found on the way, and a change of a file at the end of the block.
    """
    files = _sources(path, options, skip)
    rows = sum(one.rows for one in files)
    at_once = min(SLICE, *(one.trial.at_once for one in files))
    with ThreadPoolExecutor(1, thread_name_prefix="gibbous-decode") as pool:
        yield rows, _batches(files, at_once, pool) if rows else iter([_joined(files)])
    for one in files:
        check_unchanged(one.path, one.facts)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A checked file: its columns that are kept, not yet read.

    Attributes:
        facts: what the system says of the file when it was checked.
        columns: name -> type.
        trial: how the child process found it.
    """

    path: Path
    facts: os.stat_result
    rows: int
    columns: dict[str, pl.DataType]
    trial: Trial

    def lazy(self) -> pl.LazyFrame:
        """All rows, in the order of the columns."""
        return _scanned(self.path).select(list(self.columns)).with_columns(plain(self.columns))


def _sources(path: Path, options: ReadOptions, skip: frozenset[str]) -> list[_Source]:
    """The checked files, at least one, all with the same columns."""
    many = is_many(path)
    sources: list[_Source] = []
    for member in files_of(path) if many else [path]:
        source = _source(member, options, skip)
        if sources:
            _check_same(sources[0], source)
            source = replace(source, columns=sources[0].columns)
        sources.append(source)
    return sources


def _source(path: Path, options: ReadOptions, skip: frozenset[str]) -> _Source:
    import polars as pl

    with opened(path) as file:
        columns = _columns(file, path, options)
        trial = tried(path, "usable", options.limit, lambda: _damaged(path))
        kept = {n: dtype for n, dtype in columns.items() if n not in skip or usable(n, dtype)}
        check_types(kept, stored=True)
        rows = int(_guarded(lambda: _scanned(path).select(pl.len()).collect().item(), path))
        return _Source(path, os.fstat(file.fileno()), rows, kept, trial)


def _scanned(path: Path) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _check_same(first: _Source, other: _Source) -> None:
    if first.columns == other.columns:
        return
    names, others = set(first.columns), set(other.columns)
    types = [n for n in names & others if first.columns[n] != other.columns[n]]
    what = f"{listed(sorted(types))} of another type"
    if names != others:
        what = f"{undeclared(sorted(names ^ others), [*names | others])} in one of them only"
    raise SchemaMismatch(
        "FILES",
        f"The file {shown(other.path.name)} has other columns than {shown(first.path.name)}: "
        f"{what}.",
        "All files of a folder or pattern have the same columns, of the same types.",
        "Write them again alike, or read them one by one.",
    )


def _joined(files: list[_Source]) -> pl.DataFrame:
    import polars as pl

    frames: list[pl.DataFrame] = [_guarded(file.lazy().collect, file.path) for file in files]
    return pl.concat(frames)


def _batches(
    files: list[_Source], at_once: int, pool: ThreadPoolExecutor
) -> Iterator[pl.DataFrame]:
    """Slices in order, one decoded ahead; none is empty."""
    coming: Future[pl.DataFrame] | None = None
    for file in files:
        lazy = file.lazy()  # once a file: it remembers the footer, which may be megabytes
        for start in range(0, file.rows, at_once):
            after = pool.submit(_decoded, lazy, file.path, start, min(at_once, file.rows - start))
            if coming is not None:
                yield coming.result()
            coming = after
    if coming is not None:
        yield coming.result()


def _decoded(lazy: pl.LazyFrame, path: Path, start: int, rows: int) -> pl.DataFrame:
    # Rows of one slice alone are decoded; a reader of its own choice would hold many row groups.
    frame: pl.DataFrame = _guarded(lazy.slice(start, rows).collect, path)
    if frame.height != rows:
        raise _damaged(path)
    return frame


def parquet_types(path: Path, options: ReadOptions) -> dict[str, pl.DataType]:
    """Stored types of the columns of a file, or of the first of several; raises as `read_parquet`."""
    first = files_of(path)[0] if is_many(path) else path
    with opened(first) as file:
        return _columns(file, first, options)


def _columns(file: BinaryIO, path: Path, options: ReadOptions) -> dict[str, pl.DataType]:
    import polars as pl

    _check_magic(file, path)
    tried(path, "footer", options.limit, lambda: _damaged(path))
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
        "It is one complete, unencrypted Parquet file, and its path is UTF-8 text.",
        "Fetch or write it again; text files end in .csv.",
    )


def _check_memory(files: list[_Source], limit: int) -> None:
    rows = sum(file.rows for file in files)
    width = sum(map(width_of, files[0].columns.values()))
    needed = rows * width + sum(file.trial.text for file in files)
    if needed > limit:
        raise ResourceLimit(
            "TOOLARGE",
            "The rows of the file need more memory than is allowed.",
            f"At most {limit:,} bytes are used here.",
            "Raise max_bytes if memory allows, or keep the columns and rows that are needed.",
        )
