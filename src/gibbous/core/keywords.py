"""Words that newcomers bring from other tools, answered with ours; never silent aliases."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from gibbous.core.errors import UnknownKeyword

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


def answering(function: Function) -> Function:
    """Answer an unknown or a missing keyword with what is meant, instead of a bare TypeError.

    Raises:
        UnknownKeyword: (a UsageError and a TypeError) when the function is called with one.
    """
    found = list(inspect.signature(function).parameters.values())
    open_ended = any(one.kind is one.VAR_KEYWORD for one in found)  # parameters of a method
    known = [one.name for one in found if one.name != "self" and one.kind is not one.VAR_KEYWORD]
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for word in given:
            if word not in known and not (open_ended and word not in _ANSWERED):
                raise unknown_keyword(name, word, known)
        placed = [one.name for one in found if one.kind is one.POSITIONAL_OR_KEYWORD][: len(args)]
        absent = [p.name for p in found if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        absent = [word for word in absent if word not in (*placed, *given)]
        if absent:
            raise _without(name, absent)
        return function(*args, **given)

    return call  # type: ignore[return-value]


class Assumed(float):
    """A privacy parameter that nobody stated: the default of its method."""


def answering_class(kind: Kind) -> Kind:
    """The same for the constructor of a class, which also marks a budget that it was not given."""
    call = answering(kind.__init__)
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

    near = difflib.get_close_matches(word, list(known), 1, likeness)
    return near[0] if near else None
