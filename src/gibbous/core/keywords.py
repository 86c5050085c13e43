"""What public functions are called with: words of other tools are answered with ours, wrong types refused."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar, get_type_hints

from gibbous.core.errors import UnknownKeyword, UsageError
from gibbous.core.kinds import is_a, is_no_path, kind_words

Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type[Any])

DEFAULT_METHOD = "adaptive_gibbs"  # what is meant where no method is named

# What others call it -> what it is called here, and what to know about it.
FOREIGN: dict[str, tuple[str, str]] = {
    "random_state": ("seed", "it seeds sampling only: noise has no seed"),
    "random_seed": ("seed", "it seeds sampling only: noise has no seed"),
    "rng": ("seed", "it seeds sampling only: noise has no seed"),
    "m": ("sets", "the number of synthetic sets"),
    "n": ("rows", "the rows of one set"),
    "k": ("rows", "the rows of one set"),
    "size": ("rows", "the rows of one set"),
    "count": ("rows", "the rows of one set"),
    "num_rows": ("rows", "the rows of one set"),
    "num_records": ("rows", "the rows of one set"),
    "n_records": ("rows", "the rows of one set"),
    "n_samples": ("rows", "the rows of one set"),
    "eps": ("epsilon", "the budget of the whole release"),
    "preprocessor_eps": ("epsilon", "it is the whole release; a plan prints each part"),
    "proc_epsilon": ("epsilon", "it is the whole release; a plan prints each part"),
    "synthesizer": ("method", "`gibbous methods` lists them"),
    "mechanism": ("method", "`gibbous methods` lists them"),
    "output": ("out", "the folder of the release"),
    "force": ("overwrite", "it replaces a release and nothing else"),
}
# What belongs elsewhere.
ELSEWHERE: dict[str, str] = {
    "privacy_budget": "Use epsilon and delta: the budget of the whole release.",
    "rho": "Use epsilon and delta; a plan prints the rho they give.",
    "bounded": "Use relation: replace_one (bounded) or add_remove (unbounded).",
    "protected_change": "Use relation of the method, and [unit] of the schema for a person.",
    "privacy_unit": "Declare [unit] in the schema; relation of the method sets the neighbors.",
    "contributions": "Declare max_rows of [unit] in the schema.",
    "value_protection": "Declare levels and bounds in the schema.",
    "categorical_columns": "Declare kind = 'nominal' in the schema.",
    "ordinal_columns": "Declare kind = 'ordinal' in the schema.",
    "continuous_columns": "Declare kind = 'numeric' in the schema.",
    "metadata": "Use schema; `gibbous schema import` reads metadata of other tools.",
    "domain": "Use schema; `gibbous schema import` reads domain.json.",
}
_OF_METHODS = ("epsilon", "delta", "relation", "parents", "sweeps", "block", "l", "contexts")
_OF_RUNS = ("rows", "sets", "seed", "out", "ledger", "engine")
_ANSWERED = {*FOREIGN, *ELSEWHERE, *_OF_RUNS}  # never a parameter of a method


def answering(function: Function, *, beyond: Collection[str] | None = ()) -> Function:
    """Answer an unknown or a missing keyword with what is meant, and check values against the type hints.

    Args:
        beyond: parameters whose values are checked elsewhere; None for all of them.
    Raises:
        UnknownKeyword: (a UsageError and a TypeError) a keyword is unknown or missing.
        UsageError: a value is of another type than its hint says.
    """
    hints: dict[str, Any] = {}
    found = list(inspect.signature(function).parameters.values())
    open_ended = any(one.kind is one.VAR_KEYWORD for one in found)  # parameters of a method
    known = [one.name for one in found if one.name != "self" and one.kind is not one.VAR_KEYWORD]
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for word in given:
            if word not in known and not (open_ended and word not in _ANSWERED):
                raise unknown_keyword(name, word, known)
        if not hints:
            hints.update(_hints(function))
        for word, value in (*zip(hints, args, strict=False), *given.items()):
            free = word not in known or beyond is None or word in beyond
            wanted = Any if free else hints[word]
            if not is_a(value, wanted):
                raise _wrong_type(name, word, value, wanted)
            if is_no_path(value, wanted):
                raise _no_path(name, word)
        placed = [one.name for one in found if one.kind is one.POSITIONAL_OR_KEYWORD][: len(args)]
        absent = [p.name for p in found if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        absent = [word for word in absent if word not in (*placed, *given)]
        if absent:
            raise _without(name, absent)
        return function(*args, **given)

    return call  # type: ignore[return-value]


def answering_words(function: Function) -> Function:
    """Unknown keywords alone: what a constructor of scikit-learn is given is looked at by `fit`."""
    return answering(function, beyond=None)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The type of each parameter, in order; Any for one whose hint is for type checkers alone."""
    names, hints = vars(sys.modules[function.__module__]), {}
    for word, one in inspect.signature(function).parameters.items():
        hints[word] = Any
        if one.annotation is not one.empty:
            alone = SimpleNamespace(__annotations__={word: one.annotation})
            with contextlib.suppress(NameError):
                hints |= get_type_hints(alone, names)
    return hints


