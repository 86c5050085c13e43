"""Croissant (JSON-LD of data for machine learning) -> descriptions and enumerations of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gibbous.core.schema import Level
from gibbous.read.fields import listed
from gibbous.read.metadata.codebook import MAX_LEVELS, Codebook, Variable, few, plain_level, unsound

_TEXT = ("name", "label", "description")


def is_croissant(document: object) -> bool:
    """Whether it describes record sets."""
    return isinstance(document, Mapping) and any(
        k.endswith("recordSet") for k in map(str, document)
    )


def of_croissant(document: Mapping[str, Any]) -> Codebook:
    """Fields of the one record set that is not an enumeration. Bounds and the privacy unit are not stated.

    Raises:
        UsageError: there is no such record set, or several.
    Source:
        docs.mlcommons.org/croissant/docs/croissant-spec.html, 1.0.
    """
    sets = _items(_of(document, "recordSet"))
    tables = [s for s in sets if not _enumeration(s)]
    if len(tables) != 1:
        names = listed(_name(s) for s in tables)
        raise unsound(
            f"has {len(tables)} record sets of records: {names}" if tables else "has no record set",
            "Croissant file",
            "It describes one table, and enumerations",
        )
    listings = {_name(s): _items(_of(s, "data")) for s in sets if _enumeration(s)}
    table = tables[0]
    keys = {_key(k) for k in _items(table.get("key"), str | Mapping)}
    fields = few([f for f in _items(_of(table, "field")) if _name(f)])
    left = [(_last(_name(f)), "left out (ignore): the key.") for f in fields if _name(f) in keys]
    rest = tuple(_variable(f, listings) for f in fields if _name(f) not in keys)
    about = document.get("description")
    return Codebook(rest, None, document.get("name", ""), about, tuple(left))


def _variable(field: Mapping[str, Any], listings: Mapping[str, list[Any]]) -> Variable:
    name = _last(_name(field))
    texts = (("description", field.get("description")),)
    types = {
        str(t).replace("/", ":").rpartition(":")[2] for t in _items(field.get("dataType"), str)
    }
    if _of(field, "subField") or field.get("repeated") is True or field.get("isArray") is True:
        return Variable(name, why_not="left out (ignore): it holds lists or parts.")
    place = _reference(field)
    rows = listings.get(place.rpartition("/")[0]) or listings.get(place) or []
    if len(rows) > MAX_LEVELS:
        return Variable(name, why_not=f"left out (ignore): over {MAX_LEVELS:,} levels are listed.")
    levels, labels = _listed_levels(rows, place)
    if levels:
        return Variable(name, levels, labels, texts=texts)
    if types & {"Boolean", "boolean"}:
        return Variable(name, (False, True), texts=texts)
    return Variable(name, texts=texts)


def _reference(field: Mapping[str, Any]) -> str:
    reference = _of(field, "references")
    return _key(reference.get("field", reference) if isinstance(reference, Mapping) else reference)


def _listed_levels(
    rows: list[Any], place: str
) -> tuple[tuple[Level, ...], tuple[tuple[Level, str], ...]]:
    levels: dict[Level, str] = {}
    for row in rows:
        cells = {_last(str(key)): value for key, value in row.items()}
        level = plain_level(cells.get(_last(place)))
        if level is not None:
            label = next((cells[k] for k in _TEXT if k in cells and k != _last(place)), None)
            levels[level] = str(label) if isinstance(label, str) else ""
    return tuple(levels), tuple((level, label) for level, label in levels.items() if label)


def _enumeration(record_set: Mapping[str, Any]) -> bool:
    types = " ".join(map(str, _items(record_set.get("dataType"), str)))
    return "Enumeration" in types or bool(_of(record_set, "data"))


def _of(node: Mapping[str, Any], key: str) -> Any:
    """A property, with or without the prefix of its vocabulary."""
    for name in (key, f"cr:{key}", f"ml:{key}"):
        if name in node:
            return node[name]
    return None


def _items(value: object, kind: Any = Mapping) -> list[Any]:
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [v for v in values if isinstance(v, kind)]


def _name(node: Mapping[str, Any]) -> str:
    return str(node.get("@id") or node.get("name") or "")


def _key(reference: object) -> str:
    if isinstance(reference, Mapping):
        reference = reference.get("@id", "")
    return str(reference or "").strip("#{}")


def _last(identifier: str) -> str:
    return identifier.rpartition("/")[2]
