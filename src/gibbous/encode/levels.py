"""A column of levels -> codes, whatever type the values arrived as: text, numbers, booleans, days."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.schema import Column, Level, Schema

UNKNOWN = -1
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
_NUMBER = re.compile(r"[+-]?(?!0[0-9])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUE, _FALSE = ("True", "true", "TRUE", "1"), ("False", "false", "FALSE", "0")
_SPAN = 1 << 16
_EXACT = 2.0**53


def level_codes(values: pl.Series, column: Column, accepted: Accepted | None = None) -> np.ndarray:
    """Codes of a nominal, ordinal or binary column, (rows,); -1 outside the levels, or null.

    One level has one code however it is written: `True`, `true` and 1 for a boolean level, 7 and
    7.0 for a whole-number level, -0.0 and 0.0. Text levels match letter by letter. The array may be
    read-only; `accepted` is that of the column, if it is known already.
    """
    accepted = accepted or _accepted(column)
    known = accepted.known
    if values.dtype == pl.Boolean:
        pair = np.array([known.boolean.get(v, UNKNOWN) for v in (False, True)], dtype=np.int32)
        return _unless_null(values, pair[values.fill_null(value=False).to_numpy().astype(np.intp)])
    if values.dtype.is_integer():
        return _whole(values, known)
    if values.dtype.is_float():
        return _floats(values, known)
    if values.dtype == pl.Null:
        return np.full(len(values), UNKNOWN, dtype=np.int32)
    if isinstance(values.dtype, pl.Enum):  # once a category
        code = _texts(values.dtype.categories, known, accepted.typed)
        place = values.to_physical()
        if values.null_count():
            place = place.cast(pl.UInt32).fill_null(len(code))
        codes: np.ndarray = np.append(code, np.int32(UNKNOWN)).take(place.to_numpy())
        return codes
    return _texts(as_text(values), known, accepted.typed)


def as_text(values: pl.Series) -> pl.Series:
    """Days as ISO text, a day with a time of day that is midnight among them; dictionaries as their text."""
    if values.dtype == pl.Date:
        return values.dt.to_string("%Y-%m-%d")
    if isinstance(values.dtype, pl.Datetime):
        days = values.dt.date()
        midnight = days.cast(values.dtype) == values  # of each by itself: others change no text
        return days.dt.to_string("%Y-%m-%d").zip_with(midnight, values.dt.to_string("iso"))
    return values.cast(pl.String)


def by_unique(values: pl.Series, code_of: Callable[[Any], int]) -> np.ndarray:
    """Apply a function (value -> code, or -1) once a distinct value; nulls give -1. int64 (rows,)."""
    distinct = values.drop_nulls().unique()
    codes = pl.Series([code_of(v) for v in distinct.to_list()], dtype=pl.Int64)
    if len(distinct) == 0:
        return np.full(len(values), UNKNOWN, dtype=np.int64)
    frame = pl.DataFrame({"value": values}).join(
        pl.DataFrame({"value": distinct, "code": codes}),
        on="value",
        how="left",
        maintain_order="left",
    )
    return np.array(frame["code"].fill_null(UNKNOWN).to_numpy())


@dataclass(frozen=True, slots=True)
class _Known:
    """Every accepted way of writing the levels, by type of value."""

    text: dict[str, int]
    whole: dict[int, int]
    number: dict[float, int]
    boolean: dict[bool, int]


@dataclass(frozen=True, slots=True)
class Accepted:
    """What counts as which level of a column: with, and without, numbers spelled by text levels."""

    known: _Known
    typed: _Known


def accepted(column: Column) -> Accepted:
    """Every accepted way of writing the levels of a column."""
    return Accepted(_aliases(column), _aliases(column, spelled=False))


_accepted = accepted  # for where an argument has that name


def _aliases(column: Column, *, spelled: bool = True) -> _Known:
    """Accepted forms; without `spelled`, numbers and booleans of text levels are left out."""
    known = _Known({}, {}, {}, {})
    for code, level in enumerate(column.levels):
        known.text[str(level)] = code  # the level itself wins over another one's alias
    if column.other_code is not None and column.other is not None:
        known.text[column.other] = column.other_code
    typed = sorted(enumerate(column.levels), key=lambda item: isinstance(item[1], str))
    for code, level in typed:
        if isinstance(level, bool):
            _add(known, code, _TRUE if level else _FALSE, int(level), level)
        elif isinstance(level, int):
            _add(known, code, (), level, {0: False, 1: True}.get(level))
        elif isinstance(level, float):
            whole = int(level) if level.is_integer() else None
            _add(known, code, () if whole is None else (str(whole),), whole, None)
            known.number.setdefault(level, code)
        elif spelled:
            _add(known, code, (), _canonical(level), {"True": True, "False": False}.get(level))
            if _canonical(level) is None and _NUMBER.fullmatch(level):
                number = float(level)
                known.number.setdefault(number, code)
                if number.is_integer():  # integers and floats of one value are one level
                    known.whole.setdefault(int(number), code)
    for word, value in (("true", True), ("false", False)):
        if word in known.text:
            known.boolean.setdefault(value, known.text[word])
    return known


def _add(
    known: _Known, code: int, texts: tuple[str, ...], whole: int | None, boolean: bool | None
) -> None:
    for text in texts:
        known.text.setdefault(text, code)
    if whole is not None:
        known.whole.setdefault(whole, code)
    if boolean is not None:
        known.boolean.setdefault(boolean, code)


def _canonical(level: str) -> int | None:
    """The whole number that a text level writes, if it writes it plainly: '7', not '07'."""
    match = _WHOLE.fullmatch(level)
    return int(level) if match and match.group(1) == level and level != "-0" else None


def _texts(values: pl.Series, known: _Known, typed: _Known) -> np.ndarray:
    words = list(known.text)
    code = np.array([*known.text.values(), UNKNOWN], dtype=np.int32)
    place = values.cast(pl.Enum(words), strict=False).to_physical().cast(pl.Int32)
    codes: np.ndarray = code[place.fill_null(len(words)).to_numpy()]
    left = codes == UNKNOWN
    if not (typed.whole or typed.number) or not left.any():
        return codes

    def of(text: str) -> int:  # 7.0 for the level 7, 0.50 for the level 0.5; but never 07
        match = _WHOLE.fullmatch(text)
        if match:
            return typed.whole.get(int(match.group(1)), UNKNOWN)
        if typed.number and _NUMBER.fullmatch(text):
            return typed.number.get(float(text), UNKNOWN)
        return UNKNOWN

    codes[left] = by_unique(values.filter(pl.Series(left)), of)
    return codes


def _whole(values: pl.Series, known: _Known) -> np.ndarray:
    plain = _consecutive(values, known.whole)
    if plain is not None:
        return plain
    narrow = values.cast(pl.Int64, strict=False)
    codes = _lookup(narrow.fill_null(0).to_numpy(), known.whole)
    codes = _unless_null(narrow, codes)
    left = narrow.is_null().to_numpy() & values.is_not_null().to_numpy()
    if left.any():  # beyond 64 bits with sign: one by one, exactly
        part = values.filter(pl.Series(left))
        codes[left] = by_unique(part, lambda v: known.whole.get(v, UNKNOWN))
    return codes


def _consecutive(values: pl.Series, known: dict[int, int]) -> np.ndarray | None:
    """Codes by subtraction, where the levels are low, low + 1, ... in order and all values among them."""
    if not known or values.null_count() or values.is_empty() or values.dtype == pl.Int128:
        return None
    least: Any = values.min()
    most: Any = values.max()
    low = min(known)
    if least < low or most >= low + len(known) or any(c != k - low for k, c in known.items()):
        return None
    numbers = values.to_numpy()
    if low == 0:
        return numbers
    kind = np.iinfo(numbers.dtype)
    if kind.min <= low and most - low <= kind.max:
        return numbers - numbers.dtype.type(low)  # type: ignore[no-any-return]
    return (numbers.astype(np.int64) - low).astype(np.int32)


def _lookup(numbers: np.ndarray, known: dict[int, int]) -> np.ndarray:
    known = {k: c for k, c in known.items() if -(2**63) <= k < 2**63}
    if not known:
        return np.full(len(numbers), UNKNOWN, dtype=np.int32)
    low, high = min(known), max(known)
    if high - low < _SPAN:
        table = np.full(high - low + 2, UNKNOWN, dtype=np.int32)
        table[[k - low for k in known]] = list(known.values())
        inside = (numbers >= low) & (numbers <= high)
        found: np.ndarray = table[
            np.where(inside, numbers - low if low else numbers, high - low + 1)
        ]
        return found
    keys = np.array(sorted(known), dtype=np.int64)
    code = np.array([known[int(k)] for k in keys], dtype=np.int32)
    place = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.where(keys[place] == numbers, code[place], np.int32(UNKNOWN))


def _floats(values: pl.Series, known: _Known) -> np.ndarray:
    numbers = values.cast(pl.Float64).fill_null(math.nan).to_numpy()
    plain = np.abs(numbers) <= _EXACT
    plain &= np.floor(np.where(plain, numbers, 0.5)) == numbers
    codes = _lookup(np.where(plain, numbers, 0).astype(np.int64), known.whole)
    codes[~plain] = UNKNOWN
    if known.number and not plain.all():
        keys = np.array(sorted(known.number), dtype=np.float64)
        code = np.array([known.number[k] for k in keys.tolist()], dtype=np.int32)
        if values.dtype == pl.Float32:  # 0.1 was written by a 32-bit writer
            keys = keys.astype(np.float32).astype(np.float64)
        place = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
        hit = (keys[place] == numbers) & (codes == UNKNOWN)
        codes[hit] = code[place[hit]]
    return codes


def _unless_null(values: pl.Series, codes: np.ndarray) -> np.ndarray:
    if values.null_count():
        codes[values.is_null().to_numpy()] = UNKNOWN
    return codes


def output_labels(column: Column) -> pl.Series:
    """What each code of a column of levels is written as, in code order; missing is null.

    Returns:
        Text levels as String, whole numbers Int64 (UInt64, or text beyond it), numbers Float64,
        booleans Boolean. A declared `other` label, or levels of several types, make it text.
    """
    levels: list[Level] = list(column.levels)
    kinds = {type(level) for level in levels}
    dtype: Any = pl.String
    if column.other is None:
        if kinds == {bool}:
            dtype = pl.Boolean
        elif kinds == {int}:
            numbers: list[Any] = levels
            low, high = min(numbers), max(numbers)
            if low >= -(2**63) and high < 2**63:
                dtype = pl.Int64
            elif low >= 0 and high < 2**64:
                dtype = pl.UInt64
        elif kinds <= {int, float} and all(float(v) == v for v in levels):
            dtype = pl.Float64
    written: list[Any] = [str(v) for v in levels] if dtype == pl.String else list(levels)
    if dtype == pl.Float64:
        written = [float(v) for v in levels]
    if column.other is not None:
        written.append(column.other)
    if column.missing:
        written.append(None)
    return pl.Series(column.name, written, dtype=dtype)


def dictionaries(schema: Schema) -> dict[str, pl.Enum]:
    """For each column of levels, the texts that stand for one."""
    return {c.name: pl.Enum(list(accepted(c).known.text)) for c in schema if not c.binned}


def coded(frame: pl.DataFrame, known: Mapping[str, pl.Enum]) -> pl.DataFrame:
    """Replace text columns by their dictionaries where every text is known; the values are the same."""
    shorter = []
    for name, dtype in frame.schema.items():
        if dtype == pl.String and name in known:
            column = frame.get_column(name)
            short = column.cast(known[name], strict=False)
            if short.null_count() == column.null_count():
                shorter.append(short)
    return frame.with_columns(shorter) if shorter else frame
