"""A Parquet file -> how it can be read: a child process reads it first, under limits of memory and time.

The reader is compiled code: a crafted file can make it stop the whole process, fill the memory, or
never return. All that happens to the child, and to nobody else.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from gibbous.core.errors import GibbousError, ResourceLimit

What = Literal["footer", "usable", "all"]

BATCH = 64 << 20
"""Bytes of decoded columns that a slice may have, about: wide tables come in fewer rows a slice."""
TEXT, NUMBER = 24, 9  # bytes of a value in memory, about; those of a long text come on top
MOST_TEXT = 256 << 10  # bytes of one value
SPARE = 1 << 30  # bytes that the child may use whatever the limit of a table is
CPU, WALL = 60, 300  # seconds for one slice
_FIRST, _GROWTH = 1024, 8  # rows of the first slice; later ones are that many times longer
_NO_MEMORY = re.compile(rb"memory allocation of ([0-9]+) bytes")
_IMPOSSIBLE = 1 << 40  # bytes that no file asks for at once, unless it is damaged
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from gibbous.read.parquet_child import serve; serve()"
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What the child found.

    Attributes:
        text: bytes of all texts, beyond TEXT a value.
        longest: bytes of the longest text.
        at_once: rows that a slice may have, >= 1.
    """

    text: int = 0
    longest: int = 0
    at_once: int = 1


def tried(path: Path, what: What, limit: int, damaged: Callable[[], GibbousError]) -> Trial:
    """Let the child read a file that is about to be read here.

    Args:
        what: the footer alone, also the columns of types that are taken, or all columns.
        limit: bytes that the table may need.
        damaged: makes the error for a file whose reader failed, or stopped its process.
    Raises:
        GibbousError: `damaged`; ResourceLimit: it needs more memory or time than is allowed, has a
            longer text than is read, or there is no child.
    """
    global _child
    try:
        facts = os.stat(path)
    except OSError:
        raise damaged() from None
    key = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    known = (*key, what, limit)
    with _lock:
        told = _known.get(known)
        if told is None:
            _child = _child or _Child()
            told = _child.ask({
                "path": os.path.abspath(path), "what": what, "limit": limit,
                "batch": min(BATCH, limit),
            })  # fmt: skip
            if "fault" in told:
                _child.close()
                _child = None
        settled = time.time_ns() - max(facts.st_mtime_ns, facts.st_ctime_ns) > 2 * 10**9
        if settled and told.get("fault") is None:  # a younger file may change within one tick
            _known[known] = told
            while len(_known) > 256:
                del _known[next(iter(_known))]
    fault = told.get("fault") or ("" if told["sound"] else "damaged")
    if fault == "damaged":
        raise damaged()
    if fault or told["longest"] > MOST_TEXT:
        raise _limit(fault or "text")
    return Trial(told["text"], told["longest"], told["at_once"])


def _limit(fault: str) -> ResourceLimit:
    wrong = {
        "memory": "Reading the Parquet file needs more memory than is allowed",
        "time": "Reading a slice of the Parquet file takes longer than is allowed",
        "text": "The Parquet file has a text of more than 256 kB in one cell",
        "start": "The process that tries Parquet files could not be started",
    }[fault]
    return ResourceLimit(
        "TOOLARGE" if fault in ("memory", "text") else fault.upper(),
        f"{wrong}.",
        f"A slice takes at most {CPU} seconds of the processor, a text at most 256 kB, and a table the "
        "memory that max_bytes names.",
        "Raise max_bytes if memory allows; leave out columns of long texts; write a file that is "
        "damaged again.",
    )


