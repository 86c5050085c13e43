"""A frame -> 32 bytes that name its multiset of rows, whatever their order or file format.

The inner hash is fast and keyed, and only has to keep different tables apart. What is given out is a
keyed cryptographic hash of its sum: without the key of this installation it says nothing about rows.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from string import ascii_letters
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.context import mix64
from gibbous.read.row_sums import BLOCK, LANES, Adding, Part, mix, packed, plain
from gibbous.read.slices import row_slices

_MANY = 5_000
_SPAN = 1 << 13  # whole numbers that are hashed once each, not row by row
_NO_NUMBER = frozenset(ascii_letters) - frozenset("iInN")  # a number, inf or nan has other starts
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
    mark = Fingerprint(key, null)
    for part in row_slices(frame):
        mark.add(part)
    return mark.digest()


class Fingerprint:
    """The same from slices of rows; how the rows are cut changes nothing.

    Args:
        key: secret key of this installation.
        null: the text that means missing.
        adding: how sums are made: `row_sums.plain`, or `compiled` where numba is loaded anyway.
    """

    def __init__(self, key: bytes, null: str, *, adding: Adding = plain) -> None:
        self._keys = _Keys(root_of(key))
        self._null, self._adding = null, adding
        self._sums = [0] * LANES
        self._rows = 0
        self._names: list[str] = []
        self._enums: dict[str, tuple[pl.DataType, np.ndarray]] = {}

    def add(self, frame: pl.DataFrame) -> None:
        """Take more rows in; every slice has the same columns."""
        self._names = frame.columns
        self._rows += frame.height
        parts = packed([self._part(frame[name]) for name in frame.columns])
        steps = [self._keys.word(b"row", lane) for lane in range(LANES)]
        for lane, total in enumerate(self._adding(parts, steps, frame.height)):
            self._sums[lane] += total

    @staticmethod
    def of_root(root: bytes, null: str) -> Fingerprint:
        """One that another process fills: it is given `root_of(key)`, never the key."""
        made = Fingerprint(b"", null)
        made._keys = _Keys(root)
        return made

    def state(self) -> Seen:
        """What was taken in so far; secret, and small."""
        return Seen(tuple(self._names), self._rows, tuple(lane % 2**64 for lane in self._sums))

    def join(self, seen: Seen) -> None:
        """Take in what another one of the same key and columns has seen of other rows."""
        self._names = list(seen.names)
        self._rows += seen.rows
        self._sums = [mine + theirs for mine, theirs in zip(self._sums, seen.sums, strict=True)]

    def digest(self) -> bytes:
        """The 32 bytes of all rows so far."""
        outer = hashlib.blake2b(key=self._keys.derive(b"total"), digest_size=32)
        for lane in self._sums:
            outer.update((lane % 2**64).to_bytes(8, "little"))
        outer.update(self._rows.to_bytes(8, "little"))
        for name in sorted(self._names):
            outer.update(hashlib.blake2b(name.encode("utf-8", "surrogatepass")).digest())
        return outer.digest()

    def _part(self, values: pl.Series) -> Part:
        """The column's part of each row's hash."""
        keys, null = self._keys, self._null
        tag = b"column:" + values.name.encode("utf-8", "surrogatepass")
        steps = [keys.word(tag, lane) for lane in range(LANES)]
        if isinstance(values.dtype, pl.Enum):
            known = self._enums.get(values.name)
            if known is None or known[0] != values.dtype:
                words = _table(values.dtype.categories, keys, steps, null)
                known = self._enums[values.name] = (values.dtype, words)
            return Part(_places(values.to_physical(), known[1].shape[1] - 1), known[1])
        values = _plain(values)
        if values.dtype.is_integer() and values.dtype != pl.Int128:
            part = _small_span(values, keys, steps)
            if part is not None:
                return part
        if values.dtype == pl.String and values.head(2 * _MANY).n_unique() < _MANY:
            distinct = values.drop_nulls().unique()
            place = values.cast(pl.Enum(distinct)).to_physical()
            return Part(_places(place, len(distinct)), _table(distinct, keys, steps, null))
        words = _hashed(values, keys, steps, null)
        if values.null_count():
            words[:, values.is_null().to_numpy()] = _missing_words(keys, steps)[:, None]
        return Part(None, words)


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows that a fingerprint has taken in.

    Attributes:
        names: of the columns.
        rows: how many.
        sums: of their keyed hashes, modulo 2^64, one a lane.
    """

    names: tuple[str, ...]
    rows: int
    sums: tuple[int, ...]


def root_of(key: bytes) -> bytes:
    """What hashing rows needs of the key of an installation: says nothing about the key, 64 bytes."""
    return hashlib.blake2b(key, person=b"gibbous-rows").digest()


def _places(values: pl.Series, missing: int) -> np.ndarray:
    if values.null_count():
        values = values.cast(pl.UInt32).fill_null(missing)
    return values.to_numpy()


class _Keys:
    """Words derived from the root of the secret key."""

    def __init__(self, root: bytes) -> None:
        self._root = root

    def derive(self, what: bytes) -> bytes:
        return hashlib.blake2b(what, key=self._root, digest_size=32).digest()

    def word(self, what: bytes, lane: int) -> np.uint64:
        return np.uint64(int.from_bytes(self.derive(b"%d:%s" % (lane, what))[:8], "little"))

    def text(self, value: str) -> list[int]:
        data = value.encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(data, key=self._root, digest_size=8 * LANES).digest()
        return [int.from_bytes(found[8 * i : 8 * i + 8], "little") for i in range(LANES)]


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


