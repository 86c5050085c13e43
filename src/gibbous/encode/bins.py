"""A numeric or date column -> bins, exactly: whole numbers never pass through a float."""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_right
from decimal import Decimal

import numpy as np
import polars as pl

from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.schema import Column
from gibbous.encode.faults import BOUNDS, DAY, FINITE, NUMBER, WHOLE, Fault, found
from gibbous.encode.levels import as_text, by_unique
from gibbous.read.fields import shown

EPOCH = datetime.date(1970, 1, 1).toordinal()
_ISO = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_SPAN = 1 << 16
_FEW_CUTS = 24
_EXACT = 2.0**53
_TOO_LOW, _TOO_HIGH, _NOT_A_NUMBER, _NOT_FINITE, _NOT_WHOLE = -2, -3, -4, -5, -6


def bin_codes(values: pl.Series, column: Column) -> tuple[np.ndarray, list[Fault]]:
    """Codes of a numeric or date column, int32 (rows,), 0 where null; and what does not fit.

    Raises:
        SchemaMismatch: the type of the column has nothing to do with its kind.
        UsageError: bounds of whole numbers beyond 64 bits.
    """
    dtype = values.dtype
    if dtype == pl.Null:
        return np.zeros(len(values), dtype=np.int32), []
    if column.kind == "date":
        ordinals, unread = _days(values, column)
        codes, misfits = _settle(_bin_whole(ordinals, column), values, column)
        return codes, unread + misfits
    if dtype == pl.Boolean:
        values, dtype = values.cast(pl.Int64), pl.Int64()
    if dtype.is_integer():
        codes = _whole(values, column)
    elif dtype.is_float():
        codes = _floats(values, column)
    elif dtype in (pl.String, pl.Categorical, pl.Enum):
        codes = _texts(as_text(values), column)
    else:
        raise wrong_type(values, column)
    return _settle(codes, values, column)


def numbers(values: pl.Series, column: Column) -> np.ndarray:
    """Numbers of a column that `bin_codes` accepted, float64 (rows,), within its bounds.

    Dates are proleptic ordinals; null gives the lower bound.
    """
    low, high = float(column.edges[0]), float(column.edges[-1])
    if column.kind == "date":
        parsed = _days(values, column)[0].astype(np.float64)
    elif values.dtype in (pl.String, pl.Categorical, pl.Enum):
        text = as_text(values)
        read = text.cast(pl.Float64, strict=False)
        parsed = read.fill_null(math.nan).to_numpy(writable=True)
        left = np.isnan(parsed) & text.is_not_null().to_numpy()
        if left.any():
            part = text.filter(pl.Series(left)).to_list()
            parsed[left] = [
                float(Decimal(value)) if _NUMBER.fullmatch(value) else float(value)
                for value in part
            ]
    else:
        parsed = values.cast(pl.Float64).fill_null(math.nan).to_numpy(writable=True)
    if values.null_count():
        parsed[values.is_null().to_numpy()] = low
    inside: np.ndarray = np.clip(parsed, low, high)
    return inside


def check_bounds(column: Column) -> None:
    """Raise UsageError for bounds of whole numbers beyond 64 bits."""
    ends = column.edges[0], column.edges[-1]
    if (column.integer or column.kind == "date") and any(not -(2**63) <= e < 2**63 for e in ends):
        raise UsageError(
            "SCHEMA",
            f"Column {shown(column.name)} has bounds beyond 64-bit whole numbers.",
            "Bounds lie within -2^63 and 2^63 - 1.",
            "Use kind = 'nominal' for such codes, or narrower bounds, in the schema.",
        )


def wrong_type(values: pl.Series, column: Column) -> SchemaMismatch:
    """The error for a column whose type has nothing to do with its kind."""
    return SchemaMismatch(
        "TYPE",
        f"Column {shown(column.name)} is {column.kind} in the schema and {values.dtype} in the data.",
        "A numeric column holds numbers or their text; a date column holds days or their text.",
        "Correct kind in the schema, or convert the column.",
    )


