"""Parquet files from strangers: sizes first, every fault of the reader as one of our refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.core.errors import ModelRejected
from gibbous.read.files import memory_limit
from gibbous.read.parquet_child import tried
from gibbous.write.durable_files import refuse_unreadable, rejected

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class ParquetInfo:
    """What the footer of a file says.

    Attributes:
        columns: name -> type, in order.
        rows: number of rows.
    """

    columns: dict[str, pl.DataType]
    rows: int


def metadata(path: Path) -> ParquetInfo:
    """Read the footer only; ModelRejected if it is not a Parquet file."""
    import polars as pl

    tried(path, "all", memory_limit(), lambda: _damaged(path))
    with _translated(path):
        columns = dict(pl.read_parquet_schema(path))
        rows = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
    return ParquetInfo(columns, int(rows))


def guarded_read(path: Path) -> pl.DataFrame:
    """Read a whole file; dictionaries become text; ModelRejected if it cannot be read."""
    import polars as pl

    tried(path, "all", memory_limit(), lambda: _damaged(path))
    with _translated(path):
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        return frame.with_columns(_texts(frame.schema))


def guarded_slices(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """The same frame in slices of so many rows, read one at a time; one empty slice of an empty file."""
    import polars as pl

    whole, start = metadata(path).rows, 0
    while start < whole or not start:
        with _translated(path):
            scan = pl.scan_parquet(path, glob=False, hive_partitioning=False)
            frame = scan.slice(start, rows).collect()
        yield frame.with_columns(_texts(frame.schema))
        start += rows


def guarded_scan(paths: Sequence[Path]) -> pl.LazyFrame:
    """Files with the same columns as one lazy frame; dictionaries become text; else ModelRejected."""
    import polars as pl

    columns = [metadata(path).columns for path in paths]
    with _translated(paths[0]):
        scan = pl.scan_parquet(list(paths), glob=False, hive_partitioning=False)
        return scan.with_columns(_texts(columns[0]))


def _texts(columns: Mapping[str, pl.DataType]) -> list[pl.Expr]:
    """Columns that are dictionaries, as text."""
    import polars as pl

    kinds = (pl.Enum, pl.Categorical)
    return [
        pl.col(name).cast(pl.String) for name, kind in columns.items() if isinstance(kind, kinds)
    ]


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    import polars as pl

    bad: BaseException | None = None
    try:
        yield
    except (
        pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError
    ) as error:  # fmt: skip
        bad = error
    if bad is not None:
        refuse_unreadable(path, bad)
        raise _damaged(path)


def _damaged(path: Path) -> ModelRejected:
    refuse_unreadable(path, OSError())
    return rejected("PARQUET", f"{path.name} is not a readable Parquet file")
