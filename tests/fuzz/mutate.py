"""Bytes -> other bytes: places in a file, or values in the tree of a JSON or TOML document."""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

MOST = 1 << 18  # bytes of an input
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 10**40, 0.5, -0.0, 1e-320, 1e308,
    math.inf, math.nan, "", "x", "0", "-1", "1e400", "nan", "1/3", "\0", "\n", "é", "a" * 300, "zz" * 32,
    [], {}, [[]], [None], [0], ["x"], {"": 0}, {"x": []},
)  # fmt: skip
WORDS = (
    b"\0", b"\n", b"\r\n", b'"', b'""', b"'''", b'"""', b",", b";", b"\t", b"\xef\xbb\xbf", b"\xff",
    b"NA", b"nan", b"-", b"1e999", b"9" * 40, b"[", b"]", b"{", b"}", b"=", b"PAR1", b"\x00\x00\x00\x7f",
)  # fmt: skip


def mutate(data: bytes, random: Random, others: Sequence[bytes] = (), *, named: bool) -> bytes:
    """One input from another.

    Args:
        data: the input.
        random: decides.
        others: inputs to take parts from.
        named: the first line is the name of a file, and stays as it is.
    """
    head, body = b"", data
    if named:
        name, line, body = data.partition(b"\n")
        head = name + line
    others = (
        [one.partition(b"\n")[2] for one in others if one.startswith(head)] if named else others
    )
    for _ in range(random.choice((1, 1, 1, 1, 2, 5))):
        changed = None
        if random.random() < 0.75:
            changed = _tree(body, random)
        body = _bytes(body, random, others) if changed is None else changed
    return head + body[:MOST]


def shortened(data: bytes, same: Callable[[bytes], bool], trials: int) -> bytes:
    """A shorter input that does the same: chunks are left out, large ones first.

    Args:
        same: whether an input does what this one does.
        trials: most calls of it.
    """
    size = len(data) // 2
    while size and trials > 0:
        place = 0
        while place < len(data) and trials > 0:
            shorter, trials = data[:place] + data[place + size :], trials - 1
            if same(shorter):
                data = shorter
            else:
                place += size
        size //= 2
    return data


def _tree(body: bytes, random: Random) -> bytes | None:
    """One value of a document changed; None where the bytes are no document."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.dumps(_changed(json.loads(body), random)).encode()
    with contextlib.suppress(ValueError, RecursionError, TypeError):
        document = _changed(tomllib.loads(body.decode()), random)
        return _toml_of(document) if isinstance(document, dict) else b""
    return None


def _changed(document: Any, random: Random) -> Any:
    places = list(_places(document))
    if not places:
        return random.choice(VALUES)
    holder, key = random.choice(places)
    _, other = random.choice(places)
    match random.randrange(8):
        case 0 | 7:
            del holder[key]
        case 1:
            source, name = random.choice(places)
            holder[key] = json.loads(json.dumps(source[name], default=str))
        case 2 if isinstance(holder, dict):
            holder[str(other)] = holder.pop(key)
        case 3 if isinstance(holder, list):
            holder.extend(holder[:] if len(holder) < 200 else [])
        case 4 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * random.choice((-1, 2, 1000)) + random.choice((0, 1))
        case 5 if isinstance(holder[key], str):
            text = holder[key].encode(errors="replace")
            holder[key] = _bytes(text, random, ()).decode(errors="replace")
        case _:
            holder[key] = random.choice(VALUES)
    return document


def _places(value: Any) -> Any:
    """Every (list or table, place in it) of a document."""
    todo = [value] if isinstance(value, dict | list) else []
    while todo:
        holder = todo.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                todo.append(holder[key])


def _toml_of(document: Any) -> bytes:
    lines = [f"{json.dumps(k)} = {_toml(v)}" for k, v in document.items() if v is not None]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def _toml(value: Any) -> str:
    """A value in one line of TOML; tables are inline."""
    if isinstance(value, dict):
        inner = (f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value if v is not None) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, default=str)


def _bytes(body: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    if not body:
        return random.choice(WORDS)
    low = random.randrange(len(body) + 1)
    high = min(len(body), low + int(2 ** (random.random() * 9)) - 1)
    match random.randrange(7):
        case 0 if low < len(body):
            flipped = body[low] ^ (1 << random.randrange(8))
            return body[:low] + bytes([flipped]) + body[low + 1 :]
        case 1:
            return body[:low] + random.choice(WORDS) + body[high:]
        case 2:
            return body[:low] + body[high:]
        case 3:
            return body[:high] + body[low:high] * random.choice((1, 2, 50)) + body[high:]
        case 4:
            return body[:low] + random.randbytes(high - low) + body[high:]
        case 5 if others:
            other = random.choice(others)
            return body[:low] + other[random.randrange(len(other) + 1) :]
        case _:
            return body[:low] + random.choice(WORDS) + body[low:]
