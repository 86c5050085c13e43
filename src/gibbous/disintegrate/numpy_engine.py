"""NumpyEngine: the truth that other engines are tested against; core's definitions as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import WORD, Context, keys_of, levels_of
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, recoded
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate import layout, memory, records, scanning, sums

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

CHUNK = 1 << 20  # rows whose keys are computed at once


class NumpyEngine:
    """Counts with NumPy alone, one context after the other.

    Args:
        options: how text files are read; None for the defaults.
        memory_limit: bytes that one `tally` may need; None for `memory.default_limit()`.
    """

    name: ClassVar[str] = "numpy"
    __slots__ = ("_records", "memory_limit", "options")

    def __init__(
        self, options: ReadOptions | None = None, *, memory_limit: int | None = None
    ) -> None:
        self.options = options
        self.memory_limit = memory.default_limit() if memory_limit is None else memory_limit
        self._records = records.Records()

    @classmethod
    def from_codes(cls, codes: Codes, *, memory_limit: int | None = None) -> NumpyEngine:
        """An engine that holds these codes already (tests, contract, studies)."""
        engine = cls(memory_limit=memory_limit)
        engine._records.take(codes)
        return engine

    def __repr__(self) -> str:
        return f"<NumpyEngine, {'closed' if self._records.closed else 'open'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an engine holds confidential records and is never pickled")

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Open, validate and encode the input and keep it inside; see `core.protocols.Engine`."""
        codes, mark = scanning.scan(
            source, schema, key=key, options=self.options, progress=progress, numbers=numbers
        )
        self._records.take(codes)
        return mark

    def check(
        self,
        contexts: Sequence[Context],
        *,
        schema: Schema | None = None,
        parts: int = 1,
        state: str = layout.UNCHARGED,
    ) -> None:
        """Refuse what `tally` would refuse; counts nothing.

        Args:
            schema: of a recoded view that would be asked; None for that of the records.
            parts: into how many random parts the records would be divided before.
            state: what was charged by then.
        Raises:
            EngineFailure, ResourceLimit: see `tally`.
        """
        codes = self._records.look()
        layout.check_contexts(contexts, schema or codes.schema, rows=codes.rows, state=state)
        need = self.estimate(contexts, -(-codes.rows // parts))
        memory.check_memory(need, self.memory_limit, state=state)

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts.

        Returns:
            One Counts a context: Dense int64 (keys, levels) for support "dense"; Sparse with
            positive counts, sorted by (key, level), for support "seen".
        Raises:
            EngineFailure: closed, not scanned, or a context of another schema.
            ResourceLimit: more memory than `memory_limit`, or more than 2^63 keys or levels.
        """
        codes = self._records.look()
        self.check(contexts, state=layout.STATE)
        out = []
        try:
            for done, context in enumerate(contexts):
                progress("count", done, len(contexts))
                count = _dense if context.support == "dense" else _sparse
                out.append(Counts(context, count(context, codes.values)))
        except MemoryError:
            raise memory.out_of_memory() from None
        progress("count", len(contexts), len(contexts))
        return tuple(out)

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """Sums of products of grid numbers; see `core.protocols.NumberEngine`."""
        codes = self._records.look()
        layout.check_contexts([one.context for one in moments], codes.schema)
        return sums.sums(codes, moments)

    def recoded(self, changes: Mapping[int, Change]) -> NumpyEngine:
        """An engine with the same records under a coarser public schema."""
        return self.from_codes(
            recoded(self._records.look(), changes), memory_limit=self.memory_limit
        )

    def split(self, parts: int, words: Words64) -> tuple[NumpyEngine, ...]:
        """Engines with the records of random parts; see `core.protocols.NumberEngine`."""
        found = records.parted(self._records.look(), parts, words)
        return tuple(self.from_codes(one, memory_limit=self.memory_limit) for one in found)

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, beyond the records; an upper bound."""
        return memory.numpy_estimate(contexts, rows, chunk=CHUNK)

    def write(
        self, batches: Iterable[Codes], schema: Schema, path: Path, *, format: str, seed: int
    ) -> int:
        """Decode and write rows to one file; return the number of rows."""
        from gibbous.disintegrate.writer import write_rows

        return write_rows(batches, schema, path, format=format, seed=seed).rows

    def close(self) -> None:
        """Forget the records: any later `tally` raises."""
        self._records.forget()


def _dense(context: Context, values: np.ndarray) -> Dense:
    total = np.zeros(context.cells, dtype=np.int64)
    step = max(CHUNK, context.cells)
    for start in range(0, len(values), step):
        part = values[start : start + step]
        cells = keys_of(context, part) * np.uint64(context.levels) + levels_of(context, part)
        total += np.bincount(cells.astype(np.int64), minlength=context.cells)
    return Dense(total.reshape(context.keys, context.levels))


def _sparse(context: Context, values: np.ndarray) -> Sparse:
    keys, levels = np.empty((2, len(values)), dtype=np.uint64)
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        keys[start : start + CHUNK] = keys_of(context, part)
        levels[start : start + CHUNK] = levels_of(context, part)
    if context.cells > WORD:
        return count_pairs(keys, levels)
    keys *= np.uint64(context.levels)
    keys += levels
    del levels
    cells, counts = np.unique(keys, return_counts=True)
    width = np.uint64(context.levels)
    return Sparse(cells // width, cells % width, counts.astype(np.int64, copy=False))


def count_pairs(keys: np.ndarray, levels: np.ndarray) -> Sparse:
    """Count (key, level) pairs whose product passes 63 bits.

    Args:
        keys, levels: uint64 (rows,).
    Returns:
        Sparse, sorted by (key, level).
    """
    order = np.lexsort((levels, keys))
    keys, levels = keys[order], levels[order]
    del order
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (levels[1:] != levels[:-1])
    starts = np.flatnonzero(new)
    counts = np.diff(starts, append=len(keys)).astype(np.int64, copy=False)
    return Sparse(keys[starts], levels[starts], counts)
