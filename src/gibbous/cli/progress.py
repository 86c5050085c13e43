"""Progress with time left, on stderr, on a terminal, and only once a run takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0  # seconds without a bar
WORDS = {
    "read": "reading",
    "count": "counting",
    "noise": "adding noise",
    "noise again": "drawing the noise again",
    "noise cells": "adding noise, cells",
    "rows": "drawing rows",
    "write": "writing",
    "verify": "checking",
    "rounds": "choosing and measuring",
    "compile": "compiling kernels",
    "compare": "comparing with the real records",
    "report": "writing the report",
    "runs": "running",
    "audit": "auditing",
}


class Bars:
    """A Progress callback: bars(stage, done, total). Silent unless stderr is a terminal.

    Args:
        quiet: never draw.
        show: draw even if stderr is not a terminal; for tests.
    """

    def __init__(self, *, quiet: bool = False, show: bool | None = None) -> None:
        self._wanted = (sys.stderr.isatty() if show is None else show) and not quiet
        self._lock = threading.RLock()
        self._state: dict[str, tuple[int, int]] = {}
        self._tasks: dict[str, TaskID] = {}
        self._drawn: Progress | None = None
        self._timer: threading.Timer | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note where a stage is; totals are public or rounded by whoever reports them."""
        if not self._wanted:
            return
        with self._lock:
            self._state[stage] = (done, total)
            if self._drawn is not None:
                self._update(stage)

    def compiling(self) -> None:
        """Say in one line that the first run takes longer, if this is one."""
        from gibbous.core.compiled import cold

        if self._wanted and cold():
            print("First run: kernels are compiled once, about ten seconds.", file=sys.stderr)

    def __enter__(self) -> Bars:
        if self._wanted:
            self._timer = threading.Timer(PATIENCE, self._begin)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._wanted = False
            if self._drawn is not None:
                self._drawn.stop()

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        with self._lock:
            if not self._wanted:
                return
            self._drawn = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True, force_terminal=True),
                transient=True,
            )
            self._drawn.start()
            for stage in self._state:
                self._update(stage)

    def _update(self, stage: str) -> None:
        assert self._drawn is not None
        done, total = self._state[stage]
        if stage not in self._tasks:
            words = WORDS.get(stage, stage).replace("[", "(")
            self._tasks[stage] = self._drawn.add_task(words, total=total or None)
        self._drawn.update(self._tasks[stage], completed=done, total=total or None)
