"""LocalEngine: the default; compiled kernels on codes, equal to the truth bit for bit.

Codes of few records stay in memory; codes of many go to a nameless file, and are counted slab by slab.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from gibbous.core import compiled, kernel
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.cores import usable_cores
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, recoded
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.disintegrate import layout, memory, records, scanning, sums
from gibbous.disintegrate.slabs import SLAB, Slabs
from gibbous.disintegrate.spill import scratch_folder

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions


class LocalEngine:
    """Counts with compiled kernels: many contexts a pass, in cache-sized blocks, on all cores.

    Args:
        options: how text files are read; None for the defaults.
        threads: at most this many; None for the cores this process may use (and at most
            NUMBA_NUM_THREADS, if that is set). Results do not depend on it.
        memory_limit: bytes that one `tally` may need; None for `memory.default_limit()`.
        scratch: folder for codes that are too many for memory; None for GIBBOUS_SCRATCH, or the
            temporary folder.
        held: bytes of codes that stay in memory; None for `memory.held_limit()`.
        slab: bytes of codes on disk that are read at once.
    """

    name: ClassVar[str] = "local"
    __slots__ = ("_records", "_spilling", "memory_limit", "options", "threads")

    def __init__(
        self,
        options: ReadOptions | None = None,
        *,
        threads: int | None = None,
        memory_limit: int | None = None,
        scratch: Path | str | None = None,
        held: int | None = None,
        slab: int = SLAB,
    ) -> None:
        self.options = options
        self.threads = max(1, usable_cores() if threads is None else threads)
        self.memory_limit = memory.default_limit() if memory_limit is None else memory_limit
        above = memory.held_limit() if held is None else held
        self._spilling = scanning.Spilling(scratch_folder(scratch), above, slab)
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
        codes, mark = scanning.scan_to(
            source,
            schema,
            key=key,
            options=self.options,
            progress=progress,
            numbers=numbers,
            threads=self.threads,
            spilling=self._spilling,
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
        kernel.ready()
        codes = self._records.store()
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
            EngineFailure: closed, not scanned, a context of another schema, or numba does not run.
            ResourceLimit: more memory than `memory_limit`, or more than 2^63 keys or levels.
        """
        codes = self._records.store()
        self.check(contexts, state=layout.STATE)
        try:
            return self._tally(codes, contexts, progress)
        except MemoryError:
            raise memory.out_of_memory() from None

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """Sums of products of grid numbers; see `core.protocols.NumberEngine`."""
        codes = self._records.store()
        layout.check_contexts([one.context for one in moments], codes.schema)
        return sums.sums(codes, moments)

    def recoded(self, changes: Mapping[int, Change]) -> LocalEngine:
        """An engine with the same records under a coarser public schema."""
        codes = self._records.store()
        if isinstance(codes, Slabs):
            return self._with(codes.recoded(changes))
        return self._with(recoded(codes, changes))

    def split(self, parts: int, words: Words64) -> tuple[LocalEngine, ...]:
        """Engines with the records of random parts; see `core.protocols.NumberEngine`."""
        codes, to = self._records.store(), self._spilling
        if isinstance(codes, Slabs):
            return tuple(map(self._with, codes.split(parts, words, to.folder, slab=to.slab)))
        return tuple(map(self._with, records.parted(codes, parts, words)))

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, beyond the records; an upper bound.

        Of records on disk, what is read of them at once is counted in.
        """
        columns = {column for context in contexts for column in context.columns}
        width = max(1, len(columns))
        slab = self._spilling.slab if rows * width > self._spilling.above else None
        if self._records.scanned:
            codes = self._records.store()
            slab = codes.bytes if isinstance(codes, Slabs) else None
            width = codes.row_bytes if isinstance(codes, Slabs) else width
        need = memory.local_estimate(
            contexts,
            rows,
            threads=self.threads,
            limit=self.memory_limit,
            slab=None if slab is None else max(1, slab // width),
        )
        return need + 2 * (slab or 0)

    def write(
        self, batches: Iterable[Codes], schema: Schema, path: Path, *, format: str, seed: int
    ) -> int:
        """Decode and write rows to one file; return the number of rows."""
        from gibbous.disintegrate.writer import write_rows

        return write_rows(batches, schema, path, format=format, seed=seed).rows

    def close(self) -> None:
        """Forget the records: any later `tally` raises."""
        self._records.forget()

    def _with(self, codes: records.Store) -> LocalEngine:
        """An engine like this one that holds other codes."""
        made = LocalEngine(
            threads=self.threads,
            memory_limit=self.memory_limit,
            scratch=self._spilling.folder,
            held=self._spilling.above,
            slab=self._spilling.slab,
        )
        made._records.take(codes)
        return made

    def _tally(
        self, codes: records.Store, contexts: Sequence[Context], progress: Progress
    ) -> tuple[Counts, ...]:
        from gibbous.disintegrate import gathering, schedule  # these load numba

        if compiled.cold():
            progress("compile", 0, 1)
        on_disk, limit, done = isinstance(codes, Slabs), self.memory_limit, 0
        tables = layout.tables(contexts, codes.rows, limit) if on_disk else None
        found = gathering.Gathering(contexts, tables)
        needed = sorted({column for context in contexts for column in context.columns})
        for some in records.slabs(codes, needed):
            columns = records.contiguous(some)
            jobs = schedule.jobs(
                columns, contexts, self.threads, limit, of=codes.rows, tables=tables
            )
            told = schedule.within(progress, done, done + some.rows, codes.rows)
            with closing(schedule.run(jobs, self.threads, told)) as arriving:
                for places, results in arriving:
                    for place, part in zip(places, results, strict=True):
                        found.add(place, part)
            done += some.rows
        return found.finish()
