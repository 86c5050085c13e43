"""A studio that runs: the command itself, in a process of its own, with its one-time address."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/enter#(\S+)")


class Served:
    """A running studio.

    Args:
        command: further arguments of `gibbous studio`.
        home: of its ledger.
    """

    def __init__(self, *command: object, home: Path) -> None:
        environment = os.environ | {"GIBBOUS_HOME": str(home), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gibbous", "studio", "--no-browser", *map(str, command)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
        self.said: list[str] = []
        self.base = self.token = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if hit := ADDRESS.search(line):
                self.base, self.token = hit.groups()
            if "Ctrl-C" in line:
                break

    @property
    def address(self) -> str:
        """The one-time address."""
        return f"{self.base}/enter#{self.token}"

    def stop(self) -> int:
        """Stop it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.said.append(self.process.stdout.read())
        self.process.stdout.close()
        return code


@contextmanager
def served(*command: object, home: Path) -> Iterator[Served]:
    """A studio that is stopped at the end."""
    studio = Served(*command, home=home)
    try:
        yield studio
    finally:
        if studio.process.poll() is None:
            studio.stop()