def _settle(codes: np.ndarray, values: pl.Series, column: Column) -> tuple[np.ndarray, list[Fault]]:
    """Clamp, and turn the marks of `codes` into faults."""
    if codes.size == 0 or codes.min() >= 0:
        return codes, []
    if values.null_count():
        codes[values.is_null().to_numpy()] = 0
    if column.clamp:
        codes[codes == _TOO_LOW] = 0
        codes[codes == _TOO_HIGH] = column.bins - 1
    faults = found(NUMBER, column.name, codes == _NOT_A_NUMBER)
    faults += found(FINITE, column.name, codes == _NOT_FINITE)
    faults += found(WHOLE, column.name, codes == _NOT_WHOLE)
    faults += found(BOUNDS, column.name, (codes == _TOO_LOW) | (codes == _TOO_HIGH))
    return codes, faults


def _whole(values: pl.Series, column: Column) -> np.ndarray:
    narrow = values.cast(pl.Int64, strict=False)
    codes = _bin_whole(narrow.fill_null(0).to_numpy(), column)
    left = narrow.is_null().to_numpy() & values.is_not_null().to_numpy()
    if left.any():
        part = values.filter(pl.Series(left))
        codes[left] = by_unique(part, lambda v: _bin_exact(Decimal(v), column))
    return codes


def _bin_whole(numbers: np.ndarray, column: Column) -> np.ndarray:
    """Bins of int64 numbers; v >= edge iff v >= ceil(edge), so that all is done in whole numbers."""
    low, high = math.ceil(column.edges[0]), math.floor(column.edges[-1])
    cuts = [math.ceil(e) for e in column.edges[1:-1]]
    if any(not -(2**63) <= e < 2**63 for e in (low, high)):  # a float column with enormous bounds
        return _bin_float(numbers.astype(np.float64), column)
    inner = np.array(cuts, dtype=np.int64)
    if high - low < _SPAN:
        span = np.arange(low, high + 1, dtype=np.int64)
        table = np.searchsorted(inner, span, side="right").astype(np.int32)
        table = np.concatenate((table, np.array([_TOO_LOW, _TOO_HIGH], dtype=np.int32)))
        if len(numbers) and numbers.min() >= low and numbers.max() <= high:
            inner_codes: np.ndarray = table[numbers - low]
            return inner_codes
        place = np.where(numbers < low, len(span), np.where(numbers > high, len(span) + 1, 0))
        inside = place == 0
        place[inside] = numbers[inside] - low
        return table[place]
    codes = np.searchsorted(inner, numbers, side="right").astype(np.int32)
    codes[numbers < low] = _TOO_LOW
    codes[numbers > high] = _TOO_HIGH
    return codes


def _floats(values: pl.Series, column: Column) -> np.ndarray:
    numbers = values.cast(pl.Float64).fill_null(column.edges[0]).to_numpy()
    if not column.integer:
        return _bin_float(numbers, column)
    plain = np.abs(numbers) <= _EXACT
    whole = plain & (np.floor(np.where(plain, numbers, 0.5)) == numbers)
    codes = _bin_whole(np.where(whole, numbers, 0.0).astype(np.int64), column)
    codes[~whole] = _NOT_WHOLE
    codes[numbers == -math.inf] = _TOO_LOW
    codes[numbers == math.inf] = _TOO_HIGH
    return _mark_infinite(codes, numbers, clamp=column.clamp)


def _bin_float(numbers: np.ndarray, column: Column) -> np.ndarray:
    edges = np.array([float(e) for e in column.edges])
    cuts = edges[1:-1]
    if len(cuts) > _FEW_CUTS:
        codes = np.searchsorted(cuts, numbers, side="right").astype(np.int32)
    else:  # a comparison of all rows at once: faster than a search row by row
        few = np.zeros(len(numbers), dtype=np.uint8)
        for cut in cuts:
            few += numbers >= cut
        codes = few.astype(np.int32)
    codes[numbers < edges[0]] = _TOO_LOW
    codes[numbers > edges[-1]] = _TOO_HIGH
    return _mark_infinite(codes, numbers, clamp=column.clamp)


