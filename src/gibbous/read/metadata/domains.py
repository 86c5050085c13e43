"""Domains of other tools -> what they state: domain.json (sizes), DPSynth attributes, SmartNoise metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from gibbous.core.errors import UsageError
from gibbous.core.exact import is_finite
from gibbous.core.schema import Unit
from gibbous.read.fields import listed, shown
from gibbous.read.metadata.codebook import MAX_LEVELS, Codebook, Variable, few, plain_level, unsound

_DPSYNTH = ("possible_values", "min_value", "max_tokens", "default_value")
_NUMBERS = ("int", "float")
_BUY = (
    "left out (ignore): its levels are not known beforehand. `gibbous schema discover` buys them, or "
    "list them by hand."
)


def is_sizes(document: object) -> bool:
    """Whether it maps names to whole numbers, as domain.json of private-pgm and NIST does."""
    return _each(document, lambda v: isinstance(v, int) and not isinstance(v, bool))


def of_sizes(document: Mapping[str, int]) -> Codebook:
    """Codes 0 to size - 1, one record a row."""
    for name, size in few(document).items():
        if not 1 <= size <= MAX_LEVELS:
            raise UsageError(
                "DOMAIN",
                f"Column {shown(name)} has size {size:,}.",
                f"Sizes are 1 to {MAX_LEVELS:,}.",
                "Group its codes, or leave it out of the domain and the data.",
            )
    variables = (Variable(n, tuple(range(size)), missing=False) for n, size in document.items())
    return Codebook(tuple(variables), Unit())


def is_dpsynth(document: object) -> bool:
    """Whether it maps names to attributes of DPSynth."""
    return _each(document, lambda v: isinstance(v, dict) and any(k in v for k in _DPSYNTH))


def of_dpsynth(document: Mapping[str, Any]) -> Codebook:
    """Domains of DPSynth, as its `to_yaml` writes them. The privacy unit is not stated.

    Source:
        google/dpsynth, its page on specifying domains.
    """
    return Codebook(tuple(_dpsynth(str(name), facts) for name, facts in document.items()))


def _dpsynth(name: str, facts: Mapping[str, Any]) -> Variable:
    values = facts.get("possible_values")
    if isinstance(values, list):
        levels = tuple(level for level in map(plain_level, values) if level is not None)
        remark = (
            "DPSynth maps values outside the list to one of it; here they are refused: set other."
        )
        return Variable(name, levels, missing=None in values, remark=remark)
    low, high = facts.get("min_value"), facts.get("max_value")
    if not (_number(low) and _number(high)):
        return Variable(name, why_not=_BUY)
    whole = facts.get("dtype") == "int"
    edges = facts.get("bin_edges")
    inner = [e for e in edges if _number(e) and low < e < high] if isinstance(edges, list) else []
    clips = facts.get("clip_to_range") is not False
    ends = [int(v) if whole else float(v) for v in (low, *inner, high)]
    return Variable(
        name, lower=ends[0], upper=ends[-1], cuts=tuple(ends[1:-1]), integer=whole, clamp=clips
    )


def is_smartnoise(document: object) -> bool:
    """Whether it holds a table of SmartNoise: columns with a type each, in a schema, in a database."""
    return isinstance(document, Mapping) and bool(_tables(document, ""))


def of_smartnoise(document: Mapping[str, Any]) -> Codebook:
    """Metadata of smartnoise-sql: bounds, missing values, and the privacy unit of one table.

    Raises:
        UsageError: there are several tables.
    Source:
        docs.smartnoise.org/sql/metadata.html.
    """
    tables = _tables(document, "")
    if len(tables) > 1:
        raise unsound(
            f"describe {len(tables)} tables: {listed(tables)}", "SmartNoise metadata", "One"
        )
    name, table = next(iter(tables.items()))
    given = {_bare(n): c for n, c in table.items() if isinstance(c, Mapping) and "type" in c}
    columns = few(given)
    people = [n for n, c in columns.items() if c.get("private_id") is True]
    clamp = table.get("clamp_columns") is not False
    unit = None
    most = table.get("max_ids", 1)
    if table.get("row_privacy") is True:
        unit = Unit()
    elif len(people) == 1 and type(most) is int and most >= 1:
        unit = Unit("person", people[0], most)
    left = [(n, "left out (ignore): an identifier (private_id).") for n in people]
    rest = (_smartnoise(n, c, clamp) for n, c in columns.items() if n not in people)
    return Codebook(tuple(rest), unit, name, remarks=tuple(left))


def _smartnoise(name: str, facts: Mapping[str, Any], clamp: bool) -> Variable:
    kind, low, high = facts.get("type"), facts.get("lower"), facts.get("upper")
    missing = facts.get("nullable") is not False
    if kind == "boolean":
        return Variable(name, (False, True), missing=missing)
    if kind in _NUMBERS and _number(low) and _number(high):
        ends = [int(v) if kind == "int" else float(v) for v in (low, high)]
        whole = kind == "int"
        return Variable(
            name, lower=ends[0], upper=ends[1], integer=whole, clamp=clamp, missing=missing
        )
    if kind == "unknown":
        return Variable(
            name, why_not="left out (ignore): of unknown type, which SmartNoise ignores."
        )
    return Variable(name, missing=missing)


def _tables(node: object, name: str, depth: int = 0) -> dict[str, Mapping[str, Any]]:
    if not isinstance(node, Mapping) or depth > 3:
        return {}
    if any(isinstance(v, Mapping) and isinstance(v.get("type"), str) for v in node.values()):
        return {name: node}
    found: dict[str, Mapping[str, Any]] = {}
    for key, value in node.items():
        inner = _tables(value, _bare(key), depth + 1)
        found |= {(k if k not in found else f"{name}.{k}"): v for k, v in inner.items()}
    return found


def _bare(name: object) -> str:
    """A name without the quotes of SQL around it."""
    text = str(name)
    quoted = len(text) > 2 and text[0] + text[-1] in ('""', "``", "[]")
    return text[1:-1] if quoted else text


def _number(value: object) -> TypeGuard[int | float]:
    return is_finite(value) and not isinstance(value, bool)


def _each(document: object, fits: Any) -> bool:
    return isinstance(document, Mapping) and bool(document) and all(map(fits, document.values()))
