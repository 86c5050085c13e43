"""A data set's name computed row by row from the documented forms: no array, no line of the real one."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b

MISSING = ["", ".", "?", "-", "\\n", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none"]
Value = None | bool | int | float | str | datetime.date | datetime.datetime


def form(value: Value) -> tuple[str, object]:
    """The one form of a value: ("missing", None), ("whole", int), ("real", float) or ("text", str)."""
    if isinstance(value, datetime.datetime):
        return ("text", _of_instant(value))
    if isinstance(value, datetime.date):
        return ("text", value.isoformat())
    if value is None or (isinstance(value, float) and value != value):
        return ("missing", None)
    if isinstance(value, str):
        return _of_text(value.strip())
    if isinstance(value, float):
        if abs(value) == float("inf"):
            return ("text", "inf" if value > 0 else "-inf")
        small = abs(value) < 2**63
        return ("real", value) if small and value % 1 else _whole(int(value))
    return _whole(int(value))


def name_of(columns: Mapping[str, Sequence[Value]], key: bytes) -> bytes:
    """The 32 bytes for a table that is given as columns of values."""
    root = blake2b(key, person=b"gibbous-rows").digest()

    def derived(what: bytes) -> bytes:
        return blake2b(what, key=root, digest_size=32).digest()

    def word(what: bytes, lane: int) -> int:
        return int.from_bytes(derived(b"%d:%s" % (lane, what))[:8], "little")

    def base(value: Value, lane: int) -> int:
        kind, what = form(value)
        if kind == "missing":
            return word(b"missing", lane)
        if kind == "whole":
            assert isinstance(what, int)
            return what % 2**64
        if kind == "real":
            bits = int.from_bytes(struct.pack("<d", what), "little")
            return _mixed(bits + word(b"real", 0))
        found = blake2b(str(what).encode(), key=root, digest_size=16).digest()
        return int.from_bytes(found[8 * lane : 8 * lane + 8], "little")

    rows = len(next(iter(columns.values())))
    sums = [0, 0]
    for row in range(rows):
        for lane in (0, 1):
            total = word(b"row", lane)
            for column, values in columns.items():
                step = word(b"column:" + column.encode(), lane)
                total += _mixed(base(values[row], lane) + step)
            sums[lane] += _mixed(total)
    outer = blake2b(key=derived(b"total"), digest_size=32)
    for lane in (0, 1):
        outer.update((sums[lane] % 2**64).to_bytes(8, "little"))
    outer.update(rows.to_bytes(8, "little"))
    for column in sorted(columns):
        outer.update(blake2b(column.encode()).digest())
    return outer.digest()


def _mixed(x: int) -> int:
    """One step of splitmix64's output function (Steele, Lea and Flood 2014)."""
    x %= 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def _whole(value: int) -> tuple[str, object]:
    return ("whole", value) if -(2**63) <= value < 2**63 else ("text", str(value))


def _of_text(text: str) -> tuple[str, object]:
    lower = text.lower()
    if lower in MISSING:
        return ("missing", None)
    if lower in ("true", "false"):
        return ("whole", int(lower == "true"))
    try:
        exact = Fraction(text) if "/" not in text and "_" not in text else None
    except (ValueError, ZeroDivisionError):
        exact = None
    if exact is not None and exact.denominator == 1 and text.lstrip("+-").isdigit():
        return _whole(int(exact))
    if exact is not None:
        return form(float(text))
    try:
        return ("text", _of_instant(datetime.datetime.fromisoformat(text)) if ":" in text else text)
    except ValueError:
        return ("text", text)


def _of_instant(value: datetime.datetime) -> str:
    day = value.date().isoformat()
    if value.time() == datetime.time():
        return day
    fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
    return f"{day}T{value:%H:%M:%S}{fraction}"
