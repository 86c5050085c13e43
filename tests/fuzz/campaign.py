"""Run targets for a time, gather what they found, make each finding small, and keep what reached far."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from conftest import kernel_cache
from tests.fuzz import worker
from tests.fuzz.mutate import shortened

ROOT = worker.ROOT
MOST = 20  # findings of one campaign


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a target neither takes nor refuses.

    Attributes:
        kind: "traceback", "abort" or "hang".
        signature: the class and line of a traceback, or how the process ended.
        data: the input.
    """

    kind: str
    signature: str
    data: bytes


@dataclass(slots=True)
class Campaign:
    """One target, for some seconds.

    Attributes:
        executions: inputs that were run.
        seconds: that it took, by the clock.
        findings: one a signature.
        kept: folder of inputs that reached further in earlier campaigns; None: they are not kept.
    """

    name: str
    engine: str
    patches: tuple[str, ...] = ()
    kept: Path | None = None
    executions: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def run(self, seconds: float, *, enough: int) -> None:
        """Run workers, one after the other, until the time is over or there are enough findings."""
        end, start = time.monotonic() + seconds, time.monotonic()
        memory = Path("/dev/shm")  # where syncing to disk costs nothing
        place = str(memory) if os.access(memory, os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="gibbous-fuzz-", dir=place) as where:
            folder = Path(where)
            for name in ("found", "grown", "scratch"):
                (folder / name).mkdir()
            if self.kept is not None and self.kept.is_dir():
                shutil.copytree(self.kept, folder / "grown", dirs_exist_ok=True)
            while (left := end - time.monotonic()) > 0 and len(self.findings) < enough:
                self._work(folder, left, enough)
                self._gather(folder)
            if self.kept is not None:
                shutil.copytree(folder / "grown", self.kept, dirs_exist_ok=True)
        self.seconds += time.monotonic() - start

    def _work(self, folder: Path, seconds: float, enough: int) -> None:
        (folder / "count").write_text("0")
        seed = int.from_bytes(os.urandom(4), "big") >> 1
        command = [
            sys.executable, "-m", "tests.fuzz.worker", self.name, str(folder), str(seconds),
            self.engine, str(seed), *self.patches,
        ]  # fmt: skip
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(folder / "scratch"),
            "GIBBOUS_HOME": str(folder / "scratch"), "POLARS_MAX_THREADS": "1",
            "NUMBA_CACHE_DIR": str(kernel_cache()),
        }  # fmt: skip
        with (folder / "said").open("w") as said:
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=said)
            with contextlib.suppress(subprocess.TimeoutExpired):
                limit = time.monotonic() + seconds + 2 * worker.HANG + 30
                while time.monotonic() < limit:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
                        break
                    if len(self.findings) + len(list((folder / "found").glob("*.json"))) >= enough:
                        break
            if process.poll() is None:
                process.kill()
                process.wait()
                process.returncode = 0
        self.executions += int((folder / "count").read_text() or 0)
        if process.returncode:
            self._died(folder, process.returncode)

    def _died(self, folder: Path, code: int) -> None:
        """The worker ended before its time: by the input that it had begun."""
        said = (folder / "said").read_text(errors="replace")
        data = (folder / "current").read_bytes() if (folder / "current").exists() else b""
        if code == worker.HARNESS:
            raise RuntimeError(f"the worker of {self.name} failed by itself:\n{said[-3000:]}")
        hung = "Timeout (" in said or "libFuzzer: timeout" in said
        how = "hang" if hung else "abort"
        words = f"signal {-code}" if code < 0 else f"exit {code}"
        if not any(one.kind == how for one in self.findings):
            print(said[-1500:], file=sys.stderr)
            self.findings.append(Finding(how, words, data))

    def _gather(self, folder: Path) -> None:
        known = {one.signature for one in self.findings}
        for path in (folder / "found").glob("*.json"):
            words = json.loads(path.read_text())
            path.unlink()
            if words["signature"] not in known:
                data = bytes.fromhex(words["input"])
                self.findings.append(Finding("traceback", words["signature"], data))


def outcome(name: str, data: bytes, patches: Sequence[str] = (), limit: float = worker.HANG) -> str:
    """How one input ends in a process of its own: "", a signature, "hang", or a signal.

    The process is a fork of this one, which must never have run a target.
    """
    from tests.fuzz import targets

    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with open(os.devnull, "w") as nowhere:
            for stream in (1, 2):
                os.dup2(nowhere.fileno(), stream)
        for patch in patches:
            module, _, function = patch.rpartition(".")
            getattr(sys.modules[module], function)()
        signal.alarm(max(1, int(limit)))
        error = targets.attempt(targets.TARGETS[name], data)
        os.write(write, (worker.signature(error) if error else "").encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        return "hang"
    return told if code == 0 else f"signal {-code}" if code < 0 else f"exit {code}"


def minimized(finding: Finding, ends: Callable[[bytes], str]) -> Finding:
    """The same finding with a shorter input; that of a traceback was made short where it was found.

    Args:
        ends: how an input ends, as `outcome` says it.
    """
    if finding.kind == "traceback":
        return finding
    wanted = ends(finding.data)
    trials = 8 if finding.kind == "hang" else 200
    data = shortened(finding.data, lambda data: ends(data) == wanted, trials if wanted else 0)
    return Finding(finding.kind, finding.signature, data)


def save(finding: Finding, folder: Path) -> Path:
    """Write the input of a finding, and beside it what it did."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.kind}-{hashlib.sha256(finding.data).hexdigest()[:12]}"
    path.write_bytes(finding.data)
    path.with_suffix(".txt").write_text(f"{finding.kind}: {finding.signature}\n")
    return path


def distilled(name: str, kept: Path, most: int) -> list[bytes]:
    """Short inputs of earlier campaigns that reach lines of gibbous which nothing shorter reaches.

    Args:
        kept: folder of what they kept.
        most: bytes of all together.
    """
    from tests.fuzz import targets

    def lines(data: bytes) -> set[tuple[str, int]]:
        seen: set[tuple[str, int]] = set()

        def trace(frame: FrameType, *_: object) -> Any:
            if f"src{os.sep}gibbous" not in frame.f_code.co_filename:
                return None
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            return trace

        sys.settrace(trace)
        try:
            targets.attempt(targets.TARGETS[name], data)
        finally:
            sys.settrace(None)
        return seen

    reached, found = set().union(*map(lines, targets.inputs(name))), []
    for path in sorted(kept.glob("*"), key=lambda path: path.stat().st_size):
        data = path.read_bytes()
        if len(data) <= most and (fresh := lines(data) - reached):
            reached, most = reached | fresh, most - len(data)
            found.append(data)
    return found
