"""Parameters of a method as fields of a form: numbers, words, and lists and tables of one entry a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gibbous.core.documents import Unreadable, floats, toml
from gibbous.core.errors import UNCHARGED
from gibbous.core.keywords import DEFAULT_METHOD
from gibbous.core.params import ParamInfo, describe
from gibbous.read.schema_write import pair
from gibbous.studio.screens.budget import plan_of
from gibbous.studio.words import refusal, words

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

BUDGET = ("epsilon", "delta", "relation", "shares")
OF_METHOD = ("privacy.relation", "privacy.shares")  # not of every one
NUMBERS = {"a whole number": int, "a number": float}
MOST = 20_000  # characters of one list
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")\s*=\s*(.*)')


def parameters(name: str, without: Sequence[str] = BUDGET) -> list[ParamInfo]:
    """Those of a method, without some that are chosen elsewhere: the budget."""
    from gibbous.mechanisms.registry import load

    return [p for p in describe(load(name)) if p.name not in without]


def shown(
    p: ParamInfo, values: Mapping[str, Any], form: Mapping[str, str], before: str = ""
) -> dict[str, Any]:
    """One parameter as a screen shows it: as it was typed, where the form that is shown was refused."""
    given = values.get(f"mechanism.{p.name}", p.default)
    many = isinstance(p.default, tuple)
    text = "\n".join(_lines(given)) if many else "" if given is None else str(given)
    return {"name": p.name, "field": f"{before}{p.name}", "help": p.help, "allowed": p.allowed,
            "many": many, "value": form.get(f"{before}{p.name}", text),
            "example": words()["examples"].get(p.name, "")}  # fmt: skip


def line(name: str, value: Any) -> str:
    """A parameter in few words: "parents = 3"."""
    some = _lines(value) if isinstance(value, list | Mapping) else [str(value)]
    return f"{name} = {', '.join(some)}" if len(some) < 4 else f"{name} = {', '.join(some[:3])}, …"


def forgotten(studio: Studio) -> dict[str, None]:
    """Changes of the request that leave no parameter of its method but epsilon and delta."""
    some = (key for key in studio.place.request() if key.startswith("mechanism."))
    return dict.fromkeys((*some, *OF_METHOD))


def set_parameters(studio: Studio, form: Form) -> str:
    """Parameters of the method that is chosen, if its own checks take them for this schema."""
    chosen = str(studio.place.value("mechanism.name", DEFAULT_METHOD))
    usual = {} if "privacy.epsilon" in studio.place.request() else {"privacy.epsilon": 1.0}
    studio.place.save(checked(studio, form, parameters(chosen), usual))
    return "run"


def checked(
    studio: Studio,
    form: Form,
    some: Sequence[ParamInfo],
    usual: Mapping[str, Any],
    before: str = "",
) -> dict[str, Any]:
    """Parameters of a form by dotted key, None for a usual value; the method's own checks take them.

    Args:
        usual: what the request is taken to say besides, by dotted key; None for what it does not.
    Raises:
        UsageError: they are not taken for this schema; the faulty line is named.
    """
    known = [p for p in some if f"{before}{p.name}" in form]
    given = {f"mechanism.{p.name}": _given(p, form, before) for p in known}
    problem = _problem(studio, {**usual, **given})
    if problem:
        wrong = _faulty(studio, given, usual)
        said = problem.removesuffix(f" {UNCHARGED}")  # which a refusal ends with itself
        raise refusal("PARAMETER_plan", f"{wrong}: " if wrong else "", said)
    return given


def _problem(studio: Studio, changes: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in changes.items() if value is not None}
    gone = [key for key in changes if key not in kept]
    return plan_of(studio, kept, gone)[1]


def _faulty(studio: Studio, given: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """The entry without which the rest is taken; "" where it is not one alone."""
    for key, value in given.items():
        some = list(value.items()) if isinstance(value, Mapping) else value
        for place in range(len(some) if isinstance(some, list) else 0):
            rest: Any = some[:place] + some[place + 1 :]
            rest = dict(rest) if isinstance(value, Mapping) else rest
            if not _problem(studio, {**usual, **given, key: rest or None}):
                one = dict(some[place : place + 1]) if isinstance(value, Mapping) else [some[place]]
                return f"{key.partition('.')[2]}, {_lines(one)[0]}"
    return ""


def _given(p: ParamInfo, form: Form, before: str) -> Any:
    """What the form says of one parameter; None for its usual value."""
    if isinstance(p.default, tuple):
        return entries(p.name, form.text(f"{before}{p.name}", MOST), p.allowed)
    text = form.text(f"{before}{p.name}", 100)
    if not text or text == str(p.default):
        return None
    if isinstance(p.default, bool):
        return text == "True"
    kind = type(p.default) if isinstance(p.default, int | float) else NUMBERS.get(p.type, str)
    try:
        return kind(text)
    except ValueError:
        raise refusal("PARAMETER_number", p.name, p.allowed) from None


def entries(name: str, text: str, allowed: str = "") -> Any:
    """Lines of "age = 2" as a table, other lines as a list; one word of those allowed as itself.

    Args:
        name: of the parameter; the columns of a context are a list, even one alone.
    Raises:
        UsageError: both forms stand side by side, or a name stands twice.
    """
    table: dict[str, Any] = {}
    single: list[Any] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        quoted = _QUOTED.fullmatch(line)
        key, equals, value = (quoted[1], "=", quoted[2]) if quoted else line.partition("=")
        if not equals or line[0] in "[{":
            single.append(_value(line))
            continue
        key = _value(key.strip()) if quoted else key.strip()
        if key in table:
            raise refusal("PARAMETER_twice", name, key)
        found = _value(value.strip())
        table[key] = [found] if name == "contexts" and isinstance(found, str) else found
    if table and single:
        raise refusal("PARAMETER_mixed", name, _lines(single)[0])
    if len(single) == 1 and isinstance(single[0], str) and repr(single[0]) in allowed:
        return single[0]
    return table or single or None


def _value(text: str) -> Any:
    """A value of TOML; else a word, or several between commas."""
    try:
        found = toml(f"v = {text}")
    except Unreadable:
        found = {}
    if list(found) == ["v"]:
        return found["v"]
    some = [word.strip() for word in text.split(",")]
    return text if len(some) == 1 else [_value(word) for word in some if word]


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [f"{_key(str(key))} = {_text(inner)}" for key, inner in value.items()]
    return [_text(inner) for inner in value or ()]


def _key(key: str) -> str:
    bare = key == key.strip() and not set(key) & set('="\n') and key[:1] not in ("[", "{")
    return key if bare and key else pair("v", key).partition(" = ")[2]


def _text(value: Any) -> str:
    if isinstance(value, str) and "=" not in value and value and _value(value) == value:
        return value
    if isinstance(value, list | tuple):
        return "[" + ", ".join(pair("v", floats(one)).partition(" = ")[2] for one in value) + "]"
    return pair("v", floats(value)).partition(" = ")[2]
