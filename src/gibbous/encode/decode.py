"""Codes -> a frame of values: levels exactly, numbers and days within their bin, as its schema says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.schema import Column
from gibbous.core.stream import stream_key, words

if TYPE_CHECKING:
    import polars as pl

_STREAM = 0x646563  # "dec": keeps these streams apart from those that drew the codes
_STEP = 1  # the streams that choose a step of a bin
_GRID = 2**53
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
        Boolean, days Date; missing is null. Encoding it again gives the same codes.
    """
    import polars as pl

    from gibbous.encode.column_types import typed

    columns, drawn = [], dict(codes.numbers)
    asked = dict(types)
    for index, column in enumerate(codes.schema):
        column_codes = codes.by_column[index]
        if column.binned:
            if index in drawn:
                columns.append(_known(column, column_codes, drawn[index]))
                continue
            draw = words(stream_key(seed, _STREAM, set_index, index), start_row, codes.rows)
            if column.within is not None:
                key = stream_key(seed, _STREAM, set_index, index, _STEP)
                column, column_codes = stepped(
                    column, column_codes, words(key, start_row, codes.rows)
                )
            columns.append(_within(column, column_codes, draw))
        else:
            columns.append(_levels(column, column_codes, dictionary))
    for index, column in enumerate(codes.schema):
        text = asked.get(column.name)
        # A number that was paid for stays as it is, to the last digit.
        if text and not (index in drawn and text in _ROUNDED):
            columns[index] = typed(columns[index], column, text)
    return pl.DataFrame(columns)


def stepped(column: Column, codes: np.ndarray, draw: np.ndarray) -> tuple[Column, np.ndarray]:
    """A step of its bin for each row, in proportion to the weights; evenly drawn from, it is the law within.

    Args:
        column: with `within`.
        codes: of its bins, (rows,).
        draw: uint64 (rows,).
    Returns:
        The column with its steps for bins, and codes of these.
    """
    assert column.within is not None
    fine = replace(column, edges=column.within.edges, within=None)
    starts = np.searchsorted(np.array(fine.edges[:-1]), np.array(column.edges[:-1]))
    running = np.concatenate([[0.0], np.cumsum(np.array(column.within.weights, dtype=np.float64))])
    ends = np.append(starts[1:], fine.bins)
    inside = codes < column.bins
    own = np.where(inside, codes, 0)
    low, high = running[starts][own], running[ends][own]
    share = (draw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    place = np.searchsorted(running, low + share * (high - low), side="right") - 1
    place = np.clip(place, starts[own], ends[own] - 1)
    return fine, np.where(inside, place, fine.bins)


def _levels(column: Column, codes: np.ndarray, dictionary: bool) -> pl.Series:
    import polars as pl

    from gibbous.encode.levels import output_labels

    labels = output_labels(column)
    if labels.dtype == pl.String and (dictionary or column.kind == "ordinal"):
        labels = labels.cast(pl.Enum(labels.drop_nulls()))
    return labels.gather(pl.Series(codes))


def _known(column: Column, codes: np.ndarray, numbers: np.ndarray) -> pl.Series:
    """Numbers that a model drew: within the bounds, at the declared precision."""
    import polars as pl

    from gibbous.encode.bins import EPOCH, check_bounds

    check_bounds(column)
    inside = np.clip(numbers, float(column.edges[0]), float(column.edges[-1]))
    if column.integer or column.kind == "date":
        whole = np.rint(inside).astype(np.int64)
        values = pl.Series(column.name, whole)
        if column.kind == "date":
            values = pl.Series(column.name, (whole - EPOCH).astype(np.int32)).cast(pl.Date)
    else:
        places = column.decimals
        values = pl.Series(column.name, inside if places is None else np.round(inside, places))
    if not column.missing:
        return values
    return values.set(pl.Series(codes == column.missing_code), None)


def _within(column: Column, codes: np.ndarray, draw: np.ndarray) -> pl.Series:
    import polars as pl

    from gibbous.encode.bins import EPOCH, check_bounds

    check_bounds(column)
    missing = codes == column.missing_code if column.missing else None
    place = codes if missing is None else np.where(missing, 0, codes)
    if column.kind == "date":
        days = _whole(column, place, draw) - EPOCH
        values = pl.Series(column.name, days.astype(np.int32)).cast(pl.Date)
    elif column.integer:
        values = pl.Series(column.name, _whole(column, place, draw))
    elif column.decimals is not None:
        values = pl.Series(column.name, _rounded(column, place, draw))
    else:
        values = pl.Series(column.name, _real(column, place, draw))
    return values if missing is None else values.set(pl.Series(missing), None)


def _whole(column: Column, codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A whole number of the bin: [a, b), the last bin [a, b]."""
    low = np.array([int(e) for e in column.edges[:-1]], dtype=np.int64)
    stop = [int(e) for e in column.edges[1:-1]] + [int(column.edges[-1]) + 1]
    width = [b - int(a) for a, b in zip(column.edges[:-1], stop, strict=True)]
    return _offset(low, width, codes, draw)


def _offset(low: np.ndarray, width: list[int], codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    # A word modulo a width: the bias is below width / 2^64. A width of 2^64 is the word itself.
    step = np.array([w if w < 2**64 else 0 for w in width], dtype=np.uint64)[codes]
    full = step == 0
    offset = np.where(full, draw, draw % np.where(full, np.uint64(1), step))
    values: np.ndarray = (low[codes].view(np.uint64) + offset).view(np.int64)
    return values


def _real(column: Column, codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A number of the bin, which stays in it whatever the rounding."""
    edges = np.array([float(e) for e in column.edges])
    top = np.append(np.nextafter(edges[1:-1], -np.inf), edges[-1])
    share = (draw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    low, high = edges[codes], edges[codes + 1]
    values: np.ndarray = np.clip(low * (1.0 - share) + high * share, low, top[codes])
    return values


def _rounded(column: Column, codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A number of the bin with at most `decimals` places; a bin that has none keeps all its places."""
    unit = 10 ** (column.decimals or 0)
    scaled = [exact(e) * unit for e in column.edges]
    low = [math.ceil(e) for e in scaled[:-1]]
    stop = [math.ceil(e) for e in scaled[1:-1]] + [math.floor(scaled[-1]) + 1]
    fits = np.array([a < b and max(abs(a), abs(b)) < _GRID for a, b in zip(low, stop, strict=True)])
    if not fits.any():
        return _real(column, codes, draw)
    first = np.array([a if ok else 0 for a, ok in zip(low, fits, strict=True)], dtype=np.int64)
    width = [b - a if ok else 1 for a, b, ok in zip(low, stop, fits, strict=True)]
    values = _offset(first, width, codes, draw) / unit
    return values if fits.all() else np.where(fits[codes], values, _real(column, codes, draw))
