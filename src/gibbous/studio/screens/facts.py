"""Facts of one column: how a screen shows them, what a form declares of them, and columns left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from gibbous.core.column import Column, edge_text
from gibbous.core.documents import read_text
from gibbous.core.schema import Schema
from gibbous.studio import commands
from gibbous.studio.looking import looked
from gibbous.studio.screens.screen import needed_schema
from gibbous.studio.words import refusal
from gibbous.studio.workplace import write

if TYPE_CHECKING:
    from gibbous.read.declaring import Declared
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

LEFT = "left-out.toml"
TYPED = ("kind", "levels", "labels", "other", "missing", "label", "reason")
SHAPE = ("lower", "upper", "bins", "cuts")


def row(column: Column, seen: set[str]) -> dict[str, Any]:
    """What the screen shows of a column; values that were read off the data only once they were asked for."""
    sources = dict(column.sources)
    own = ("bounds", "bins") if column.binned else ("levels",)
    shown = column.name in seen or not any(sources.get(fact) == "inferred" for fact in own)
    drafted = sources.get("missing") == "inferred" and column.name not in seen
    labels = dict(column.level_labels)
    return {
        "name": column.name,
        "kind": column.kind,
        "binned": column.binned,
        "levels": "\n".join(map(str, column.levels)) if shown else "",
        "labels": "\n".join(labels.get(level, "") for level in column.levels) if labels and shown else "",
        "missing": "" if drafted else "yes" if column.missing else "no",
        "other": column.other or "",
        "clamp": column.clamp,
        "reason": "",
        "label": column.label or "",
        "note": column.note or "",
        "hidden": not shown,
        "seen": column.name in seen,
        "sources": {fact: sources.get(fact, "declared") for fact in ("kind", *own, "missing")},
        **_shape(column, shown=shown),
    }  # fmt: skip


def typed(one: dict[str, Any], form: Form) -> dict[str, Any]:
    """A row with what a form that was refused holds of it."""
    if form.get("column") != one["name"] or "kind" not in form:
        return one
    said = {name: form[name] for name in (*TYPED, *SHAPE) if name in form}
    binned = form["kind"] in ("numeric", "date")
    return one | said | {"binned": binned, "clamp": form.get("clamp") == "yes"}


def _shape(column: Column, *, shown: bool) -> dict[str, str]:
    """Bounds, and the number of bins where they are of equal width, else the cuts between them."""
    from gibbous.read.edges import equal_width

    if not column.binned or not shown:
        return dict.fromkeys(SHAPE, "")
    low, *inner, high = column.edges
    whole = column.integer or column.kind == "date"
    even = column.edges == equal_width(low, high, column.bins, whole=whole)
    cuts = "" if even else " ".join(edge_text(column, cut) for cut in inner)
    bins = str(column.bins) if even else ""
    return dict(
        zip(SHAPE, (edge_text(column, low), edge_text(column, high), bins, cuts), strict=True)
    )


def declare_facts(studio: Studio, form: Form) -> str:
    """Facts of one column that differ from what is known. If it was looked at, they count as inferred."""
    from gibbous.read.declaring import declare
    from gibbous.read.schema_file import MAX_BYTES

    schema, name, seen = needed_schema(studio), form.text("column"), looked(studio)
    column = of(schema, name)
    reason, note = form.text("reason", 300), column.note or ""
    facts = _given(form, column, row(column, seen))
    if facts.named() and not reason and name not in seen:
        raise refusal("REASON", name)
    if reason:
        note = f"{note} {', '.join(facts.named()) or 'texts'}: {reason}.".strip()
    texts = tuple((k, t) for k, t in (("label", form.text("label", 200)), ("note", note)) if t)
    facts = replace(facts, texts=texts, inferred=facts.named() if name in seen else ())
    path = studio.place.schema_file
    text, _ = declare(read_text(path, MAX_BYTES), name, facts)
    write(path, text)
    studio.done["describe"] = commands.declared(studio.place.short(path), name, facts)
    return "describe?" + urlencode({"saved": name})


def _given(form: Form, column: Column, known: dict[str, Any]) -> Declared:
    """What the form says that the schema does not say yet; what was read off the data is said anew."""
    from gibbous.read.declaring import Declared

    drafted = {fact for fact, source in column.sources if source == "inferred"}
    kind = form.text("kind", 20)
    if kind in ("numeric", "date"):
        said = {key: " ".join(form.text(key).replace(";", " ").split()) for key in SHAPE}
        new = kind != column.kind or bool(drafted & {"bounds", "bins"})
        facts = Declared()
        if new or any(said[key] != known[key] for key in SHAPE):
            whole = bool(said["lower"] and said["upper"])
            facts = Declared(
                lower=said["lower"] or None,
                upper=said["upper"] or None,
                bins=form.whole("bins") if whole and not said["cuts"] else None,
                cuts=tuple(said["cuts"].split()),
            )
        clamp = form.get("clamp") == "yes"
        facts = replace(facts, clamp=clamp) if clamp != column.clamp and "lower" in form else facts
    else:
        levels, labels = _levels(form.get("levels", ""), column), _lines(form.get("labels", ""))
        new = levels != column.levels or bool(drafted & {"levels"})
        named = tuple((level, text) for level, text in zip(levels, labels, strict=False) if text)
        other = form.text("other", 100)
        facts = Declared(
            levels=levels if new or named != column.level_labels else (),
            labels=named,
            other=other if other != (column.other or "") else None,
        )
    missing = form.text("missing", 5)
    if missing and (missing != known["missing"] or "missing" in drafted):
        facts = replace(facts, missing=missing == "yes")
    return replace(facts, kind=kind) if kind != column.kind or "kind" in drafted else facts


def of(schema: Schema, name: str) -> Column:
    """A column of the schema; UsageError if it has none of that name."""
    if name not in schema.names:
        raise refusal("NOCOLUMN_unknown")
    return schema[name]


def _lines(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _levels(text: str, column: Column) -> tuple[Any, ...]:
    from gibbous.read.metadata.codebook import levels_of_texts

    texts = [line for line in _lines(text) if line]
    words = any(isinstance(level, str) for level in column.levels)
    return tuple(texts if words else levels_of_texts(texts))


def without(studio: Studio, schema: Schema, name: str) -> Schema:
    """The schema without a column; its facts are kept in a private file, to be taken back."""
    kept = {column.name: column for column in left_out(studio)} | {name: schema[name]}
    _keep(studio, tuple(kept.values()))
    return replace(schema, columns=tuple(c for c in schema if c.name != name))


def left_out(studio: Studio) -> tuple[Column, ...]:
    """Columns that were left out here, as they were described."""
    from gibbous.read.schema_file import load_schema

    path = studio.place.scratch / LEFT
    return tuple(load_schema(path)) if path.exists() else ()


def _keep(studio: Studio, columns: tuple[Column, ...]) -> None:
    from gibbous.read.schema_write import schema_toml

    path = studio.place.scratch / LEFT
    if columns:
        write(path, schema_toml(Schema(columns)))
    else:
        path.unlink(missing_ok=True)


def back(studio: Studio, schema: Schema, name: str) -> Schema:
    """The schema with a column that was left out, as it was described; UsageError if it is unknown."""
    kept = {column.name: column for column in left_out(studio)}
    if name not in kept or name not in schema.ignore:
        raise refusal("NOCOLUMN_back")
    column = kept.pop(name)
    _keep(studio, tuple(kept.values()))
    ignore = tuple(other for other in schema.ignore if other != name)
    return replace(schema, columns=(*schema, column), ignore=ignore)
