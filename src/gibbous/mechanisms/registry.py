"""Mechanisms by registered name: the built-in ones and those of other packages, by the same road."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from gibbous.core.about import About
from gibbous.core.errors import UsageError
from gibbous.core.plugins import loaded, meant, registered

GROUP = "gibbous.mechanisms"


def names() -> tuple[str, ...]:
    """Registered names, sorted; loads nothing."""
    return tuple(sorted(_found()))


def load(name: str) -> type[Any]:
    """The mechanism class that is registered under a name.

    Args:
        name: registered name, equal to the file name of a built-in one.
    Raises:
        UsageError: there is no such name; the nearest one is offered.
        EngineFailure: the package that registered it cannot be imported, or it is not a mechanism.
    """
    points = _found()
    if name not in points:
        raise UsageError(
            "UNKNOWNMETHOD",
            f"There is no method {name!r}.",
            f"Methods are {', '.join(sorted(points))}.",
            meant(name, points, "List them with `gibbous methods`."),
        )
    kind: type[Any] = loaded(
        points[name], "method", lambda k: isinstance(getattr(k, "about", None), About), "`about`"
    )
    return kind


def methods() -> tuple[About, ...]:
    """The cards of all registered mechanisms, sorted by name.

    Returns:
        One `About` each: name, paper, what pays once, published and proven claim.
    Raises:
        EngineFailure: a package that registers a mechanism cannot be imported.
    """
    return tuple(load(name).about for name in names())


def _found() -> dict[str, EntryPoint]:
    return registered(GROUP)
