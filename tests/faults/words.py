"""What a run printed, held sentence by sentence against the ledger and the folder that it left."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from gibbous.core.errors import GibbousError
from gibbous.privacy.ledger import Ledger, LedgerWarning
from gibbous.write.verify import verify
from tests.faults.injected import DATA, Command, Fault, Said

EXISTS = 9
_LEDGER = {
    "cache", "ledger.sqlite", *(f"ledger.sqlite{end}" for end in (".anchor", ".lock", ".live")),
    "ledger.sqlite-wal", "ledger.sqlite-shm",  # until the last process that uses it ends
}  # fmt: skip
_CLAIMS = re.compile(
    r"releas|spent|spend|charg|reserv|written|wrote|goes on|exist|complete|whole|left|paid|cost|lost"
    r"|damag|restor|trust|full|fault of gibbous|internal|Traceback|not known",
    re.IGNORECASE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """What the next process would find in a folder.

    Attributes:
        reserved: ids of the charges, in order.
        committed: of those, id -> digest.
        caps: how often a cap was set.
        out: reservation of the output; "" where there is none, "BROKEN" where it does not verify.
        left: what lies there that is neither data, nor output, nor ledger.
        resumable: whether an unfinished output says what it is.
    """

    reserved: tuple[str, ...]
    committed: dict[str, str]
    caps: int
    out: str
    left: tuple[str, ...]
    resumable: bool


def facts(folder: Path, command: Command) -> Facts:
    """Look at a folder without changing it: the ledger is opened in a copy."""
    home = folder / "home"
    with tempfile.TemporaryDirectory() as other:
        copy = Path(other) / "home"
        if home.exists():
            shutil.copytree(home, copy, ignore=shutil.ignore_patterns("cache"))
        there = (copy / "ledger.sqlite").exists() and (copy / "ledger.sqlite").stat().st_size
        with warnings.catch_warnings():
            # A kill between the first entry and its anchor leaves none, which is said.
            warnings.filterwarnings("ignore", "The anchor .* is missing", LedgerWarning)
            book = Ledger.open(copy / "ledger.sqlite") if there else Ledger.ephemeral()
        entries = book.entries()
        found = _output(folder / command.out, book) if command.out else ""
        book.close()
    names = {p.name for p in folder.iterdir()} - {"home", "release", command.out, *DATA}
    live = home / "ledger.sqlite.live"
    names |= {p.name for p in home.iterdir()} - _LEDGER if home.exists() else set()
    names |= {p.name for p in live.iterdir()} if live.exists() else set()
    # Notes of where a purchase lies stay; releases beside the ledger are none of these commands'.
    kept = home / "ledger.sqlite.releases"
    names -= {kept.name}
    names |= {p.name for p in kept.iterdir() if p.suffix != ".folders"} if kept.exists() else set()
    return Facts(
        tuple(e.id for e in entries if e.kind == "reserve"),
        {e.id: str(e.sha256) for e in entries if e.kind == "commit"},
        sum(e.kind == "cap" for e in entries),
        found,
        tuple(sorted(names)),
        any(folder.glob(".*.partial-*/state.json")),
    )


def _output(path: Path, book: Ledger) -> str:
    if not path.exists():
        return ""
    try:
        verify(path, ledger=None if (path / "rows.json").exists() else book)
    except GibbousError:
        return "BROKEN"
    name = "rows.json" if (path / "rows.json").exists() else "ledger.json"
    told = json.loads((path / name).read_text())
    return str(
        told["release"]["reservation"] if name == "rows.json" else told["ledger"]["reservation"]
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One run with a fault, and the same command after it.

    Attributes:
        said: how the run ended.
        again: how the same command ended then; None where it was not run again.
        before, after, last: facts before the run, after it, and after the second one.
    """

    command: Command
    fault: Fault
    said: Said
    before: Facts
    after: Facts
    again: Said | None
    last: Facts

    @property
    def fresh(self) -> tuple[str, ...]:
        """Charges of the run."""
        return self.after.reserved[len(self.before.reserved) :]

    @property
    def there(self) -> bool:
        """Whether the output is a new one, which verifies."""
        found = self.after.out
        return found not in ("", "BROKEN") and (found != self.before.out or not self.command.spends)

    def goes_on(self, *, begun: bool = True) -> bool:
        """Whether the second run ended well, and all charges are those of the first.

        Args:
            begun: whether the first one has said that it was charged.
        """
        done = self.again is None or self.again.code == 0
        if not begun and not self.fresh:
            return done
        return done and self.last.reserved == self.after.reserved


