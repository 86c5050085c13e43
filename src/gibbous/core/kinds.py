"""Values checked against type hints: what a parameter, or an argument of a public function, may be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

_LISTS = (tuple, list, Sequence, Iterable)
_NAMES = {
    float: "a number", int: "a whole number", str: "text", bool: "true or false", bytes: "bytes",
    Path: "a path", os.PathLike: "a path", Callable: "a function",
} | dict.fromkeys(_LISTS, "a list")  # fmt: skip


def is_a(value: object, wanted: Any, *, exactly: bool = False) -> bool:
    """Whether a value is what a type hint wants.

    Args:
        exactly: whole numbers of other libraries, and lists where tuples are wanted, are not.
    """
    kind, inner = get_origin(wanted) or wanted, get_args(wanted)
    if kind is Literal:
        return isinstance(value, str | int) and value in inner
    if kind in (Union, UnionType):
        return any(is_a(value, one, exactly=exactly) for one in inner)
    if kind in (Any, object) or isinstance(kind, TypeVar):
        return True
    if kind is None or (kind in (int, float) and isinstance(value, bool)):
        return value is None
    if kind in (int, float) and not exactly:
        return isinstance(value, (Integral, kind))
    if kind is Path:
        return isinstance(value, os.PathLike)
    if kind is Mapping and inner and isinstance(value, Mapping):
        return all(is_a(k, inner[0]) and is_a(v, inner[1]) for k, v in value.items())
    if exactly or kind not in _LISTS:
        return isinstance(value, kind)
    if isinstance(value, list | tuple) and len({*inner} - {...}) == 1:
        fits = kind is not tuple or ... in inner or len(value) == len(inner)
        return fits and all(is_a(one, inner[0]) for one in value)
    if isinstance(value, list | tuple) and inner:
        return len(value) == len(inner)
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def is_no_path(value: object, wanted: Any) -> bool:
    """Whether a path is wanted, and a text is given that no system takes for one."""
    if Path not in (wanted, *get_args(wanted)) or not isinstance(value, str | os.PathLike):
        return False
    try:
        text = os.fsencode(value)
    except ValueError:
        return True
    return b"\0" in text or len(text) > 4000 or max(map(len, text.split(b"/"))) > 255


def kind_words(wanted: Any) -> str:
    """What a type hint wants, for people."""
    kind, inner = get_origin(wanted) or wanted, get_args(wanted)
    if kind is Literal:
        return "one of " + ", ".join(repr(one) for one in inner)
    if kind in (Union, UnionType):
        words = [kind_words(one) for one in inner if one is not type(None)]
        return " or ".join(dict.fromkeys(words))
    return _NAMES.get(kind) or str(getattr(kind, "__name__", kind))
