"""Cores that this process may use: a number that never changes a result."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may use, at most NUMBA_NUM_THREADS if that is set."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(cores, int(wanted)) if wanted.isdigit() and int(wanted) > 0 else cores
