"""`gibbous schema infer | discover | import | check`: drafts, paid facts, translations, conformity."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli import show
from gibbous.cli.parameters import number
from gibbous.cli.progress import Bars
from gibbous.core import durable
from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.core.schema import Column, Schema

if TYPE_CHECKING:
    import polars as pl

    from gibbous.cli.discovery_flags import DiscoveryFlags
    from gibbous.cli.flags import ReadingFlags, ScreenFlags
    from gibbous.read.source import ReadOptions


def infer(
    data: str, out: Path, overwrite: bool, null: str, reading: ReadingFlags, screen: ScreenFlags
) -> None:
    """Draft a schema from the data and write it; every fact in it is marked inferred."""
    _writable(out, overwrite)
    from gibbous.read.infer import propose

    with Bars(quiet=screen.silent) as bars:
        bars("read", 0, 1)
        draft = propose(data, options=reading.options(), null=null)
    schema = draft.schema
    write_text(out, draft.toml(), overwrite)
    if screen.json:
        show.as_json(summary(schema) | {"path": str(out), "notes": draft.notes})
        return
    if not screen.quiet:
        _columns(schema)
        for note, columns in _by_note(draft.notes).items():
            show.line(f"  {', '.join(map(repr, columns))}: {note}")
    show.line(
        f"{out}: a draft of {show.counted(len(schema), 'column')}. {len(schema.inferred())} facts were "
        "read off the data and are marked inferred: declare what is public knowledge, set the privacy "
        "unit, and keep the draft confidential until then. Next: gibbous schema check "
        f"{show.quoted(out)} {show.quoted(data)}{_read_as(reading)}"
    )


def discover(
    data: str,
    out: Path,
    overwrite: bool,
    price: dict[str, Any],
    public: DiscoveryFlags,
    reading: ReadingFlags,
    screen: ScreenFlags,
) -> None:
    """Spend: buy a schema and write it; every fact in it is public, or marked discovered."""
    _writable(out, overwrite)
    from gibbous.read.schema_file import schema_toml
    from gibbous.schema_discovery import discover_schema, left_out

    options = reading.options()
    known = public.discovery(data, options)
    price |= {name: number(name, price[name]) for name in ("epsilon", "delta")}
    with Bars(quiet=screen.silent) as bars:
        schema = discover_schema(data, known, **price, options=options, progress=bars)
    write_text(out, schema_toml(schema), overwrite)
    cost = f"epsilon = {price['epsilon']}, delta = {float(price['delta']):g}"
    if screen.json:
        show.as_json(summary(schema) | {"path": str(out), "ignored": list(schema.ignore)})
        return
    if not screen.quiet:
        _columns(schema)
        for warning in left_out(schema, known.to_json()):
            show.line(f"  {warning}")
    show.line(
        f"{out}: {show.counted(len(schema), 'column')}, bought for {cost}, charged to the ledger once. "
        f"Next: gibbous synthesize {show.quoted(data)} --schema {show.quoted(out)}"
        f"{_read_as(reading)}"
    )


def translate(
    file: Path, data: Path | None, out: Path, overwrite: bool, screen: ScreenFlags
) -> None:
    """Turn another tool's metadata into a schema file; levels that it lacks are inferred from records."""
    _writable(out, overwrite)
    from gibbous.read.metadata.files import import_draft

    draft = import_draft(file, data=data)
    schema, open_ = draft.schema, [one.name for one in draft.left_open]
    write_text(out, draft.toml(), overwrite)
    if screen.json:
        stated = {"columns": []} if schema is None else summary(schema)
        show.as_json(stated | {"path": str(out), "notes": draft.notes, "open": open_})
        return
    if not screen.quiet:
        if schema is not None:
            _columns(schema)
        for note, columns in _by_note(draft.notes).items():
            show.line(f"  {', '.join(map(repr, columns))}: {note}")
    left = 0 if schema is None else len(schema.inferred())
    rest = f" Left open, begun at its end: {', '.join(open_)}." if open_ else ""
    facts = f"{left} facts inferred: review them." if left else "every fact declared."
    if schema is not None:
        facts = f"{show.counted(len(schema), 'column')}, {facts}"
    show.line(
        f"{out}: {facts if schema else 'no fact of a column is stated.'}{rest}"
        + ("" if schema and schema.unit else " The privacy unit is not declared: set [unit].")
    )


