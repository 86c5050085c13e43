"""The files of a ledger: its path, first page, private folders, locks, and unfit file systems."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gibbous.core import durable
from gibbous.core.errors import LedgerUnusable
from gibbous.privacy.ledger import handles
from gibbous.privacy.ledger.errors import busy, damaged, unreadable, unusable_folder

VERSION = 2  # 2: one form of every value, links and names (docs/decisions/017)
APPLICATION = int.from_bytes(b"GIBB", "big")  # of SQLite's header
NETWORK = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB2",
    0xFF534D42: "CIFS",
    0x5346414F: "AFS",
    0x73757245: "Coda",
    0x01021997: "9P",
    0x65735546: "FUSE",
    0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0x19830326: "BeeGFS",
    0x786F4256: "vboxsf",
    0xAAD7AAEA: "PanFS",
}


def default_path() -> Path:
    """$GIBBOUS_HOME/ledger.sqlite, else gibbous/ledger.sqlite in the user's data folder."""
    if home := os.environ.get("GIBBOUS_HOME"):
        return Path(home) / "ledger.sqlite"
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "gibbous" / "ledger.sqlite"


def anchors_from_environment() -> tuple[Path, ...]:
    """A second anchor elsewhere, if $GIBBOUS_ANCHOR names one."""
    other = os.environ.get("GIBBOUS_ANCHOR")
    return (Path(other),) if other else ()


def filesystem_magic(folder: Path) -> int:
    """The number statfs(2) gives for the file system of a folder; 0 where it cannot be asked."""
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(512)
    if libc.statfs(os.fsencode(folder), buffer) != 0:
        return 0
    word = ctypes.c_long.from_buffer(buffer).value
    return word & 0xFFFFFFFF


def refuse_network(folder: Path, magic: int) -> None:
    """Raise LedgerUnusable for a network or user-space file system, whose locks may not hold."""
    if magic in NETWORK:
        raise LedgerUnusable(
            "NETWORK",
            f"The ledger folder {str(folder)!r} is on {NETWORK[magic]}.",
            "The ledger needs a local file system: on others, locks do not hold on all machines.",
            "Set GIBBOUS_HOME to a local folder, or force it with allow_network=True.",
        )


def refuse_foreign(path: Path, anchors: Sequence[Path]) -> None:
    """Raise LedgerUnusable for a file of another program, before a file is made beside it.

    With one of the anchors, which only a ledger has, the file was a ledger, and is damaged.
    """
    try:
        head = handles.first_bytes(path, 108)
    except OSError:  # absent, or whoever opens it says what is wrong
        return
    if not head or any(anchor.exists() for anchor in anchors):
        return
    database = len(head) == 108 and head.startswith(b"SQLite format 3\0")
    version, application, pages = head[60:64], head[68:72], head[100:105]
    unfinished = version == application == bytes(4) and pages == b"\x0d\0\0\0\0"  # no table yet
    if not database or not (unfinished or application == APPLICATION.to_bytes(4, "big")):
        raise LedgerUnusable(
            "FOREIGN",
            f"The file {str(path)!r} is not a ledger.",
            "A ledger is a file that gibbous made; nothing was written to this one or beside it.",
            "Check --ledger; a path where no file is gets a new ledger.",
        )


def make_private_folder(folder: Path) -> None:
    """Make a folder with mode 0700, if none is there; LedgerUnusable if it cannot be made."""
    if folder.is_dir():
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)
            durable.sync_folder(folder.parent)
    except OSError as error:
        raise unusable_folder(folder, error) from None


def open_private(path: Path) -> int:
    """Open or make a file of this user, mode 0600, following no link; LedgerUnusable if not writable."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise unusable_folder(path, error) from None
    if os.fstat(fd).st_uid == os.geteuid():
        os.fchmod(fd, 0o600)
    return fd


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock of the system, which ends with the process; LedgerUnusable if it stays taken or fails."""
    handle = open_private(path)
    try:
        durable.take(handle)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, durable.Held):
            raise busy(path, str(error)) from None
        if isinstance(error, OSError):
            raise unusable_folder(path, error) from None
        raise
    try:
        yield
    finally:
        durable.free(handle)


class Alive:
    """A lock file that says: the process behind this reservation still runs."""

    def __init__(self, path: Path) -> None:
        """Take the lock, or raise BlockingIOError or LedgerUnusable; the ledger's own lock is held."""
        make_private_folder(path.parent)
        self._path, self._pid = path, os.getpid()
        self._handle: int | None = None
        while self._handle is None:
            handle = open_private(path)
            try:
                durable.take(handle, 0)
                if path.stat().st_ino == os.fstat(handle).st_ino:
                    self._handle = handle
                    return
            except durable.Held:
                os.close(handle)
                raise BlockingIOError from None
            except FileNotFoundError:
                pass
            except OSError as error:
                os.close(handle)
                raise unusable_folder(path, error) from None
            os.close(handle)  # its process ended it while we opened it: make it anew

    def end(self) -> None:
        """Give the lock back and remove its file; a second call does nothing, nor one after a fork."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if self._pid != os.getpid():
            os.close(handle)
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        durable.free(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            os.close(self._handle)  # type: ignore[arg-type]
            self._handle = None


def sweep_alive(folder: Path) -> None:
    """Remove the lock files of processes that are gone; the ledger's own lock is held."""
    for path in folder.glob("r-*"):
        with contextlib.suppress(OSError, LedgerUnusable, BlockingIOError):
            Alive(path).end()


def check_header(path: Path, log: Path) -> None:
    """Raise LedgerUnusable for what is no ledger, or a newer one, in the file or in its log."""
    try:
        header = handles.first_bytes(path, 100)
        headers = [header, *_logged_headers(log)]
    except OSError as error:
        raise unreadable(path, error) from None
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise damaged(path, "it is not a ledger file")
    for page in headers:
        version, application = struct.unpack(">I4xI", page[60:72])
        if application == 0 and version == 0:
            continue  # made, but its first transaction was not finished; it then has no tables
        if application != APPLICATION:
            raise damaged(path, "it is not a ledger file")
        if version > VERSION:
            raise LedgerUnusable(
                "NEWER",
                f"The ledger {str(path)!r} has version {version}; this gibbous reads up to "
                f"{VERSION}.",
                "A newer ledger is left untouched.",
                "Use a newer gibbous.",
            )


def _logged_headers(log: Path) -> list[bytes]:
    """First pages of the database in its log, which count more than the one in the file."""
    headers: list[bytes] = []
    if not log.exists():
        return headers
    with log.open("rb") as file:
        header = file.read(32)
        size = int.from_bytes(header[8:12], "big")
        if len(header) < 32 or not 512 <= size <= 1 << 16:
            return headers
        while len(frame := file.read(24 + size)) == 24 + size:
            if frame[8:16] == header[16:24] and frame[:4] == b"\0\0\0\1":  # of this log, page 1
                headers.append(frame[24:124])
    return headers
