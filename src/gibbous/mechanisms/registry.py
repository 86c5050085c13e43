"""Mechanisms by registered name: the built-in ones and those of other packages, by the same road."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from gibbous.core.about import About
from gibbous.core.errors import EngineFailure, UsageError
from gibbous.core.keywords import did_you_mean

if TYPE_CHECKING:
    from gibbous.core.protocols import Mechanism

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
    found = _found()
    if name not in found:
        raise UsageError(
            "UNKNOWNMETHOD",
            f"There is no method {name!r}.",
            f"Methods are {', '.join(sorted(found))}.",
            did_you_mean(name, found, "List them with `gibbous methods`.", likeness=0.5),
        )
    try:
        kind = found[name].load()
    except Exception as error:  # noqa: BLE001 - other people's imports
        raise _broken(found[name], type(error).__name__) from None
    if not isinstance(getattr(kind, "about", None), About):
        raise _broken(found[name], "no `about`")
    return kind  # type: ignore[no-any-return]


def instance(method: Mechanism | str) -> Mechanism:
    """The mechanism that is meant: one that was made, or a registered one with its defaults.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(method, str):
        made: Mechanism = load(method)()
        return made
    if isinstance(method, type) or not hasattr(method, "plan") or not hasattr(method, "run"):
        raise UsageError(
            "METHOD",
            "The method given is not a mechanism.",
            "Pass an instance such as NoisyPegs(epsilon=1), or a registered name.",
            "List them with gibbous.methods().",
        )
    return method


def methods() -> tuple[About, ...]:
    """The cards of all registered mechanisms, sorted by name.

    Returns:
        One `About` each: name, paper, what pays once, published and proven claim.
    Raises:
        EngineFailure: a package that registers a mechanism cannot be imported.
    """
    return tuple(load(name).about for name in names())


@cache
def _found() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _broken(point: EntryPoint, why: str) -> EngineFailure:
    return EngineFailure(
        "METHOD",
        f"The method {point.name!r} ({point.value}) cannot be used: {why}.",
        "A registered method is a class that imports cleanly and has `about`.",
        "Repair or uninstall the package that registers it.",
    )
