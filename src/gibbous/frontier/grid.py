"""What a study runs: methods with parameters, budgets, repeats; each run a cell with a name of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gibbous.core.errors import UsageError
from gibbous.core.params import build, describe
from gibbous.mechanisms import registry

REFERENCES = ("resampled records", "independent columns")
"""Tables that need no mechanism: what chance alone, and margins alone, would score."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One method of a study.

    Attributes:
        label: what tables and maps call it.
        method: registered name; "" for a reference.
        params: ((name, value), ...) as given.
    """

    label: str
    method: str
    params: tuple[tuple[str, Any], ...] = ()

    def mechanism(self) -> Any:
        """The mechanism.

        Raises:
            UsageError: the method, or one of its parameters, is not known.
            ParameterError: a parameter is outside its range.
        """
        return build(registry.load(self.method), dict(self.params))


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    arm: Arm
    repeat: int

    @property
    def name(self) -> str:
        """A file name that says what was run: equal cells have equal names."""
        text = json.dumps([self.arm.label, self.arm.method, self.arm.params, self.repeat])
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def arms(methods: Mapping[str, Any] | Sequence[Any]) -> tuple[Arm, ...]:
    """Methods as given by a user: names, mechanisms, or a mapping of labels to these.

    Raises:
        UsageError: none, two of one label, or something that is not a method.
    """
    pairs = (
        list(methods.items())
        if isinstance(methods, Mapping)
        else [(_label(one), one) for one in methods]
    )
    listed = tuple(_arm(str(label), one) for label, one in pairs)
    labels = [arm.label for arm in listed]
    twice = sorted({x for x in labels if labels.count(x) > 1} | {*labels} & {*REFERENCES})
    if twice or not listed:
        raise UsageError(
            "METHODS",
            f"Methods share a label: {', '.join(twice)}." if twice else "There is no method.",
            "A study compares at least one method, and each has a label of its own.",
            "Give a dictionary of labels and methods." if twice else "Name one.",
        )
    return listed


def cells(
    arms: Sequence[Arm],
    *,
    epsilon: Sequence[Any],
    l: Sequence[Any],  # noqa: E741 - the parameter's name
    repeats: int,
) -> tuple[Cell, ...]:
    """The runs of a study: each method at each budget it has, each repeated.

    Args:
        epsilon, l: values for methods with such a parameter; empty leaves each as it is.
    Returns:
        References first; repeats outermost, so that a study that was cut short is balanced.
    """
    varied = [Arm(name, "") for name in REFERENCES]
    for arm in arms:
        known = {p.name for p in describe(registry.load(arm.method))}
        name, values = ("epsilon", epsilon) if "epsilon" in known else ("l", l)
        if name not in known or not values:
            varied.append(arm)
            continue
        for value in values:
            params = {**dict(arm.params), name: value}
            varied.append(replace(arm, params=tuple(sorted(params.items()))))
    return tuple(Cell(arm, repeat) for repeat in range(repeats) for arm in varied)


def _label(one: Any) -> str:
    return one if isinstance(one, str) else str(getattr(getattr(one, "about", None), "name", one))


def _arm(label: str, one: Any) -> Arm:
    if isinstance(one, Arm):
        return replace(one, label=label)
    if isinstance(one, str):
        registry.load(one)
        return Arm(label, one)
    about = getattr(one, "about", None)
    if about is None or isinstance(one, type) or type(one) is not registry.load(about.name):
        raise UsageError(
            "METHOD",
            f"{label!r} is not a registered method.",
            "A study runs methods in processes of their own, which find them by name.",
            "Give a registered name, or an instance of a registered method; "
            "`gibbous methods` lists them.",
        )
    values = {p.name: getattr(one, p.name) for p in describe(type(one))}
    return Arm(label, about.name, tuple(sorted(values.items())))
