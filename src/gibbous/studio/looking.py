"""Which columns of the records somebody looked at: a private log that is only ever added to."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gibbous.studio.app import Studio

LOG = "looked.log"


def write_down(studio: Studio, data: str, columns: Sequence[str]) -> None:
    """Write down that somebody is about to see these columns of the records."""
    place, now = studio.place, time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
    place.scratch.mkdir(mode=0o700, exist_ok=True)
    with open(place.scratch / LOG, "a", encoding="utf-8") as log:
        for name in columns:
            log.write(json.dumps({"time": now, "column": name, "data": data}) + "\n")


def looked(studio: Studio) -> set[str]:
    """Columns of the open data whose records somebody looked at, ever."""
    data, found = studio.place.data(), set()
    path = studio.place.scratch / LOG
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        said = json.loads(line)
        if said["data"] == data:
            found.add(said["column"])
    return found