class _Child:
    """The child, from its start until a file ends it."""

    def __init__(self) -> None:
        # Messages of the reader may hold values: they stay in memory.
        memory = os.memfd_create("gibbous") if hasattr(os, "memfd_create") else None
        self._errors = os.open(os.devnull, os.O_WRONLY) if memory is None else memory
        code = [sys.executable, "-I", "-c", _START, json.dumps(sys.path)]
        try:
            self._process = subprocess.Popen(
                code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                bufsize=0,
                env={**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"},
            )  # fmt: skip
        except (OSError, ValueError):
            os.close(self._errors)
            raise _limit("start") from None
        if self._line() != b"ready\n":
            self.close()
            raise _limit("start")

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of the child, or {"fault": ...} of one that died or was ended."""
        try:
            _pipe(self._process.stdin).write(json.dumps(request).encode() + b"\n")
            while (line := self._line()) == b".\n":
                pass  # a slice was read
        except OSError:
            line = b""
        if line is None:
            return {"fault": "time"}
        if not line.endswith(b"}\n"):
            return {"fault": self._cause()}
        return dict(json.loads(line))

    def close(self) -> None:
        """End the child."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                _pipe(pipe).close()
        self._process.wait()
        with contextlib.suppress(OSError):
            os.close(self._errors)

    def _line(self) -> bytes | None:
        pipe = _pipe(self._process.stdout)
        return pipe.readline() if select.select([pipe], [], [], WALL)[0] else None

    def _cause(self) -> str:
        try:
            signalled = -self._process.wait(WALL)
            said = os.pread(self._errors, 1 << 16, 0)
        except (OSError, subprocess.TimeoutExpired):
            return "damaged"
        memory = _NO_MEMORY.search(said)
        if signalled == signal.SIGXCPU:
            return "time"
        short = memory is not None and int(memory[1]) < _IMPOSSIBLE
        return "memory" if short or signalled == signal.SIGKILL else "damaged"


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


_child: _Child | None = None
_lock = threading.Lock()
_known: dict[tuple[object, ...], dict[str, Any]] = {}


@atexit.register
def _end() -> None:
    if _child is not None:
        _child.close()


def _forget() -> None:
    """In a forked process: the child is that of the process before."""
    global _child, _lock
    if _child is not None:
        _child._process.returncode = 0  # nobody waits for it here
    _child, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def serve() -> None:
    """The child: one request a line of stdin, a line of stdout for each slice and one for the answer."""
    import polars as pl

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pl.DataFrame({"a": [1]}).lazy().select(pl.col("a").sum()).collect()  # its threads are there now
    _say(b"ready")
    for line in sys.stdin.buffer:
        with contextlib.suppress(OSError):
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
        request = json.loads(line)
        answer: dict[str, Any] = {"sound": False, "text": 0, "longest": 0, "at_once": 1}
        try:
            limit_memory(os.stat(request["path"]).st_size + max(request["limit"], SPARE))
            _limit_time()
            answer |= _read(request["path"], request["what"], request["batch"]) | {"sound": True}
        except MemoryError:
            answer["fault"] = "memory"
        except BaseException as error:  # a panic of the reader is no Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
        _say(json.dumps(answer).encode())


def _read(path: str, what: What, batch: int) -> dict[str, int]:
    import polars as pl

    from gibbous.read.conform import usable

    columns = pl.read_parquet_schema(path)
    lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
    rows = lazy.select(pl.len()).collect().item()
    kept = [n for n, dtype in columns.items() if what == "all" or usable(n, dtype)]
    if what == "footer" or not kept:
        return {}
    width = sum(map(width_of, (columns[name] for name in kept)))
    texts = [name for name in kept if columns[name] == pl.String]
    measured = {"text": 0, "longest": 0, "at_once": max(1, batch // max(1, width))}
    for frame in _slices(lazy.select(kept), rows, measured):
        sizes = [frame[name].str.len_bytes() for name in texts]
        text = sum(max(0, int(size.sum()) - TEXT * frame.height) for size in sizes)
        measured["text"] += text
        measured["longest"] = max([measured["longest"], *(int(size.max() or 0) for size in sizes)])
        least = batch // max(1, width + text // frame.height)
        measured["at_once"] = max(1, min(measured["at_once"], least))
        if measured["longest"] > MOST_TEXT:
            break
        _say(b".")
    return measured


def _slices(lazy: Any, rows: int, found: dict[str, int]) -> Iterator[Any]:
    start, step = 0, _FIRST
    while start < rows:
        _limit_time()
        step = min(step, found["at_once"], rows - start)
        frame = lazy.slice(start, step).collect()
        if frame.height != step:
            raise ValueError("rows are missing")
        yield frame
        start, step = start + step, step * _GROWTH


def width_of(dtype: Any) -> int:
    """Bytes of a value in memory, about; those of a long text come on top."""
    import polars as pl

    return TEXT if dtype in (pl.String, pl.Categorical, pl.Enum) else NUMBER


def limit_memory(spare: int) -> None:
    """Let this process take so many bytes more than it has."""
    with contextlib.suppress(OSError, ValueError):  # where the system has no such figures or limits
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = pages * resource.getpagesize() + spare
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _limit_time() -> None:
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(used) + CPU
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
