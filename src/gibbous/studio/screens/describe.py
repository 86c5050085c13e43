"""Screen 2: what is known of each column, who says so, and what was looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gibbous.core.column import Column
from gibbous.core.documents import read_text
from gibbous.core.errors import UsageError
from gibbous.core.schema import KINDS, Schema
from gibbous.studio import commands
from gibbous.studio.histogram import counts
from gibbous.studio.looking import looked, write_down
from gibbous.studio.screens.screen import Screen, needed_data, needed_schema
from gibbous.studio.workplace import write

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

SHOWN = 2000  # characters of levels
VERBS = ("infer", "discover", "declare", "suggest", "check")


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    from gibbous.read.declaring import progress

    schema, seen = needed_schema(studio), looked(studio)
    rows = [_row(column, seen) for column in schema]
    done, total = progress(schema)
    jobs = [j for v in VERBS if (j := studio.jobs.newest("schema", v)) and j.screen == "describe"]
    newest = max(jobs, key=lambda job: [one.id for one in studio.jobs.all()][::-1].index(job.id),
                 default=None)  # fmt: skip
    asked = form.get("column", "")
    return {
        "rows": rows,
        "done": done,
        "total": total,
        "left_out": schema.ignore,
        "kinds": KINDS,
        "job": newest,
        "asked": asked,
        "histogram": studio.looked.get(asked),
        "rules": [_rule_words(rule) for rule in schema.rules],
        "name": schema.name or "",
        "description": schema.description or "",
        "confidential": bool(schema.inferred()) or asked in studio.looked,
        "command": ("gibbous schema declare schema.toml COLUMN --kind nominal --levels a,b,c",
                    "import gibbous as gb\nschema = gb.load_schema('schema.toml')"),
    }  # fmt: skip


def _row(column: Column, seen: set[str]) -> dict[str, Any]:
    sources = dict(column.sources)
    facts = ("bounds", "bins") if column.binned else ("levels",)
    hidden = any(sources.get(fact) == "inferred" for fact in facts)
    shown = not hidden or column.name in seen
    ends = ["", ""]
    if column.binned and shown:
        ends = [_end(column, column.edges[0]), _end(column, column.edges[-1])]
    return {
        "name": column.name,
        "kind": column.kind,
        "binned": column.binned,
        "levels": "\n".join(map(str, column.levels)) if shown else "",
        "size": len(column.levels) if shown else None,
        "lower": ends[0],
        "upper": ends[1],
        "bins": column.bins if shown else None,
        "missing": column.missing,
        "other": column.other or "",
        "label": column.label or "",
        "note": column.note or "",
        "hidden": not shown,
        "seen": column.name in seen,
        "sources": {fact: sources.get(fact, "declared") for fact in ("kind", *facts, "missing")},
        "inferred": [fact for fact, source in column.sources if source == "inferred"],
    }


def _end(column: Column, value: float) -> str:
    import datetime

    if column.kind == "date":
        return datetime.date.fromordinal(int(value)).isoformat()
    return f"{value:g}" if value != int(value) else f"{int(value)}"


def _rule_words(rule: Any) -> str:
    when = getattr(rule, "when", None)
    parts = [f"if {when}"] if when else []
    parts += [f"{n} {v}" for n in ("then", "require") if (v := getattr(rule, n, None))]
    return ", ".join(parts) or repr(rule)


def _declare(studio: Studio, form: Form) -> str:
    """Facts of one column. Of a column that was looked at they count as inferred."""
    from gibbous.read.declaring import Declared, declare
    from gibbous.read.schema_file import MAX_BYTES

    schema, name = needed_schema(studio), form.text("column")
    column = _of(schema, name)
    reason, note = form.text("reason", 300), column.note or ""
    levels = _levels(form.get("levels", ""), column)
    kind = form.text("kind", 20)
    whole = kind in ("numeric", "date")
    if not reason and name not in looked(studio):
        raise UsageError(
            "REASON",
            f"No reason was given for the facts of column {name!r}.",
            "A declared fact is public knowledge, and says where it is from.",
            "Write one, for example: codebook of 2024, page 3.",
        )
    if reason and reason not in note:
        note = f"{note} Declared from: {reason}.".strip()
    bounds = [form.text("lower", 40) or None, form.text("upper", 40) or None]
    facts = Declared(
        kind,
        () if whole else levels,
        lower=bounds[0] if whole else None,
        upper=bounds[1] if whole else None,
        bins=form.whole("bins") if whole and all(bounds) else None,
        missing=form.get("missing") == "yes",
        texts=tuple((k, t) for k, t in (("label", form.text("label", 200)), ("note", note)) if t),
    )
    if name in looked(studio):
        facts = replace(facts, inferred=facts.named())
    path = studio.place.schema_file
    text, _ = declare(read_text(path, MAX_BYTES), name, facts)
    write(path, text)
    return "describe"


def _of(schema: Schema, name: str) -> Column:
    if name not in schema.names:
        raise UsageError(
            "NOCOLUMN",
            "There is no such column.",
            "Columns are those of the schema.",
            "Reload the page.",
        )
    return schema[name]


def _levels(text: str, column: Column) -> tuple[Any, ...]:
    from gibbous.read.metadata.codebook import levels_of_texts

    texts = [line.strip() for line in text.splitlines() if line.strip()]
    words = any(isinstance(level, str) for level in column.levels)
    return tuple(texts if words else levels_of_texts(texts))


def _look(studio: Studio, form: Form) -> str:
    """Show what the records hold in one column: confidential, logged, and remembered."""
    from urllib.parse import quote

    schema, name = needed_schema(studio), form.text("column")
    column = _of(schema, name)
    data, place = needed_data(studio), studio.place
    write_down(studio, data, (name,))
    studio.looked[name] = counts(place.folder, data, column, place.reading())
    return f"describe?column={quote(name)}"


def _leave_out(studio: Studio, form: Form) -> str:
    """A column that is not released."""
    schema, name = needed_schema(studio), form.text("column")
    _of(schema, name)
    kept = tuple(column for column in schema if column.name != name)
    if not kept:
        raise UsageError(
            "NOCOLUMN",
            "This is the last column.",
            "A release has one column at least.",
            "Keep it.",
        )
    save_schema(studio, replace(schema, columns=kept, ignore=(*schema.ignore, name)))
    return "describe"


def _texts(studio: Studio, form: Form) -> str:
    """Title and description of the data set: public."""
    schema = needed_schema(studio)
    name, words = form.text("name", 200), form.text("description", 2000)
    save_schema(studio, replace(schema, name=name, description=words))
    return "describe"


def save_schema(studio: Studio, schema: Schema) -> None:
    """Write the schema whole."""
    from gibbous.read.schema_write import schema_toml

    write(studio.place.schema_file, schema_toml(schema))


def _rule(studio: Studio, form: Form) -> str:
    """One more rule that every synthetic row keeps."""
    from gibbous.read.schema_file import MAX_BYTES, parse_schema
    from gibbous.read.schema_write import pair

    needed_schema(studio)
    when, then = form.text("if", 500), form.text("then", 500)
    lines = [pair("if", when), pair("then", then)] if when else [pair("require", then)]
    path = studio.place.schema_file
    text = read_text(path, MAX_BYTES) + "\n[[rule]]\n" + "\n".join(lines) + "\n"
    parse_schema(text, folder=path.parent)
    write(path, text)
    return "describe"


def _job(studio: Studio, form: Form, command: commands.Command) -> str:
    studio.jobs.start(command, "describe", form.get("once", ""))
    return "describe"


def _suggest(studio: Studio, form: Form) -> str:
    needed_schema(studio)
    schema = studio.place.short(studio.place.schema_file)
    return _job(studio, form, commands.suggested(schema))


def _check(studio: Studio, form: Form) -> str:
    needed_schema(studio)
    place = studio.place
    schema = place.short(place.schema_file)
    return _job(studio, form, commands.checked(schema, needed_data(studio), place.reading()))


def _book(studio: Studio, form: Form) -> str:
    """Every fact that a codebook states."""
    place = studio.place
    sent, text = form.text("upload", 200), form.text("path")
    path = place.uploads / sent if sent else place.folder / text
    if not (sent or text) or not path.is_file() or (sent and path.parent != place.uploads):
        raise UsageError(
            "NOFILE", "There is no such codebook.",
            "It is a file of this machine, or one that was uploaded.", "Check its name.",
        )  # fmt: skip
    needed_schema(studio)
    schema = place.short(place.schema_file)
    return _job(studio, form, commands.imported(place.short(path), schema))


def _buy(studio: Studio, form: Form) -> str:
    """The other road: spend a part of the budget on the facts."""
    place = studio.place
    price = {"epsilon": form.number("epsilon"), "delta": form.number("delta", "1e-9")}
    if form.get("agree") != "yes":
        raise UsageError(
            "CONFIRM",
            "The spend was not confirmed.",
            "Buying facts spends a part of what the data set may ever spend.",
            "Tick the box beside it, and send it again.",
        )
    person, most = form.text("person", 200), form.whole("rows", usual=1)
    unit = f"{person}:{most}" if person else "row"
    out, data = place.short(place.schema_file), needed_data(studio)
    bought = commands.bought(data, out, price, unit, place.reading())
    once = form.get("once", "")
    studio.jobs.start(bought, "describe", once, then=commands.account(data, place.reading()))
    return "describe"


SCREEN = Screen(
    "describe",
    _show,
    {
        "declare": _declare,
        "look": _look,
        "leave": _leave_out,
        "texts": _texts,
        "rule": _rule,
        "suggest": _suggest,
        "check": _check,
        "book": _book,
        "buy": _buy,
    },
)
