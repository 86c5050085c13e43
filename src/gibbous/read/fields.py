"""Typed access to the tables of a schema document; unknown keys are answered with the nearest one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean

ELSEWHERE = {
    "categories": "levels",
    "values": "levels",
    "min": "lower",
    "minimum": "lower",
    "max": "upper",
    "maximum": "upper",
    "type": "kind",
    "precision": "decimals",
    "breaks": "cuts",
    "edges": "cuts",
    "date_format": "format",
    "na": "null",
    "columns": "column",
    "nullable": "missing",
}
"""What other tools call our keys."""

_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "a table",
}


class Fields:
    """One table of a document: each key is taken once, by type; `finish` refuses the rest."""

    def __init__(self, table: object, where: str) -> None:
        if not isinstance(table, Mapping):
            raise bad(f"{where} is not a table", "It holds keys and values", "Correct it")
        self._left: dict[str, Any] = dict(table)
        self._known: list[str] = []
        self.where = where

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def keys(self) -> tuple[str, ...]:
        """The keys nobody took yet, in file order."""
        return tuple(self._left)

    def need(self, key: str, allowed: str) -> UsageError:
        """The error for a missing key; a key that looks like it is taken for a misspelling."""
        near = [k for k in self._left if nearest(k, [key])]
        if near:
            return bad(
                f"{self.where} has an unknown key {shown(near[0])}",
                allowed,
                f"Did you mean {key!r}?",
                name="UNKNOWNKEY",
            )
        return self.wrong(key, "is missing", allowed, f"Add {key}")

    def any(self, key: str) -> Any:
        """Whatever stands at a key; None when it is absent."""
        self._known.append(key)
        return self._left.pop(key, None)

    def text(self, key: str, default: str | None = None) -> str | None:
        """Text at a key."""
        value = self._typed(key, str)
        return default if value is None else str(value)

    def flag(self, key: str) -> bool:
        """True or false at a key; false when it is absent."""
        return bool(self._typed(key, bool))

    def whole(self, key: str, lowest: int) -> int | None:
        """A whole number at a key, at least `lowest`."""
        value = self._typed(key, int)
        if value is not None and value < lowest:
            raise self.wrong(key, f"is {value}", f"It is a whole number >= {lowest}")
        return None if value is None else int(value)

    def list(self, key: str) -> list[Any] | None:
        """A list at a key."""
        value = self._typed(key, list)
        return None if value is None else list(value)

    def finish(self) -> None:
        """Refuse the keys that nobody took: UsageError with the nearest valid key."""
        for key in self._left:
            allowed = f"Keys here are {', '.join(sorted(set(self._known)))}"
            raise bad(
                f"{self.where} has an unknown key {shown(key)}",
                allowed,
                nearest(key, self._known) or "Remove it",
                name="UNKNOWNKEY",
            )

    def wrong(self, key: str, what: str, allowed: str, fix: str = "") -> UsageError:
        """An error about one key of this table."""
        return bad(f"{self.where}: {key} {what}", allowed, fix or f"Correct {key}")

    def among(self, key: str, value: object, known: Sequence[str], allowed: str) -> Any:
        """The value of a key, which is one of the known words."""
        if value not in known:
            raise self.wrong(key, f"is {shown(value)}", allowed, nearest(str(value), known))
        return value

    def _typed(self, key: str, kind: type) -> Any:
        value = self.any(key)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(key, f"is {_kind_words(value)}", f"It is {_WORDS[kind]}")
        return value


def nearest(word: str, known: Iterable[str]) -> str:
    """'Did you mean ...?' or nothing."""
    known = list(known)
    if ELSEWHERE.get(word.lower()) in known:
        return f"Did you mean {ELSEWHERE[word.lower()]!r}?"
    return did_you_mean(word, known)


def shown(name: object) -> str:
    """A name for a message: quoted, escaped, at most 60 characters."""
    words = repr(str(name))
    return words if len(words) <= 62 else words[:60] + "...'"


def listed(names: Iterable[object]) -> str:
    """Names for a message, the first ten of them."""
    names = list(names)
    rest = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(shown(n) for n in names[:10]) + rest


def bad(wrong: str, allowed: str, fix: str, *, name: str = "SCHEMA") -> UsageError:
    """A UsageError about a schema document."""
    end = "" if fix.endswith("?") else " in the schema."
    return UsageError(name, f"{wrong}.", f"{allowed}.", f"{fix}{end}")


def _kind_words(value: object) -> str:
    for kind in (bool, int, str, list, dict):
        if isinstance(value, kind):
            return _WORDS[kind]
    return "a number" if isinstance(value, float) else f"a {type(value).__name__}"
