"""Screen 1: which records are read, and how."""

from __future__ import annotations

import re
import shutil
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import GibbousError
from gibbous.read.text_files import is_text_pattern
from gibbous.studio import commands
from gibbous.studio.heading import heading
from gibbous.studio.screens import folders
from gibbous.studio.screens.screen import Screen, needed_data
from gibbous.studio.words import refusal
from gibbous.studio.workplace import PASSWORD, READ, SCHEMA, aside, write

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

ASKED = ("file", "path", "folder", "upload", "address", "database", "demo")
_MEND = re.compile(r"Try --(sep|encoding|decimal) ('[^']+'|[\w.-]+)")


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    place = studio.place
    reads = [j for v in ("infer", "check") if (j := studio.jobs.newest("schema", v))]
    draft = studio.jobs.latest([job for job in reads if job.screen == "data"])
    hits = _MEND.findall(draft.error[1]) if draft else []
    mend = [(flag, text.strip("'")) for flag, text in hits]
    data = place.data()
    return {
        "at": folders.shown(place, form.get("at", "")),
        "data": data,
        "uploaded": bool(data) and (place.folder / data).is_relative_to(place.uploads),
        "reading": {name: place.value(f"studio.{name}", usual) for name, usual in READ.items()},
        "draft": draft,
        "mend": mend,
        "schema": place.schema_file.exists(),
        "kept": sorted(p.name for p in place.folder.glob("*.before-*.toml"))[-5:],
        "asks": [(n, form[n]) for n in ASKED if form.get(n)],
        "action": next((n for n in ("database", "demo") if n in form), "choose"),
        "upload_gb": studio.upload_bytes / (1 << 30),
    }


def _open(studio: Studio, data: str, form: Form) -> str:
    """Remember the data set, and draft its schema where there is none of its columns."""
    place = studio.place
    once, reading, path = form.get("once", ""), place.reading(), place.schema_file
    account, schema = commands.account(data, reading), place.short(path)
    names = heading(place.folder, data, reading) if path.exists() else None
    fits = _fits(studio, data, names)
    if not fits:
        _sure(studio, form)
        aside(path)
    place.save({"data": data, "schema": place.value("schema", SCHEMA)})
    place.sweep()
    needed, own = _described(studio)
    if fits and names is not None and needed <= names <= own:
        studio.jobs.start(account, "data", once)
        return "describe"
    check, draft = commands.checked(schema, data, reading), commands.draft(data, schema, reading)
    studio.jobs.start(check if fits else draft, "data", once, then=account)
    return "data"


def _sure(studio: Studio, form: Form) -> None:
    """A schema with declared facts is put aside only when that was said."""
    from gibbous.read.declaring import progress

    schema = studio.place.schema()
    if schema is not None and progress(schema)[0] and form.get("sure") != "yes":
        raise refusal("OTHER")


def _described(studio: Studio) -> tuple[frozenset[str], frozenset[str]]:
    """The columns that the schema needs, and those that it names; a column left out may be absent."""
    schema = studio.place.schema()
    if schema is None:
        return frozenset(), frozenset()
    unit = schema.unit.column if schema.unit else None
    needed = frozenset((*schema.names, *([unit] if unit else [])))
    return needed, needed | frozenset(schema.ignore)


def _fits(studio: Studio, data: str, names: frozenset[str] | None) -> bool:
    """Whether the schema is there, and of these data: it has half of their columns in common at least.

    Args:
        names: of the columns; None where nobody can say: a schema that was there first then stays.
    """
    before, path = studio.place.data(), studio.place.schema_file
    if not path.exists() or names is None:
        return path.exists() and before in ("", data)
    own = _described(studio)[1]
    return 2 * len(own & names) >= max(len(own), len(names))


def _choose(studio: Studio, form: Form) -> str:
    place, text = studio.place, form.text("path") or form.text("file")
    sent = form.text("upload", 200)
    if form.text("folder"):
        return _open(studio, place.short(folders.whole(place, form.text("folder"))), form)
    path = place.upload(sent) if sent else (place.folder / text).resolve()
    if path is not None and path.is_dir():
        path = folders.as_table(path) or path
    if path is None or not (sent or text) or not (path.exists() or is_text_pattern(path)):
        raise _no_file()
    return _open(studio, place.short(path), form)


def _no_file() -> GibbousError:
    return refusal("NOFILE")


def _database(studio: Studio, form: Form) -> str:
    """A table of a database; its password goes to a private file that libpq reads."""
    from gibbous.read.databases.sources import address_of

    address = form.text("address")
    if address_of(address) is None:
        raise refusal("ADDRESS")
    secret = form.text("password", 1000)
    if secret:
        quoted = secret.replace("\\", "\\\\").replace(":", "\\:")
        write(studio.place.scratch / PASSWORD, f"*:*:*:*:{quoted}\n")
    return _open(studio, address, form)


def _demo(studio: Studio, form: Form) -> str:
    from gibbous.read.demo_data import demo_file, demo_schema
    from gibbous.read.schema_write import schema_toml

    place = studio.place
    target = place.folder / "demo.csv"
    if not target.exists():
        shutil.copyfile(demo_file(), target)
    declared = demo_schema()
    if not _fits(studio, "demo.csv", frozenset((*declared.names, *declared.ignore))):
        _sure(studio, form)
        aside(place.schema_file)
        write(place.schema_file, schema_toml(declared))
    return _open(studio, "demo.csv", form)


def _mend(studio: Studio, form: Form) -> str:
    """Read text in another way: the schema stays, or is drafted again where that was asked for."""
    changes = {f"studio.{name}": form.text(name, 40) for name in READ if name in form}
    studio.place.save(
        {k: v for k, v in changes.items() if v != READ[k.partition(".")[2]]}
        | {k: None for k, v in changes.items() if v == READ[k.partition(".")[2]]}
    )
    data = needed_data(studio)
    return _again(studio, form) if form.get("redraft") else _open(studio, data, form)


def _again(studio: Studio, form: Form) -> str:
    """A new draft in place of the schema; the old one is kept beside it."""
    data = needed_data(studio)
    aside(studio.place.schema_file)
    return _open(studio, data, form)


def _back(studio: Studio, form: Form) -> str:
    """An earlier schema in place of the one that is there, which is kept beside it."""
    from gibbous.read.schema_file import load_schema

    place, name = studio.place, form.text("kept", 200)
    path = place.inside(name)
    if path is None or not fnmatch(name, "*.before-*.toml"):
        raise _no_file()
    load_schema(path)
    aside(place.schema_file)
    path.replace(place.schema_file)
    return "describe"


def _forget(studio: Studio, form: Form) -> str:
    """Close the data set; an uploaded copy and a password are removed."""
    studio.place.save({"data": None})
    studio.place.sweep()
    (studio.place.scratch / PASSWORD).unlink(missing_ok=True)
    return "data"


SCREEN = Screen(
    "data",
    _show,
    {
        "choose": _choose,
        "database": _database,
        "demo": _demo,
        "mend": _mend,
        "again": _again,
        "back": _back,
        "forget": _forget,
    },
)
