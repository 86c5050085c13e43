"""Schedule: contexts in; jobs for threads, and their results as they come, out.

Counting costs one memory access a row and table, so that one table of four columns is cheaper than
the six of its pairs: small contexts are margins of fewer, larger tables. The tables are exact, hence
so are their margins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from gibbous.core.context import Context, Radix
from gibbous.core.protocols import Progress
from gibbous.core.tables import Sparse
from gibbous.disintegrate import count_kernels, count_routes, passes

TICK = 0.2  # seconds between two reports
GROUP = 16  # dense tables that one thread counts in turn
MOST = 1 << 31  # rows of one job at most: its counts fit 32 bits
BUNDLE = 1 << 14  # cells of the small tables that are counted in one pass (256 KB in four copies)
COVERED = 1 << 17  # rows below which adding up margins costs more than counting them
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


@dataclass(frozen=True, slots=True)
class Cover:
    """One table to count, and the contexts (by place) that are its margins.

    Attributes:
        table: mixed-radix cells of some columns, as a context without parents.
        places: positions of contexts; one, if it is the table itself.
    """

    table: Context
    places: list[int]


def jobs(
    columns: np.ndarray,
    contexts: Sequence[Context],
    threads: int,
    limit: int,
    *,
    of: int | None = None,
    tables: Sequence[np.ndarray | None] | None = None,
) -> list[Job]:
    """Cut a tally into jobs: small tables together, others one by one, rows when threads idle.

    Args:
        columns: (columns, rows), C-contiguous, read-only.
        limit: bytes that all tables together may take.
        of: number of all records, where these are some of them.
        tables: int64 (cells,) of contexts that are to be added to, where one job counts all rows.
    """
    rows = columns.shape[1]
    routes = [count_routes.choose_route(c, rows if of is None else of, limit) for c in contexts]
    kinds: dict[str, list[int]] = {"small": [], "dense": [], "hashed": [], "sort": [], "pairs": []}
    for i, (context, route) in enumerate(zip(contexts, routes, strict=True)):
        radix = isinstance(context.key, Radix)
        kinds[route if radix or route != "dense" else "hashed"].append(i)
    out = _small_jobs(columns, contexts, kinds["small"], threads)
    out += _dense_jobs(columns, contexts, kinds["dense"], threads, tables)
    for i in kinds["hashed"]:
        one = contexts[i]
        ranges = _ranges(rows, _split(one, len(kinds["hashed"]), threads))
        known = tables[i] if tables and len(ranges) == 1 else None
        hashed = partial(passes.hashed, into=known) if known is not None else passes.hashed
        for low, high in ranges:
            work = partial(_one, hashed, columns, one, low, high)
            out.append(Job([i], 2 * _weight([one]) * (high - low), work))
    for name, count in (("sort", passes.sort), ("pairs", passes.pairs)):
        for i in kinds[name]:
            work = partial(_one, count, columns, contexts[i])
            out.append(Job([i], (_weight([contexts[i]]) + 8) * rows, work))
    return sorted(out, key=lambda job: -job.weight)


def run(
    todo: Sequence[Job], threads: int, progress: Progress
) -> Generator[tuple[list[int], Results], None, None]:
    """Run jobs in threads; yield (places, results) as they come.

    An exception or an interrupt in the calling thread calls off the jobs that run: they stop at
    their next kernel call, within a fraction of a second (a sort ends first).
    """
    told = _Told([job.weight for job in todo], progress)
    told.report()
    if threads == 1 or len(todo) < 2:
        for i, job in enumerate(todo):
            yield job.places, job.work(partial(_inline, told, i))
    else:
        yield from _in_threads(todo, threads, told)
    progress("count", 100, 100)


def within(progress: Progress, low: int, high: int, rows: int) -> Progress:
    """Progress of the rows low..high, told as a share of all rows: nothing until it grows."""
    told = 100 * low // max(1, rows) if low else -1

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal told
        share = (low + (high - low) * done / max(1, total)) / max(1, rows)
        percent = 100 if high >= rows and done >= total else min(99, int(100 * share))
        if percent > told:
            told = percent
            progress(stage, percent, 100)

    return tell


def covers(contexts: Sequence[Context], places: Sequence[int], rows: int) -> list[Cover]:
    """Cover small contexts (at `places`) by tables of at most `layout.SMALL` cells.

    Greedy: start with a context left over, then add the column that completes most contexts.
    """
    if rows < COVERED:
        return [Cover(_table(contexts[i]), [i]) for i in places]
    size: dict[int, int] = {}
    left: dict[frozenset[int], list[int]] = {}
    near: dict[int, dict[frozenset[int], None]] = {}
    for i in places:
        one = contexts[i]
        columns = frozenset(one.columns)
        left.setdefault(columns, []).append(i)
        size.update(zip(one.columns, one.parent_sizes + one.target_sizes, strict=True))
        for c in columns:
            near.setdefault(c, {})[columns] = None
    out = []
    for first in list(left):
        if first not in left:
            continue
        union = _grow(first, near, size)
        done = [first, *(s for c in union for s in near[c] if s <= union and s != first)]
        found: list[int] = []
        for columns in dict.fromkeys(done):
            found += left.pop(columns)
            for c in columns:
                del near[c][columns]
        alone = len(found) == 1
        ordered = tuple(sorted(union))
        whole = Context(ordered, (), tuple(size[c] for c in ordered), ())
        out.append(Cover(_table(contexts[found[0]]) if alone else whole, found))
    return out


def margin(table: np.ndarray, cover: Cover, context: Context) -> np.ndarray:
    """Counts of one context, from the table that covers it: int64 (cells,)."""
    columns = cover.table.columns
    if columns == context.columns:
        return table if len(cover.places) == 1 else table.copy()
    cells = table.reshape(cover.table.target_sizes)
    dropped = tuple(i for i, c in enumerate(columns) if c not in context.columns)
    kept = [c for c in columns if c in context.columns]
    summed: np.ndarray = cells.sum(axis=dropped)
    return summed.transpose([kept.index(c) for c in context.columns]).ravel()


def _in_threads(
    todo: Sequence[Job], threads: int, told: _Told
) -> Generator[tuple[list[int], Results], None, None]:
    stop = Event()
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="gibbous-count")
    try:
        waiting: dict[Future[Results], int] = {
            pool.submit(job.work, partial(_going, stop, told, i)): i for i, job in enumerate(todo)
        }
        while waiting:
            ready = wait(waiting, timeout=TICK, return_when=FIRST_COMPLETED).done
            while ready:
                future = ready.pop()
                i = waiting.pop(future)
                told.shares[i] = 1.0
                yield todo[i].places, future.result()
            told.report()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


class _Told:
    """Which share of each job is done; reports whole percents, from the calling thread alone."""

    __slots__ = ("_last", "_progress", "_weights", "shares")

    def __init__(self, weights: list[int], progress: Progress) -> None:
        self._weights, self._progress, self._last = weights, progress, -1
        self.shares = [0.0] * len(weights)

    def report(self) -> None:
        done = sum(s * w for s, w in zip(self.shares, self._weights, strict=True))
        percent = int(100 * done / max(1, sum(self._weights)))
        if percent > self._last:
            self._last = percent
            self._progress("count", percent, 100)


def _going(stop: Event, told: _Told, place: int, share: float) -> None:
    if stop.is_set():
        raise passes.Interrupted
    told.shares[place] = share


def _inline(told: _Told, place: int, share: float) -> None:
    told.shares[place] = share
    told.report()


def _small_jobs(
    columns: np.ndarray, contexts: Sequence[Context], places: list[int], threads: int
) -> list[Job]:
    rows = columns.shape[1]
    bundles: list[list[Cover]] = []
    cells = BUNDLE
    for one in covers(contexts, places, rows):
        if cells + one.table.cells > BUNDLE:
            bundles.append([])
            cells = 0
        bundles[-1].append(one)
        cells += one.table.cells
    out = []
    for bundle in bundles:
        inside = [i for one in bundle for i in one.places]
        weight = _weight([one.table for one in bundle])
        for low, high in _ranges(rows, threads if len(bundles) < threads else 1):
            work = partial(_margins, columns, contexts, bundle, low, high)
            out.append(Job(inside, weight * (high - low), work))
    return out


def _margins(
    columns: np.ndarray,
    contexts: Sequence[Context],
    bundle: list[Cover],
    low: int,
    high: int,
    going: passes.Going,
) -> Results:
    counted = passes.small(columns, [one.table for one in bundle], low, high, going)
    return [
        margin(table, one, contexts[i])
        for table, one in zip(counted, bundle, strict=True)
        for i in one.places
    ]


def _dense_jobs(
    columns: np.ndarray,
    contexts: Sequence[Context],
    places: list[int],
    threads: int,
    tables: Sequence[np.ndarray | None] | None,
) -> list[Job]:
    out = []
    groups = min(len(places), max(threads, -(-len(places) // GROUP)))
    for inside in (places[g::groups] for g in range(groups)):
        chosen = [contexts[i] for i in inside]
        split = min(_split(one, groups, threads) for one in chosen)
        ranges = _ranges(columns.shape[1], split)
        known = [tables[i] for i in inside] if tables and len(ranges) == 1 else [None]
        held = [table for table in known if table is not None]
        count = partial(passes.dense, into=held) if held else passes.dense
        for low, high in ranges:
            work = partial(count, columns, chosen, low, high)
            out.append(Job(inside, _weight(chosen) * (high - low), work))
    return out


def _split(context: Context, among: int, threads: int) -> int:
    return min(max(1, threads // among), count_routes.tables_at_once(context, threads))


def _one(
    count: Callable[..., Sparse | np.ndarray], columns: np.ndarray, context: Context, *rest: Any
) -> Results:
    return [count(columns, context, *rest)]


def _weight(contexts: Sequence[Context]) -> int:
    return sum(len(c.columns) + 1 for c in contexts)


def _ranges(rows: int, parts: int) -> list[tuple[int, int]]:
    if rows < count_routes.SPLIT:
        parts = 1
    parts = max(parts, -(-rows // MOST), 1)
    step = max(1, -(-rows // parts))
    step += -step % count_kernels.BLOCK
    return [(low, min(low + step, rows)) for low in range(0, rows, step)] or [(0, 0)]


def _grow(
    first: frozenset[int], near: dict[int, dict[frozenset[int], None]], size: dict[int, int]
) -> set[int]:
    union, cells = set(first), 1
    for c in first:
        cells *= size[c]
    while True:
        gain: dict[int, int] = {}
        for c in union:
            for columns in near[c]:
                extra = columns - union
                if len(extra) == 1:
                    (one,) = extra
                    gain[one] = gain.get(one, 0) + 1
        fitting = [
            (-g, size[c], c) for c, g in gain.items() if cells * size[c] <= count_routes.SMALL
        ]
        if not fitting:
            return union
        best = min(fitting)[2]
        union.add(best)
        cells *= size[best]


def _table(context: Context) -> Context:
    return Context(context.columns, (), context.parent_sizes + context.target_sizes, ())