def check(path: Path, data: str | None, reading: ReadingFlags, screen: ScreenFlags) -> None:
    """Read a schema file; with data, validate every value under it. Nothing leaves, nothing is spent.

    Raises:
        UsageError: the schema file is wrong, or the two are given in the other order.
        InputRejected, SchemaMismatch: the data do not fit; columns and row numbers, never values.
    """
    from gibbous.cli.declare_verbs import left_words
    from gibbous.encode.ruled_rows import check_rules
    from gibbous.read.schema_file import load_schema

    if data is not None and data.endswith(".toml") and path.suffix != ".toml":
        raise UsageError(
            "ORDER",
            f"The schema given is {str(path)!r} and the data are {data!r}.",
            "The schema comes first, then the data.",
            f"Use `gibbous schema check {show.quoted(data)} {show.quoted(path)}`.",
        )
    schema = load_schema(path)
    check_rules(schema)
    moved: set[str] = set()
    if data is not None:
        with Bars(quiet=screen.silent) as bars:
            moved = _hold_against(schema, data, reading.options(), bars)
    if screen.json:
        said = {"path": str(path), "conforms": data is not None or None, "moved": sorted(moved)}
        show.as_json(summary(schema) | said)
        return
    if not screen.quiet:
        _columns(schema)
    unit = schema.unit.words() if schema.unit else "not declared: a claim cannot be made"
    fits = f" {data} conforms." if data is not None else ""
    left = len(schema.inferred())
    paid = any(source == "discovered" for c in schema for _, source in c.sources)
    ready = "every fact is declared or paid for" if paid else "every fact is declared"
    if left:
        ready = f"{left} facts are inferred and not covered by a guarantee: declare them"
    if moved:
        named = ", ".join(name for name in schema.names if name in moved)
        fits += f" Some cells count as another level, a bound or missing: {named}."
    columns = show.counted(len(schema), "column")
    if left and not screen.quiet:
        show.line(left_words(schema, path))
    show.line(f"{path}: {columns}, unit: {unit}, {ready}.{fits} Nothing was spent.")


def summary(schema: Schema) -> dict[str, object]:
    """A schema as JSON values for scripts."""
    return {
        "columns": [
            {
                "name": c.name,
                "kind": c.kind,
                "size": c.size,
                "missing": c.missing,
                "other": c.other,
                "inferred": [fact for fact, source in c.sources if source == "inferred"],
            }
            for c in schema
        ],
        "unit": None
        if schema.unit is None
        else {
            "kind": schema.unit.kind,
            "column": schema.unit.column,
            "max_rows": schema.unit.max_rows,
        },
        "cells": schema.cells,
        "inferred": list(schema.inferred()),
    }


def write_text(path: Path, text: str, overwrite: bool) -> None:
    """Write a small file whole or not at all, readable by its owner only.

    Raises:
        OutputNotWritten: it exists (without --overwrite), or the folder cannot be written.
    """
    _writable(path, overwrite)
    try:
        durable.write_private(path, text.encode(), replace=overwrite)
    except FileExistsError:  # somebody was faster
        raise _exists(path) from None


def _hold_against(schema: Schema, data: str, options: ReadOptions, bars: Bars) -> set[str]:
    """Refuse what does not fit; returns the columns of which the schema shows cells as something else."""
    from gibbous.encode.cell_text import moved
    from gibbous.encode.encode import encode
    from gibbous.read.source import is_table, read_columns, read_slices

    def changed(part: pl.DataFrame) -> set[str]:
        codes = encode(part, schema)
        return {
            column.name
            for at, column in enumerate(schema)
            if moved(part[column.name], column, codes.by_column[at]).any()
        }

    bars("read", 0, 2)
    if is_table(data):
        with read_slices(data, schema=schema, options=options) as (_, slices):
            found = [changed(part) for part in slices]
        bars("read", 2, 2)
        return set().union(*found)
    frame = read_columns(data, schema=schema, options=options)
    bars("read", 1, 2)
    found = [changed(frame)]
    bars("read", 2, 2)
    return found[0]


def _read_as(reading: ReadingFlags) -> str:
    """The flags that make the next command read the file as this one did."""
    flags = (
        ("--sep", "tab" if reading.sep == "\t" else reading.sep, ","),
        ("--encoding", reading.encoding, "utf-8"),
        ("--decimal", reading.decimal, "."),
        ("--on-bad-line", reading.on_bad_line, "reject"),
    )
    given = [f" {flag} {show.quoted(v)}" for flag, v, usual in flags if v != usual]
    return "".join(given) + " --amounts" * reading.amounts


def _columns(schema: Schema) -> None:
    show.table(
        ("column", "kind", "levels", "missing", "facts inferred"),
        [(c.name, c.kind, c.size, _missing(c), _inferred(c)) for c in schema],
    )


def _by_note(notes: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for column, note in notes.items():
        found.setdefault(note, []).append(column)
    return found


def _missing(column: Column) -> str:
    if column.source("missing") == "discovered" and not column.missing:
        return "not a level"
    return "a level" if column.missing else "refused"


def _inferred(column: Column) -> str:
    return ", ".join(fact for fact, source in column.sources if source == "inferred") or "-"


def _writable(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise _exists(path)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputNotWritten(
            "NOTWRITABLE",
            f"{str(path)!r} cannot be written.",
            "Its folder must exist and be writable, and it must not be a folder itself.",
            "Choose another --out.",
        )


def _exists(path: Path) -> OutputNotWritten:
    return OutputNotWritten(
        "EXISTS",
        f"{str(path)!r} exists.",
        "Nothing is replaced without --overwrite.",
        "Choose another --out, or pass --overwrite.",
    )
