"""Parquet files from strangers: sizes first, every fault of the reader as one of our refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.write.files import rejected

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
    """Read the footer only.

    Raises:
        ModelRejected: it is not a Parquet file.
    """
    import polars as pl

    with _translated(path):
        columns = dict(pl.read_parquet_schema(path))
        rows = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
    return ParquetInfo(columns, int(rows))


def guarded_read(path: Path) -> pl.DataFrame:
    """Read a file whose size was checked by `metadata`; dictionaries become text.

    Raises:
        ModelRejected: it cannot be read.
    """
    import polars as pl

    with _translated(path):
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        kinds = (pl.Enum, pl.Categorical)
        text = [name for name, kind in frame.schema.items() if isinstance(kind, kinds)]
        return frame.with_columns(pl.col(text).cast(pl.String)) if text else frame


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    import polars as pl

    bad = False
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        bad = True
    if bad:
        raise rejected("PARQUET", f"{path.name} is not a readable Parquet file")
