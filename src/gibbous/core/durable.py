"""Locks on open files, which are gone with their process; and files replaced in one durable step."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

PATIENCE = 120.0  # seconds that another process may hold a lock
_LONGEST_PAUSE = 0.01  # seconds


class Held(Exception):
    """Another process holds the lock. Its message says which one, as far as the system tells."""


def take(handle: int, patience: float | None = None, *, shared: bool = False) -> None:
    """Lock an open file for this process alone, or beside others that share it.

    Args:
        handle: its descriptor; `free` gives the lock back, and so does the end of the process.
        patience: seconds to wait for; None for PATIENCE, 0 to ask once.
        shared: only a lock of one process alone is waited for.
    Raises:
        Held: another process holds it, and still does after that time.
        OSError: the file cannot be locked.
    """
    deadline = time.monotonic() + (PATIENCE if patience is None else patience)
    pause = 0.0005
    while True:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Held(_holder(handle)) from None
        else:
            return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def free(handle: int) -> None:
    """Give a lock back, also where a forked child still has the file open; close the file."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _holder(handle: int) -> str:
    """'process 17': what the system lists; nothing is decided by it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        inode = os.fstat(handle).st_ino
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{inode}") and int(words[4]) > 0:
                return f"process {int(words[4])}"
    return "another process"


def write_private(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Write a small file whole or not at all, mode 0600, on disk when this returns.

    Raises:
        FileExistsError: it is there, and not to be replaced.
        OSError: it is as it was then.
    """
    import tempfile

    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        if replace:
            os.replace(fresh, path)
        else:
            os.link(fresh, path)  # unlike a rename, this replaces nothing
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a small file atomically, mode 0600, on disk when this returns; unchanged on OSError."""
    fresh = path.with_name(f".{path.name}.new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable; an OSError of the disk is not tried again."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
