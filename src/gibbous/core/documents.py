"""Texts of TOML and JSON -> plain values: nesting, keys and numbers are bounded before they are parsed."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from typing import Any

DEPTH = 64  # brackets within brackets
PARTS = 8  # of a dotted key

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
        return tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        place = str(error)
    except (ValueError, ArithmeticError, RecursionError):
        place = "(a number that is too large)"
    # tomllib ends its messages with "(at line 3, column 5)"; the rest may quote the file.
    where = place[place.rfind("(") + 1 : -1] if place.endswith(")") else "somewhere"
    raise Unreadable(f"is not TOML: {where}")


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
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("names a key twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
