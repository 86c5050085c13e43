"""Pieces: partial counts of a context as blocks of bytes; split by cells, added up anywhere in any order.

A table of up to `DENSE` cells is cut into runs of `CHUNK` cells; the cells that occur of a larger one
are spread over `buckets` by a hash of their place. Pieces of one (context, part) are added together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gibbous.core.context import WORD, Context, mix64
from gibbous.core.tables import Cells, Counts, Dense, Sparse
from gibbous.disintegrate.plain import occupied

DENSE = 1 << 20
CHUNK = 1 << 16
_MOST = 1 << 17  # entries of a piece
_TABLE, _IDS, _PAIRS = b"t", b"i", b"p"
Piece = tuple[int, bytes]


def dense_here(context: Context) -> bool:
    """Whether partial counts of a context are held as a whole table."""
    return context.cells <= DENSE


def pieces(context: Context, cells: Cells, buckets: int) -> Iterator[Piece]:
    """Cut partial counts (or sums) of one context into (part, bytes).

    Args:
        cells: Dense, or Sparse with any order of cells.
        buckets: parts that the cells of a large table are spread over; the same for all tasks.
    """
    if dense_here(context):
        yield from _of_table(_flat(context, cells))
        return
    if isinstance(cells, Dense):
        cells = occupied(context, cells.values.ravel())
    if not len(cells.values):
        return
    part = mix64(cells.keys ^ mix64(cells.levels)) % np.uint64(buckets)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(buckets, dtype=np.uint64), side="right")
    for number, (low, high) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        for start in range(int(low), int(high), _MOST):
            chosen = order[start : min(start + _MOST, int(high))]
            yield number, _pairs(cells.keys[chosen], cells.levels[chosen], cells.values[chosen])


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """One part of a context's cells, to which pieces are added. Secret."""

    context: Context
    number: int
    _table: np.ndarray | None = None
    _held: list[Sparse] = field(default_factory=list)
    _size: int = 0
    _limit: int = 4 * _MOST

    def add(self, data: bytes) -> None:
        """Add a piece of this part."""
        if dense_here(self.context):
            start = self.number * CHUNK
            if self._table is None:
                self._table = np.zeros(min(CHUNK, self.context.cells - start), dtype=np.int64)
            if data[:1] == _TABLE:
                self._table += np.frombuffer(data, dtype=np.int64, offset=1)
                return
            ids, values = np.frombuffer(data, dtype=np.uint64, offset=1).reshape(2, -1)
            self._table[ids.astype(np.int64) - start] += values.view(np.int64)
            return
        keys, levels, values = np.frombuffer(data, dtype=np.uint64, offset=1).reshape(3, -1)
        self._held.append(Sparse(keys, levels, values.view(np.int64)))
        self._size += len(values)
        if self._size > self._limit:
            merged = merge(self.context, self._held)
            self._held, self._size = [merged], len(merged.values)
            self._limit = max(self._limit, 2 * self._size)

    def pieces(self) -> Iterator[Piece]:
        """What was added up, as pieces of this part."""
        if self._table is not None:
            yield from _of_table(self._table, self.number)
        if self._held:
            found = merge(self.context, self._held)
            for start in range(0, len(found.values), _MOST):
                which = slice(start, start + _MOST)
                data = _pairs(found.keys[which], found.levels[which], found.values[which])
                yield self.number, data

    def sparse(self) -> Sparse:
        """The cells of a large table's part."""
        return merge(self.context, self._held)

    def table(self) -> np.ndarray:
        """The run of cells of a small table's part."""
        assert self._table is not None
        return self._table


def counts(context: Context, parts: list[Part]) -> Counts:
    """Counts of a context, from all of its parts; parts without any record may be absent."""
    if not dense_here(context):
        found = merge(context, [part.sparse() for part in parts])
        if context.support == "seen":
            return Counts(context, found)
        table = _flat(context, found)
    else:
        table = np.zeros(context.cells, dtype=np.int64)
        for part in parts:
            start = part.number * CHUNK
            table[start : start + CHUNK] = part.table()
        if context.support == "seen":
            return Counts(context, occupied(context, table))
    return Counts(context, Dense(table.reshape(context.keys, context.levels)))


def merge(context: Context, held: list[Sparse]) -> Sparse:
    """Add up cells; the result is sorted by (key, level), each cell once."""
    if not held:
        none = np.empty(0, dtype=np.uint64)
        return Sparse(none, none.copy(), np.empty(0, dtype=np.int64))
    keys, levels = (np.concatenate([getattr(h, n) for h in held]) for n in ("keys", "levels"))
    values = np.concatenate([one.values for one in held])
    if context.cells <= WORD:
        order = np.argsort(keys * np.uint64(context.levels) + levels, kind="stable")
    else:
        order = np.lexsort((levels, keys))
    keys, levels, values = keys[order], levels[order], values[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (levels[1:] != levels[:-1])
    starts = np.flatnonzero(new)
    total = np.add.reduceat(values, starts) if len(starts) else values
    return Sparse(keys[starts], levels[starts], total)


def _flat(context: Context, cells: Cells) -> np.ndarray:
    if isinstance(cells, Dense):
        return cells.values.ravel()
    table = np.zeros(context.cells, dtype=np.int64)
    table[(cells.keys * np.uint64(context.levels) + cells.levels).astype(np.int64)] = cells.values
    return table


def _of_table(table: np.ndarray, first: int = 0) -> Iterator[Piece]:
    for start in range(0, len(table), CHUNK):
        run = table[start : start + CHUNK]
        found = np.flatnonzero(run)
        number = first + start // CHUNK
        if not len(found):
            continue
        if 2 * len(found) < len(run):
            ids = found.astype(np.uint64) + np.uint64(number * CHUNK)
            yield number, _IDS + ids.tobytes() + run[found].astype(np.int64).tobytes()
        else:
            yield number, _TABLE + run.astype(np.int64).tobytes()


def _pairs(keys: np.ndarray, levels: np.ndarray, values: np.ndarray) -> bytes:
    return _PAIRS + b"".join(
        part.tobytes()
        for part in (
            keys.astype(np.uint64, copy=False),
            levels.astype(np.uint64, copy=False),
            values.astype(np.int64, copy=False),
        )
    )
