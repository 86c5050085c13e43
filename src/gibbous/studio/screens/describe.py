"""Screen 2: what is known of each column, who says so, and what was looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gibbous.core.documents import read_text
from gibbous.core.schema import KINDS, Schema
from gibbous.read.declaring import Declared
from gibbous.studio import accounts, commands
from gibbous.studio.histogram import counts
from gibbous.studio.looking import looked, write_down
from gibbous.studio.screens.buying import buy, forecast, price
from gibbous.studio.screens.facts import back, declare_facts, left_out, of, row, typed, without
from gibbous.studio.screens.screen import Screen, needed_data, needed_schema
from gibbous.studio.words import refusal
from gibbous.studio.workplace import MAX_BYTES, aside, write

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form
    from gibbous.studio.jobs import Job

BEFORE = "before-suggest.toml"
VERBS = ("infer", "discover", "declare", "suggest", "check")
EXAMPLE = ("schema.toml", "COLUMN", Declared("nominal", ("a", "b", "c")))


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    from gibbous.read.declaring import progress

    schema, seen = needed_schema(studio), looked(studio)
    rows, kept = [typed(row(column, seen), form) for column in schema], left_out(studio)
    done, total = progress(schema)
    jobs = [j for v in VERBS if (j := studio.jobs.newest("schema", v)) and j.screen == "describe"]
    asked = form.get("column", "")
    return {
        "rows": rows,
        "done": done,
        "total": total,
        "left_out": [(name, name in {c.name for c in kept}) for name in schema.ignore],
        "kinds": KINDS,
        "job": _current(studio, studio.jobs.latest(jobs)),
        "before": (studio.place.scratch / BEFORE).exists(),
        "notes": _notes(studio),
        "saved": form.get("saved", ""),
        "asked": asked,
        "histogram": studio.looked.get(asked),
        "rules": [rule.words() for rule in schema.rules],
        "name": schema.name or "",
        "description": schema.description or "",
        "confidential": bool(schema.inferred()) or asked in studio.looked,
        "priced": "epsilon" in form,
        "price": forecast(studio, form, schema),
        "left": accounts.bar(studio, confidential=True)["left"],
        "done_last": studio.done.get("describe") or commands.declared(*EXAMPLE),
    }


def _notes(studio: Studio) -> dict[str, str]:
    """Why the draft left columns out, in the words of its command."""
    draft = studio.jobs.answer(studio.jobs.newest("schema", "infer", studio.place.data())) or {}
    notes = draft.get("notes") or {}
    return {name: str(text).partition(": ")[2] for name, text in notes.items()}


def _current(studio: Studio, job: Job | None) -> Job | None:
    """A job, unless what it said is of a schema that was changed since."""
    if job is None or not (job.state == "failed" or job.words[1] == "check"):
        return job
    changed = studio.place.schema_file.stat().st_mtime_ns > studio.jobs.begun(job)
    return None if changed and job.state != "running" else job


def _look(studio: Studio, form: Form) -> str:
    """Show what the records hold in one column: confidential, logged, and remembered."""
    from urllib.parse import quote

    schema, name = needed_schema(studio), form.text("column")
    column = of(schema, name)
    data, place = needed_data(studio), studio.place
    write_down(studio, data, (name,))
    studio.looked[name] = counts(place.folder, data, column, place.reading())
    return f"describe?column={quote(name)}"


def _leave_out(studio: Studio, form: Form) -> str:
    schema, name = needed_schema(studio), form.text("column")
    of(schema, name)
    if len(schema) == 1:
        raise refusal("NOCOLUMN_last")
    less = without(studio, schema, name)
    save_schema(studio, replace(less, ignore=(*schema.ignore, name)))
    return "describe"


def _take_back(studio: Studio, form: Form) -> str:
    save_schema(studio, back(studio, needed_schema(studio), form.text("column")))
    return "describe"


def _texts(studio: Studio, form: Form) -> str:
    schema = needed_schema(studio)
    name, words = form.text("name", 200), form.text("description", 2000)
    save_schema(studio, replace(schema, name=name, description=words))
    return "describe"


def save_schema(studio: Studio, schema: Schema) -> None:
    """Write the schema whole."""
    from gibbous.read.schema_write import schema_toml

    write(studio.place.schema_file, schema_toml(schema))


def _rule(studio: Studio, form: Form) -> str:
    from gibbous.read.schema_file import MAX_BYTES, parse_schema
    from gibbous.read.schema_write import pair

    known = needed_schema(studio).rules
    when, then = form.text("if", 500), form.text("then", 500)
    lines = [pair("if", when), pair("then", then)] if when else [pair("require", then)]
    path = studio.place.schema_file
    text = read_text(path, MAX_BYTES) + "\n[[rule]]\n" + "\n".join(lines) + "\n"
    if parse_schema(text, folder=path.parent).rules[-1] in known:
        raise refusal("RULE")
    write(path, text)
    return "describe"


def _drop_rule(studio: Studio, form: Form) -> str:
    schema, number = needed_schema(studio), form.whole("number", 0)
    rules = tuple(rule for place, rule in enumerate(schema.rules) if place != number)
    save_schema(studio, replace(schema, rules=rules))
    return "describe"


def _job(studio: Studio, form: Form, command: commands.Command) -> str:
    studio.jobs.start(command, "describe", form.get("once", ""))
    return "describe"


def _suggest(studio: Studio, form: Form) -> str:
    needed_schema(studio)
    write(studio.place.scratch / BEFORE, read_text(studio.place.schema_file, MAX_BYTES))
    schema = studio.place.short(studio.place.schema_file)
    return _job(studio, form, commands.suggested(schema, _seen(studio)))


def _unsuggest(studio: Studio, form: Form) -> str:
    """The schema as it was before names and public lists filled it in."""
    kept = studio.place.scratch / BEFORE
    if kept.exists():
        aside(studio.place.schema_file)
        kept.replace(studio.place.schema_file)
    return "describe"


def _seen(studio: Studio) -> list[str]:
    """Columns of the schema that were looked at, in order: what is declared of them is no public fact."""
    seen = looked(studio)
    return [name for name in needed_schema(studio).names if name in seen]


def _check(studio: Studio, form: Form) -> str:
    needed_schema(studio)
    place = studio.place
    schema = place.short(place.schema_file)
    return _job(studio, form, commands.checked(schema, needed_data(studio), place.reading()))


def _book(studio: Studio, form: Form) -> str:
    place = studio.place
    sent, text = form.text("upload", 200), form.text("path")
    path = place.upload(sent) if sent else place.folder / text
    if path is None or not (sent or text) or not path.is_file():
        raise refusal("NOFILE_book")
    needed_schema(studio)
    schema = place.short(place.schema_file)
    return _job(studio, form, commands.imported(place.short(path), schema, _seen(studio)))


SCREEN = Screen(
    "describe",
    _show,
    {
        "declare": declare_facts,
        "look": _look,
        "leave": _leave_out,
        "back": _take_back,
        "texts": _texts,
        "rule": _rule,
        "unrule": _drop_rule,
        "suggest": _suggest,
        "unsuggest": _unsuggest,
        "check": _check,
        "book": _book,
        "price": price,
        "buy": buy,
    },
)
