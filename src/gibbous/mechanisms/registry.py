"""Mechanisms by registered name: the built-in ones and those of other packages, by the same road."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean, unknown_keyword
from gibbous.core.method_card import About
from gibbous.core.params import describe
from gibbous.core.plugins import loaded, registered

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
    points = _found()
    if not isinstance(name, str) or name not in points:
        raise UsageError(
            "UNKNOWNMETHOD",
            f"There is no method {name!r}.",
            f"Methods are {', '.join(sorted(points))}.",
            did_you_mean(str(name), points, "List them with `gibbous methods`.", likeness=0.5),
        )
    kind: type[Any] = loaded(
        points[name], "method", lambda k: isinstance(getattr(k, "about", None), About), "`about`"
    )
    return kind


def instance(
    method: Mechanism | str,
    parameters: Mapping[str, object] | None = None,
    keywords: Sequence[str] = (),
) -> Mechanism:
    """The mechanism that is meant: one that was made, or a registered one with its parameters.

    Args:
        parameters: of a registered one, by name; the others are its defaults.
        keywords: what else the caller takes, for the answer to an unknown one.
    Raises:
        UsageError: it is neither; or parameters are given to one that was made.
        UnknownKeyword: a parameter that it does not have.
    """
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    if isinstance(method, str):
        kind = load(method)
        own = [parameter.name for parameter in describe(kind)]
        for name in given:
            if name not in own:
                raise unknown_keyword(
                    f"A run of {method}", name, list(dict.fromkeys([*keywords, *own]))
                )
        made: Mechanism = kind(**given)
        return made
    if given:
        raise UsageError(
            "TWICE",
            f"{', '.join(given)} was given beside a mechanism that is already made.",
            "A mechanism has its parameters; parameters beside it are for a registered name.",
            'Give them to the mechanism, or pass its name: method="adaptive_gibbs", epsilon=1.',
        )
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
        One `About` each: name, paper, what the budget buys, published and proven claim.
    Raises:
        EngineFailure: a package that registers a mechanism cannot be imported.
    """
    return tuple(load(name).about for name in names())


def _found() -> dict[str, EntryPoint]:
    return registered(GROUP)
