"""Types of output columns: that of the input where the schema lets every value have it, else a plain one.

What decides is the schema and the type that was given; no record and no draw.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.schema import Column, Schema

if TYPE_CHECKING:
    import polars as pl

_SIZED = re.compile(r"(Int|UInt|Float)(8|16|32|64|128)")
_PLAIN = ("String", "Boolean", "Date", "Categorical", "Enum")
_TIME = re.compile(r"Datetime\[(ms|us|ns)(?:, ([A-Za-z0-9_+/-]{1,64}))?\]")
_DECIMAL = re.compile(r"Decimal\[([1-9][0-9]?), ([0-9]{1,2})\]")
_DAYS = {"ns": (datetime.date(1678, 1, 1), datetime.date(2262, 1, 1))}


def type_text(dtype: pl.DataType) -> str:
    """A polars type in words of ours, without the categories of an Enum: "Int8", "Datetime[us, UTC]"."""
    import polars as pl

    if isinstance(dtype, pl.Datetime):
        zone = f", {dtype.time_zone}" if dtype.time_zone else ""
        return f"Datetime[{dtype.time_unit}{zone}]"
    if isinstance(dtype, pl.Decimal):
        return f"Decimal[{dtype.precision or 38}, {dtype.scale}]"
    return str(dtype.base_type().__name__)


def type_of(text: str) -> Any:
    """The polars type that `type_text` wrote; None for a text that it never writes."""
    import polars as pl

    if text in _PLAIN or _SIZED.fullmatch(text):
        return getattr(pl, text, None)
    if found := _TIME.fullmatch(text):
        return pl.Datetime(found[1], found[2])  # type: ignore[arg-type]
    if found := _DECIMAL.fullmatch(text):
        return pl.Decimal(int(found[1]), int(found[2]))
    return None


def fitting(schema: Schema, given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The given types (name -> `type_text`) that every value of their column can have, in schema order."""
    return tuple(
        (column.name, given[column.name])
        for column in schema
        if column.name in given and fits(column, given[column.name])
    )


def fits(column: Column, text: str) -> bool:
    """Whether all that a column can hold has a value of this type, which reads back as the same code."""
    import polars as pl

    dtype = type_of(text)
    if dtype is None:
        return False
    if not column.binned:
        return _levels_fit(column, dtype)
    if column.kind == "date":
        return dtype == pl.Date or (isinstance(dtype, pl.Datetime) and _days_fit(column, dtype))
    if isinstance(dtype, pl.Decimal):
        return _decimals_fit(column, dtype)
    if dtype.is_integer():
        low, high = dtype.min(), dtype.max()
        ends = pl.select(low=low, high=high).row(0)
        return bool(column.integer and ends[0] <= column.edges[0] and column.edges[-1] <= ends[1])
    if dtype == pl.Float32:  # all whole numbers up to 2^24; in others a bin may be too narrow
        most = max(abs(edge) for edge in column.edges)
        return most <= 2**24 if column.integer else _singles_fit(column)
    return bool(dtype == pl.Float64)


def typed(values: pl.Series, column: Column, text: str) -> pl.Series:
    """Values of a column, as `decode` makes them, as a type that `fits` it."""
    import polars as pl

    from gibbous.encode.levels import output_labels

    dtype = type_of(text)
    if isinstance(values.dtype, pl.Enum | pl.Categorical) and dtype not in (
        pl.Enum,
        pl.Categorical,
    ):
        values = values.cast(pl.String)  # no dictionary becomes anything else
    if dtype in (pl.Enum, pl.Categorical) and values.dtype != pl.String:
        labels = output_labels(column).drop_nulls()
        told = dict(zip(labels, category_texts(column), strict=True))
        values = values.replace_strict(told, return_dtype=pl.String)
    if dtype == pl.Enum:
        return values.cast(pl.Enum(category_texts(column)))
    if isinstance(dtype, pl.Datetime):
        return _times(values.cast(pl.Date) if not column.binned else values, dtype)
    if dtype == pl.Float32 and column.binned and not column.integer:
        return _singles(values, column)
    if isinstance(dtype, pl.Decimal) and values.dtype == pl.Float64:
        return values.round(dtype.scale).cast(dtype)
    if dtype == pl.Boolean and values.dtype == pl.String:
        return values.str.to_lowercase() == "true"
    return values.cast(dtype)


