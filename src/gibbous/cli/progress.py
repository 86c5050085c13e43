"""Progress with rate and time left, on stderr: bars on a terminal, a line now and then elsewhere.

Nothing is said of a run that takes no longer than a moment.
"""

from __future__ import annotations

import json as json_text
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0  # seconds without a bar
BETWEEN = 30.0  # seconds between two lines, where there is no terminal
BETWEEN_JSON = 2.0
WORDS = {
    "read": "reading",
    "count": "counting",
    "noise": "adding noise",
    "noise again": "drawing the noise again",
    "noise cells": "adding noise, cells",
    "rows": "drawing rows",
    "write": "writing",
    "bought": "taking what was bought before",
    "verify": "checking",
    "rounds": "choosing and measuring",
    "compile": "compiling kernels",
    "compare": "comparing with the real records",
    "report": "writing the report",
    "runs": "running",
    "audit": "auditing",
}


class Bars:
    """A Progress callback: bars(stage, done, total).

    Args:
        quiet: say nothing.
        json: write lines of JSON in place of bars: {"stage", "done", "total", "seconds"}.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        json: bool = False,
        show: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        terminal = sys.stderr.isatty() if show is None else show
        self._wanted = terminal and not quiet and not json
        self._lines = not quiet and not self._wanted
        self._json, self._clock = json, clock
        self._began: dict[str, tuple[float, int]] = {}
        self._start = self._said = clock()
        self._lock = threading.RLock()
        self._state: dict[str, tuple[int, int]] = {}
        self._tasks: dict[str, TaskID] = {}
        self._drawn: Progress | None = None
        self._timer: threading.Timer | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note where a stage is; totals are public or rounded by whoever reports them."""
        if self._lines:
            with self._lock:
                self._line(stage, done, total)
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
            ProgressColumn,
            Task,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class _Rate(ProgressColumn):
            """Rows a second, of the stages that count rows."""

            def render(self, task: Task) -> Text:
                counts = (task.total or 0) > 100 and task.speed is not None
                return Text(f"{task.speed:,.0f}/s" if counts else "")

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
                _Rate(),
                console=Console(stderr=True, force_terminal=True),
                transient=True,
            )
            self._drawn.start()
            for stage in self._state:
                self._update(stage)

    def _line(self, stage: str, done: int, total: int) -> None:
        now = self._clock()
        first, before = self._began.setdefault(stage, (now, done))
        if now - self._said < (BETWEEN_JSON if self._json else BETWEEN):
            return
        self._said = now
        if self._json:
            facts = {"stage": stage, "done": done, "total": total or None}
            print(
                json_text.dumps(facts | {"seconds": round(now - self._start, 1)}), file=sys.stderr
            )
            return
        text = f"gibbous: {WORDS.get(stage, stage)}"
        text += (
            f", {done:,} of {total:,}"
            if total > 100
            else f", {100 * done // total} %"
            if total
            else ""
        )
        rate = (done - before) / (now - first) if now > first else 0.0
        if total and rate > 0:
            text += f", about {_words((total - done) / rate)} left"
        print(text, file=sys.stderr, flush=True)

    def _update(self, stage: str) -> None:
        assert self._drawn is not None
        done, total = self._state[stage]
        if stage not in self._tasks:
            words = WORDS.get(stage, stage).replace("[", "(")
            self._tasks[stage] = self._drawn.add_task(words, total=total or None)
        self._drawn.update(self._tasks[stage], completed=done, total=total or None)


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
