"""Schema files: TOML text (or the same document as JSON) in, a Schema out, and back without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.documents import Unreadable, read_text, toml
from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.schema import UNITS, Column, Schema, Unit, impossible_mask
from gibbous.read.fields import Fields, bad, listed, shown
from gibbous.read.schema_columns import read_column, read_rule
from gibbous.read.schema_rules import read_rules, with_map_files
from gibbous.read.schema_write import FORMAT, schema_json, schema_toml

__all__ = [
    "FORMAT",
    "load_schema",
    "parse_schema",
    "schema_from_json",
    "schema_json",
    "schema_toml",
]

MAX_BYTES = 16 << 20
MAX_COLUMNS = 2_000
_UNDECLARED = "undeclared"
_ENUMERATE = 1_000_000


def load_schema(path: str | Path, *, alone: bool = False) -> Schema:
    """Read a TOML schema file of at most 16 MB; a draft may say `kind = "undeclared"`: its unit is None.

    Args:
        alone: whether it may not name the files of maps, as one from somebody else may not.
    Raises:
        UsageError: the file is not a schema; the message names the key and the nearest valid one.
        SchemaMismatch: its impossible combinations leave no possible row.
    """
    name = f"The schema file {shown(Path(path))}"
    try:
        text = read_text(Path(path), MAX_BYTES)
    except Unreadable as error:
        fault, code = str(error), "UNREADABLE" if error.errno else "SCHEMAFILE"
    else:
        return parse_schema(text, name=name, folder=None if alone else Path(path).parent)
    raise UsageError(
        code,
        f"{name} {fault}.",
        f"It is a TOML text file (UTF-8) of at most {MAX_BYTES >> 20} MB.",
        "Check the path, or make one with gibbous schema infer.",
    )


def parse_schema(text: str, *, name: str = "The schema", folder: Path | None = None) -> Schema:
    """Read the text of a TOML schema file; raises as `load_schema`.

    Args:
        name: what an error calls it.
        folder: where the maps are that its rules name; None reads no other file.
    """
    try:
        document = toml(text)
    except Unreadable as error:
        raise UsageError(
            "TOML",
            f"{name} {error}.",
            "Keys and values, [unit], and [[column]] tables; no key twice.",
            "Correct that place, or start from gibbous schema infer.",
        ) from None
    return schema_from_json(document if folder is None else with_map_files(document, folder))


def schema_from_json(document: Mapping[str, Any]) -> Schema:
    """Read the document that `schema_json` makes, exactly; raises as `load_schema`."""
    top = Fields(document, "The schema")
    _check_format(top)
    name, null = top.text("name", ""), top.text("null", "")
    about = top.text("description", "")
    ignore = tuple(top.list("ignore") or ())
    if any(not isinstance(n, str) for n in ignore):
        raise top.wrong("ignore", "holds something that is not text", "It lists column names")
    unit = _unit(top)
    columns, unspent = _columns(top), top.any("unspent") if "unspent" in top else 0.0
    if type(unspent) not in (int, float) or not 0 <= unspent < 1:
        allowed = "It is 0 or more and less than 1, of a schema that was bought"
        raise top.wrong("unspent", "is no part", allowed)
    zeros, rules = top.list("impossible") or [], read_rules(top.list("rule"))
    top.finish()
    named = {column.name: column for column in columns}
    impossible = tuple(
        read_rule(Fields(zero, f"impossible {number}"), named)
        for number, zero in enumerate(zeros, 1)
    )
    if unit is not None and unit.column in named:
        raise bad(
            f"Column {shown(unit.column)} is the person identifier and is also described as a column",
            "An identifier is not synthesized",
            "Remove its [[column]]",
        )
    texts = (name or "", about or "")
    schema = Schema(columns, unit, impossible, null or "", ignore, *texts, rules, unspent)
    _check_possible(schema)
    return schema


def _check_format(top: Fields) -> None:
    given = top.text("format")
    if given == FORMAT:
        return
    if given is None:
        raise bad("The schema has no format", f'It starts with format = "{FORMAT}"', "Add format")
    family, _, version = given.rpartition("/")
    if family == "gibbous-schema" and version.isdecimal() and int(version) > 1:
        raise UsageError(
            "NEWERSCHEMA",
            f"The schema has format {shown(given)}.",
            f"This version of gibbous reads {FORMAT}.",
            "Use the version of gibbous that wrote it, or a newer one.",
        )
    raise top.wrong("format", f"is {shown(given)}", f'It is "{FORMAT}"')


def _unit(top: Fields) -> Unit | None:
    if "unit" not in top:
        raise bad(
            "The schema does not declare the privacy unit",
            'It is a row, or a person with at most max_rows rows: [unit] kind = "row", or '
            'kind = "person" with column and max_rows',
            "Declare [unit]",
            name="NOUNIT",
        )
    table = Fields(top.any("unit"), "[unit]")
    kind, column, most = table.text("kind"), table.text("column"), table.whole("max_rows", 1)
    source = table.text("source") or "declared"
    table.finish()
    if kind == _UNDECLARED and column is None and most is None:
        return None
    known = table.among(
        "kind", kind, UNITS, 'It is "row" or "person", or "record" of a table of flows'
    )
    if kind == "person" and (column is None or most is None):
        raise bad(
            "[unit] of kind person is incomplete",
            "It has column (the identifier) and max_rows (the most rows of one person)",
            "Complete [unit]",
        )
    table.among("source", source, ("declared", "inferred"), 'It is "declared" or "inferred"')
    unit = Unit(known, column, most or 1)
    return unit if source == "declared" else replace(unit, source="inferred")


def _columns(top: Fields) -> tuple[Column, ...]:
    tables = top.list("column") or []
    if not tables:
        raise bad("The schema has no columns", "It has one [[column]] table a column", "Add one")
    if len(tables) > MAX_COLUMNS:
        raise bad(
            f"The schema has {len(tables):,} columns", f"At most {MAX_COLUMNS:,}", "Drop some"
        )
    return tuple(read_column(Fields(t, f"column {i}")) for i, t in enumerate(tables, 1))


def _check_possible(schema: Schema) -> None:
    """Refuse rules that leave no row, as far as they can be enumerated (1e6 combinations)."""
    names = [n for n in schema.names if any(n == w for r in schema.impossible for w, _ in r.where)]
    sizes = [schema[n].size for n in names]
    if not names or int(np.prod(sizes, dtype=object)) > _ENUMERATE:
        return
    small = Schema(tuple(schema[n] for n in names), impossible=schema.impossible)
    grid = np.stack([g.ravel() for g in np.indices(sizes)], axis=1)
    if impossible_mask(small, grid).all():
        raise SchemaMismatch(
            "NOROWPOSSIBLE",
            f"The impossible combinations over {listed(names)} leave no possible row.",
            "At least one combination of levels stays possible.",
            "Remove or narrow one [[impossible]] table.",
        )
