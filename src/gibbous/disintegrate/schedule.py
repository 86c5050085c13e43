"""Schedule: contexts in; jobs for threads, and their results as they come, out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Event

import numpy as np

from gibbous.core.context import Context
from gibbous.core.protocols import Progress
from gibbous.core.tables import Sparse
from gibbous.disintegrate import kernels, layout, memory, passes

ROWS = 1 << 31  # rows of one job at most: its counts fit 32 bits
Results = list[Sparse | np.ndarray]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Job:
    """One thread's work: the contexts at `places`, over some rows.

    Attributes:
        weight: rows x terms, for progress.
        work: called with `going`; returns one result a place: a partial table, or Sparse.
    """

    places: list[int]
    weight: int
    work: Callable[[passes.Going], Results]


def jobs(columns: np.ndarray, contexts: Sequence[Context], threads: int, limit: int) -> list[Job]:
    """Cut a tally into jobs: small tables together, others one by one, rows when threads idle.

    Args:
        columns: (columns, rows), C-contiguous, read-only.
        limit: bytes that all tables together may take.
    """
    rows = columns.shape[1]
    routes = [layout.choose_route(c, rows, limit) for c in contexts]
    bundles = _bundles(contexts, [i for i, r in enumerate(routes) if r == "small"])
    single = [i for i, r in enumerate(routes) if r != "small"]
    idle = max(1, threads // max(1, len(bundles) + len(single)))
    out = []
    for places in bundles:
        chosen = [contexts[i] for i in places]
        weight = sum(len(c.columns) + 1 for c in chosen)
        for low, high in _ranges(rows, threads if len(bundles) < threads else 1):
            work = partial(_small, columns, chosen, low, high)
            out.append(Job(places, weight * (high - low), work))
    for i in single:
        weight = len(contexts[i].columns) + 1
        if routes[i] == "dense":
            for low, high in _ranges(rows, min(idle, memory.parts(contexts[i], threads))):
                work = partial(_dense, columns, contexts[i], low, high)
                out.append(Job([i], weight * (high - low), work))
        else:
            sparse = passes.sort if routes[i] == "sort" else passes.pairs
            out.append(
                Job([i], (weight + 8) * rows, partial(_sparse, sparse, columns, contexts[i]))
            )
    return sorted(out, key=lambda job: -job.weight)


def run(
    todo: Sequence[Job], threads: int, progress: Progress
) -> Iterator[tuple[list[int], Results]]:
    """Run jobs in threads; yield (places, results) as they come.

    An exception or an interrupt in the calling thread calls off the jobs that run: they stop at
    their next kernel call, within a fraction of a second (a sort ends first).
    """
    total, done = max(1, sum(job.weight for job in todo)), 0
    stop = Event()
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="gibbous-count")
    try:
        waiting: dict[Future[Results], Job] = {
            pool.submit(job.work, partial(_going, stop)): job for job in todo
        }
        while waiting:
            progress("count", 100 * done // total, 100)
            ready = wait(waiting, return_when=FIRST_COMPLETED).done
            while ready:
                future = ready.pop()
                job = waiting.pop(future)
                done += job.weight
                yield job.places, future.result()
        progress("count", 100, 100)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _going(stop: Event) -> None:
    if stop.is_set():
        raise passes.Interrupted


def _small(
    columns: np.ndarray, contexts: list[Context], low: int, high: int, going: passes.Going
) -> Results:
    return passes.small(columns, contexts, low, high, going)


def _dense(
    columns: np.ndarray, context: Context, low: int, high: int, going: passes.Going
) -> Results:
    return [passes.dense(columns, context, low, high, going)]


def _sparse(
    count: Callable[[np.ndarray, Context, passes.Going], Sparse],
    columns: np.ndarray,
    context: Context,
    going: passes.Going,
) -> Results:
    return [count(columns, context, going)]


def _bundles(contexts: Sequence[Context], places: list[int]) -> list[list[int]]:
    bundles: list[list[int]] = []
    cells = memory.BUNDLE
    for i in places:
        if cells + contexts[i].cells > memory.BUNDLE:
            bundles.append([])
            cells = 0
        bundles[-1].append(i)
        cells += contexts[i].cells
    return bundles


def _ranges(rows: int, parts: int) -> list[tuple[int, int]]:
    if rows < memory.SPLIT:
        parts = 1
    parts = max(parts, -(-rows // ROWS), 1)
    step = max(1, -(-rows // parts))
    step += -step % kernels.BLOCK
    return [(low, min(low + step, rows)) for low in range(0, rows, step)] or [(0, 0)]