Check = Callable[[Case, re.Match[str]], bool]


def _why(case: Case, found: re.Match[str]) -> bool:
    blocked = found[1] == os.strerror(errno.EEXIST)  # what could not be removed is in the way
    neutral = ["the file system refused it", "it cannot be opened for writing"]
    neutral += ["no permission"] if case.fault.error == "EACCES" else []
    return blocked or found[1] in (os.strerror(getattr(errno, case.fault.error)), *neutral)


def _never(case: Case, found: re.Match[str]) -> bool:
    return False


def _always(case: Case, found: re.Match[str]) -> bool:
    return True


def _full(case: Case, found: re.Match[str]) -> bool:
    return case.fault.error in ("ENOSPC", "EDQUOT")


SENTENCES: tuple[tuple[str, Check], ...] = (
    # What was spent, and what is there.
    (r"error\[GB(\d+)-[A-Z]+\]:", lambda c, m: c.said.code == int(m[1]) in range(2, 12)),
    (r"Nothing was released[;.]", lambda c, m: c.after.out == c.before.out),
    (r"no budget was spent\.", lambda c, m: not c.fresh),
    (r"Nothing was spent\.", lambda c, m: not c.after.reserved),
    (r"Reservation (r-\w+) stays spent;", lambda c, m: m[1] in c.after.reserved),
    (r"the same command goes on with it, without a second charge\.", lambda c, m: c.goes_on()),
    (
        r"the same command goes on from what it paid for, without a second charge\.",
        lambda c, m: c.goes_on() and set(c.after.committed) <= set(c.last.committed),
    ),
    (
        (
            r"Whether the ledger holds this entry of reservation r-\w+ is not known: `gibbous ledger show` "
            r"tells\. What it lists stays spent, and the same command goes on with it\."
        ),
        lambda c, m: len(c.last.reserved) <= len(c.before.reserved) + 1 and c.goes_on(begun=False),
    ),
    (r"Whether the ledger holds the entry is not known: `gibbous ledger show` tells\.", _always),
    (
        r"The ledger holds the entry all the same: nothing is left to do\.",
        lambda c, m: c.after.caps == c.before.caps + 1,
    ),
    (
        (
            r"The output '[^']*' is there all the same, whole and paid for; whether its name outlives a "
            r"power cut is not known\."
        ),
        lambda c, m: c.there,
    ),
    (
        r"What was reserved stays spent: `gibbous ledger show` lists it\.",
        lambda c, m: set(c.before.reserved) <= set(c.after.reserved) and c.goes_on(begun=False),
    ),
    (r"Nothing half-written is left at the output path\.", lambda c, m: c.after.out != "BROKEN"),
    (r"The output '[^']*' exists\.", lambda c, m: c.after.out != ""),
    (
        r"total cost: [^\n]* \d+ sets? of \d+ rows in \w+\.",
        lambda c, m: c.said.code == 0 and c.there,
    ),
    (
        r"total cost: nothing; \d+ rows drawn from the public tables of release are in more\.",
        lambda c, m: c.said.code == 0 and c.there and not c.fresh,
    ),
    (r"cap: [^\n]*; left: [^\n.]*\.", lambda c, m: c.after.caps == c.before.caps + 1),
    # Why.
    (r"cannot be written: (?!its disk)([^.]*)\.", _why),
    (r"What an earlier run left in", lambda c, m: bool(c.before.resumable or c.before.out)),
    (r"cannot be read: (?:(?:The schema file )?'[^']*' cannot be read: )?([^.]*)\.", _why),
    (r"It may have been paid for, so it is not removed\.", lambda c, m: c.goes_on()),
    (r"refused the use of a file or folder: ([^.]*)\.", _why),
    (r"The disk is full, or a quota is used up(: '[^']*' cannot be written)?\.", _full),
    (
        r"cannot be written: its disk is full, over a quota, or failing\.",
        lambda c, m: c.fault.kind in ("write", "fsync", "truncate", "open"),
    ),
    (r"warning: The anchor '[^']*' was not updated: ([^.]*)\.", _why),
    (
        r"cannot be trusted|Restore the newest|damaged or cut|Another run is writing|is in use:",
        _never,
    ),
    (r"Unexpected \w+ inside gibbous|fault of gibbous|Traceback", _never),
    # What is allowed, and what to do: true whatever happened.
    (r"Every run writes its cost there before it counts anything\.", _always),
    (r"A reservation is on disk before anything is counted\.", _always),
    (
        r"A charge counts when it is on disk; the entries themselves are not damaged by this\.",
        _always,
    ),
    (r"A release is written whole or not at all\.", _always),
    (r"A release is a new folder; nothing is replaced without being asked\.", _always),
    (r"must be readable; the output folder, GIBBOUS_HOME and the scratch folder", _always),
    (r"Check the disk and the permissions, and run the same command again\.", _always),
    (r"Free space or choose another --out, and run the same command again\.", _always),
    (r"^\w+:$", lambda c, m: c.said.code == 0),
    (
        r"next: gibbous verify [^\n]*|warning: The number of rows is published as given[^\n]*",
        _always,
    ),
)


