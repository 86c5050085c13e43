"""Declarative parameters: one `param()` gives validation, error text, CLI flag, JSON schema and docs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

from gibbous.core.errors import ParameterError, UsageError
from gibbous.core.exact import is_finite, shortly
from gibbous.core.keywords import DEFAULT_METHOD, answering_class, did_you_mean
from gibbous.core.kinds import is_a, kind_words

OF_DEFAULT = ("target", "weights")  # parameters with flags of their own, of one method

Kind = TypeVar("Kind", bound=type[Any])


@dataclass(frozen=True, slots=True)
class Rule:
    """What a parameter may be: a test and the words for it."""

    allows: Callable[[Any], bool]
    words: str


positive = Rule(lambda v: is_finite(v) and v > 0, "> 0 and finite")
probability = Rule(lambda v: 0 < v < 1, "> 0 and < 1")
share = Rule(lambda v: 0 <= v <= 1, "between 0 and 1")
anything = Rule(lambda v: True, "any value of its type")


def at_least(lowest: float) -> Rule:
    """A finite number at or above `lowest`."""
    return Rule(lambda v: is_finite(v) and v >= lowest, f">= {lowest:g}")


def one_of(*names: str) -> Rule:
    """One of the given words."""
    return Rule(lambda v: v in names, "one of " + ", ".join(repr(n) for n in names))


def param(default: Any, rule: Rule = anything, *, unit: str = "", help: str = "") -> Any:
    """Declare one parameter of a mechanism.

    Args:
        default: value when none is given; also what error messages show as an example.
        rule: what is allowed.
        unit: unit of the value, for people ("nats", "columns", "counts").
        help: one sentence for CLI, forms and docs.
    """
    return dataclasses.field(default=default, metadata={"rule": rule, "unit": unit, "help": help})


@dataclass_transform(frozen_default=True)
def mechanism(kind: Kind) -> Kind:
    """Make a frozen dataclass of a mechanism: its parameters are checked, unknown keywords answered.

    A class with a `__post_init__` of its own calls `check` there.
    """
    if "__post_init__" not in vars(kind):
        kind.__post_init__ = check
    made: Kind = dataclass(frozen=True, slots=True)(kind)  # type: ignore[assignment]
    return answering_class(made)


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """What is known of one parameter, for CLI, docs and forms."""

    name: str
    type: str
    default: object
    allowed: str
    unit: str
    help: str


def describe(mechanism: type) -> tuple[ParamInfo, ...]:
    """List the parameters of a mechanism class, in declared order."""
    hints = get_type_hints(mechanism)
    return tuple(
        ParamInfo(
            f.name,
            kind_words(hints[f.name]),
            f.default,
            _allowed_words(hints[f.name], f.metadata["rule"]),
            f.metadata["unit"],
            f.metadata["help"],
        )
        for f in dataclasses.fields(mechanism)
        if "rule" in f.metadata
    )


def check(instance: Any) -> None:
    """Validate every `param()` of a frozen dataclass; `mechanism` calls it.

    Whole numbers are accepted for float parameters and stored as floats; nothing else is converted.

    Raises:
        ParameterError: with the name, the given parameter, what is allowed and an example.
    """
    hints = get_type_hints(type(instance))
    for f in dataclasses.fields(instance):
        if "rule" not in f.metadata:
            continue
        value = getattr(instance, f.name)
        hint = hints[f.name]
        if (
            float in (hint, *get_args(hint))
            and isinstance(value, int)
            and not isinstance(value, bool)
            and is_finite(value)
        ):
            value = float(value)
            object.__setattr__(instance, f.name, value)
        rule: Rule = f.metadata["rule"]
        if not is_a(value, hint, exactly=True) or (value is not None and not rule.allows(value)):
            unit = f" {f.metadata['unit']}" if f.metadata["unit"] else ""
            raise ParameterError(
                "PARAM",
                f"{f.name} of {type(instance).__name__} is {shortly(value)}.",
                f"It must be {_must_be(hint, rule)}{unit and ' (unit:' + unit + ')'}.",
                f"{f.metadata['help']} For example {f.name}={f.default!r}.",
            )


def build(mechanism: type, given: Mapping[str, object], **fixed: Any) -> Any:
    """Make a mechanism from loose keyword arguments, answering unknown names with the nearest one.

    Args:
        mechanism: its class.
        given: parameters by name, from outside.
        fixed: further fields that are no parameters, for example public places.
    Raises:
        UsageError: a keyword is not a parameter of this mechanism.
        ParameterError: a value is outside its range.
    """
    known = [p.name for p in describe(mechanism)]
    for name in given:
        if name not in known:
            raise UsageError(
                "UNKNOWNPARAM",
                f"{mechanism.__name__} has no parameter {name!r}.",
                f"Its parameters are {', '.join(known) or 'none'}.",
                f"Leave it out, or use {DEFAULT_METHOD}, which has it."
                if name in OF_DEFAULT
                else did_you_mean(name, known, "Leave it out, or choose another method."),
            )
    return mechanism(**given, **fixed)


def unstated(mechanism: str) -> ParameterError:
    """The refusal of a budget that was not given."""
    return ParameterError(
        "NOEPSILON",
        f"No epsilon was given for {mechanism}.",
        "A budget is stated, never assumed.",
        "Pass --epsilon, for example --epsilon 1; `gibbous plan` shows what it buys.",
    )


def as_json(instance: Any) -> dict[str, object]:
    """The parameters of a mechanism as plain JSON values."""
    values = {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _must_be(wanted: Any, rule: Rule) -> str:
    words = kind_words(wanted)
    return words if rule is anything else f"{words}, {rule.words}"


def _allowed_words(wanted: Any, rule: Rule) -> str:
    """The rule in words; where it leaves everything open, the type."""
    return kind_words(wanted) if rule is anything else rule.words
