"""What a disk may hold after the power failed: writes that were not synced are kept, lost or torn.

A run of the ledger is journaled (journal.c). A crash after any of its calls leaves what was synced, and of
the rest any part: a write to a file is safe once that file was synced, a name once its folder was.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

ACKS = "acks"  # a file to which the run writes what it was told is durable
ROOT = Path(__file__).resolve().parents[2]
RUN = """
import os, sys
from fractions import Fraction
from pathlib import Path
from gibbous.core.claim import pure
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.store import Store

path, build = Path(sys.argv[1]), sys.argv[2]
if build == "no syncs":
    honest = Store._connection
    def hasty(self):
        connection = honest(self)
        connection.execute("PRAGMA synchronous=OFF")
        return connection
    Store._connection = hasty
acks = os.open(path.parent / "acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def told(book):
    os.write(acks, (book.head + "\\n").encode())
for start in range(2):
    book = Ledger.open(path)
    told(book)
    if not start:
        book.cap(bytes(32), Fraction(9), Fraction(0))
        told(book)
    for number in range(3):
        hold = book.reserve(
            bytes(32), pure(Fraction(1)), mechanism="pegs", request=bytes([start, number])
        )
        told(book)
        hold.commit("ab" * 32)
        told(book)
    book.close()
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the journal.

    Attributes:
        what: C create, W write, T truncate, S sync, R rename, U unlink.
        path, other: below the folder of the run; `other` is the new name.
        place: offset of a write, size after a truncation.
    """

    what: str
    path: str
    other: str
    place: int
    data: bytes

    @property
    def names(self) -> bool:
        """Whether it changes a folder, not a file."""
        return self.what in "CRU"


def journal(folder: Path, shim: Path, build: str = "honest") -> list[Call]:
    """The calls of one run of the ledger in a folder."""
    log, home = folder / "journal", folder / "home"
    home.mkdir(parents=True)
    env = os.environ | {
        "LD_PRELOAD": str(shim), "JOURNAL": str(log), "JOURNAL_ROOT": str(home),
        "PYTHONPATH": str(ROOT / "src"),
    }  # fmt: skip
    command = [sys.executable, "-c", RUN, str(home / "ledger.sqlite"), build]
    subprocess.run(command, env=env, check=True, capture_output=True)
    return list(_calls(log.read_bytes(), str(home)))


def _calls(text: bytes, root: str) -> Iterator[Call]:
    at = 0
    while at < len(text):
        what = chr(text[at])
        place, one, two, size = struct.unpack_from("<4q", text, at + 1)
        at += 33
        path, other, data = (text[at : at + one], text[at + one : at + one + two], b"")
        data = text[at + one + two : at + one + two + size]
        at += one + two + size
        short = (name.decode().removeprefix(root).strip("/") for name in (path, other))
        yield Call(what, *short, place, data)


def crashes(calls: Sequence[Call], at: int, dice: Random, some: int) -> Iterator[dict[str, bytes]]:
    """Files that a crash after so many calls may leave: all kept, none, and parts of what was not synced."""
    open_ = _unsynced(calls[:at])
    yield _files(calls[:at], set())
    yield _files(calls[:at], set(open_))
    for _ in range(some if open_ else 0):
        lost = {place for place in open_ if dice.random() < 0.5}
        torn = dice.choice(open_)
        yield _files(calls[:at], lost, torn if dice.random() < 0.3 else None)


def acknowledged(calls: Sequence[Call]) -> list[str]:
    """Heads of the ledger that its user was told of, the last one last."""
    told = b"".join(c.data for c in calls if c.path == ACKS and c.what == "W")
    return told.decode().split()


def _unsynced(calls: Sequence[Call]) -> list[int]:
    """Places of the calls whose effect no sync has made safe."""
    waiting: list[int] = []
    for place, call in enumerate(calls):
        if call.path == ACKS or call.path.endswith("-shm"):
            continue
        if call.what == "S":
            waiting = [n for n in waiting if not _made_safe(calls[n], call.path)]
        else:
            waiting.append(place)
    return waiting


def _made_safe(call: Call, synced: str) -> bool:
    folder = os.path.dirname(call.other or call.path) if call.names else None
    return folder == synced if call.names else call.path == synced


def _files(calls: Sequence[Call], lost: set[int], torn: int | None = None) -> dict[str, bytes]:
    """The files after these calls, some of them without effect. A file that has no name is not there.

    Contents belong to a file and not to its name: a lost rename leaves both as they were.
    """
    inodes: dict[int, bytearray] = {}
    seen: dict[str, int] = {}  # names as the running program sees them
    kept: dict[str, int] = {}  # names as the disk has them
    for place, call in enumerate(calls):
        if call.path == ACKS or call.path.endswith("-shm") or call.what == "S":
            continue
        if call.what == "C":
            seen[call.path] = len(inodes)
            inodes[len(inodes)] = bytearray()
        if call.what in "CR":
            number = seen[call.path] if call.what == "C" else seen.pop(call.path)
            name = call.other or call.path
            seen[name] = number
            if place not in lost:
                kept.pop(call.path, None)
                kept[name] = number
        elif call.what == "U":
            seen.pop(call.path, None)
            if place not in lost:
                kept.pop(call.path, None)
        elif call.path in seen and place not in lost:
            _change(inodes[seen[call.path]], call, half=place == torn)
    return {name: bytes(inodes[number]) for name, number in kept.items()}


def _change(content: bytearray, call: Call, *, half: bool) -> None:
    if call.what == "T":
        del content[call.place :]
        content.extend(bytes(max(0, call.place - len(content))))
        return
    data = call.data[: len(call.data) // 2] if half else call.data
    content.extend(bytes(max(0, call.place - len(content))))
    content[call.place : call.place + len(data)] = data
