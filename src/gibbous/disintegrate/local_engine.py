"""LocalEngine: the default; compiled kernels on codes in memory, equal to the truth bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from gibbous.core import compiled
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.cores import usable_cores
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, recoded
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate import layout, memory, records, sums

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions


class LocalEngine:
    """Counts with compiled kernels: many contexts a pass, in cache-sized blocks, on all cores.

    Args:
        options: how text files are read; None for the defaults.
        threads: at most this many; None for the cores this process may use (and at most
            NUMBA_NUM_THREADS, if that is set). Results do not depend on it.
        memory_limit: bytes that one `tally` may need; None for `memory.default_limit()`.
    """

    name: ClassVar[str] = "local"
    __slots__ = ("_records", "memory_limit", "options", "threads")

    def __init__(
        self,
        options: ReadOptions | None = None,
        *,
        threads: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.options = options
        self.threads = max(1, usable_cores() if threads is None else threads)
        self.memory_limit = memory.default_limit() if memory_limit is None else memory_limit
        self._records = records.Records()

    @classmethod
    def from_codes(
        cls, codes: Codes, *, threads: int | None = None, memory_limit: int | None = None
    ) -> LocalEngine:
        """An engine that holds these codes already (tests, contract, studies)."""
        engine = cls(threads=threads, memory_limit=memory_limit)
        engine._records.take(codes)
        return engine

    def __repr__(self) -> str:
        return f"<LocalEngine, {'closed' if self._records.closed else 'open'}>"

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
        codes, mark = records.scan(
            source, schema, key=key, options=self.options, progress=progress, numbers=numbers
        )
        self._records.take(codes)
        return mark

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts.

        Returns:
            One Counts a context: Dense int64 (keys, levels) for support "dense"; Sparse with
            positive counts, sorted by (key, level), for support "seen".
        Raises:
            EngineFailure: closed, not scanned, a context of another schema, or numba does not run.
            ResourceLimit: more memory than `memory_limit`, or more than 2^63 keys or levels.
        """
        codes = self._records.look()
        layout.check_contexts(contexts, codes.schema)
        memory.check_memory(self.estimate(contexts, codes.rows), self.memory_limit)
        try:
            return self._tally(records.contiguous(codes), contexts, progress)
        except MemoryError:
            raise memory.out_of_memory() from None

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """Sums of products of grid numbers; see `core.protocols.NumberEngine`."""
        codes = self._records.look()
        layout.check_contexts([one.context for one in moments], codes.schema)
        return sums.sums(codes, moments)

    def recoded(self, changes: Mapping[int, Change]) -> LocalEngine:
        """An engine with the same records under a coarser public schema."""
        return self.from_codes(
            recoded(self._records.look(), changes),
            threads=self.threads,
            memory_limit=self.memory_limit,
        )

    def split(self, parts: int, words: Words64) -> tuple[LocalEngine, ...]:
        """Engines with the records of random parts; see `core.protocols.NumberEngine`."""
        found = records.parted(self._records.look(), parts, words)
        return tuple(
            self.from_codes(one, threads=self.threads, memory_limit=self.memory_limit)
            for one in found
        )

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, beyond the records; an upper bound."""
        return memory.local_estimate(contexts, rows, threads=self.threads, limit=self.memory_limit)

    def write(
        self, batches: Iterable[Codes], schema: Schema, path: Path, *, format: str, seed: int
    ) -> int:
        """Decode and write rows to one file; return the number of rows."""
        from gibbous.disintegrate.writer import write_rows

        return write_rows(batches, schema, path, format=format, seed=seed).rows

    def close(self) -> None:
        """Forget the records: any later `tally` raises."""
        self._records.forget()

    def _tally(
        self, columns: np.ndarray, contexts: Sequence[Context], progress: Progress
    ) -> tuple[Counts, ...]:
        from gibbous.disintegrate import passes, schedule  # these load numba

        if compiled.cold():
            progress("compile", 0, 1)
        jobs = schedule.jobs(columns, contexts, self.threads, self.memory_limit)
        found: list[Sparse | np.ndarray | None] = [None] * len(contexts)
        with closing(schedule.run(jobs, self.threads, progress)) as arriving:
            for places, results in arriving:
                for place, part in zip(places, results, strict=True):
                    known = found[place]
                    if isinstance(known, np.ndarray) and isinstance(part, np.ndarray):
                        known += part  # another range of rows
                    else:
                        found[place] = part
        out = []
        for place, context in enumerate(contexts):
            one, found[place] = found[place], None
            if isinstance(one, np.ndarray):
                seen = context.support == "seen"
                shape = (context.keys, context.levels)
                out.append(passes.occupied(context, one) if seen else Dense(one.reshape(shape)))
            elif one is not None:
                out.append(one)
        return tuple(Counts(c, cells) for c, cells in zip(contexts, out, strict=True))
