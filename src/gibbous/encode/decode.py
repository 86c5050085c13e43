"""Codes -> a frame of values: levels exactly, numbers and days within their bin, as its schema says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.schema import Column
from gibbous.encode.placing import STREAM, placed
from gibbous.encode.ruled_rows import ruled

if TYPE_CHECKING:
    import polars as pl

_ROUNDED = ("Float32",)


def decode(
    codes: Codes,
    *,
    seed: int,
    set_index: int = 0,
    start_row: int = 0,
    dictionary: bool = False,
    types: tuple[tuple[str, str], ...] = (),
) -> pl.DataFrame:
    """Turn codes into values; a row's values depend on (seed, set, row) and nothing else.

    Args:
        codes: public codes.
        seed: sampling seed; places numbers and days within their bins.
        set_index: which synthetic set, >= 0.
        start_row: row number, within the set, of the first row of `codes`: the same rows come out
            however a set is cut into batches.
        dictionary: text columns as dictionaries (polars Enum), which write faster and smaller;
            otherwise as String. Text of ordinal columns is an Enum either way.
        types: (name, type) of columns that are to have the type of the input, which `fitting` gave.
    Returns:
        One column a schema column: text String, whole numbers Int64, numbers Float64, booleans
        Boolean, days Date; missing is null. Encoding it again gives the same codes, but for rows that
        broke a rule of the schema: these are made to keep it.
    """
    at = {"set_index": set_index, "start_row": start_row}
    return decoded(codes, seed=seed, **at, dictionary=dictionary, types=types)[0]


def decoded(
    codes: Codes,
    *,
    seed: int,
    set_index: int = 0,
    start_row: int = 0,
    dictionary: bool = False,
    types: tuple[tuple[str, str], ...] = (),
) -> tuple[pl.DataFrame, tuple[int, ...]]:
    """What `decode` returns, and how many rows each rule changed."""
    import polars as pl

    from gibbous.encode.column_types import typed

    kept = ruled(codes, seed=seed, set_index=set_index, start_row=start_row)
    codes = kept.codes
    columns, drawn = [], dict(codes.numbers)
    asked = dict(types)
    for index, column in enumerate(codes.schema):
        column_codes = codes.by_column[index]
        if column.binned:
            if index in drawn:
                columns.append(_known(column, column_codes, drawn[index]))
                continue
            rows = np.arange(start_row, start_row + codes.rows, dtype=np.uint64)
            numbers = placed(column, column_codes, rows, (seed, STREAM, set_index, index))
            columns.append(_series(column, column_codes, numbers))
        else:
            columns.append(_levels(column, column_codes, dictionary))
    for index, column in enumerate(codes.schema):
        text = asked.get(column.name)
        # A number that was paid for stays as it is, to the last digit.
        if text and not (index in drawn and text in _ROUNDED):
            columns[index] = typed(columns[index], column, text)
    return pl.DataFrame(columns), kept.changed


def _levels(column: Column, codes: np.ndarray, dictionary: bool) -> pl.Series:
    import polars as pl

    from gibbous.encode.levels import output_labels

    labels = output_labels(column)
    if labels.dtype == pl.String and (dictionary or column.kind == "ordinal"):
        labels = labels.cast(pl.Enum(labels.drop_nulls()))
    return labels.gather(pl.Series(codes))


def _known(column: Column, codes: np.ndarray, numbers: np.ndarray) -> pl.Series:
    """Numbers that a model drew or a rule placed: within the bounds, at the declared precision."""
    from gibbous.encode.bins import check_bounds

    check_bounds(column)
    inside = np.clip(numbers, float(column.edges[0]), float(column.edges[-1]))
    if column.integer or column.kind == "date":
        inside = np.rint(inside).astype(np.int64)
    elif column.decimals is not None:
        inside = np.round(inside, column.decimals)
    return _series(column, codes, inside)


def _series(column: Column, codes: np.ndarray, numbers: np.ndarray) -> pl.Series:
    import polars as pl

    from gibbous.encode.bins import EPOCH

    if column.kind == "date":
        values = pl.Series(column.name, (numbers - EPOCH).astype(np.int32)).cast(pl.Date)
    else:
        values = pl.Series(column.name, numbers)
    if not column.missing:
        return values
    return values.set(pl.Series(codes == column.missing_code), None)
