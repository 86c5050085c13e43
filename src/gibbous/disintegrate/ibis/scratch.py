"""A private folder for what a database spills: locked while it is in use, swept after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import NoReturn

from gibbous.core.errors import ResourceLimit
from gibbous.disintegrate.spill import scratch_folder

_PREFIX = "run-"


class Scratch:
    """A new folder of mode 0700, gone after `release`, or at the next start where a kill came first.

    The lock that says "in use" is one of the operating system: it dies with the process.

    Args:
        root: where it is made; None as for `spill.scratch_folder`.
    Raises:
        ResourceLimit: the place cannot be written, or belongs to somebody else.
    """

    __slots__ = ("_lock", "folder")

    def __init__(self, root: Path | str | None = None) -> None:
        self._lock = -1
        home = scratch_folder(root) / f"gibbous-{os.getuid()}"
        fault = ""
        try:
            home.mkdir(mode=0o700, exist_ok=True)
            whole = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fault = _not_private(whole)
                if not fault:
                    fcntl.flock(whole, fcntl.LOCK_EX)  # nobody sweeps between making and locking
                    _sweep(home)
                    self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
                    self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(whole)
        except OSError as error:
            fault = os.strerror(error.errno).lower() if error.errno else "it failed"
        if fault:
            raise _unusable(home, fault)

    def __repr__(self) -> str:
        return "<Scratch, private>"

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Remove the folder with all that is in it."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(lock)


def _sweep(home: Path) -> None:
    """Remove folders of processes that are gone."""
    for folder in home.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _not_private(handle: int) -> str:
    found = os.fstat(handle)
    if found.st_uid != os.getuid():
        return "it belongs to another user"
    return "others may look into it" if stat.S_IMODE(found.st_mode) & 0o077 else ""


def _unusable(home: Path, fault: str) -> NoReturn:
    raise ResourceLimit(
        "SCRATCH",
        f"The scratch folder {str(home)!r} cannot be used: {fault}.",
        "A database keeps encoded records there for the length of a run.",
        "Name another folder with --scratch or GIBBOUS_SCRATCH.",
    )
