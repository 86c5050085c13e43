"""Which columns of the records somebody looked at: a private log that is only ever added to.

Records are known by a keyed fingerprint of their rows: another name of the file, order or format is no
other data set. As a program, this makes the fingerprint of one file, in a process of its own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import InputRejected
from gibbous.studio.histogram import answered, reading_of, tell
from gibbous.studio.workplace import write

if TYPE_CHECKING:
    from gibbous.studio.app import Studio

LOG, KEY = "looked.log", "looked.key"


def write_down(studio: Studio, data: str, columns: Sequence[str]) -> None:
    """Write down that somebody is about to see these columns of the records."""
    place, now = studio.place, time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
    place.scratch.mkdir(mode=0o700, exist_ok=True)
    records = mark(studio, data)
    with open(place.scratch / LOG, "a", encoding="utf-8") as log:
        for name in columns:
            line = {"time": now, "column": name, "data": data, "records": records}
            log.write(json.dumps(line) + "\n")


def looked(studio: Studio) -> set[str]:
    """Columns of the open data whose records somebody looked at, ever, under whatever name.

    Where the records have no fingerprint, those of any data count.
    """
    data, path = studio.place.data(), studio.place.scratch / LOG
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    said = [json.loads(line) for line in lines]
    found = {one["column"] for one in said if one["data"] == data}
    others = [one for one in said if one["data"] != data]
    records = mark(studio, data) if data and others else ""
    known = (
        one
        for one in others
        if {records, one.get("records", "")} & {""} or one["records"] == records
    )
    return found | {one["column"] for one in known}


def mark(studio: Studio, data: str) -> str:
    """A keyed fingerprint of the rows, kept in memory while the file is as it was; "" where none is made."""
    place, stamp = studio.place, ""
    with suppress(OSError):
        found = (place.folder / data).stat()
        stamp = f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
    name = (data, stamp, place.reading())
    if stamp and name in studio.marks:
        return studio.marks[name]
    asked = {"data": data, "key": _key(studio), "reading": list(place.reading())}
    with suppress(InputRejected):
        studio.marks[name] = str(answered("gibbous.studio.looking", place.folder, asked))
        return studio.marks[name]
    return ""


def _key(studio: Studio) -> str:
    path = studio.place.scratch / KEY
    if not path.exists():
        write(path, secrets.token_hex(32))
    return path.read_text("utf-8")


def _mark(asked: dict[str, Any]) -> str:
    from gibbous.read.source import dataset

    return dataset(asked["data"], bytes.fromhex(asked["key"]), None, reading_of(asked)).hex()


if __name__ == "__main__":
    tell(_mark)
