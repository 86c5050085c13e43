"""Codes in, one Parquet or CSV file of decoded rows out; CSV text cannot become a formula."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import OutputNotWritten, ResourceLimit, UsageError
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema

if TYPE_CHECKING:
    import polars as pl

Format = Literal["parquet", "csv"]
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_ROW_GROUP = 1 << 18
_NO_SPACE = (28, 27, 122)  # ENOSPC, EFBIG, EDQUOT


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """What a file holds.

    Attributes:
        rows: number of rows.
        guarded_cells: text cells (header included) that were prefixed with an apostrophe.
    """

    rows: int
    guarded_cells: int = 0


def write_rows(
    batches: Iterable[Codes],
    schema: Schema,
    path: Path,
    *,
    format: str,
    seed: int,
    set_index: int = 0,
    csv_raw: bool = False,
    progress: Progress = silent,
) -> RowsWritten:
    """Decode rows and write one file, mode 0600, on disk when this returns.

    Args:
        batches: the rows, in order; how they are cut does not change a byte.
        path: a new file.
        format: "parquet" or "csv".
        seed: sampling seed; places numbers and days within their bins.
        set_index: which synthetic set.
        csv_raw: leave text that a spreadsheet would read as a formula as it is.
    Raises:
        UsageError: unknown format.
        OutputNotWritten, ResourceLimit: the file cannot be written; the disk is full.
    """
    frame = decoded(batches, schema, seed=seed, set_index=set_index, progress=progress)
    return write_frame(frame, schema, path, format=format, csv_raw=csv_raw)


def decoded(
    batches: Iterable[Codes],
    schema: Schema,
    *,
    seed: int,
    set_index: int = 0,
    progress: Progress = silent,
) -> pl.DataFrame:
    """All rows of a set as one frame; text columns are dictionaries."""
    import polars as pl

    from gibbous.encode.decode import decode

    frames, rows = [], 0
    for codes in batches:
        frames.append(
            decode(codes, seed=seed, set_index=set_index, start_row=rows, dictionary=True)
        )
        rows += codes.rows
        progress("write", rows, 0)
    frames = frames or [decode(Codes(schema, empty_codes(schema, 0)), seed=seed, dictionary=True)]
    return pl.concat(frames, rechunk=True)


def write_frame(
    frame: pl.DataFrame, schema: Schema, path: Path, *, format: str, csv_raw: bool = False
) -> RowsWritten:
    """Write a decoded frame; see `write_rows`."""
    if format not in ("parquet", "csv"):
        raise UsageError(
            "FORMAT", f"The format is {format!r}.", "It is 'parquet' or 'csv'.", "Correct --format."
        )
    guarded = 0
    if format == "csv":
        frame = _days_as_declared(frame, schema)
    if format == "csv" and not csv_raw:
        frame, guarded = guard(frame)
    with new_file(path) as file:
        if format == "csv":
            frame.write_csv(file, null_value=schema.null, line_terminator="\n")
        else:
            frame.write_parquet(file, compression="zstd", row_group_size=_ROW_GROUP)
    return RowsWritten(frame.height, guarded)


def _days_as_declared(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Days as text in the form that the schema declares, so that it describes the file."""
    import polars as pl

    forms = {c.name: c.date_format for c in schema if c.date_format}
    return frame.with_columns(pl.col(name).dt.to_string(form) for name, form in forms.items())


def guard(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Prefix text that a spreadsheet would read as a formula with an apostrophe.

    Text starting with = + - @, tab, carriage return or NUL is meant; plain numbers are not, whatever
    the type of their column. Column names are text, too.

    Returns:
        The frame, and how many cells were prefixed.
    """
    import polars as pl

    count, columns = 0, []
    for series in frame:
        if isinstance(series.dtype, pl.Enum | pl.Categorical | pl.String):
            shown, cells = _guarded(series)
            count += cells
        else:
            shown = series
        name = guarded_name(series.name)
        count += name != series.name
        columns.append(shown.alias(name))
    return pl.DataFrame(columns), count


def guarded_name(name: str) -> str:
    """A column name as it stands in the header of a guarded CSV file."""
    return f"'{name}" if name.startswith(FORMULA) else name


def _guarded(series: pl.Series) -> tuple[pl.Series, int]:
    import polars as pl

    # By distinct value: there are few of them, and many rows.
    values = series.unique().cast(pl.String).drop_nulls()
    risky = values.filter(
        pl.Series([v.startswith(FORMULA) for v in values], dtype=pl.Boolean)
        & ~values.str.contains(_NUMBER)
    )
    if risky.is_empty():
        return series, 0
    text = series.cast(pl.String)
    hit = text.is_in(risky.implode()).fill_null(False)  # noqa: FBT003
    return text.to_frame().select(
        pl.when(hit).then("'" + pl.col(text.name)).otherwise(pl.col(text.name))
    ).to_series(), int(hit.sum())


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file of mode 0600 that is on disk when the block ends, and gone when it fails.

    Raises:
        OutputNotWritten, ResourceLimit: instead of whatever the library raised.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise not_written(path, error) from None
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError) or type(error).__module__.startswith("polars"):
            raise not_written(path, error) from None
        raise


def not_written(path: Path, error: BaseException) -> OutputNotWritten | ResourceLimit:
    """The error for a file that could not be written."""
    number = getattr(error, "errno", None)
    if number in _NO_SPACE or any(f"os error {n})" in str(error) for n in _NO_SPACE):
        return ResourceLimit(
            "DISK",
            f"The disk is full: {str(path)!r} cannot be written.",
            "A release is written whole or not at all.",
            "Make room, or write to another disk, and run again.",
        )
    why: Any = getattr(error, "strerror", None) or "the file system refused it"
    return OutputNotWritten(
        "WRITE",
        f"{str(path)!r} cannot be written: {why}.",
        "The output is a new file in a folder that this user may write.",
        "Correct the path or its permissions, and run again.",
    )
