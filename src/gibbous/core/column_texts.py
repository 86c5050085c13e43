"""The public texts of a column (labels, description, unit of measurement, note): how long, and of what."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

LABEL = 300
MEASURED_IN = 80
PARAGRAPH = 5_000
LENGTHS = {"label": LABEL, "description": PARAGRAPH, "measured_in": MEASURED_IN, "note": PARAGRAPH}
"""The most characters of each text of a column; the label of a level has those of a label."""


def unfit_text(text: object, most: int) -> str | None:
    """What is wrong with a text for people of at most `most` characters; None if nothing is."""
    if not isinstance(text, str):
        return "is not text"
    if not text.strip():
        return "is empty"
    if len(text) > most:
        return f"has {len(text):,} characters"
    return None if text.isprintable() else "has line breaks or control characters"


def allowed_text(most: int) -> str:
    """What a text may be, for a message."""
    return f"It is one line of 1 to {most:,} printable characters"


def tidy_text(text: object, most: int) -> str | None:
    """A text of a codebook on one line, printable, cut to `most` characters; None if nothing is left."""
    if text is None or (isinstance(text, float) and text != text):
        return None
    words = " ".join(str(text).split())
    plain = "".join(letter for letter in words if letter.isprintable())
    return (plain if len(plain) <= most else plain[: most - 3] + "...") or None


def unfit_labels(labels: Iterable[tuple[object, object]], levels: Iterable[object]) -> str | None:
    """What is wrong with (level, label) pairs of a column with these levels; None if nothing is."""
    known = {(type(level) is bool, level) for level in levels}
    seen = []
    for pair in labels:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return "has labels that are not pairs"
        level, label = pair
        if not isinstance(level, Hashable) or (type(level) is bool, level) not in known:
            return "labels a level that it does not have"
        fault = unfit_text(label, LABEL)
        if fault:
            return f"has a label of a level that {fault}"
        seen.append((type(level) is bool, level))
    return "labels a level twice" if len(set(seen)) < len(seen) else None
