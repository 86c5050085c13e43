"""A path -> the bytes or the text of a small regular file: its size is capped before it is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gibbous.core.documents import Unreadable

MB = 1 << 20


def read_bytes(path: Path, most: int) -> bytes:
    """The whole of a file.

    Args:
        most: bytes.
    Raises:
        Unreadable: it is missing, no regular file, larger, or cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise Unreadable("is not a regular file")
            found = file.read(min(facts.st_size, most) + 1)
    except Unreadable:
        raise
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
        raise Unreadable("is missing or cannot be read") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", error.errno) from None
    if max(len(found), facts.st_size) > most:
        size = f"{most >> 20:,} MB" if most >= MB else f"{most:,} bytes"
        raise Unreadable(f"has {facts.st_size:,} bytes, which is more than {size}")
    return found


def read_text(path: Path, most: int) -> str:
    """The whole of a UTF-8 file; a byte order mark is left out.

    Raises:
        Unreadable: as `read_bytes`, or it is not UTF-8.
    """
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8 text") from None
