"""Texts from data on their way into a drawing: cut to a length, and escaped where they are constants."""

from __future__ import annotations

from collections.abc import Sequence


def clipped(text: object, limit: int = 28) -> str:
    """A text for an axis: one line, at most `limit` characters, the rest marked by an ellipsis."""
    clean = "".join(c if c.isprintable() else " " for c in str(text))
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


def listed(texts: Sequence[str]) -> str:
    """Texts as a list in Vega's expression language: every character but letters and digits escaped."""
    return "[" + ",".join(f"'{''.join(_escaped(c) for c in text)}'" for text in texts) + "]"


def _escaped(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " _-.,()[]"):
        return character
    units = character.encode("utf-16-be", "replace")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