def untrue(case: Case) -> list[str]:
    """The sentences of a case that are not so, or that are about charges and not known here."""
    found = []
    for line in case.said.lines:
        rest = line
        for pattern, check in SENTENCES:
            for match in re.finditer(pattern, rest):
                if not check(case, match):
                    found.append(f"untrue: {match[0]}")
            rest = re.sub(pattern, " ", rest)
        rest = re.sub(r"'[^']*'|^\s+[\w./]+(\s\(\d+ files\))?\s+[\d.]+ \w+$", " ", rest)
        if _CLAIMS.search(rest):
            found.append(f"not known to this test: {rest.strip()}")
    return [*found, *_broken(case)]


def _broken(case: Case) -> list[str]:
    """What must hold whatever was said."""
    said, after, last, command = case.said, case.after, case.last, case.command
    paid = len(case.before.reserved) if command.killed else 0  # what was killed goes on
    most = len(case.before.reserved) + command.spends - paid
    kept = {d: after.committed[d] for d in after.committed}
    wrong = {
        "an exit code that is not documented": said.code not in (0, -9, *range(2, 12)),
        "a failure in silence": said.code > 0 and not said.err,
        "killed by a signal": said.code == -9 and case.fault.mode != "kill",
        "half an output": "BROKEN" in (after.out, last.out),
        "an output without a charge": command.spends and after.out not in ("", *after.committed),
        "more than one charge": len(last.reserved) > most,
        "a second draw on one charge": kept != {d: last.committed.get(d) for d in kept},
        "the old output is gone": case.before.out and not after.out,
        "it cannot be done again": case.again is not None and case.again.code not in (0, EXISTS),
        "no output in the end": command.out and not last.out,
        "a charge that stays open": case.again is not None
        and set(last.reserved) != set(last.committed),
        "leftovers": case.again is not None and last.left,
    }
    return [words for words, so in wrong.items() if so]


def same(case: Case) -> Case:
    """The case with an end like its middle, where nothing was run again."""
    return replace(case, again=None, last=case.after)
