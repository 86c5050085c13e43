"""Cores that this process may use, and workers that died: neither changes a result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from gibbous.core.errors import EngineFailure


def usable_cores() -> int:
    """Cores that this process may use, at most NUMBA_NUM_THREADS if that is set."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(cores, int(wanted)) if wanted.isdigit() and int(wanted) > 0 else cores


@contextmanager
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
