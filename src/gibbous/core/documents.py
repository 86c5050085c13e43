"""Small files and texts of TOML and JSON -> plain values: size, nesting, keys and numbers are bounded."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

DEPTH = 64  # brackets within brackets
PARTS = 8  # of a dotted key
_MB = 1 << 20

_TOML = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""{1,3}|\Z)|\'\'\'.*?(?:\'\'\'{1,3}|\Z)'
    r'|(?P<text>"(?:[^"\\\n]|\\.)*+"?|\'[^\'\n]*+\'?|[\w-]++)'
    r"|\#[^\n]*+|(?P<dot>\.)|(?P<mark>[][{}])|(?P<line>\n)",
    re.DOTALL,
)
_JSON = re.compile(r'"(?:[^"\\]|\\.)*+"?|(?P<mark>[][{}])', re.DOTALL)


class Unreadable(ValueError):
    """A text that is not what it should be; the words end a sentence that begins with its name.

    Args:
        told: the words.
        errno: of the system, where the text is there and could not be read: says nothing about it.
    """

    def __init__(self, told: str, errno: int | None = None) -> None:
        super().__init__(told)
        self.errno = errno


def read_bytes(path: Path, most: int) -> bytes:
    """The whole of a regular file of at most `most` bytes; Unreadable if it cannot be had."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("is not a regular file")
            data = file.read(min(status.st_size, most) + 1)
    except Unreadable:
        raise
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
        raise Unreadable("is missing or cannot be read") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", error.errno) from None
    if max(len(data), status.st_size) > most:
        size = f"{most >> 20:,} MB" if most >= _MB else f"{most:,} bytes"
        raise Unreadable(f"has {status.st_size:,} bytes, which is more than {size}")
    return data


def read_text(path: Path, most: int) -> str:
    """The whole of a UTF-8 file without its byte order mark; Unreadable as in `read_bytes`, or not UTF-8."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8 text") from None


def toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parse TOML.

    Args:
        parse_float: what becomes of a number with a fraction or an exponent.
    Raises:
        Unreadable: it is not TOML, nests deeper than 64, or has a key of more than 8 parts. The words
            carry no text of it.
    """
    _check_nesting(text, _TOML)
    try:
        document = tomllib.loads(text, parse_float=parse_float)
        str(document)  # ValueError for a hexadecimal number of thousands of digits
        return document
    except tomllib.TOMLDecodeError as error:
        place = str(error)
    except (ValueError, ArithmeticError, RecursionError):
        place = "(a number that is too large)"
    # tomllib ends its messages with "(at line 3, column 5)"; the rest may quote the file.
    where = place[place.rfind("(") + 1 : -1] if place.endswith(")") else "somewhere"
    raise Unreadable(f"is not TOML: {where}")


def floats(value: Any) -> Any:
    """Values of TOML that was parsed with Decimal, with floats in place of these."""
    if isinstance(value, Mapping):
        return {key: floats(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [floats(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def json_value(text: str | bytes) -> Any:
    """Parse JSON; bytes are UTF-8.

    Raises:
        Unreadable: it is not JSON, nests deeper than 64, names a key of an object twice, or has a
            number that is not finite or has thousands of digits.
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        _check_nesting(text, _JSON)
        return json.loads(
            text, object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite
        )
    except Unreadable:
        raise
    except (ValueError, RecursionError):
        raise Unreadable("cannot be read as JSON") from None


def _check_nesting(text: str, tokens: re.Pattern[str]) -> None:
    depth = parts = 0
    joined = False
    for token in tokens.finditer(text):
        kind = token.lastgroup
        if kind == "mark":
            depth += 1 if token[0] in "[{" else -1
        if kind == "text":
            parts = parts + 1 if joined else 1
        elif kind != "dot":
            parts = 0
        joined = kind == "dot"
        if depth > DEPTH:
            raise Unreadable(f"nests more than {DEPTH} levels deep")
        if parts > PARTS:
            raise Unreadable(f"has a key of more than {PARTS} parts")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise Unreadable("names a key twice")
    return document


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
