"""Memory: contexts and a number of rows in; bytes that counting them needs out, and refusals."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from gibbous.core.context import Context, MinHash, Radix
from gibbous.core.errors import ResourceLimit
from gibbous.disintegrate import layout

CAP = 4 << 30  # bytes
HELD = 192 << 20  # bytes of codes that stay in memory at most
SPLIT = 1 << 17  # rows below which a table is counted by one thread
PARTS = 64 << 20  # bytes of partial tables that threads may hold of one context
BUNDLE = 1 << 14  # cells of the small tables that are counted in one pass (256 KB in four copies)
THREAD = 2 << 20  # bytes of buffers and of small tables, a thread


def local_estimate(
    contexts: Sequence[Context], rows: int, *, threads: int, limit: int, slab: int | None = None
) -> int:
    """Bytes that `LocalEngine.tally` needs at its peak, beyond the records; an upper bound.

    Args:
        slab: rows that are counted at a time, where the records are on disk.
    """
    results, working = 0, []
    at_once = rows if slab is None else min(rows, slab)
    for context in contexts:
        route = layout.choose_route(context, rows, limit)
        occupied = min(rows, context.cells)
        work = _hash_bytes(context)
        if route in ("small", "dense"):
            results += 8 * context.cells
            work += 8 * context.cells * (parts(context, threads) - 1)
        if context.support == "seen":
            results += 24 * occupied
            work += 16 * min(at_once, occupied) if at_once < rows else 16 * occupied
        if route in ("sort", "pairs") and at_once < rows:
            # Lists of the slabs before, together less than twice the longest; and a merged one.
            results += 24 * (min(rows, 2 * occupied) - occupied)
            work += 24 * (occupied + min(at_once, occupied))
        if route == "sort":
            work += at_once * (4 if context.cells <= 1 << 32 else 8)
        if route == "pairs":
            work += 56 * at_once
        working.append(work)
    return results + sum(sorted(working)[-threads:]) + threads * THREAD


def numpy_estimate(contexts: Sequence[Context], rows: int, *, chunk: int) -> int:
    """Bytes that `NumpyEngine.tally` needs at its peak, beyond the records; an upper bound.

    Args:
        chunk: rows whose keys are computed at once.
    """
    results, working = 0, [0]
    for context in contexts:
        width = context.key.width if isinstance(context.key, MinHash) else 1
        if context.support == "dense":
            results += 8 * context.cells
            hashed = min(rows, max(chunk, context.cells))
            working.append(8 * context.cells + 8 * hashed * (2 * width + 4))
        else:
            results += 24 * min(rows, context.cells)
            working.append(64 * rows + 8 * min(rows, chunk) * (2 * width + 4))
        working[-1] += _hash_bytes(context)
    return results + max(working)


def parts(context: Context, threads: int) -> int:
    """In how many row ranges a dense table may be counted, each with a table of its own."""
    return max(1, min(threads, PARTS // (8 * context.cells)))


def check_memory(need: int, limit: int, *, state: str = layout.UNCHARGED) -> None:
    """Refuse work that does not fit, before it starts.

    Args:
        need, limit: bytes.
        state: what was charged by then.
    Raises:
        ResourceLimit: names the estimate (two digits: it may depend on the number of rows).
    """
    if need > limit:
        raise ResourceLimit(
            "MEMORY",
            f"Counting needs about {_size(need)} of memory.",
            f"This run may use {_size(limit)}.",
            "Use fewer context columns (parents), coarser levels or bins, or fewer columns; sbhg "
            "with choice = 0 counts no pairs. In Python, memory_limit of gb.engine allows more.",
            state=state,
        )


def out_of_memory() -> ResourceLimit:
    """What is raised in place of a MemoryError."""
    return ResourceLimit(
        "MEMORY",
        "The machine ran out of memory while counting.",
        "The estimate fitted the limit, but other work holds the rest.",
        "Free memory, or lower memory_limit so that such runs are refused before they start.",
        state=layout.STATE,
    )


def default_limit() -> int:
    """Bytes that counting may use: 40 % of what this process may have, at most 4 GiB."""
    found = [CAP * 5 // 2]
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
    return min(found) * 2 // 5


def held_limit() -> int:
    """Bytes of codes that stay in memory: an eighth of what counting may use, at most 192 MiB."""
    return min(HELD, default_limit() // 8)


def _size(count: int) -> str:
    for unit, step in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{float(f'{count / step:.2g}'):g} {unit}"
    return f"{count} bytes"


def _hash_bytes(context: Context) -> int:
    if isinstance(context.key, Radix):
        return 0
    width = context.key.width if isinstance(context.key, MinHash) else 1
    groups = layout.GROUP * len(context.parents)
    return 8 * (3 * width * sum(context.parent_sizes) + 2 * groups + 3 * layout.LOOKUP)