def _small_span(values: pl.Series, keys: _Keys, steps: list[np.uint64]) -> Part | None:
    low: Any = values.min()
    high: Any = values.max()
    if low is None or high - low >= _SPAN or low < -(2**63) or high >= 2**63:
        return None
    span = np.arange(low, high + 1, dtype=np.int64).view(np.uint64)
    words = np.stack([mix64(span + step) for step in steps])
    if values.null_count():
        words = np.concatenate((words, _missing_words(keys, steps)[:, None]), axis=1)
        numbers = values.cast(pl.Int64).fill_null(high + 1).to_numpy()
    else:
        numbers = values.to_numpy()
    unsigned = np.dtype(f"u{numbers.dtype.itemsize}")  # a difference is right modulo its width
    return Part((numbers - numbers.dtype.type(low)).view(unsigned), words)


def _table(distinct: pl.Series, keys: _Keys, steps: list[np.uint64], null: str) -> np.ndarray:
    """Words of distinct texts, and of missing after the last: (lanes, texts + 1)."""
    words = _hashed(distinct, keys, steps, null)
    return np.concatenate((words, _missing_words(keys, steps)[:, None]), axis=1)


def _missing_words(keys: _Keys, steps: list[np.uint64]) -> np.ndarray:
    words = np.array(_missing(keys), dtype=np.uint64)
    return mix64(words + np.array(steps, dtype=np.uint64))


def _missing(keys: _Keys) -> list[int]:
    return [int(keys.word(b"missing", lane)) for lane in range(LANES)]


def _hashed(values: pl.Series, keys: _Keys, steps: list[np.uint64], null: str) -> np.ndarray:
    """Hash value by value, null aside: numbers in bulk, the rest once a distinct text.

    Returns:
        uint64 (lanes, rows).
    """
    if values.dtype.is_float():
        base, left = _of_floats(values, keys)
        bases = [base.copy() if left.any() else base for _ in range(LANES)]
    else:
        whole, is_whole, real, is_real = _numbers(values)
        bases = [whole.view(np.uint64).copy() for _ in range(LANES)]
        real_words = keys.word(b"real", 0)
        for base in bases:
            base[is_real] = mix64(real[is_real].view(np.uint64) + real_words)
        left = ~(is_whole | is_real)
    left &= values.is_not_null().to_numpy()
    if values.dtype == pl.String:
        left |= (values == null).fill_null(value=False).to_numpy()
    if left.any():
        part = values.filter(pl.Series(left)).cast(pl.String)
        distinct = part.unique()
        place = part.cast(pl.Enum(distinct)).to_physical().to_numpy()
        table = np.array([_words(text, keys, null) for text in distinct.to_list()], np.uint64)
        for lane, base in enumerate(bases):
            base[left] = table[place, lane]
    out = np.empty((LANES, len(values)), dtype=np.uint64)
    for words, base, step in zip(out, bases, steps, strict=True):
        for start in range(0, len(base), BLOCK):
            block = slice(start, start + BLOCK)
            np.add(base[block], step, out=words[block])
            mix(words[block])
    return out


def _of_floats(values: pl.Series, keys: _Keys) -> tuple[np.ndarray, np.ndarray]:
    """What is hashed of floats: whole numbers as such, others by their bits; and which are left."""
    real = values.cast(pl.Float64).fill_null(math.nan).to_numpy()
    word, base, left = (
        keys.word(b"real", 0),
        np.zeros(len(real), np.uint64),
        np.zeros(len(real), bool),
    )
    for start in range(0, len(real), BLOCK):
        block = slice(start, start + BLOCK)
        some = real[block]
        small = np.abs(some) < 2.0**63  # not so of infinities and nan
        whole = (np.floor(some) == some) & small
        bits = mix(some.view(np.uint64) + word)
        if whole.any():
            bits[whole] = some[whole].astype(np.int64).view(np.uint64)
        left[block] = ~small
        base[block] = np.where(small, bits, 0) if left[block].any() else bits
    return base, left


def _numbers(values: pl.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers within 64 bits, and other finite numbers, with masks; of all but floats."""
    narrow = values.cast(pl.Int64, strict=False)
    if values.dtype.is_integer() or narrow.null_count() == 0:
        none = np.zeros(len(values), dtype=bool)
        mask = narrow.is_not_null().to_numpy()
        return narrow.fill_null(0).to_numpy(), mask, np.zeros(len(values)), none
    real = values.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    small = np.abs(real) < 2.0**63
    integral = small & (np.floor(np.where(small, real, 0.5)) == real)
    whole = np.where(integral, real, 0.0).astype(np.int64)
    exact = narrow.is_not_null().to_numpy()  # text: exact where the text is a whole number
    whole = np.where(exact, narrow.fill_null(0).to_numpy(), whole)
    integral |= exact
    return whole, integral, real, small & ~integral


def _words(text: str, keys: _Keys, null: str) -> list[int]:
    if text == null:
        return _missing(keys)
    if text in _TRUE or text in _FALSE:
        return [int(text in _TRUE)] * LANES
    if text[:1] in _NO_NUMBER:
        return keys.text(text)
    try:
        number = float(text) if len(text) < 400 else math.nan
    except ValueError:
        return keys.text(text)
    if math.isinf(number) or math.isnan(number):
        return keys.text(text.lower() if len(text) < 400 else text)
    digits = text.lstrip("+-")
    whole = int(text) if digits.isascii() and digits.isdecimal() else int(number)
    return keys.text(str(whole))
