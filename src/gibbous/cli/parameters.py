"""Parameters of a method, as they were written, to the method that they make."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.exact import DIGITS

if TYPE_CHECKING:
    from gibbous.core.protocols import Mechanism


def build_method(
    name: str, given: Mapping[str, object], fixed: Mapping[str, Any] | None = None
) -> Mechanism:
    """A mechanism from its registered name and loose parameters.

    Raises:
        UsageError: unknown method or parameter.
        PrivacyRefused: a budget for a method that makes no such claim, or none for one that does.
    """
    from gibbous.core.params import build, describe, unstated
    from gibbous.mechanisms.registry import load

    method = load(name)
    known = [p.name for p in describe(method)]
    params = {key: exact_value(key, value) for key, value in given.items()}
    if "relation" not in known and params.get("relation") == "add_remove":
        del params["relation"]  # a method without the parameter is under add_remove
    if "delta" not in known and params.get("delta") == 0:
        del params["delta"]
    for key in ("epsilon", "delta"):
        if key in params and key not in known:
            raise _no_such_budget(name, key, "epsilon" in known)
    if "epsilon" in known and "epsilon" not in params:
        raise unstated(name)
    built: Mechanism = build(method, params, **(fixed or {}))
    return built


def exact_value(key: str, value: object) -> object:
    """A value for a parameter: budgets from exactly their text, lists as tuples."""
    if key in ("epsilon", "delta") or isinstance(value, Decimal):
        return number(key, value)
    if isinstance(value, list):
        return tuple(exact_value(key, item) for item in value)
    return value


def number(key: str, value: object) -> float:
    """A budget as written, in decimal text, to the float that stands for exactly that text.

    Raises:
        ParameterError: not a number, or more digits than survive.
    """
    try:
        if isinstance(value, bool):
            raise InvalidOperation
        decimal = Decimal(str(value).strip())
        near = float(decimal)
    except (InvalidOperation, ValueError, OverflowError):
        raise ParameterError(
            "NUMBER",
            f"{key} is {str(value)[:40]!r}.",
            "It is a decimal number.",
            f"For example {key}={'1e-9' if key == 'delta' else '1'}.",
        ) from None
    long = len(decimal.as_tuple().digits) > DIGITS
    if isfinite(near) and near != 0 and (long or Fraction(repr(near)) != Fraction(decimal)):
        raise ParameterError(
            "DIGITS",
            f"{key} has more digits than are kept exactly.",
            "Budgets are exact decimals of at most 15 significant digits.",
            f"Round {key} to fewer digits.",
        )
    return near


def _no_such_budget(name: str, key: str, has_epsilon: bool) -> PrivacyRefused:
    if has_epsilon:
        return PrivacyRefused(
            "NODELTA",
            f"{name} has no {key}, and {key} was given.",
            "Its claim is pure epsilon: there is nothing for delta to do.",
            f"Leave {key} out, or choose a method with (epsilon, delta).",
        )
    return PrivacyRefused(
        "NOTDP",
        f"{name} makes no claim of differential privacy, and {key} was given.",
        "A method without that proof is never combined with such a claim.",
        f"Leave {key} out, or choose a method with {key}; `gibbous methods` lists what is proven.",
    )
