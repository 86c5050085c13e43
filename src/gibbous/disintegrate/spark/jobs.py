"""Jobs: an action of Spark is waited for and tells how far it is; the first asks what workers have."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, TypeVar

from gibbous import __version__
from gibbous.core.errors import UNCHARGED
from gibbous.core.protocols import Progress, silent
from gibbous.disintegrate.spark.faults import guarded, incapable
from gibbous.disintegrate.spark.session import quiet

T = TypeVar("T")
NEEDED = ("numpy", "polars", "pyarrow", "gibbous")
_VERSION = re.compile(r"[0-9A-Za-z.+]{1,40}")
TICK = 0.25  # seconds between two looks at how far a job is
_numbers = itertools.count(1)


def awaited(
    session: Any,
    action: Callable[[], T],
    *,
    stage: str,
    progress: Progress,
    state: str = UNCHARGED,
    span: tuple[int, int] = (0, 100),
) -> T:
    """The result of an action of Spark, called once in a thread of its own; else GibbousError.

    Args:
        stage, progress: told (stage, percent, 100) as tasks end.
        state: what was spent if it fails.
        span: the percents that this action stands for.
    """
    context, group = session.sparkContext, f"gibbous-{next(_numbers)}"
    future: Future[T] = Future()
    Thread(target=_run, args=(context, group, action, future), daemon=True).start()
    told = -1
    try:
        while not wait([future], timeout=TICK).done:
            percent = span[0] + int((span[1] - span[0]) * _share(context, group))
            if percent > told:
                told = percent
                progress(stage, percent, 100)
        return guarded(future.result, state=state)
    except BaseException:
        if not future.done():
            with contextlib.suppress(Exception):
                context.cancelJobGroup(group)
        raise


def _run(context: Any, group: str, action: Callable[[], T], future: Future[T]) -> None:
    try:
        # Of this thread alone; the description stands in the user interface, where there is one.
        context.setJobGroup(group, "gibbous", interruptOnCancel=True)
        future.set_result(action())
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        future.set_exception(error)


def _share(context: Any, group: str) -> float:
    """Share of the tasks known so far that have ended."""
    done = total = 0
    with contextlib.suppress(Exception):
        tracker = context.statusTracker()
        for job in tracker.getJobIdsForGroup(group):
            known = tracker.getJobInfo(job)
            for stage in known.stageIds if known else ():
                info = tracker.getStageInfo(stage)
                if info:
                    done, total = done + info.numCompletedTasks, total + info.numTasks
    return done / total if total else 0.0


def check_workers(session: Any) -> None:
    """Raise EngineFailure, one line before Spark prints pages, where workers lack a library or differ."""
    tasks = max(1, min(64, 2 * int(session.sparkContext.defaultParallelism)))
    with quiet():
        frame = session.range(0, tasks, 1, tasks).mapInArrow(_asking(NEEDED), "told string")
        found = awaited(session, frame.toArrow, stage="start", progress=silent)
    for words in found.column("told").to_pylist():
        told = json.loads(words)
        if told["missing"]:
            raise incapable(f"It misses {', '.join(told['missing'])}.")
        theirs = told["version"]
        if theirs != __version__ and _VERSION.fullmatch(theirs):
            raise incapable(f"It has gibbous {theirs}, the driver has {__version__}.")


def _asking(needed: tuple[str, ...]) -> Callable[[Any], Iterator[Any]]:
    """A function that travels by value: where gibbous is missing, it can still say so."""

    def ask(batches: Any) -> Any:
        import importlib
        import json

        import pyarrow

        for _ in batches:
            pass
        missing, version = [], ""
        for name in needed:
            try:
                module = importlib.import_module(name)
            except ImportError:
                missing.append(name)
            else:
                version = str(getattr(module, "__version__", ""))
        told = json.dumps({"missing": missing, "version": version})
        yield pyarrow.RecordBatch.from_pydict({"told": pyarrow.array([told])})

    return ask
