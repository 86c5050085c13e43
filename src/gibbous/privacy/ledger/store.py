"""The ledger's file: append-only, hash-chained entries in SQLite, each checked when it is read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sqlite3
import stat
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from gibbous.core import durable
from gibbous.core.errors import GibbousError, LedgerUnusable
from gibbous.privacy.ledger import files, handles
from gibbous.privacy.ledger.chain import Anchors, Appender, Link, encode, next_link, verified
from gibbous.privacy.ledger.errors import LedgerWarning, busy, damaged, kept, translated, unknown
from gibbous.privacy.ledger.files import APPLICATION, VERSION, Alive, check_header

_CREATE = """
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, public BLOB NOT NULL, private BLOB NOT NULL, hash BLOB NOT NULL
);
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
"""


class Store:
    """One ledger file, or one in memory.

    Args:
        path: of the SQLite file; None keeps everything in memory.
        anchors: small files with the newest head; a ledger older than any of them is refused.
        allow_network: accept a network file system.
    """

    def __init__(
        self, path: Path | str | None, anchors: Sequence[Path] = (), *, allow_network: bool = False
    ) -> None:
        self.path = None if path is None else Path(os.path.realpath(path))
        self._links: list[Link] = []
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}
        self._own = (os.getpid(), threading.RLock())
        if self.path is None:
            self._anchors = Anchors(None, ())
            with self._mutex, translated(self.path):
                self._create(self._connection())
        else:
            self._anchors = Anchors(self.path, (self._beside(".anchor"), *anchors))
            self._prepare(self.path, allow_network)
            try:
                with self._lock():
                    self._open(self.path)
            except BaseException:
                self.close()  # a refused file is not held open, nor is its log
                raise
        self.key = self._key()

    @property
    def _mutex(self) -> threading.RLock:
        """The lock among threads; a forked process has its own, or LedgerUnusable of a ledger in memory."""
        pid, mutex = self._own
        if pid == os.getpid():
            return mutex
        if self.path is None:
            raise LedgerUnusable(
                "FORKED",
                "A ledger in memory was used in a forked process.",
                "It belongs to the process that made it: what a child charged would be forgotten.",
                "Open a ledger on disk (gibbous.Ledger.open) in each process.",
            )
        self._own, self._links = (os.getpid(), threading.RLock()), []
        return self._own[1]

    def close(self) -> None:
        """Close this process's connections; those of a parent stay open, with their locks."""
        for owner in [o for o in self._connections if o[0] in (0, os.getpid())]:
            with contextlib.suppress(sqlite3.Error):
                self._connections.pop(owner).close()

    def links(self) -> tuple[Link, ...]:
        """Every entry, verified."""
        with self._mutex, translated(self.path):
            self._sync(self._connection())
            return tuple(self._links)

    @contextlib.contextmanager
    def appending(self) -> Iterator[Appender]:
        """Hold the lock, see every entry, append some: all of them become durable, or none does."""
        with self._lock(), self._mutex:
            with translated(self.path):
                connection = self._connection()
                connection.execute("BEGIN IMMEDIATE")
            try:
                with translated(self.path):
                    # An older gibbous would not know the data sets of new entries: it must not write.
                    if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
                        connection.execute(f"PRAGMA user_version={VERSION}")
                    self._sync(connection)
                    self._anchors.check(self._links)
                appender = Appender(tuple(self._links))
                yield appender
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            self._commit(connection, appender.fresh)
            if appender.fresh:
                self._anchors.write(self._links)

    def _commit(self, connection: sqlite3.Connection, fresh: list[Link]) -> None:
        """Make entries durable, or raise what is true of them after a look at the file."""
        try:
            with translated(self.path):
                for link in fresh:
                    _insert(connection, link)
                connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if self.path is None or not isinstance(error, GibbousError):
                raise
            if not self._in_the_file(fresh, error):
                raise
        else:
            self._links.extend(fresh)

    def _in_the_file(self, fresh: list[Link], error: GibbousError) -> bool:
        """After a commit that failed: whether the next process finds the entries, on disk, all the same.

        The log of a failed commit may hold it whole, and opening the file again then completes it.
        """
        wanted, there = fresh[-1], False
        try:
            with translated(self.path):
                self.close()
                self._links = []
                self._sync(self._connection())
                there = any(link.hash == wanted.hash for link in self._links)
                if there:
                    self._on_disk()
        except GibbousError:
            error.restate(kept(wanted.public) if there else unknown(wanted.public))
            return False
        return there

    def _on_disk(self) -> None:
        """Copy the log into the file itself, which syncs both."""
        blocked = self._connection().execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]
        if blocked:
            raise busy(self._beside(""), "another process")

    def audit(self) -> None:
        """Verify the whole chain and the file's structure again, from the file; else LedgerUnusable."""
        with self._lock(), self._mutex, translated(self.path):
            connection = self._connection()
            self._links = []
            self._sync(connection)
            self._anchors.check(self._links)
            if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                raise damaged(self.path, "its database structure is broken")

    # -- opening ---------------------------------------------------------------------------------

    def _prepare(self, path: Path, allow_network: bool) -> None:
        """What has to be so before a lock or anything else is made beside the file."""
        files.refuse_foreign(path, self._anchors.paths)
        files.make_private_folder(path.parent)
        if not allow_network:
            files.refuse_network(path.parent, files.filesystem_magic(path.parent))
        warn_of_strangers(path)

    def _open(self, path: Path) -> None:
        known = self._anchors.known()
        if not path.exists() or path.stat().st_size == 0:
            if known:
                raise damaged(path, f"it is missing or empty, but {str(known)!r} knows its head")
        else:
            check_header(path, self._beside("-wal"))
        with handles.guard:
            if not handles.is_connected(path):
                os.close(files.open_private(path))
        if path.stat().st_nlink > 1:
            raise damaged(path, "it has more than one name (hard links), so its locks do not hold")
        with translated(path):
            connection = self._connection()
            if not has_tables(connection):
                if known:
                    raise damaged(path, f"it is empty, but {str(known)!r} knows its head")
                self._create(connection)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                connection.execute("BEGIN IMMEDIATE")  # proves that it can be written
                connection.execute("ROLLBACK")
            self._sync(connection)
        self._anchors.check(self._links)
        self._anchors.warn_if_missing(
            self._links, "It was written anew; compare the head with your newest certificate."
        )
        self._anchors.write(self._links)
        files.sweep_alive(self._beside(".live"))

    def _connection(self) -> sqlite3.Connection:
        # A connection is never carried across a fork, nor shared by threads.
        owner = (0, 0) if self.path is None else (os.getpid(), threading.get_ident())
        if owner not in self._connections:
            connection = handles.connect(self.path, timeout=durable.PATIENCE)
            self._connections[owner] = connection
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "trusted_schema=OFF"):
                connection.execute(f"PRAGMA {pragma}")
        return self._connections[owner]

    def _create(self, connection: sqlite3.Connection) -> None:
        key = secrets.token_bytes(32)
        genesis = {
            "kind": "genesis",
            "ledger": secrets.token_hex(16),
            "version": VERSION,
            "key_check": _key_check(key),
        }
        connection.executescript(
            f"BEGIN IMMEDIATE;{_CREATE}"
            f"PRAGMA application_id={APPLICATION};PRAGMA user_version={VERSION};"
        )
        connection.execute("INSERT INTO secret VALUES ('key', ?)", (key,))
        _insert(connection, next_link((), genesis, {}))
        connection.execute("COMMIT")

    def _key(self) -> bytes:
        with self._mutex, translated(self.path):
            row = self._connection().execute("SELECT value FROM secret WHERE name='key'").fetchone()
            self._sync(self._connection())
        key = row[0] if row else None
        check = self._links[0].public.get("key_check")
        if not isinstance(key, bytes) or _key_check(key) != check:
            raise damaged(self.path, "its secret key is not the one it was made with")
        return key

    # -- the chain -------------------------------------------------------------------------------

    def _sync(self, connection: sqlite3.Connection) -> None:
        # Entries that were verified are kept; the file must still agree with the last of them.
        known = len(self._links)
        rows = connection.execute(
            "SELECT seq, public, private, hash FROM entries WHERE seq >= ? ORDER BY seq",
            (max(known - 1, 0),),
        ).fetchall()
        if known:
            if not rows or rows[0][0] != known - 1 or rows[0][3] != self._links[-1].hash:
                raise damaged(self.path, "entries were removed or replaced while it was open")
            rows = rows[1:]
        for row in rows:
            self._links.append(verified(self.path, self._links, row))
        if not self._links:
            raise damaged(self.path, "it has no first entry")

    # -- locks -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        if self.path is None:
            yield
            return
        with self._mutex, files.locked(self._beside(".lock")):
            yield

    def _beside(self, ending: str) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + ending)

    def live(self, name: str) -> Alive | None:
        """The lock of a reservation whose process still runs; None in memory; raises as `Alive`."""
        if self.path is None:
            return None
        with self._lock():
            return Alive(self._beside(".live") / name)


def _insert(connection: sqlite3.Connection, link: Link) -> None:
    connection.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?)",
        (link.seq, link.text, encode(link.private), link.hash),
    )


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether the first transaction of a ledger was finished."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _key_check(key: bytes) -> str:
    return hashlib.sha256(b"gibbous-ledger-key" + key).hexdigest()


def warn_of_strangers(path: Path) -> None:
    """Warn where anybody can replace the ledger."""
    if path.parent.stat().st_mode & stat.S_IWOTH:
        warnings.warn(
            f"Anybody can write to the folder {str(path.parent)!r} of the ledger, and so replace "
            "the ledger: chmod o-w it, or keep the ledger elsewhere (GIBBOUS_HOME, --ledger).",
            LedgerWarning,
            stacklevel=6,  # the caller of `Ledger.open` or `read`
        )
