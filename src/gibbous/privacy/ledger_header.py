"""The first page of a ledger file, read as bytes: a newer or foreign file is not even opened by SQLite."""

from __future__ import annotations

import struct
from pathlib import Path

from gibbous.core.errors import LedgerUnusable
from gibbous.privacy import ledger_place as place
from gibbous.privacy.ledger_errors import damaged, unreadable

VERSION = 2  # 2: one form of every value, links and names (docs/decisions/017)
APPLICATION = int.from_bytes(place.APPLICATION, "big")


def check_header(path: Path, log: Path) -> None:
    """Refuse what is no ledger, or one of a newer version, in the file or in its log.

    Raises:
        LedgerUnusable: it is; or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            header = file.read(100)
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
    found: list[bytes] = []
    if not log.exists():
        return found
    with log.open("rb") as file:
        header = file.read(32)
        size = int.from_bytes(header[8:12], "big")
        if len(header) < 32 or not 512 <= size <= 1 << 16:
            return found
        while len(frame := file.read(24 + size)) == 24 + size:
            if frame[8:16] == header[16:24] and frame[:4] == b"\0\0\0\1":  # of this log, page 1
                found.append(frame[24:124])
    return found
