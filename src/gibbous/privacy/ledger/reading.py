"""A ledger that is only read: nothing is made, changed or locked for long, and no permission needed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from gibbous.core import durable
from gibbous.core.errors import LedgerUnusable
from gibbous.privacy.ledger import files, handles
from gibbous.privacy.ledger.errors import busy, damaged, translated
from gibbous.privacy.ledger.store import Store, has_tables, warn_of_strangers


class ReadStore(Store):
    """The entries of a ledger that exists, verified; on a read-only disk, too."""

    def appending(self) -> NoReturn:
        """Raise LedgerUnusable: nothing is charged through it."""
        raise LedgerUnusable(
            "READING",
            f"The ledger {str(self.path)!r} was opened for reading.",
            "Caps, links, names and charges are written to it.",
            "Open it with gibbous.Ledger.open.",
        )

    def _prepare(self, path: Path, allow_network: bool) -> None:
        files.refuse_foreign(path, self._anchors.paths)
        known = self._anchors.known()
        if path.exists() and path.stat().st_size:
            warn_of_strangers(path)
            return
        if known:
            raise damaged(path, f"it is missing or empty, but {str(known)!r} knows its head")
        raise LedgerUnusable(
            "NOLEDGER",
            f"There is no ledger at {str(path)!r}.",
            "The first release, or `gibbous ledger cap`, makes it.",
            "Check --ledger and GIBBOUS_HOME.",
        )

    def _open(self, path: Path) -> None:
        files.check_header(path, self._beside("-wal"))
        with translated(path):
            connection = self._connection()
            if not has_tables(connection):
                raise damaged(path, "it is empty: the run that made it was ended before it could")
            self._sync(connection)
        self._anchors.check(self._links)
        self._anchors.warn_if_missing(self._links, "Compare the head with your newest certificate.")

    def _connection(self) -> sqlite3.Connection:
        owner = (os.getpid(), 0)
        if owner not in self._connections:
            assert self.path is not None
            self._connections[owner] = _opened(self.path)
        return self._connections[owner]

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Wait for a writing process where its lock can be read; LedgerUnusable after too long."""
        with self._mutex, contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                handle = os.open(self._beside(".lock"), os.O_RDONLY | os.O_CLOEXEC)
                stack.callback(os.close, handle)
                try:
                    durable.take(handle, shared=True)
                except durable.Held as error:
                    raise busy(self._beside(".lock"), str(error)) from None
            yield


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that makes no ledger; of the file alone where nothing can be written beside it."""
    try:
        return _asked(path, "mode=rw")  # a connection that may not write leaves its log behind
    except sqlite3.OperationalError:
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise
    return _asked(path, "mode=ro&immutable=1")


def _asked(path: Path, mode: str) -> sqlite3.Connection:
    connection = handles.connect(path, f"file:{quote(str(path))}?{mode}")
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("SELECT count(*) FROM sqlite_master")
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection
