"""Plugins: objects that packages register under an entry-point group, found by name and loaded late."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gibbous.core.errors import EngineFailure


@cache
def registered(group: str) -> dict[str, EntryPoint]:
    """What installed packages register under a group, by name; loads nothing."""
    return {point.name: point for point in entry_points(group=group)}


def loaded(point: EntryPoint, noun: str, fits: Callable[[Any], bool], contract: str) -> Any:
    """The object behind an entry point.

    Args:
        noun: what a user calls it, "method" or "metric"; in capitals the name of the error.
        fits: whether an object keeps the contract.
        contract: what `fits` looks for, in words.
    Raises:
        EngineFailure: the package that registered it cannot be imported, or `fits` says no.
    """
    try:
        thing = point.load()
    except Exception as error:  # noqa: BLE001 - other people's imports
        why = type(error).__name__
    else:
        if fits(thing):
            return thing
        why = f"no {contract}"
    raise EngineFailure(
        noun.upper(),
        f"The {noun} {point.name!r} ({point.value}) cannot be used: {why}.",
        f"A registered {noun} imports cleanly and has {contract}.",
        "Repair or uninstall the package that registers it.",
    )
