"""Passes: read-only columns of codes and contexts in, exact counts out, by compiled kernels.

Each function is one job of one thread; `Gathering` adds up what the jobs give. A kernel call takes some
hundredths of a second, and `going` is asked between calls, so that a run can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gibbous.core.context import Context, Hashed, Radix
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate import count_kernels, count_routes
from gibbous.disintegrate.plain import at_cells, count_pairs, occupied

Going = Callable[[float], None]
"""Told the share of the job that is done; raises `Interrupted` when the run was called off."""

FEW = 1 << 22  # rows x tables that numpy counts
BLOCK = 1 << 16  # rows that numpy counts at once
WORK = 1 << 26  # rows x terms of one kernel call
CHUNK = 1 << 16  # rows that are counted into each dense table in turn
BUFFER = 1 << 15  # rows whose 64-bit ids are made at once


class Interrupted(Exception):
    """A job noticed that its run was called off."""


def small(
    columns: np.ndarray,
    tables: Sequence[Context],
    low: int,
    high: int,
    going: Going,
    *,
    few: int = FEW,
) -> list[np.ndarray]:
    """Count rows low..high (fewer than 2^32) into small mixed-radix tables, in one pass.

    Up to `few` rows x tables are counted by numpy. Gives int64 (cells,) a table.
    """
    if (high - low) * len(tables) <= few:
        return [_few(columns[:, low:high], table) for table in tables]
    terms = [count_routes.cell_terms(c, count_kernels.LANES) for c in tables]
    first = np.cumsum([0, *(len(t.cols) for t in terms)], dtype=np.int64)
    ends = np.cumsum([0, *(c.cells for c in tables)], dtype=np.int64)
    cols = np.concatenate([t.cols for t in terms])
    steps = np.concatenate([t.steps for t in terms])
    copies = np.zeros(ends[-1] * count_kernels.LANES, dtype=np.uint32)
    base = ends * count_kernels.LANES
    for start, stop in _slices(low, high, len(cols) + len(tables)):
        going((start - low) / (high - low))
        count_kernels.count_many(columns, start, stop, first, cols, steps, base, copies)
    totals = copies.reshape(-1, count_kernels.LANES).sum(axis=1, dtype=np.int64)
    return [totals[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _few(columns: np.ndarray, table: Context) -> np.ndarray:
    """One small table by numpy: no compiled code, and so no numba, is needed for little work."""
    terms, total = count_routes.cell_terms(table), np.zeros(table.cells, dtype=np.int64)
    for start in range(0, columns.shape[1], BLOCK):
        block = columns[:, start : start + BLOCK]
        ids = np.zeros(block.shape[1], dtype=np.int64)
        for column, step in zip(terms.cols, terms.steps, strict=True):
            ids += block[column].astype(np.int64) * int(step)
        total += np.bincount(ids, minlength=table.cells)
    return total


def dense(
    columns: np.ndarray,
    contexts: Sequence[Context],
    low: int,
    high: int,
    going: Going,
    *,
    into: Sequence[np.ndarray] | None = None,
) -> list[Sparse | np.ndarray]:
    """Count rows low..high into some dense mixed-radix tables, in chunks that stay in the cache.

    Gives int64 (cells,) a context: those of `into`, which are added to, or fresh ones.
    """
    terms = [count_routes.cell_terms(c) for c in contexts]
    tables = into or [np.zeros(c.cells, dtype=np.int64) for c in contexts]
    for start in range(low, high, CHUNK):
        stop = min(start + CHUNK, high)
        for one, table in zip(terms, tables, strict=True):
            going((start - low) / (high - low))
            count_kernels.count_radix(columns, start, stop, one.cols, one.steps, table)
    return list(tables)


def hashed(
    columns: np.ndarray,
    context: Context,
    low: int,
    high: int,
    going: Going,
    *,
    into: np.ndarray | None = None,
) -> np.ndarray:
    """Count rows low..high into one dense table with hashed keys, int64 (cells,): `into` or a fresh one."""
    table = np.zeros(context.cells, dtype=np.int64) if into is None else into
    place = _placer(columns, context)
    buffer = np.empty(min(BUFFER, high - low), dtype=np.uint64)
    for start in range(low, high, BUFFER):
        going((start - low) / (high - low))
        ids = buffer[: min(BUFFER, high - start)]
        place(start, ids)
        count_kernels.count_ids(ids, table)
    return table


def sort(columns: np.ndarray, context: Context, going: Going) -> Sparse:
    """Count the cells that occur, of a context with at most 2^63 cells."""
    ids = _ids(columns, context, lambda share: going(0.4 * share))
    going(0.4)
    ids.sort()
    going(0.9)
    found = count_kernels.distinct(ids)
    cells, counts = np.empty(found, dtype=np.uint64), np.empty(found, dtype=np.int64)
    if found:
        count_kernels.run_lengths(ids, cells, counts)
    del ids
    return at_cells(context, cells, counts)


def pairs(columns: np.ndarray, context: Context, going: Going) -> Sparse:
    """Count the (key, level) pairs that occur, where keys x levels passes 2^63."""
    rows = columns.shape[1]
    keys, levels = np.empty(rows, dtype=np.uint64), np.empty(rows, dtype=np.uint64)
    place = _placer(columns, context, key_only=True)
    targets = count_routes.Terms.of(context.targets, context.target_sizes)
    for start in range(0, rows, BUFFER):
        going(0.2 * start / rows)
        place(start, keys[start : start + BUFFER])
        part = levels[start : start + BUFFER]
        count_kernels.radix_ids(columns, start, targets.cols, targets.steps, part)
    going(0.2)
    return count_pairs(keys, levels)


Part = Sparse | np.ndarray
"""Counts of some rows: int64 (cells,), or the cells that occur among them."""


class Gathering:
    """What was counted so far. Secret.

    Args:
        contexts: what is counted.
        tables: int64 (cells,) of dense contexts that jobs add to where they are, or None.
    """

    def __init__(
        self, contexts: Sequence[Context], tables: Sequence[np.ndarray | None] | None = None
    ) -> None:
        self._contexts = contexts
        self._dense: list[np.ndarray | None] = list(tables or [None] * len(contexts))
        self._runs: list[list[Sparse]] = [[] for _ in contexts]

    def __repr__(self) -> str:
        return "<Gathering, secret>"

    def add(self, place: int, part: Part) -> None:
        """Take in a part of the counts of one context.

        Lists of cells are merged while the last is half as long as the one before it, or longer:
        each cell is moved about as many times as the number of parts has bits, and all lists
        together are less than twice as long as the first.
        """
        if isinstance(part, np.ndarray):
            known = self._dense[place]
            if known is None:
                self._dense[place] = part
            elif known is not part:  # another range of rows
                known += part
            return
        runs = self._runs[place]
        runs.append(part)
        while len(runs) > 1 and 2 * len(runs[-1].values) >= len(runs[-2].values):
            _join(runs)

    def finish(self) -> tuple[Counts, ...]:
        """All counts; what was gathered is given away."""
        out = []
        for place, context in enumerate(self._contexts):
            table, self._dense[place] = self._dense[place], None
            runs, self._runs[place] = self._runs[place], []
            while len(runs) > 1:
                _join(runs)
            if table is None:
                out.append(Counts(context, runs[0]))
            elif context.support == "seen":
                out.append(Counts(context, occupied(context, table)))
            else:
                shape = (context.keys, context.levels)
                out.append(Counts(context, Dense(table.reshape(shape))))
        return tuple(out)


def added(one: Sparse, two: Sparse) -> Sparse:
    """The counts of two parts of the records together."""
    if not len(one.values):
        return two
    cells = count_kernels.union(one.keys, one.levels, two.keys, two.levels)
    keys, levels = np.empty((2, cells), dtype=np.uint64)
    values = np.empty(cells, dtype=np.int64)
    left, right = (one.keys, one.levels, one.values), (two.keys, two.levels, two.values)
    count_kernels.merge(left, right, (keys, levels, values))
    return Sparse(keys, levels, values)


def _join(runs: list[Sparse]) -> None:
    last = runs.pop()
    runs[-1] = added(runs[-1], last)


def _ids(columns: np.ndarray, context: Context, going: Going) -> np.ndarray:
    rows = columns.shape[1]
    out = np.empty(rows, dtype=np.uint32 if context.cells <= 1 << 32 else np.uint64)
    if isinstance(context.key, Radix):
        terms = count_routes.cell_terms(context)
        for start, stop in _slices(0, rows, len(terms.cols) + 1):
            going(start / rows)
            count_kernels.radix_ids(columns, start, terms.cols, terms.steps, out[start:stop])
        return out
    place = _placer(columns, context)
    buffer = np.empty(min(BUFFER, rows), dtype=np.uint64)
    for start in range(0, rows, BUFFER):
        going(start / rows)
        part = buffer[: min(BUFFER, rows - start)]
        place(start, part)
        out[start : start + BUFFER] = part
    return out


def _placer(
    columns: np.ndarray, context: Context, *, key_only: bool = False
) -> Callable[[int, np.ndarray], object]:
    """A function place(start, ids) that writes ids (or keys) of rows start.. into uint64 ids."""
    of_targets = ((), ()) if key_only else (context.targets, context.target_sizes)
    target = count_routes.Terms.of(*of_targets)
    levels = np.uint64(1 if key_only else context.levels)
    key = context.key
    if isinstance(key, Radix):
        terms = (
            count_routes.Terms.of(context.parents, context.parent_sizes)
            if key_only
            else count_routes.cell_terms(context)
        )
        return lambda start, ids: count_kernels.radix_ids(
            columns, start, terms.cols, terms.steps, ids
        )
    if key.buckets == 1:
        return lambda start, ids: count_kernels.radix_ids(
            columns, start, target.cols, target.steps, ids
        )
    table = count_routes.key_table(context)
    if table is not None:
        parents = count_routes.Terms.of(context.parents, context.parent_sizes)
        keys = table * levels
        return lambda start, ids: count_kernels.lookup_ids(
            columns, start, parents.cols, parents.steps, keys, target.cols, target.steps, ids
        )
    groups = count_routes.hash_groups(context)
    kernel = count_kernels.hashed_ids if isinstance(key, Hashed) else count_kernels.minhash_ids
    return lambda start, ids: kernel(columns, start, groups, levels, target, ids)


def _slices(low: int, high: int, terms: int) -> list[tuple[int, int]]:
    step = max(1, WORK // (terms * count_kernels.BLOCK)) * count_kernels.BLOCK
    return [(start, min(start + step, high)) for start in range(low, high, step)]