def _wrong_type(function: str, word: str, value: object, wanted: Any) -> UsageError:
    return UsageError(
        "ARGUMENT",
        f"{word} of {function} is not of a kind that it takes: {type(value).__name__}.",
        f"It is {kind_words(wanted)}.",
        f"Correct {word}.",
    )


def answering_methods(kind: Kind) -> Kind:
    """The same for every public method of a class."""
    for name, method in [*vars(kind).items()]:
        if not name.startswith("_") and isinstance(method, staticmethod):
            setattr(kind, name, staticmethod(answering(method.__func__)))
        elif not name.startswith("_") and inspect.isfunction(method):
            setattr(kind, name, answering(method))
    return kind


def _no_path(function: str, word: str) -> UsageError:
    return UsageError(
        "PATH",
        f"{word} of {function} is no path.",
        "A path has no NUL, at most 255 bytes between two slashes, and at most 4,000 in all.",
        f"Correct {word}.",
    )


class Assumed(float):
    """A privacy parameter that nobody stated: the default of its method."""


def answering_class(kind: Kind) -> Kind:
    """The same for the constructor of a class, which also marks a budget that it was not given."""
    own = getattr(kind, "__dataclass_fields__", {}).values()
    call = answering(kind.__init__, beyond={one.name for one in own if "rule" in one.metadata})
    known = inspect.signature(kind.__init__).parameters
    place = list(known).index("epsilon") if "epsilon" in known else 0

    @functools.wraps(call)
    def made(self: Any, *args: Any, **given: Any) -> None:
        call(self, *args, **given)
        stated = "epsilon" in given or len(args) >= place
        if not stated and isinstance(known["epsilon"].default, float):
            object.__setattr__(self, "epsilon", Assumed(self.epsilon))

    kind.__init__ = made
    return kind


def _without(function: str, absent: Sequence[str]) -> UnknownKeyword:
    words = " and ".join(absent)
    why = "A budget is stated, never assumed" if "epsilon" in absent else "They have no default"
    given = ", ".join(f"{word}=..." for word in absent)
    return UnknownKeyword(
        "MISSINGKEYWORD",
        f"{function} was called without {words}.",
        f"{why}: help(gibbous.{function}) says what is meant.",
        f"Pass {given}.",
    )


def unknown_keyword(function: str, word: str, known: Sequence[str]) -> UnknownKeyword:
    """The error for one unknown keyword of a function."""
    return UnknownKeyword(
        "UNKNOWNKEYWORD",
        f"{function} has no keyword {word!r}.",
        f"Its keywords are {', '.join(known) or 'none'}.",
        _answer(word, known),
    )


def _answer(word: str, known: Sequence[str]) -> str:
    ours, why = FOREIGN.get(word, ("", ""))
    if ours == "rows" and "rows" not in known and "n" in known:
        return f"{word}: use n; {why}."
    if ours in known:
        return f"{word}: use {ours}; {why}."
    meant = ours or word
    if meant in _OF_METHODS and "method" in known:
        return f"{meant} is a parameter of the method: for example NoisyPegs({meant}=...)."
    if meant in _OF_RUNS and meant not in known:
        return f"{meant} does not belong here: synthesize takes it."
    if word in ELSEWHERE:
        return ELSEWHERE[word]
    return did_you_mean(word, known, "Leave it out.")


def did_you_mean(
    word: str, known: Iterable[str], otherwise: str = "", *, likeness: float = 0.6
) -> str:
    """The known name that a mistyped one may stand for, as a question; else another sentence."""
    near = nearest(word, known, likeness)
    return otherwise if near is None else f"Did you mean {near!r}?"


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name closest to a mistyped one, if any is as close as `likeness`, in [0, 1]."""
    import difflib

    near = difflib.get_close_matches(str(word), list(known), 1, likeness)
    return near[0] if near else None
