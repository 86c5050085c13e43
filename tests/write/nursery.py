"""Children forked from a process that has imported everything: made in no time, killed by the hundred.

That process is fresh and holds nothing of the test's: a child is as good as a command, from the moment
that its libraries are loaded.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

FRESH = multiprocessing.get_context("forkserver")
# What the children would import, each for itself: a second of CPU a child.
LOADED = (
    "pytest",
    "polars",
    "rich.console",
    "gibbous.cli.synthesize_verb",
    "gibbous.disintegrate.passes",
    "gibbous.sampling.alias_kernels",
    "gibbous.write.verify",
)
FRESH.set_forkserver_preload([*LOADED, "tests.write.made", __name__])


class Child:
    """A running child, and what it says.

    Args:
        work: a function at the top of a module; its first argument says things to the test.
        given: its other arguments.
    """

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        self._heard, says = FRESH.Pipe(duplex=False)
        self._process = FRESH.Process(target=work, args=(says, *given))
        self._process.start()
        says.close()  # the child has its own: when it ends, the pipe does

    def next(self) -> Any:
        """What it says next; None when it has ended."""
        try:
            return self._heard.recv()
        except (EOFError, OSError):  # a last word may be cut
            return None

    def rest(self) -> list[Any]:
        """What else it says until it ends."""
        return list(iter(self.next, None))

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        self._process.kill()

    def ended(self) -> int | None:
        """Wait for its end; its exit code, -9 of one that was killed."""
        self._process.join()
        self._heard.close()
        return self._process.exitcode


def command(says: Connection, arguments: list[str], folder: Path, told: Path) -> None:
    """Be `gibbous ARGUMENTS`, run in a folder with its own home; stderr goes to the file `told`."""
    from gibbous.cli import main

    os.setsid()
    os.chdir(folder)
    os.environ["GIBBOUS_HOME"] = str(folder / "home")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    sys.argv = ["gibbous", *arguments]
    os._exit(main())


def killing(calls: int) -> Callable[[], None]:
    """A function whose call number `calls` kills this process."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == calls:
            os.kill(os.getpid(), 9)

    return count


__all__ = ["Child", "Connection", "command", "killing"]
