"""A frame -> 32 bytes that name its multiset of rows, whatever their order, format or schema.

The inner hash is fast and keyed, and only has to keep different tables apart. What is given out is a
keyed cryptographic hash of its sum: without the key of this installation it says nothing about rows.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.context import mix64
from gibbous.core.dataset import DataSet
from gibbous.read.row_sums import BLOCK, LANES, Adding, Part, mix, packed, plain
from gibbous.read.slices import row_slices

_MANY = 5_000
_SPAN = 1 << 13  # whole numbers that are hashed once each, not row by row
NULLS = frozenset(
    ("", ".", "?", "-", "\\n", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none")
)
"""Texts that count as missing in every source, blanks around them and capitals aside."""

_SPECIAL = NULLS | {"true", "false", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}
_SHORT = max(map(len, _SPECIAL))
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?([.][0-9]+)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_MOST_DIGITS = 400


def fingerprint(frame: pl.DataFrame, key: bytes, null: str = "") -> DataSet:
    """Name the multiset of rows of a table, all columns of the input; see `Fingerprint`.

    Returns:
        32 bytes. Equal for the same rows in any order, with the columns in any order, from CSV,
        Parquet or a frame, because each value counts in one form (docs/concepts/ledger.md): 7, 7.0,
        "7" and " 07" are one value, as are true, "TRUE" and 1, a day and its midnight, an instant
        and its ISO text, null and a text of `NULLS`.
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
        null: the text that every null stood for before the reader took it out: the null text of the
            schema for a text file, "" for anything else. With it, the name is that of the texts in
            the file, whatever the schema calls missing.
        adding: how sums are made: `row_sums.plain`, or `compiled` where numba is loaded anyway.
    """

    def __init__(self, key: bytes, null: str = "", *, adding: Adding = plain) -> None:
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
    def of_root(root: bytes, null: str = "") -> Fingerprint:
        """One that another process fills: it is given `root_of(key)`, never the key."""
        fingerprint = Fingerprint(b"", null)
        fingerprint._keys = _Keys(root)
        return fingerprint

    def state(self) -> Seen:
        """What was taken in so far; secret, and small."""
        return Seen(tuple(self._names), self._rows, tuple(lane % 2**64 for lane in self._sums))

    def join(self, seen: Seen) -> None:
        """Take in what another one of the same key and columns has seen of other rows."""
        self._names = list(seen.names)
        self._rows += seen.rows
        self._sums = [mine + theirs for mine, theirs in zip(self._sums, seen.sums, strict=True)]

    def digest(self) -> DataSet:
        """The name of all rows so far, with keyed digests of the names of their columns."""
        outer = hashlib.blake2b(key=self._keys.derive(b"total"), digest_size=32)
        for lane in self._sums:
            outer.update((lane % 2**64).to_bytes(8, "little"))
        outer.update(self._rows.to_bytes(8, "little"))
        for name in sorted(self._names):
            outer.update(hashlib.blake2b(_bytes(name)).digest())
        columns = (self._keys.derive(b"name:" + _bytes(name))[:6].hex() for name in self._names)
        return DataSet(outer.digest(), columns)

    def _part(self, values: pl.Series) -> Part:
        """The column's part of each row's hash."""
        keys = self._keys
        steps = [keys.word(b"column:" + _bytes(values.name), lane) for lane in range(LANES)]
        null = mix64(np.array(_words(self._null, keys), np.uint64) + np.array(steps, np.uint64))
        if isinstance(values.dtype, pl.Enum):
            known = self._enums.get(values.name)
            if known is None or known[0] != values.dtype:
                words = _table(values.dtype.categories, keys, steps, null)
                known = self._enums[values.name] = (values.dtype, words)
            return Part(_places(values.to_physical(), known[1].shape[1] - 1), known[1])
        values = _plain(values)
        if values.dtype.is_integer() and values.dtype != pl.Int128:
            part = _small_span(values, steps, null)
            if part is not None:
                return part
        if values.dtype == pl.String and values.head(2 * _MANY).n_unique() < _MANY:
            distinct = values.drop_nulls().unique()
            place = values.cast(pl.Enum(distinct)).to_physical()
            return Part(_places(place, len(distinct)), _table(distinct, keys, steps, null))
        words = _hashed(values, keys, steps)
        if values.null_count():
            words[:, values.is_null().to_numpy()] = null[:, None]
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
        digest = hashlib.blake2b(_bytes(value), key=self._root, digest_size=8 * LANES).digest()
        return [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(LANES)]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


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
        return values.dt.to_string("iso")
    return values


def _small_span(values: pl.Series, steps: list[np.uint64], null: np.ndarray) -> Part | None:
    low: Any = values.min()
    high: Any = values.max()
    if low is None or high - low >= _SPAN or low < -(2**63) or high >= 2**63:
        return None
    span = np.arange(low, high + 1, dtype=np.int64).view(np.uint64)
    words = np.stack([mix64(span + step) for step in steps])
    if values.null_count():
        words = np.concatenate((words, null[:, None]), axis=1)
        place = values.cast(pl.Int64).fill_null(low).to_numpy() - np.int64(low)
        return Part(np.where(values.is_null().to_numpy(), len(span), place).view(np.uint64), words)
    numbers = values.to_numpy()
    unsigned = np.dtype(f"u{numbers.dtype.itemsize}")  # a difference is right modulo its width
    return Part((numbers - numbers.dtype.type(low)).view(unsigned), words)


def _table(
    distinct: pl.Series, keys: _Keys, steps: list[np.uint64], null: np.ndarray
) -> np.ndarray:
    """Words of distinct texts, and of null after the last: (lanes, texts + 1)."""
    return np.concatenate((_hashed(distinct, keys, steps), null[:, None]), axis=1)


def _hashed(values: pl.Series, keys: _Keys, steps: list[np.uint64]) -> np.ndarray:
    """Hash value by value, uint64 (lanes, rows): numbers in bulk, the rest once a distinct text; no nulls."""
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
    if left.any():
        part = values.filter(pl.Series(left)).cast(pl.String)
        distinct = part.unique()
        place = part.cast(pl.Enum(distinct)).to_physical().to_numpy()
        table = np.array([_words(text, keys) for text in distinct.to_list()], np.uint64)
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


def _words(text: str, keys: _Keys) -> list[int]:
    """What is hashed of a text, one word a lane: the bulk ways give the same for the same value."""
    text = text.strip()
    if len(text) <= _SHORT and (known := text.lower()) in _SPECIAL:
        if known in NULLS:
            return [int(keys.word(b"missing", lane)) for lane in range(LANES)]
        if known in ("true", "false"):
            return [int(known == "true")] * LANES
        return keys.text(known.lstrip("+")[:4].rstrip("i"))  # inf or -inf, as a float is written
    if text[:1] in "+-.0123456789":
        if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text):
            return _number(text, keys)
        if found := _INSTANT.fullmatch(text):
            return keys.text(_instant(*found.groups(default="")))
    return keys.text(text)


def _number(text: str, keys: _Keys) -> list[int]:
    digits, number = text.lstrip("+-"), float(text)
    if not digits.isdecimal() and math.isinf(number):
        return keys.text(text.lower())
    if not digits.isdecimal() and abs(number) < 2.0**63 and number != math.floor(number):
        return [int(mix64(np.array([number]).view(np.uint64) + keys.word(b"real", 0))[0])] * LANES
    whole = int(text) if digits.isdecimal() else int(number)
    return [whole % 2**64] * LANES if -(2**63) <= whole < 2**63 else keys.text(str(whole))


def _instant(day: str, clock: str, seconds: str, fraction: str, zone: str) -> str:
    """One text for an instant: a day at midnight, no trailing zeros, and UTC where it has a zone."""
    seconds, fraction = seconds or ":00", fraction.rstrip("0").rstrip(".")
    if zone:
        try:
            read = datetime.datetime.fromisoformat(f"{day}T{clock}{seconds}{zone}")
            utc = read.astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            return f"{day}T{clock}{seconds}{fraction}{zone}"
        return f"{utc.replace(tzinfo=None).isoformat()}{fraction}Z"
    midnight = (clock, seconds, fraction) == ("00:00", ":00", "")
    return day if midnight else f"{day}T{clock}{seconds}{fraction}"
