"""Spill: arrays of confidential codes in, a nameless private file that gives them back in order out.

The file has no name from the start (O_TMPFILE), or loses it at once: nothing is left in a folder
after a kill, there is nothing to sweep, and nobody else can open it. It is read with `pread`, not
mapped, so that what is read again and again does not count as memory of this process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path
from typing import NoReturn

import numpy as np

from gibbous.core.compiled import temporary_folder
from gibbous.core.errors import MAY_BE_SPENT, EngineFailure, ResourceLimit
from gibbous.core.secret import Secret

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def scratch_folder(given: Path | str | None = None) -> Path:
    """Where codes are spilled: as given, else GIBBOUS_SCRATCH, else the temporary folder (TMPDIR).

    ResourceLimit where a named one is not a folder that can be written.
    """
    named = given or os.environ.get("GIBBOUS_SCRATCH")
    folder = Path(named or temporary_folder())
    if named and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise _unusable(folder, "it is not a folder that can be written")
    return folder


class SpillFile(Secret):
    """Blocks of bytes on disk, read back by place. Secret; only this process can reach it.

    ResourceLimit where the folder is not there, cannot be written, or lacks the room that is needed.
    """

    __slots__ = ("_end", "_folder", "_handle", "_users")

    def __init__(self, folder: Path, need: int = 0) -> None:
        self._handle, self._end, self._users = -1, 0, 1
        self._folder = folder
        try:
            self._handle = _nameless(folder)
            free = os.fstatvfs(self._handle)
        except OSError as error:
            self._fail(error)
        if need > free.f_bavail * free.f_frsize:
            self._close()
            raise _full(folder)

    def __del__(self) -> None:
        self._close()

    @property
    def closed(self) -> bool:
        """Whether its last user gave it back."""
        return self._handle < 0

    @property
    def size(self) -> int:
        """Bytes that were appended."""
        return self._end

    def shared(self) -> SpillFile:
        """The same file for one more user, who calls `release` in turn."""
        self._users += 1
        return self

    def release(self) -> None:
        """One user less; after the last one its bytes are given back to the disk."""
        self._users -= 1
        if self._users <= 0:
            self._close()

    def append(self, *arrays: np.ndarray) -> int:
        """Write arrays one behind the other; return where they start; ResourceLimit if the disk is full."""
        start = self._end
        for array in arrays:
            self._end += self.put(self._end, array)
        return start

    def put(self, start: int, array: np.ndarray) -> int:
        """Write an array at a place; return its number of bytes; ResourceLimit if the disk is full."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        done = 0
        while done < len(data):
            try:
                done += os.pwrite(self._handle, data[done:], start + done)
            except OSError as error:
                self._fail(error)
        return len(data)

    def get(self, start: int, array: np.ndarray) -> None:
        """Fill an array, in one piece, from a place; EngineFailure where bytes that were written lack."""
        data = array.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(data):
            try:
                got = os.preadv(self._handle, [data[done:]], start + done)
            except OSError:
                got = 0
            if not got:
                raise EngineFailure(
                    "SCRATCHLOST",
                    "The scratch file with the encoded records cannot be read back.",
                    "It stays as it was written for the length of a run.",
                    "Check the disk, or name another folder with --scratch or GIBBOUS_SCRATCH, and "
                    "run again.",
                    state=MAY_BE_SPENT,
                )
            done += got

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with contextlib.suppress(OSError):  # a fork may hold the file open: empty it for both
                os.ftruncate(handle, 0)
            os.close(handle)

    def _fail(self, error: OSError) -> NoReturn:
        self._close()
        if error.errno in _FULL:
            raise _full(self._folder) from None
        why = os.strerror(error.errno).lower() if error.errno else "it failed"
        raise _unusable(self._folder, why) from None


def _nameless(folder: Path) -> int:
    """A file that no folder lists, for this user alone."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):  # not on every file system: then as below
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    private = tempfile.mkdtemp(prefix=".gibbous-", dir=folder)  # 0700
    path = os.path.join(private, "codes")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)  # empty still: nothing was written under a name
    finally:
        os.rmdir(private)
    return handle


def _unusable(folder: Path, why: str) -> ResourceLimit:
    return ResourceLimit(
        "SCRATCH",
        f"The scratch folder {str(folder)!r} cannot be used: {why}.",
        "Encoded records that are too many for memory are kept there for the length of a run.",
        "Name another folder with --scratch or GIBBOUS_SCRATCH.",
    )


def _full(folder: Path) -> ResourceLimit:
    return ResourceLimit(
        "DISKFULL",
        f"The scratch folder {str(folder)!r} has too little room for the encoded records.",
        "They take a byte a row and column (two for columns of more than 256 levels), and twice "
        "that where they are divided into random parts.",
        "Free space there, or name another folder with --scratch or GIBBOUS_SCRATCH.",
    )
