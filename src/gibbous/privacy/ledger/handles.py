"""Handles on a ledger's file: closing one must not end the locks that SQLite holds through another.

POSIX gives a process one set of locks a file, and ends all of them when any of its handles on that file is
closed. Another process then takes itself for the last one, and deletes the log that connections here still
write to: what they charge is lost. So a file that this process has connections to is never closed here, but
once they all are.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

Place = tuple[int, int]

guard = threading.RLock()  # a connection may be collected, and closed, inside of it
"""Held while a handle is opened and closed, and while a connection is made."""

_connected = Counter[Place]()
_kept: dict[Place, int] = {}


def _anew() -> None:
    """A forked process may have been born while another thread held the guard."""
    global guard
    guard = threading.RLock()


os.register_at_fork(after_in_child=_anew)


class Connection(sqlite3.Connection):
    """A connection that is known here until it is closed."""

    place: Place | None = None

    def close(self) -> None:
        """Close it, and with the last one the handle that was kept."""
        with guard:
            super().close()
            place, self.place = self.place, None
            if place is None:
                return
            _connected[place] -= 1
            if not _connected[place]:
                del _connected[place]
                if place in _kept:
                    os.close(_kept.pop(place))

    def __del__(self) -> None:
        with suppress(sqlite3.Error):
            self.close()


def connect(path: Path | None, address: str = "", **options: Any) -> Connection:
    """A connection to a file (None: in memory) or a URI in its place, without transactions of its own."""
    options |= {"isolation_level": None, "check_same_thread": False, "factory": Connection}
    with guard:
        made: Connection = sqlite3.connect(
            address or path or ":memory:", uri=bool(address), **options
        )
        if path is not None:
            made.place = _place(path)
            _connected[made.place] += 1
        return made


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of a file; OSError if it cannot be read."""
    with guard:
        if (place := _place(path)) in _kept:
            return os.pread(_kept[place], count, 0)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(handle, count, 0)
        finally:
            facts = os.fstat(handle)  # the path may name another file by now
            if _connected[place := (facts.st_dev, facts.st_ino)]:
                _kept.setdefault(place, handle)
            else:
                os.close(handle)


def is_connected(path: Path) -> bool:
    """Whether this process has connections to a file; ask, and act on it, under `guard`."""
    return path.exists() and bool(_connected[_place(path)])


def _place(path: Path) -> Place:
    facts = path.stat()
    return facts.st_dev, facts.st_ino
