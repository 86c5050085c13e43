"""A process that has imported everything and runs one command a child, with one fault in its file calls.

It reads jobs as lines of JSON and answers each with one: how the command ended and what it called. With
the shim preloaded every library's calls are met; without it (no C compiler) those of Python alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

KINDS = ("open", "write", "fsync", "rename", "unlink", "truncate", "mkdir", "chmod", "lock")
MODES = ("once", "lasting", "kill", "short")
PATIENCE = 60  # seconds after which a child counts as hung
LOADED = (
    "polars", "opendp.prelude", "sqlite3", "gibbous.cli.app", "gibbous.pipeline", "gibbous.write.verify",
    "gibbous.sampling.alias_kernels", "gibbous.disintegrate.records", "gibbous.cli.synthesize_verb",
    "gibbous.cli.ledger_verbs", "gibbous.mechanisms", "typer.main", "typer._adapters", "pydantic_core",
    "tests.write.made",
)  # fmt: skip
_PYTHON = {  # kind -> functions, and which argument is the file
    "open": ((os, "open", 0), (io, "open", 0)),
    "write": ((os, "write", 0),),
    "fsync": ((os, "fsync", 0),),
    "rename": ((os, "rename", 1), (os, "replace", 1)),
    "unlink": ((os, "unlink", 0), (os, "rmdir", 0)),
    "truncate": ((os, "ftruncate", 0),),
    "mkdir": ((os, "mkdir", 0),),
    "chmod": ((os, "fchmod", 0), (os, "chmod", 0)),
}


class Preloaded:
    """The shim in this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])

    def arm(self, below: str, but: str, kind: int, nth: int, number: int, mode: int) -> None:
        self._library.shim_arm(below.encode(), but.encode(), kind, nth, number, mode)

    def counts(self) -> list[int]:
        self._library.shim_disarm()
        return [self._library.shim_count(kind) for kind in range(len(KINDS))]


class Python:
    """The same for the calls that Python code makes; libraries in other languages are not met."""

    def __init__(self) -> None:
        self._counts = [0] * len(KINDS)

    def arm(self, below: str, but: str, kind: int, nth: int, number: int, mode: int) -> None:
        for name, functions in _PYTHON.items():
            for module, function, place in functions:
                honest = getattr(module, function)
                met = self._met(KINDS.index(name), honest, place, below, but)
                setattr(module, function, met)
        self._wanted = (kind, nth, number, MODES[mode])

    def _met(
        self, kind: int, honest: Callable[..., Any], place: int, below: str, but: str
    ) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            path = _named(given[place])
            if not path.startswith(below) or path.startswith(but):
                return honest(*given, **more)
            self._counts[kind] += 1
            wanted, nth, number, mode = self._wanted
            count = self._counts[kind]
            if kind == wanted and (count >= nth if mode == "lasting" else count == nth):
                if mode == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if mode == "short":
                    return honest(given[0], bytes(given[1])[: max(1, len(given[1]) // 2)])
                raise OSError(number, os.strerror(number))
            return honest(*given, **more)

        return call

    def counts(self) -> list[int]:
        return self._counts


def _named(file: Any) -> str:
    if isinstance(file, int):
        try:
            return os.readlink(f"/proc/self/fd/{file}")
        except OSError:
            return ""
    return os.path.abspath(os.fsdecode(file))


def run(job: dict[str, Any]) -> int:
    """The command of a job, with its streams in files and its fault armed; in a child."""
    signal.alarm(PATIENCE)
    os.chdir(job["folder"])
    os.environ["GIBBOUS_HOME"] = os.path.join(job["folder"], "home")
    for number, name in ((1, "stdout"), (2, "stderr")):
        handle = os.open(
            os.path.join(job["says"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
        )
        os.dup2(handle, number)
        os.close(handle)
    sys.argv = ["gibbous", *job["argv"]]
    faults: Any = Preloaded() if "LD_PRELOAD" in os.environ else Python()
    from gibbous.cli.entry import main

    for patch in job["patches"]:  # a saboteur: module.function that is called before the command
        module, _, function = patch.rpartition(".")
        getattr(importlib.import_module(module), function)()
    faults.arm(
        job["folder"], os.path.join(job["folder"], "home", "cache"), KINDS.index(job["kind"]),
        job["nth"], job["errno"], MODES.index(job["mode"]),
    )  # fmt: skip
    code = main()
    counts = faults.counts()
    sys.stdout.flush()
    told = {"counts": dict(zip(KINDS, counts, strict=True)), "modules": sorted(sys.modules)}
    with open(os.path.join(job["says"], "calls"), "w", encoding="utf-8") as file:
        json.dump(told, file)
    return code


def serve() -> None:
    """Answer jobs until there are none."""
    warnings.simplefilter("ignore")
    from gibbous.cli import entry
    from gibbous.write.rendering import environment

    _load(LOADED)
    entry._parser()
    templates = environment("gibbous.write")
    for name in templates.list_templates():
        templates.get_template(name)  # compiled once, not by each child
    for line in sys.stdin:
        job = json.loads(line)
        if "modules" in job:  # what an earlier child imported: the next ones have it already
            _load(job["modules"])
            continue
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = run(job)
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else 99
            finally:
                os._exit(code)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps(ended), flush=True)


def _load(names: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


if __name__ == "__main__":
    serve()
