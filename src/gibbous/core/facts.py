"""Facts that a guarantee does not cover, in words."""

from __future__ import annotations

from collections.abc import Sequence


def fact_words(facts: Sequence[str]) -> str:
    """Facts as `Schema.inferred` lists them, columns with the same facts together.

    Example:
        >>> fact_words(["a: kind", "a: levels", "b: kind", "b: levels"])
        'kind, levels of a, b'
    """
    by_name: dict[str, list[str]] = {}
    for fact in facts:
        name, _, what = fact.rpartition(": ")
        by_name.setdefault(name, []).append(what)
    together: dict[tuple[str, ...], list[str]] = {}
    for name, whats in by_name.items():
        together.setdefault(tuple(whats), []).append(name)
    return "; ".join(
        f"{names[0]} ({whats[0]})"
        if names == ["privacy unit"]
        else f"{', '.join(whats)} of {', '.join(names)}"
        for whats, names in together.items()
    )
