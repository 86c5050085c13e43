"""A frame -> 32 bytes that name its multiset of rows, whatever their order or file format.

The inner hash is fast and keyed, and only has to keep different tables apart. What is given out is a
keyed cryptographic hash of its sum: without the key of this installation it says nothing about rows.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.context import mix64

_LANES = 2
_MANY = 5_000
_SPAN = 1 << 20
_TRUE, _FALSE = frozenset(("True", "true", "TRUE")), frozenset(("False", "false", "FALSE"))


def fingerprint(frame: pl.DataFrame, key: bytes, null: str) -> bytes:
    """Name the multiset of rows of a table.

    Args:
        frame: all columns of the input.
        key: secret key of this installation.
        null: the text that means missing; it counts as null in every format.
    Returns:
        32 bytes. Equal for the same rows in any order, with the columns in any order, from CSV,
        Parquet or a frame: 7, 7.0, "7" and "07" count as one value, as do true and 1, a day and its
        ISO text, null and the null text.
    Source:
        Sums of keyed hashes modulo 2^64 in two lanes; BLAKE2b (RFC 7693) around them.
    """
    keys = _Keys(key)
    lanes = [np.zeros(frame.height, dtype=np.uint64) for _ in range(_LANES)]
    for name in frame.columns:
        for held, part in zip(lanes, _column(frame[name], keys, null), strict=True):
            held += part
    outer = hashlib.blake2b(key=keys.derive(b"total"), digest_size=32)
    for lane, sums in enumerate(lanes):
        step = keys.word(b"row", lane)
        outer.update(int(mix64(sums + step).sum(dtype=np.uint64)).to_bytes(8, "little"))
    outer.update(frame.height.to_bytes(8, "little"))
    for name in sorted(frame.columns):
        outer.update(hashlib.blake2b(name.encode("utf-8", "surrogatepass")).digest())
    return outer.digest()


class _Keys:
    """Words derived from the secret key."""

    def __init__(self, key: bytes) -> None:
        self._root = hashlib.blake2b(key, person=b"gibbous-rows").digest()

    def derive(self, what: bytes) -> bytes:
        return hashlib.blake2b(what, key=self._root, digest_size=32).digest()

    def word(self, what: bytes, lane: int) -> np.uint64:
        return np.uint64(int.from_bytes(self.derive(b"%d:%s" % (lane, what))[:8], "little"))

    def text(self, value: str) -> list[int]:
        data = value.encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(data, key=self._root, digest_size=8 * _LANES).digest()
        return [int.from_bytes(found[8 * i : 8 * i + 8], "little") for i in range(_LANES)]


def _column(values: pl.Series, keys: _Keys, null: str) -> list[np.ndarray]:
    """The column's part of each row's hash, one array a lane."""
    values = _plain(values)
    tag = b"column:" + values.name.encode("utf-8", "surrogatepass")
    steps = [keys.word(tag, lane) for lane in range(_LANES)]
    if values.dtype.is_integer() and values.dtype != pl.Int128:
        parts = _small_span(values, steps)
        if parts is not None:
            return _null_parts(values, parts, keys, steps)
    if values.dtype == pl.String and values.head(2 * _MANY).n_unique() < _MANY:
        distinct = values.drop_nulls().unique()
        hashed = _hashed(distinct, keys, steps, null)
        place = values.cast(pl.Enum(distinct)).to_physical().fill_null(0).to_numpy()
        parts = [h[place] if len(h) else np.zeros(len(values), np.uint64) for h in hashed]
        return _null_parts(values, parts, keys, steps)
    return _null_parts(values, _hashed(values, keys, steps, null), keys, steps)


def _plain(values: pl.Series) -> pl.Series:
    """The few types that hashing knows: text, whole numbers, float64."""
    dtype = values.dtype
    if dtype == pl.Boolean:
        return values.cast(pl.Int8)
    if dtype == pl.Float32:  # as its shortest text, which is what a CSV of it says
        return values.cast(pl.String).cast(pl.Float64)
    if dtype in (pl.Categorical, pl.Enum, pl.Null):
        return values.cast(pl.String)
    if dtype == pl.Date:
        return values.dt.to_string("%Y-%m-%d")
    if isinstance(dtype, pl.Datetime):
        days = values.dt.date()
        whole = bool((days.cast(dtype) == values).all())
        return days.dt.to_string("%Y-%m-%d") if whole else values.dt.to_string("iso")
    return values


def _small_span(values: pl.Series, steps: list[np.uint64]) -> list[np.ndarray] | None:
    low: Any = values.min()
    high: Any = values.max()
    if low is None or high - low >= _SPAN or low < -(2**63) or high >= 2**63:
        return None
    span = np.arange(low, high + 1, dtype=np.int64).view(np.uint64)
    place = values.fill_null(low).cast(pl.Int64).to_numpy() - low
    return [mix64(span + step)[place] for step in steps]


def _null_parts(
    values: pl.Series, parts: list[np.ndarray], keys: _Keys, steps: list[np.uint64]
) -> list[np.ndarray]:
    if values.null_count() == 0:
        return parts
    missing = values.is_null().to_numpy()
    words = _missing(keys)
    for part, word, step in zip(parts, words, steps, strict=True):
        part[missing] = mix64(np.array([word], dtype=np.uint64) + step)[0]
    return parts


def _missing(keys: _Keys) -> list[int]:
    return [int(keys.word(b"missing", lane)) for lane in range(_LANES)]


def _hashed(values: pl.Series, keys: _Keys, steps: list[np.uint64], null: str) -> list[np.ndarray]:
    """Hash value by value, null aside: numbers in bulk, the rest once a distinct text."""
    whole, is_whole, real, is_real = _numbers(values)
    bases = [whole.view(np.uint64).copy() for _ in range(_LANES)]
    real_words = keys.word(b"real", 0)
    for base in bases:
        base[is_real] = mix64(real[is_real].view(np.uint64) + real_words)
    left = ~(is_whole | is_real) & values.is_not_null().to_numpy()
    if values.dtype == pl.String:
        left |= (values == null).fill_null(value=False).to_numpy()
    if left.any():
        part = values.filter(pl.Series(left)).cast(pl.String)
        distinct = part.unique()
        words = [_words(text, keys, null) for text in distinct.to_list()]
        place = part.cast(pl.Enum(distinct)).to_physical().to_numpy()
        table = np.array(words, dtype=np.uint64)
        for lane, base in enumerate(bases):
            base[left] = table[place, lane]
    return [mix64(base + step) for base, step in zip(bases, steps, strict=True)]


def _numbers(values: pl.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers within 64 bits, and other finite numbers, with masks."""
    narrow = values.cast(pl.Int64, strict=False) if not values.dtype.is_float() else None
    if narrow is not None and (values.dtype.is_integer() or narrow.null_count() == 0):
        none = np.zeros(len(values), dtype=bool)
        mask = narrow.is_not_null().to_numpy()
        return narrow.fill_null(0).to_numpy(), mask, np.zeros(len(values)), none
    real = values.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    small = np.abs(real) < 2.0**63
    integral = small & (np.floor(np.where(small, real, 0.5)) == real)
    whole = np.where(integral, real, 0.0).astype(np.int64)
    if narrow is not None:  # text: exact where the text is a whole number
        exact = narrow.is_not_null().to_numpy()
        whole = np.where(exact, narrow.fill_null(0).to_numpy(), whole)
        integral |= exact
    return whole, integral, real, small & ~integral


def _words(text: str, keys: _Keys, null: str) -> list[int]:
    if text == null:
        return _missing(keys)
    if text in _TRUE or text in _FALSE:
        return [int(text in _TRUE)] * _LANES
    try:
        number = float(text) if len(text) < 400 else math.nan
    except ValueError:
        return keys.text(text)
    if math.isinf(number) or math.isnan(number):
        return keys.text(text.lower() if len(text) < 400 else text)
    digits = text.lstrip("+-")
    whole = int(text) if digits.isascii() and digits.isdecimal() else int(number)
    return keys.text(str(whole))
