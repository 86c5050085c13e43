"""The [[rule]] tables of a schema document -> rules, and back."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gibbous.core.column import Level
from gibbous.core.documents import Unreadable, read_text
from gibbous.core.rules import Rule
from gibbous.read.fields import Fields, bad, listed, shown

_MAP_BYTES = 16 << 20
_WHEN = "if"  # what the field `when` is called in a document


def read_rules(tables: Sequence[object] | None) -> tuple[Rule, ...]:
    """All [[rule]] tables; UsageError for a key or value that is not one of a rule."""
    return tuple(_rule(Fields(table, f"rule {i}")) for i, table in enumerate(tables or (), 1))


def rules_json(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Rules as plain values; `read_rules` reads them back exactly."""
    return [_table(rule) for rule in rules]


def with_map_files(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The document with the maps that its rules name as files written out, so that it stands alone.

    Names of maps are relative to the folder; UsageError for one without the two columns.
    """
    rules = document.get("rule")
    if not isinstance(rules, list):
        return document
    return document | {"rule": [_with_map(rule, folder) for rule in rules]}


def _rule(fields: Fields) -> Rule:
    pairs = fields.any("map")
    if isinstance(pairs, str) or (pairs is not None and not isinstance(pairs, Mapping)):
        raise fields.wrong(
            "map", "is not a table", "It maps each level of detail to a value of group"
        )
    when, then = fields.text(_WHEN, "") or "", fields.text("then", "") or ""
    require, detail = fields.text("require", "") or "", fields.text("detail", "") or ""
    group, columns = fields.text("group", "") or "", tuple(fields.list("columns") or ())
    allowed, forbidden = (tuple(fields.list(key) or ()) for key in ("allowed", "forbidden"))
    bought = fields.flag("bought")
    fields.finish()
    if any(not isinstance(name, str) for name in columns):
        raise fields.wrong("columns", "hold something else", "They are column names")
    if any(not isinstance(one, list) for one in allowed + forbidden):
        raise fields.wrong(
            "allowed", "holds something else", "Each combination is a list of levels"
        )
    flat: dict[Level, Level] = {str(level): _plain(value) for level, value in (pairs or {}).items()}
    return Rule(require, when, then, detail, group, flat, columns, allowed, forbidden, bought)


def _table(rule: Rule) -> dict[str, Any]:
    if rule.require:
        return {"require": rule.require}
    if rule.when:
        return {_WHEN: rule.when, "then": rule.then}
    if rule.detail:
        known: dict[str, Any] = {"bought": True} if rule.bought else {}
        known |= {} if rule.to_buy else {"map": dict(rule.map)}
        return {"detail": rule.detail, "group": rule.group} | known
    which = "allowed" if rule.allowed else "forbidden"
    return {"columns": list(rule.columns), which: [list(one) for one in getattr(rule, which)]}


def _with_map(rule: object, folder: Path) -> object:
    if not isinstance(rule, dict) or not isinstance(rule.get("map"), str):
        return rule
    return rule | {"map": _pairs(folder / rule["map"], rule.get("detail"), rule.get("group"))}


def _pairs(path: Path, detail: object, group: object) -> dict[str, str]:
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path, _MAP_BYTES))))
    except (Unreadable, csv.Error) as error:
        raise bad(
            f"The map {shown(path)} cannot be read: {error}",
            "It is a CSV file (UTF-8) of at most 16 MB, beside the schema file",
            "Correct map",
        ) from None
    names = list(rows[0]) if rows else []
    if detail not in names or group not in names:
        raise bad(
            f"The map {shown(path)} has the columns {listed(names)}",
            f"It has a column {shown(detail)} and a column {shown(group)}, named in its first line",
            "Correct the file, or detail and group",
        )
    return {str(row[str(detail)]): str(row[str(group)]) for row in rows}


def _plain(value: object) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value
