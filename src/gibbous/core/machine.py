"""This machine: cores and memory that a run may use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, copy_context
from pathlib import Path
from threading import Event
from typing import TypeVar

from gibbous.core.errors import UNCHARGED, EngineFailure, ResourceLimit

CAP = 4 << 30  # bytes
_SHARE: ContextVar[int | None] = ContextVar("share", default=None)

S = TypeVar("S")
T = TypeVar("T")


def usable_cores() -> int:
    """Cores that this process may use, at most NUMBA_NUM_THREADS if that is set; see `beside`, too."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    return within_share(min(cores, int(wanted)) if wanted.isdigit() and int(wanted) > 0 else cores)


def within_share(threads: int) -> int:
    """So many threads, or fewer where other work runs beside this one."""
    share = _SHARE.get()
    return threads if share is None else min(threads, share)


@contextlib.contextmanager
def beside(
    work: Callable[[S], T], items: Sequence[S], at_once: int, *, name: str
) -> Iterator[Iterator[T]]:
    """Within it, work(item) of each item, `at_once` of them at a time in threads; results in order.

    The cores are shared out: what runs beside other work sees only its share of them. An error or an
    interrupt leaves after the work that had begun.

    Args:
        at_once: below 2, this thread does it all, an item whenever a result is asked for.
        name: of the threads.
    """
    if at_once < 2:
        yield map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # not before there is work to divide

    share = max(1, usable_cores() // at_once)

    def alone(item: S) -> T:
        _SHARE.set(share)
        return work(item)

    pool = ThreadPoolExecutor(at_once, thread_name_prefix=name)
    try:
        begun = [pool.submit(copy_context().run, alone, item) for item in items]
        yield (future.result() for future in begun)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Left(BaseException):
    """Nobody waits for this work any more."""


def leaving(when: Event) -> Callable[[str, int, int], None]:
    """Progress that says nothing, and ends the work that reports it once the event is set."""

    def report(stage: str, done: int, total: int) -> None:
        if when.is_set():
            raise Left

    return report


@contextlib.contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Within it, engines see no more than `threads` cores; results never depend on it."""
    if threads is None:
        yield
        return
    # Read when polars is first imported; ours count the cores this process may use.
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def workers_died() -> EngineFailure:
    """The error for a pool whose processes ended before their work."""
    return EngineFailure(
        "WORKERS",
        "Worker processes ended before their work was done.",
        "Workers start this program anew: a script must start its work under "
        'if __name__ == "__main__", and they need memory of their own.',
        "Add that guard to the script, or pass workers=1.",
    )


def check_memory(need: int, limit: int, *, state: str = UNCHARGED) -> None:
    """Raise ResourceLimit, which rounds the need to two digits, for work that does not fit; in bytes."""
    if need > limit:
        raise ResourceLimit(
            "MEMORY",
            f"Counting needs about {_size(need)} of memory.",
            f"This run may use {_size(limit)}.",
            "Use fewer context columns (parents), coarser levels or bins, or fewer columns; sbhg "
            "with choice = 0 counts no pairs. In Python, memory_limit of gb.engine allows more.",
            state=state,
        )


def check_rows(values: int, limit: int) -> None:
    """Raise ResourceLimit for more synthetic values (rows times columns, 8 bytes each) than `limit` bytes."""
    if 8 * values > limit:
        raise ResourceLimit(
            "ROWS",
            f"The rows that were asked for need about {_size(8 * values)} of memory.",
            f"This run may use {_size(limit)}; a release that is written to a folder needs no more.",
            "Write it to a folder (out), or ask for fewer rows or sets.",
        )


def default_limit() -> int:
    """Bytes that counting may use: 40 % of what this process may have, at most 4 GiB."""
    return min(CAP, available_memory() * 2 // 5)


def available_memory() -> int:
    """Bytes that this process may have, by the machine, its own limit and its control group."""
    found = [1 << 63]
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource  # not on Windows

        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        address = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [address] if address != resource.RLIM_INFINITY else []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (Path("/sys/fs/cgroup") / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)


def _size(count: int) -> str:
    for unit, step in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{float(f'{count / step:.2g}'):g} {unit}"
    return f"{count} bytes"
