"""What goes wrong with a ledger file, told as what it is: only a broken structure is damage."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gibbous.core import durable
from gibbous.core.errors import GibbousError, LedgerUnusable, ResourceLimit


class LedgerWarning(UserWarning):
    """Something about the ledger that a person has to know, and that stops no run."""


def damaged(path: Path | None, what: str) -> LedgerUnusable:
    """The error for a ledger that does not fit together."""
    return LedgerUnusable(
        "DAMAGED",
        f"The ledger {str(path) if path else 'in memory'!r} cannot be trusted: {what}.",
        "Its entries form a chain of hashes that only grows.",
        "Restore the newest copy whose head is on your newest certificate; do not start afresh, "
        "which would forget what was spent.",
    )


def unknown_head(head: str) -> LedgerUnusable:
    """The error for a certificate that this ledger did not pay for."""
    return LedgerUnusable(
        "UNKNOWNHEAD",
        f"The ledger does not hold the entry {head[:16]}....",
        "Every certificate names an entry of the ledger that paid for it.",
        "This is another ledger, or an old copy of the right one.",
    )


def unreadable(path: Path, error: OSError) -> LedgerUnusable:
    """The error for a file of the ledger that the system failed to read."""
    return LedgerUnusable(
        "IO",
        f"{str(path)!r} cannot be read: {error.strerror}.",
        "The ledger is read, and checked against its anchors, before every run.",
        "Check the disk and the permissions, and run again.",
    )


def unusable_folder(folder: Path, error: OSError) -> LedgerUnusable:
    """The error for a folder or file that cannot be written."""
    return LedgerUnusable(
        "READONLY",
        f"The ledger in {str(folder)!r} cannot be written: {error.strerror}.",
        "Every run writes its cost there before it counts anything.",
        "Correct the permissions, or name another ledger (--ledger, GIBBOUS_HOME).",
    )


def busy(path: Path, holder: str) -> LedgerUnusable:
    """The error for a ledger that another process does not give back."""
    return LedgerUnusable(
        "BUSY",
        f"The ledger is in use: {holder} has held {str(path)!r} for {durable.PATIENCE:g} seconds.",
        "One process writes at a time, and for a moment only; the lock ends with its process.",
        "Wait for that process, or end it if it is stuck, and run again. Remove no file.",
    )


@contextlib.contextmanager
def translated(path: Path | None) -> Iterator[None]:
    """Errors of SQLite become ours."""
    try:
        yield
    except GibbousError:
        raise
    except UnicodeDecodeError:  # SQLite quotes what it cannot read
        raise damaged(path, "it holds text that is none") from None
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
        return busy(Path(str(path)), "another program")
    if code == sqlite3.SQLITE_NOMEM:
        return ResourceLimit(
            "MEMORY",
            f"There is not enough memory to read the ledger {str(path)!r}.",
            "It is read before every run.",
            "Free memory, or raise the limit (ulimit -v), and run again.",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return unusable_folder(Path(str(path)), OSError(0, "it cannot be opened for writing"))
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_INTERRUPT):
        return LedgerUnusable(
            "IO",
            f"The system reported an error while the ledger {str(path)!r} was used ({name}).",
            "A charge counts when it is on disk; the entries themselves are not damaged by this.",
            "Check the disk (dmesg, free space), and run again.",
        )
    return damaged(path, f"SQLite says {name}")


def kept(public: dict[str, Any]) -> str:
    """What is true when a commit failed, and its entry is in the file all the same."""
    if "id" not in public:
        return "The ledger holds the entry all the same: nothing is left to do."
    return (
        f"Nothing was released. Reservation {public['id']} stays spent; the same command goes on "
        "with it, without a second charge."
    )


def unknown(public: dict[str, Any]) -> str:
    """What is true when a commit failed, and the file cannot be read again."""
    if "id" not in public:
        return "Whether the ledger holds the entry is not known: `gibbous ledger show` tells."
    return (
        f"Nothing was released. Whether the ledger holds this entry of reservation {public['id']} "
        "is not known: `gibbous ledger show` tells. What it lists stays spent, and the same command "
        "goes on with it."
    )
