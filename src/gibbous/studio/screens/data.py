"""Screen 1: which records are read, and how."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import UsageError
from gibbous.studio import commands
from gibbous.studio.screens.screen import Screen, needed_data
from gibbous.studio.workplace import READ, SCHEMA, write

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
SHOWN = 200
_MEND = re.compile(r"Try --(sep|encoding|decimal) ('[^']+'|[\w.-]+)")


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    place = studio.place
    names = sorted(p.name for p in place.folder.iterdir() if p.name.endswith(TABLES))
    draft = studio.jobs.newest("schema", "infer")
    hits = _MEND.findall(draft.error[1]) if draft else []
    mend = [(flag, text.strip("'")) for flag, text in hits]
    data = place.data()
    return {
        "files": names[:SHOWN],
        "data": data,
        "uploaded": bool(data) and (place.folder / data).parent == place.uploads,
        "reading": {name: place.value(f"studio.{name}", usual) for name, usual in READ.items()},
        "draft": draft,
        "mend": mend,
        "schema": place.schema_file.exists(),
        "upload_gb": studio.upload_bytes / (1 << 30),
    }


def _open(studio: Studio, data: str, form: Form) -> str:
    """Remember the data set, and draft its schema where there is none."""
    place = studio.place
    place.save({"data": data, "schema": place.value("schema", SCHEMA)})
    place.sweep()
    once, reading = form.get("once", ""), place.reading()
    account = commands.account(data, reading)
    if place.schema_file.exists():
        studio.jobs.start(account, "data", once)
        return "describe"
    draft = commands.draft(data, place.short(place.schema_file), reading)
    studio.jobs.start(draft, "data", once, then=account)
    return "data"


def _choose(studio: Studio, form: Form) -> str:
    """A file of this machine, or what was uploaded."""
    place, text = studio.place, form.text("path") or form.text("file")
    sent = form.text("upload", 200)
    path = place.uploads / sent if sent else (place.folder / text).resolve()
    if sent and path.parent.resolve() != place.uploads.resolve():
        raise _no_file()
    if not (sent or text) or not path.exists():
        raise _no_file()
    return _open(studio, place.short(path), form)


def _no_file() -> UsageError:
    return UsageError(
        "NOFILE",
        "There is no such file.",
        "A data set is a CSV or Parquet file, or a folder of Parquet files.",
        "Choose one of the list, or write its whole path.",
    )


def _database(studio: Studio, form: Form) -> str:
    """A table of a database; its password goes to a private file that libpq reads."""
    from gibbous.read.databases.sources import address_of

    address = form.text("address")
    if address_of(address) is None:
        raise UsageError(
            "ADDRESS",
            "This is not the address of a table.",
            "An address is duckdb:///file.db::table, sqlite:///file.db::table or "
            "postgres://user@host/database::table.",
            "Correct it.",
        )
    secret = form.text("password", 1000)
    if secret:
        quoted = secret.replace("\\", "\\\\").replace(":", "\\:")
        write(studio.place.scratch / "pgpass", f"*:*:*:*:{quoted}\n")
    return _open(studio, address, form)


def _demo(studio: Studio, form: Form) -> str:
    """The data that come along, with their declared schema."""
    from gibbous.read.demo_data import demo_file, demo_schema
    from gibbous.read.schema_write import schema_toml

    place = studio.place
    target = place.folder / "demo.csv"
    if not target.exists():
        shutil.copyfile(demo_file(), target)
    if not place.schema_file.exists():
        write(place.schema_file, schema_toml(demo_schema()))
    return _open(studio, "demo.csv", form)


def _mend(studio: Studio, form: Form) -> str:
    """Read text in another way, and draft again."""
    changes = {f"studio.{name}": form.text(name, 40) for name in READ if name in form}
    studio.place.save(
        {k: v for k, v in changes.items() if v != READ[k.partition(".")[2]]}
        | {k: None for k, v in changes.items() if v == READ[k.partition(".")[2]]}
    )
    return _again(studio, form)


def _again(studio: Studio, form: Form) -> str:
    """A new draft in place of the schema; the old one is kept beside it."""
    place, data = studio.place, needed_data(studio)
    if place.schema_file.exists():
        place.schema_file.replace(place.schema_file.with_suffix(".before.toml"))
    return _open(studio, data, form)


def _forget(studio: Studio, form: Form) -> str:
    """Close the data set; an uploaded copy and a password are removed."""
    studio.place.save({"data": None})
    studio.place.sweep()
    Path(studio.place.scratch / "pgpass").unlink(missing_ok=True)
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
        "forget": _forget,
    },
)