def _mark_infinite(codes: np.ndarray, numbers: np.ndarray, *, clamp: bool) -> np.ndarray:
    odd = np.isnan(numbers) if clamp else ~np.isfinite(numbers)
    codes[odd] = _NOT_FINITE
    return codes


def _texts(values: pl.Series, column: Column) -> np.ndarray:
    if column.integer:
        parsed = values.cast(pl.Int64, strict=False)
        codes = _bin_whole(parsed.fill_null(0).to_numpy(), column)
        plain = parsed.is_not_null().to_numpy()
    else:
        numbers = values.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
        codes = _bin_float(numbers, column)
        plain = np.abs(numbers) < _EXACT
    left = ~plain & values.is_not_null().to_numpy()
    if left.any():  # not in the plain form, or not exact as a float: one by one
        part = values.filter(pl.Series(left))
        codes[left] = by_unique(part, lambda text: _bin_text(text, column))
    if values.null_count():
        codes[values.is_null().to_numpy()] = 0
    return codes


def _bin_text(text: str, column: Column) -> int:
    if not _NUMBER.fullmatch(text):
        infinite = _INFINITE.fullmatch(text)
        if infinite and column.clamp and not text.lower().endswith("nan"):
            return _TOO_LOW if text[0] == "-" else _TOO_HIGH
        return _NOT_FINITE if infinite else _NOT_A_NUMBER
    try:
        number = Decimal(text)
    except ArithmeticError:  # an exponent that not even Decimal holds
        return _NOT_FINITE
    if math.isinf(float(number)) and not column.clamp:
        return _NOT_FINITE
    if column.integer and number != number.to_integral_value():
        return _NOT_WHOLE
    return _bin_exact(number, column)


def _bin_exact(number: Decimal, column: Column) -> int:
    if number < column.edges[0]:
        return _TOO_LOW
    if number > column.edges[-1]:
        return _TOO_HIGH
    return min(bisect_right(column.edges, number) - 1, column.bins - 1)


def _days(values: pl.Series, column: Column) -> tuple[np.ndarray, list[Fault]]:
    """Proleptic ordinals, int64 (rows,), and what cannot be read."""
    faults: list[Fault] = []
    if values.dtype == pl.Null:
        return np.full(len(values), int(column.edges[0]), dtype=np.int64), faults
    if isinstance(values.dtype, pl.Datetime):
        days = values.dt.date()
        timed = (days.cast(values.dtype) != values).fill_null(value=False)
        faults = found(DAY, column.name, timed.to_numpy())
        values = days
    if values.dtype == pl.Date:
        ordinals = values.to_physical().cast(pl.Int64).fill_null(0).to_numpy() + EPOCH
    elif values.dtype in (pl.String, pl.Categorical, pl.Enum):
        text = as_text(values)
        ordinals = _ordinals(text, column.date_format)
        unread = (ordinals < 0) & text.is_not_null().to_numpy()
        faults = found(DAY, column.name, unread)
        ordinals = np.where(ordinals < 0, int(column.edges[0]), ordinals)
    else:
        raise wrong_type(values, column)
    return ordinals, faults


def _ordinals(text: pl.Series, form: str | None) -> np.ndarray:
    """Proleptic ordinals of days in text; -1 where it is not a day in the declared form."""
    distinct = text.drop_nulls().unique()
    days = distinct.str.to_date(form or "%Y-%m-%d", strict=False).to_physical().cast(pl.Int64)
    days = (days + EPOCH).fill_null(-1)
    odd = days < 1  # before the year 1
    if form is None:
        odd |= ~distinct.str.contains(_ISO)
    known = dict(zip(distinct.to_list(), days.set(odd, -1).to_list(), strict=True))
    return by_unique(text, known.__getitem__)
