"""A Schema out: as a TOML document for people, with a review list, or as plain JSON values."""

from __future__ import annotations

import datetime
import json
import os
import textwrap
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gibbous.core.column_texts import LENGTHS
from gibbous.core.errors import UsageError
from gibbous.core.schema import Column, Level, Schema
from gibbous.read.edges import equal_width, facts
from gibbous.read.schema_columns import MISSING
from gibbous.read.schema_rules import rules_json

FORMAT = "gibbous-schema/1"
_LINE = 100
_MANY = 100  # levels: more are usually grouped, or name somebody


def schema_json(schema: Schema) -> dict[str, Any]:
    """The schema as plain JSON values, days as ISO text; `schema_from_json` reads it back exactly."""
    document: dict[str, Any] = {"format": FORMAT}
    if schema.name:
        document["name"] = schema.name
    if schema.description:
        document["description"] = schema.description
    if schema.unspent:
        document["unspent"] = schema.unspent
    document |= {"null": schema.null, "ignore": list(schema.ignore), "unit": _unit(schema)}
    document["column"] = [_column(c) for c in schema]
    if schema.impossible:
        document["impossible"] = [
            {name: _codes(schema[name], codes) for name, codes in rule.where}
            for rule in schema.impossible
        ]
    if schema.rules:
        document["rule"] = rules_json(schema.rules)
    return document


def schema_toml(schema: Schema, *, notes: Mapping[str, str] | None = None) -> str:
    """The schema as a TOML file; `load_schema` reads it back exactly.

    A schema with facts that were read off the data has a review list at the top, to which notes
    (column name -> why it needs a look) are added. UsageError for text that UTF-8 cannot hold.
    """
    document = schema_json(schema)
    lines = _review(schema, notes or {})
    first = ("format", "name", "description", "unspent", "null", "ignore")
    lines += [pair(k, document[k]) for k in first if k in document]
    lines += ["", "[unit]"]
    lines += [pair(key, value) for key, value in document["unit"].items()]
    for column, table in zip(schema, document["column"], strict=True):
        lines += ["", "[[column]]"]
        days = ("lower", "upper", "cuts", "steps") if column.kind == "date" else ()
        labels = table.pop("labels", None)
        lines += [pair(key, _days(value) if key in days else value) for key, value in table.items()]
        lines += _labels(labels) if labels else []
    for kind in ("impossible", "rule"):
        for table in document.get(kind, []):
            lines += ["", f"[[{kind}]]"]
            lines += [pair(key, value) for key, value in table.items() if key != "map"]
            if "map" in table:
                lines += ["[rule.map]", *(pair(key, value) for key, value in table["map"].items())]
    text = "\n".join(lines) + "\n"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(
            "SCHEMATEXT",
            "A name or level of the schema is not valid Unicode text.",
            "Names and levels are text that UTF-8 can hold.",
            "Correct it in the schema.",
        )
    return text


def _labels(labels: Mapping[str, str]) -> list[str]:
    short = pair("labels", labels)
    if len(short) <= _LINE:
        return [short]
    return ["[column.labels]", *(pair(level, label) for level, label in labels.items())]


def _unit(schema: Schema) -> dict[str, Any]:
    if schema.unit is None:
        return {"kind": "undeclared"}
    source = {} if schema.unit.source == "declared" else {"source": schema.unit.source}
    if schema.unit.kind != "person":
        return {"kind": schema.unit.kind, **source}
    return {
        "kind": "person",
        "column": schema.unit.column,
        "max_rows": schema.unit.max_rows,
        **source,
    }


def _column(column: Column) -> dict[str, Any]:
    table: dict[str, Any] = {"name": column.name, "kind": column.kind}
    texts = {key: getattr(column, key) for key in LENGTHS}
    table |= {key: text for key, text in texts.items() if text is not None}
    if column.binned:
        table |= _bins(column)
    else:
        table["levels"] = list(column.levels)
        if column.other is not None:
            table["other"] = column.other
    if column.missing:
        table["missing"] = True
    if column.sources:
        whole = {source for _, source in column.sources}
        names = tuple(fact for fact, _ in column.sources)
        if names == facts(column.binned) and len(whole) == 1 and whole != {"declared"}:
            table["source"] = whole.pop()
        else:
            table["sources"] = dict(column.sources)
    if column.level_labels:
        table["labels"] = {str(level): label for level, label in column.level_labels}
    return table


def _bins(column: Column) -> dict[str, Any]:
    date = column.kind == "date"
    show = partial(_shown, date=date)
    edges, table = column.edges, {"lower": show(column.edges[0]), "upper": show(column.edges[-1])}
    whole = date or column.integer
    bins = len(edges) - 1
    if edges == equal_width(edges[0], edges[-1], bins, whole=whole):
        table["bins"] = bins
    else:
        table["cuts"] = [show(e) for e in edges[1:-1]]
    if column.within is not None:
        table["steps"] = [show(e) for e in column.within.edges[1:-1]]
        table["weights"] = list(column.within.weights)
        if column.within.noise:
            table["weights_noise"] = column.within.noise
    numbers = {"integer": column.integer or None, "decimals": column.decimals}
    rest = numbers | {"clamp": column.clamp or None, "format": column.date_format}
    return table | {key: value for key, value in rest.items() if value is not None}