def dictionary_casts(schema: Schema, given: Mapping[str, str]) -> list[pl.Expr]:
    """Text of a file that `decode` wrote -> the dictionaries it was: those asked for, and ordinal ones."""
    import polars as pl

    from gibbous.encode.levels import output_labels

    asked, casts = dict(fitting(schema, given)), []
    for column in schema:
        usual = column.kind == "ordinal" and output_labels(column).dtype == pl.String
        text = asked.get(column.name, "Enum" if usual else "")
        if text == "Categorical":
            casts.append(pl.col(column.name).cast(pl.Categorical))
        elif text == "Enum":
            casts.append(pl.col(column.name).cast(pl.Enum(category_texts(column))))
    return casts


def category_texts(column: Column) -> list[str]:
    """Its levels as text in the declared order, then `other`: the categories of a dictionary."""
    return [str(level) for level in column.levels] + ([column.other] if column.other else [])


def _levels_fit(column: Column, dtype: Any) -> bool:
    import polars as pl

    from gibbous.encode.levels import level_codes, output_labels

    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return True
    labels = output_labels(column).drop_nulls()
    if isinstance(dtype, pl.Datetime) and dtype.time_zone:
        return False
    try:
        back = typed(labels, column, type_text(dtype))
        return bool(level_codes(back, column).tolist() == list(range(len(labels))))
    except (pl.exceptions.PolarsError, ValueError, OverflowError):
        return False


def _days_fit(column: Column, dtype: Any) -> bool:
    import polars as pl

    first, last = (
        datetime.date.fromordinal(int(edge)) for edge in (column.edges[0], column.edges[-1])
    )
    low, high = _DAYS.get(dtype.time_unit, (datetime.date(2, 1, 1), datetime.date(9998, 12, 31)))
    if not low <= first <= last <= high:
        return False
    if dtype.time_zone is None:
        return True
    try:  # some zones skipped a midnight
        days = pl.date_range(first, last, eager=True)
        return not _times(days, dtype).null_count()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False


def _times(days: pl.Series, dtype: Any) -> pl.Series:
    import polars as pl

    times = days.cast(pl.Datetime(dtype.time_unit))
    if dtype.time_zone is None:
        return times
    return times.dt.replace_time_zone(dtype.time_zone, ambiguous="earliest", non_existent="null")


def _decimals_fit(column: Column, dtype: Any) -> bool:
    unit, most = 10**dtype.scale, max(abs(exact(edge)) for edge in column.edges)
    if most * unit >= min(10**dtype.precision, 2**53):
        return False
    if column.integer:
        return True
    if column.decimals is None or column.decimals > dtype.scale:
        return False
    edges = column.within.edges if column.within else column.edges
    scaled = [exact(edge) * 10**column.decimals for edge in edges]
    inner = zip(scaled[:-2], scaled[1:-1], strict=True)
    return all(-(-a // 1) < b for a, b in inner) and -(-scaled[-2] // 1) <= scaled[-1] // 1


def _singles_fit(column: Column) -> bool:
    """Whether every bin holds a number of single precision."""
    edges = np.array(column.edges, dtype=np.float64)
    if np.abs(edges).max() > float(np.finfo(np.float32).max):
        return False
    least = _up(edges[:-1])
    return bool((least[:-1] < edges[1:-1]).all() and least[-1] <= edges[-1])


def _singles(values: pl.Series, column: Column) -> pl.Series:
    """Numbers of single precision in the bin of each number: the next lower one, or the bin's first."""
    import polars as pl

    numbers = values.fill_null(column.edges[0]).to_numpy()
    edges = np.array(column.edges, dtype=np.float64)
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, column.bins - 1)
    near = numbers.astype(np.float32)
    below = np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)
    found = np.maximum(below.astype(np.float64), _up(edges[:-1])[place]).astype(np.float32)
    single = pl.Series(values.name, found)
    return single if not values.null_count() else single.set(values.is_null(), None)


def _up(numbers: np.ndarray) -> np.ndarray:
    """The least numbers of single precision that are not below these, as float64."""
    near = numbers.astype(np.float32)
    above = np.where(near < numbers, np.nextafter(near, np.float32(np.inf)), near)
    return np.asarray(above, dtype=np.float64)
