"""Commands as processes of their own: started once, watched through their files, stopped by SIGINT.

A job outlives the studio that started it: its words, its output and its exit code are files.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gibbous.core.errors import ResourceLimit
from gibbous.studio.commands import Command
from gibbous.studio.words import refusal
from gibbous.studio.workplace import doors, write

State = Literal["running", "done", "failed", "stopped"]
TAIL = 1 << 14  # bytes of what a job complains about
KEPT = 60  # jobs
MOST = 1 << 20  # bytes of what a job says before its end
SPENDERS = ("synthesize", "compare", "evaluate")  # one of a kind at a time
_ERROR = re.compile(r"error\[(GB\w+-\w+)\]: (.*)")


@dataclass(frozen=True, slots=True)
class Job:
    """What is known of a job.

    Attributes:
        then: what is started when it ended well.
        error: (code, sentence) where it failed.
        stage, share, seconds, left: how far it is; None where it does not say.
    """

    id: str
    words: tuple[str, ...]
    shell: str
    python: str
    screen: str
    then: Command | None
    state: State
    error: tuple[str, str] = ("", "")
    stage: str = ""
    share: float | None = None
    seconds: float | None = None
    left: float | None = None

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0]


class Jobs:
    """The jobs of one workplace."""

    def __init__(self, folder: Path, cwd: Path) -> None:
        self._folder, self._cwd = folder, cwd
        self._lock = threading.Lock()
        self._own: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self,
        command: Command,
        screen: str,
        once: str = "",
        then: Command | None = None,
        secret: str = "",
    ) -> str:
        """Start a command, unless the same form already did, or another tab.

        Args:
            once: key of the form that asked; the same key starts nothing a second time.
            secret: handed over on standard input: in no file, no argument and no fact of the job.
        """
        with self._lock:
            for job, facts in self._all():
                same = once and facts.get("once") == once
                busy = command.verb in SPENDERS and facts["words"][0] == command.verb
                if same or (busy and self._state(job, facts)[0] == "running"):
                    return job
            return self._start(command, screen, once, then, secret)

    def _start(
        self, command: Command, screen: str, once: str, then: Command | None, secret: str
    ) -> str:
        job = secrets.token_hex(8)
        folder = self._folder / job
        folder.mkdir(mode=0o700)
        argv = [sys.executable, "-P", "-m", "gibbous", *command.words]
        place = argv.index("--") if "--" in argv else len(argv)
        argv.insert(place, "--json")
        try:
            with open(folder / "out.json", "wb") as out, open(folder / "err.txt", "wb") as err:
                process = subprocess.Popen(
                    argv,
                    cwd=self._cwd,
                    stdin=subprocess.PIPE if secret else subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    env=os.environ | doors(self._folder.parent),
                )
        except OSError:
            raise refusal("NOPROCESS", kind=ResourceLimit) from None
        if process.stdin is not None:
            with suppress(OSError), process.stdin as pipe:
                pipe.write(secret.encode() + b"\n")
        facts = {
            "words": list(command.words),
            "shell": command.shell,
            "python": command.python,
            "screen": screen,
            "once": once,
            "then": [then.words, then.python] if then else None,
            "pid": process.pid,
            "born": _born(process.pid),
        }
        write(folder / "job.json", json.dumps(facts))
        self._own[job] = process
        threading.Thread(
            target=self._wait, args=(job, process, then, screen), name=job, daemon=True
        ).start()
        return job

    def _wait(
        self, job: str, process: subprocess.Popen[bytes], then: Command | None, screen: str
    ) -> None:
        """What follows a job is under way before the job itself counts as ended."""
        code = process.wait()
        try:
            if then is not None and code == 0:
                self.start(then, screen)
            with suppress(OSError):  # the folder is gone, or the disk is full
                write(self._folder / job / "code", str(code))
        finally:
            del self._own[job]

    def _all(self) -> list[tuple[str, dict[str, Any]]]:
        """Every job with its facts, the newest first."""
        found = []
        for path in self._folder.glob("*/job.json"):
            with suppress(OSError, ValueError):
                found.append((path.stat().st_mtime_ns, path.parent.name, path.read_text("utf-8")))
        return [(name, json.loads(text)) for _, name, text in sorted(found, reverse=True)[:KEPT]]

    def all(self) -> list[Job]:
        """Every job, the newest first."""
        return [self._job(job, facts) for job, facts in self._all()]

    def get(self, job: str) -> Job | None:
        """One job; None where there is none."""
        return next((self._job(name, facts) for name, facts in self._all() if name == job), None)

    def newest(self, *words: str) -> Job | None:
        """The newest job whose command begins so."""
        for name, facts in self._all():
            if tuple(facts["words"][: len(words)]) == words:
                return self._job(name, facts)
        return None

    def latest(self, some: Sequence[Job]) -> Job | None:
        """The one that was started last; None of none."""
        order = [job for job, _ in self._all()]
        return min(some, key=lambda job: order.index(job.id), default=None)

    def answer(self, job: Job | None) -> Any:
        """The JSON document that a job printed; None where it did not end well."""
        if job is None or job.state != "done":
            return None
        try:
            return json.loads((self._folder / job.id / "out.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def provisional(self, job: Job | None) -> Any:
        """What a job that runs said first, while its last word is made; None where it said nothing."""
        if job is None or job.state != "running":
            return None
        with suppress(OSError, ValueError), open(self._folder / job.id / "err.txt", "rb") as file:
            lines = file.read(MOST).splitlines()
            said = [json.loads(line) for line in lines if line.startswith(b'{"provisional"')]
            return said[-1]["provisional"] if said else None
        return None

    def took(self, job: Job) -> float | None:
        """Seconds from its start to the last word that it printed; None where it did not end well."""
        if job.state != "done":
            return None
        begun, ended = (self._folder / job.id / name for name in ("job.json", "out.json"))
        with suppress(OSError):
            return max(0.0, ended.stat().st_mtime - begun.stat().st_mtime)
        return None

    def begun(self, job: Job) -> int:
        """When it was started, in nanoseconds of the file system; 0 where that is not known."""
        with suppress(OSError):
            return (self._folder / job.id / "job.json").stat().st_mtime_ns
        return 0

    def cancel(self, job: str) -> None:
        """Ask a job to stop, as Ctrl-C does: nothing half-written is left."""
        for name, facts in self._all():
            if name == job and self._state(name, facts)[0] == "running":
                with suppress(ProcessLookupError):
                    os.kill(facts["pid"], signal.SIGINT)

    def again(self, job: str, secret: str = "") -> None:
        """Start the command of a job that stopped: what was paid for is not paid for again."""
        stopped = self.get(job)
        if stopped is not None and stopped.state in ("failed", "stopped"):
            command = Command(stopped.words, stopped.python)
            self.start(command, stopped.screen, f"again-{job}", stopped.then, secret)

    def running(self) -> bool:
        """Whether any job runs."""
        return any(job.state == "running" for job in self.all())

    def _job(self, job: str, facts: Mapping[str, Any]) -> Job:
        state, code = self._state(job, facts)
        said = _tail(self._folder / job / "err.txt")
        stage, share, seconds, left = (
            _progress(said) if state == "running" else ("", None, None, None)
        )
        error = ("", "")
        if state in ("failed", "stopped"):
            hit = _ERROR.findall(said)
            error = hit[-1] if hit else (f"GB-{code}", "")
        words, after = tuple(facts["words"]), facts.get("then")
        then = Command(tuple(after[0]), after[1]) if after else None
        return Job(
            job, words, facts["shell"], facts["python"], facts["screen"], then, state, error,
            stage, share, seconds, left,
        )  # fmt: skip

    def _state(self, job: str, facts: Mapping[str, Any]) -> tuple[State, int | None]:
        try:
            code: int | None = int((self._folder / job / "code").read_text("utf-8"))
        except (OSError, ValueError):
            if job in self._own or _born(facts["pid"]) == facts["born"] != "":
                return "running", None
            # It ended while no studio watched: what it printed says how.
            whole = _tail(self._folder / job / "out.json").rstrip().endswith(("}", "]"))
            return ("done" if whole else "failed"), None
        if code == 0:
            return "done", 0
        return ("stopped" if code in (130, 143, -2, -15) else "failed"), code


def _born(pid: int) -> str:
    """When a process started, so that a number that is used again is not taken for it; "" if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        fields = text.rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        if os.path.isdir("/proc/self"):
            return ""
    try:
        os.kill(pid, 0)
    except OSError:
        return ""
    return "alive"


def _tail(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _progress(said: str) -> tuple[str, float | None, float | None, float | None]:
    """Stage, share done, seconds, and seconds left at the rate of this stage."""
    lines = []
    for text in said.splitlines():
        with suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict) and {"stage", "done", "seconds"} <= line.keys():
                lines.append(line)
    if not lines:
        return "", None, None, None
    last = lines[-1]
    first = next(line for line in lines if line["stage"] == last["stage"])
    total, seconds = last.get("total"), last["seconds"]
    share = last["done"] / total if total else None
    made, took = last["done"] - first["done"], seconds - first["seconds"]
    left = (total - last["done"]) * took / made if total and made > 0 else None
    return last["stage"], share, seconds, left