def _codes(column: Column, codes: tuple[int, ...]) -> object:
    """The shortest form that reads back as the same codes."""
    if column.binned and codes == (column.missing_code,):
        return MISSING
    inner = [c for c in codes if c < column.bins]
    labels: dict[str, Any] = {}
    if not column.binned:
        levels: list[Level] = [column.levels[c] for c in inner]
        labels = {"levels": levels} if levels else {}
    elif inner:
        labels = {"bins": inner}
    special = {"other": column.other_code, "missing": column.missing_code}
    flags = {key: True for key, code in special.items() if code is not None and code in codes}
    if column.binned or (flags and {MISSING} & {*map(str, column.levels), column.other}):
        return labels | flags
    named = [column.other] if "other" in flags else []
    return labels.get("levels", []) + named + ([MISSING] if "missing" in flags else [])


def _review(schema: Schema, notes: Mapping[str, str]) -> list[str]:
    inferred = [c for c in schema if any(s == "inferred" for _, s in c.sources)]
    if not inferred and schema.unit is not None and not notes:
        return []
    lines = [
        "Draft. Facts marked inferred were read off the data: keep this file confidential,",
        "and declare what is public knowledge. A claim of differential privacy over an",
        "inferred fact is refused.",
        "",
        'To do; then delete source = "inferred" where you are done:',
    ]
    if schema.unit is None:
        lines.append('- [unit]: declare kind "row", or "person" with column and max_rows.')
    by_advice: dict[str, list[str]] = {}
    for column in inferred:
        by_advice.setdefault(_advice(column), []).append(_inline(column.name))
    lines += [f"- {', '.join(names)}: {advice}" for advice, names in by_advice.items()]
    lines += [f"- {_inline(name)}: {_inline(note)[1:-1]}" for name, note in notes.items()]
    for name in schema.ignore:
        if name not in notes:
            lines.append(f"- {_inline(name)}: left out (ignore): identifier, free text or no use.")
    return [f"# {line}".rstrip() for line in lines] + [""]


def _advice(column: Column) -> str:
    inferred = {fact for fact, source in column.sources if source == "inferred"}
    parts = {
        "kind": f"check the kind ({column.kind})",
        "levels": "list every level that can occur, not only those seen",
        "bounds": "give bounds from public knowledge",
        "bins": "choose bins or cuts, or bins = 1 so that they are bought",
        "missing": "say whether it can be missing",
    }
    todo = "; ".join(words for fact, words in parts.items() if fact in inferred)
    if column.kind == "nominal" and column.size > _MANY:
        todo += "; if its values name persons, it belongs to [unit] and has no [[column]]"
        todo += "; otherwise group them"
    return f"{todo}."


def pair(key: str, value: object) -> str:
    """One key with its value, as TOML lines."""
    if isinstance(value, list):
        short = f"{_key(key)} = {_inline(value)}"
        if len(short) <= _LINE:
            return short
        if key in ("steps", "weights"):  # hundreds of numbers, of no interest one by one
            return textwrap.fill(short, _LINE, subsequent_indent="    ", break_on_hyphens=False)
        return f"{_key(key)} = [\n" + "".join(f"    {_inline(v)},\n" for v in value) + "]"
    return f"{_key(key)} = {_inline(value)}"


def _inline(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _inline(name)


def _days(value: object) -> object:
    if isinstance(value, list):
        return [_days(v) for v in value]
    return datetime.date.fromisoformat(str(value))


def _shown(edge: float, *, date: bool) -> Any:
    if date:
        return datetime.date.fromordinal(int(edge)).isoformat()
    # 17.0 reads better as 17, and equals it.
    whole = isinstance(edge, float) and edge.is_integer() and abs(edge) < 2**53
    return int(edge) if whole else edge


def save_schema(schema: Schema, path: str | Path, overwrite: bool = False) -> Path:
    """Write a schema file; UsageError if it exists, cannot be written, or as `schema_toml`."""
    place, text = Path(path), schema_toml(schema)
    try:
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if overwrite else os.O_EXCL)
        with os.fdopen(os.open(place, flags, 0o600), "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        there = isinstance(error, FileExistsError)
        why = "exists already" if there else f"cannot be written: {error.strerror}"
        raise UsageError(
            "SCHEMAFILE",
            f"The schema file {str(place)!r} {why}.",
            "A schema is a new text file in a folder that exists; --overwrite replaces one.",
            "Choose another name, or pass --overwrite." if there else "Check the path.",
        ) from None
    return place
