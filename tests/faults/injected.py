"""Runs of the command line with one fault each, in folders of their own, beside what they said."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gibbous.read.schema_write import schema_toml
from tests.faults.warm import KINDS
from tests.pipeline.test_pipeline import SCHEMA, table

ROOT = Path(__file__).resolve().parents[2]
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EACCES", "EINTR")
DATA = ("data.csv", "schema.toml")
_FIRST = ("synthesize", "data.csv", "--schema", "schema.toml")
_SIZE = ("--rows", "9", "--sets", "2", "--seed", "5", "--engine", "numpy")
TABLES = (*_FIRST, "--method", "sbhg", "--epsilon", "1", "--delta", "1e-4", *_SIZE)


@dataclass(frozen=True, slots=True)
class Fault:
    """The n-th call of a kind fails with an error, or ends the process."""

    kind: str
    nth: int
    error: str = "EIO"
    mode: str = "once"

    def __str__(self) -> str:
        what = self.mode if self.mode in ("kill", "short") else f"{self.error} {self.mode}"
        return f"{what} at {self.kind} {self.nth}"


NONE = Fault("open", 0)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line.

    Attributes:
        out: the folder that it makes; "" for none.
        spends: how often it charges.
        first: the command that is run in the folder before it, if any.
        killed: where that one is killed.
    """

    argv: tuple[str, ...]
    out: str = "release"
    spends: int = 1
    first: str = ""
    killed: Fault | None = None


COMMANDS = {
    "tables": Command((*TABLES, "--format", "csv", "--out", "release")),
    "rows": Command((*_FIRST, "--method", "pegs", "--epsilon", "0.5", *_SIZE, "--out", "release")),
    "replaced": Command((*TABLES, "--overwrite", "--fresh", "--out", "release"), first="tables"),
    "redrawn": Command((*TABLES, "--overwrite", "--out", "release"), spends=0, first="tables"),
    "further": Command(
        ("synthesize", "--tables", "release", "--rows", "20", "--seed", "3", "--out", "more"),
        out="more", spends=0, first="tables",
    ),
    "resumed": Command(
        (*TABLES, "--format", "csv", "--out", "release"), first="tables",
        killed=Fault("open", 58, mode="kill"),
    ),
    "cap": Command(
        ("ledger", "cap", "data.csv", "--schema", "schema.toml", "--epsilon", "3"), out="", spends=0
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended: its exit code (-9: killed), and the lines that it printed."""

    code: int
    out: str
    err: str
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        return [line for text in (self.out, self.err) for line in text.splitlines()]


def compiled(folder: Path) -> Path | None:
    """The shim, compiled; None where there is no C compiler that makes it."""
    compiler, shim = shutil.which("cc"), folder / "shim.so"
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    source = Path(__file__).with_name("shim.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(shim), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    return shim if done.returncode == 0 else None


class Runner:
    """Runs commands in children of a warm process.

    Args:
        says: a folder for what they print.
        shim: preloaded into them; None meets the calls of Python alone.
    """

    def __init__(self, says: Path, shim: Path | None) -> None:
        self._says = says
        more = {"LD_PRELOAD": str(shim)} if shim else {}
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | more
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.warm"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=env, text=True,
        )  # fmt: skip
        self._loaded: set[str] = set()

    def run(
        self,
        folder: Path,
        argv: tuple[str, ...],
        fault: Fault = NONE,
        patches: tuple[str, ...] = (),
    ) -> Said:
        """One command in a folder, with a fault."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for name in ("stdout", "stderr", "calls"):
            (self._says / name).unlink(missing_ok=True)
        self._tell(
            {
                "folder": str(folder),
                "says": str(self._says),
                "argv": argv,
                "kind": fault.kind,
                "nth": fault.nth,
                "errno": getattr(errno, fault.error),
                "mode": fault.mode,
                "patches": ("tests.write.made.draw_plainly", *patches),
            }
        )
        code = json.loads(self._process.stdout.readline())
        out, err = ((self._says / name).read_text() for name in ("stdout", "stderr"))
        counts: dict[str, int] = {}
        if (self._says / "calls").exists():
            told = json.loads((self._says / "calls").read_text())
            counts, fresh = told["counts"], set(told["modules"]) - self._loaded
            if fresh:
                self._loaded |= fresh
                self._tell({"modules": sorted(fresh)})
        return Said(code, out, err, counts)

    def close(self) -> None:
        """End the warm process."""
        self._process.communicate()

    def _tell(self, job: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()


def place(folder: Path, before: Path | None) -> Path:
    """A folder with data and schema, and with what `before` holds, if given."""
    if before is not None:
        shutil.copytree(before, folder)
        return folder
    folder.mkdir(parents=True)
    table(60).write_csv(folder / "data.csv")
    (folder / "schema.toml").write_text(schema_toml(SCHEMA))
    return folder


def faults(counts: dict[str, int]) -> list[Fault]:
    """Every call of a run, with each way to fail that fits it; errors take turns."""
    found = []
    for kind in KINDS:
        for nth in range(1, counts[kind] + 1):
            error = ERRORS[
                (nth + len(kind)) % 4
            ]  # an interrupted call is made again: it cannot last
            found += [Fault(kind, nth, error, mode) for mode in ("once", "lasting")]
            found.append(Fault(kind, nth, "EINTR" if kind != "lock" else "EIO"))
            found.append(Fault(kind, nth, mode="kill"))
            found += [Fault(kind, nth, mode="short")] if kind == "write" else []
    return found
