"""What goes wrong with a ledger file, told as what it is: only a broken structure is damage."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from gibbous.core.errors import GibbousError, LedgerUnusable, ResourceLimit
from gibbous.privacy import ledger_place as place


def damaged(path: Path | None, what: str) -> LedgerUnusable:
    """The error for a ledger that does not fit together."""
    return LedgerUnusable(
        "DAMAGED",
        f"The ledger {str(path) if path else 'in memory'!r} cannot be trusted: {what}.",
        "Its entries form a chain of hashes that only grows.",
        "Restore the newest copy whose head is on your newest certificate; do not start afresh, "
        "which would forget what was spent.",
    )


def unreadable(path: Path, error: OSError) -> LedgerUnusable:
    """The error for a file of the ledger that the system failed to read."""
    return LedgerUnusable(
        "IO",
        f"{str(path)!r} cannot be read: {error.strerror}.",
        "The ledger is read, and held against its anchors, before every run.",
        "Check the disk and the permissions, and run again.",
    )


@contextlib.contextmanager
def translated(path: Path | None) -> Iterator[None]:
    """Errors of SQLite become ours."""
    try:
        yield
    except GibbousError:
        raise
    except sqlite3.Error as error:
        raise failed(path, error) from None


def failed(path: Path | None, error: sqlite3.Error) -> GibbousError:
    """What an error of SQLite means: only a broken structure is damage."""
    code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
    name = getattr(error, "sqlite_errorname", "") or "that it is not a database"
    if code == sqlite3.SQLITE_FULL or name in ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"):
        return ResourceLimit(
            "LEDGERFULL",
            f"The ledger {str(path)!r} cannot be written: its disk is full, over a quota, or failing.",
            "A reservation is on disk before anything is counted.",
            "Make room and run again.",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return place.busy(Path(str(path)), "another program")
    if code == sqlite3.SQLITE_NOMEM:
        return ResourceLimit(
            "MEMORY",
            f"There is not enough memory to read the ledger {str(path)!r}.",
            "It is read before every run.",
            "Free memory, or raise the limit (ulimit -v), and run again.",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return place.unusable_folder(Path(str(path)), OSError(0, "it cannot be opened for writing"))
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_INTERRUPT):
        return LedgerUnusable(
            "IO",
            f"The system reported an error while the ledger {str(path)!r} was used ({name}).",
            "A charge counts when it is on disk; the entries themselves are not damaged by this.",
            "Check the disk (dmesg, free space), and run again.",
        )
    return damaged(path, f"SQLite says {name}")
