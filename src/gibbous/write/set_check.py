"""One file of a synthetic set against its schema: names, order, types, levels, bounds, number of rows."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure, GibbousError, ModelRejected
from gibbous.core.schema import Schema
from gibbous.encode.encode import encode
from gibbous.read.conform import plain
from gibbous.read.csv_text import last_end, parsed
from gibbous.read.files import BLOCK
from gibbous.write.durable_files import rejected
from gibbous.write.labelled_files import same_rows, written_by
from gibbous.write.parquet_guard import guarded_slices, metadata
from gibbous.write.rows import guard, guarded_name
from gibbous.write.set_files import names_of

if TYPE_CHECKING:
    import polars as pl

SLICE = 1 << 18  # rows: those of a row group that `write_files` makes
_ANY = 1 << 40


def check_set(path: Path, schema: Schema, rows: int) -> Iterator[tuple[Codes, pl.DataFrame]]:
    """Read one Parquet file of a set in slices of SLICE rows; one slice without rows of an empty file.

    Args:
        schema: with a row unit and no ignored columns.
        rows: what the certificate says.
    Raises:
        ModelRejected: something is outside the schema.
    """
    info = metadata(path)
    if tuple(info.columns) != schema.names:
        raise rejected("COLUMNS", f"{path.name} does not have the columns of the schema in order")
    if info.rows != rows:
        raise rejected("ROWS", f"{path.name} does not have {rows:,} rows")
    for frame in guarded_slices(path, SLICE):
        frame = frame.with_columns(plain(frame.schema))
        yield _codes(frame, schema, path.name), frame


def check_both(
    path: Path, csv: Path, schema: Schema, rows: int, *, raw: bool
) -> Iterator[tuple[Codes, pl.DataFrame]]:
    """`check_set` of a Parquet file, each slice compared with the CSV file of the same rows.

    ModelRejected where they differ; `raw`: whether text of the CSV file was left as it is.
    """
    texts = _texts(csv, schema, raw=raw)
    for codes, frame in check_set(path, schema, rows):
        _check_text(next(texts, None), csv, schema, frame, codes, raw=raw)
        yield codes, frame
    if any(rest.height for rest in texts):
        raise _other_shape(csv)


def check_labelled(folder: Path, receipt: Mapping[str, Any], schema: Schema) -> str:
    """Write the labelled files again from the Parquet files, and compare; else says why that was not done."""
    told = receipt["files"]["labelled"]
    form, writer = str(told["format"]), f"{told['library']} {told['version']}"
    try:
        here = written_by(form)["labelled"]["version"]
    except EngineFailure:
        here = "none"
    if here != told["version"]:
        return f"the {form} files were not compared: {writer} wrote them, here it is {here}"
    numbers = range(1, receipt["sets"] + 1)
    pairs = [
        pair
        for i in numbers
        for pair in zip(names_of(receipt, i), names_of(receipt, i, form), strict=True)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for name, beside in pairs:
            if not same_rows(folder / name, folder / beside, schema, Path(scratch)):
                raise rejected("LABELLED", f"{beside!r} does not hold the rows of {name!r}")
    return ""


def _texts(path: Path, schema: Schema, *, raw: bool) -> Iterator[pl.DataFrame]:
    """The CSV file of a set in the slices of `check_set`, as text; ModelRejected if it is none."""
    import polars as pl

    names = [name if raw else guarded_name(name) for name in schema.names]
    left = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    for text, head in _whole_records(path):
        try:
            part = parsed(text, has_header=head)
            first = text[: last_end(text, first=True)].decode() if head else ""
            stated = next(csv.reader(io.StringIO(first, newline="")), [])
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, csv.Error):
            raise _other_shape(path) from None
        if part.width != len(names) or (head and stated != names):
            raise _other_shape(path)
        left = pl.concat([left, part.rename(dict(zip(part.columns, names, strict=True)))])
        while left.height >= SLICE:
            yield left.head(SLICE)
            left = left.slice(SLICE)
    yield left


def _whole_records(path: Path) -> Iterator[tuple[bytes, bool]]:
    """The bytes of a CSV file some records at a time, and whether they begin with the header."""
    left, head = b"", True
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                left += block
                end = last_end(left)
                if end:
                    yield left[:end], head
                    left, head = left[end:], False
    except OSError:
        raise _other_shape(path) from None
    if left or head:
        yield left, head


def _check_text(
    written_rows: pl.DataFrame | None,
    path: Path,
    schema: Schema,
    frame: pl.DataFrame,
    codes: Codes,
    *,
    raw: bool,
) -> None:
    """Raise ModelRejected where rows of a CSV set (None where it has ended) differ from the Parquet set."""
    import polars as pl

    if written_rows is None or written_rows.height != frame.height:
        raise _other_shape(path)
    shown = frame if raw else guard(frame)[0]
    for index, column in enumerate(schema):
        text, expected = written_rows.to_series(index).fill_null(""), shown.to_series(index)
        if column.binned:
            empty = pl.when(pl.first() == schema.null).then(None).otherwise(pl.first())
            values = text.to_frame().select(empty.alias(column.name))
            one = Schema((column,), null=schema.null)
            same = np.array_equal(
                _codes(values, one, path.name).values[:, 0], codes.by_column[index]
            ) and (column.kind == "date" or _numbers_agree(values.to_series(), expected))
        else:
            written = expected.cast(pl.String).fill_null(schema.null)
            same = bool((text == written).all())
        if not same:
            raise rejected(
                "CSV", f"{path.name} differs from its Parquet file in column {index + 1}"
            )


def _numbers_agree(texts: pl.Series, expected: pl.Series) -> bool:
    """Whether numbers that were written as text are those, whatever their form; null is null."""
    import polars as pl

    written = texts.cast(pl.Float64, strict=False)
    return bool(written.eq_missing(expected.cast(pl.Float64)).all())


def _other_shape(path: Path) -> ModelRejected:
    return rejected("CSV", f"{path.name} does not have the columns and rows of its Parquet file")


def _codes(frame: pl.DataFrame, schema: Schema, name: str) -> Codes:
    try:
        codes = encode(frame, schema, max_levels=_ANY)
    except GibbousError as error:
        why = error.wrong.rstrip(".")
    else:
        return Codes(schema, codes.values)
    raise rejected("SCHEMA", f"{name} does not fit its schema ({why})")
