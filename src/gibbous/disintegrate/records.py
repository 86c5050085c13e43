"""Records: a source and its schema go in, exact counts come out; codes stay inside until forgotten.

Codes of few records stay in memory; codes of many go to a nameless file, and are counted slab by slab.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbous.core import compiled, kernel
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import MAY_BE_SPENT, UNCHARGED, EngineFailure
from gibbous.core.machine import check_memory, default_limit, usable_cores, within_share
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, recoded
from gibbous.core.schema import Schema
from gibbous.core.secret import Secret
from gibbous.core.tables import Counts
from gibbous.disintegrate import count_routes, scanning
from gibbous.disintegrate.engine_errors import closed, not_scanned, out_of_memory
from gibbous.disintegrate.slabs import SLAB, Slabs
from gibbous.disintegrate.spill import scratch_folder

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

Store = Codes | Slabs
HELD = 192 << 20  # bytes of codes that stay in memory at most


class LocalEngine(Secret):
    """Counts with compiled kernels: many contexts a pass, in cache-sized blocks, on all cores.

    Args:
        options: how text files are read; None for the defaults.
        threads: at most this many; None for the cores this process may use (and at most
            NUMBA_NUM_THREADS, if that is set). Results do not depend on it.
        memory_limit: bytes that one `tally` may need; None for `core.machine.default_limit()`.
        scratch: folder for codes that are too many for memory; None for GIBBOUS_SCRATCH, or the
            temporary folder. ResourceLimit if it is not one that can be written.
        held: bytes of codes that stay in memory; None for `held_limit()`.
        slab: bytes of codes on disk that are read at once.
    """

    name: ClassVar[str] = "local"
    __slots__ = ("_closed", "_spilling", "_store", "memory_limit", "options", "threads")

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
        self.memory_limit = default_limit() if memory_limit is None else memory_limit
        above = held_limit() if held is None else held
        self._spilling = scanning.Spilling(scratch_folder(scratch), above, slab)
        self._store: Store | None = None
        self._closed = False

    @classmethod
    def from_codes(
        cls, codes: Codes, *, threads: int | None = None, memory_limit: int | None = None
    ) -> LocalEngine:
        """An engine that holds these codes already (tests, contract, studies)."""
        engine = LocalEngine.__new__(cls)
        LocalEngine.__init__(engine, threads=threads, memory_limit=memory_limit)
        engine.take(codes)
        return engine

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {'closed' if self._closed else 'open'}>"

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Open, validate and encode the input and keep it inside; see `core.protocols.Engine`.

        Args:
            source: a path, a folder or pattern of files, a frame, an address such as
                "duckdb:///file.db::table", an ibis Table, or a DuckDB relation.
        """
        if self._closed:
            raise closed()
        codes, mark = scanning.scan(
            source,
            schema,
            key=key,
            options=self.options,
            progress=progress,
            numbers=numbers,
            threads=self.threads,
            spilling=self._spilling,
        )
        self.take(codes)
        return mark

    def take(self, codes: Store) -> None:
        """Keep codes in place of those that were kept; EngineFailure if closed, or the codes do not fit."""
        if self._closed:
            raise closed()
        self._forget()
        # Slabs were checked when they were written.
        if isinstance(codes, Codes) and not _fit(codes):
            raise EngineFailure(
                "CODES",
                "The codes are not those of their schema.",
                "Codes are unsigned integers below the size of their column.",
                "Encode the table with gibbous.encode under this schema.",
            )
        self._store = codes

    def check(
        self,
        contexts: Sequence[Context],
        *,
        schema: Schema | None = None,
        parts: int = 1,
        state: str = UNCHARGED,
    ) -> None:
        """Refuse what `tally` would refuse, in a `state` of the charge; see `core.protocols.Engine`."""
        kernel.ready()
        codes = self._look()
        count_routes.check_contexts(contexts, schema or codes.schema, rows=codes.rows, state=state)
        need = self.estimate(contexts, -(-codes.rows // parts))
        check_memory(need, self.memory_limit, state=state)

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts; see `core.protocols.Engine`."""
        codes = self._look()
        self.check(contexts, state=MAY_BE_SPENT)
        try:
            return self._tally(codes, contexts, progress)
        except MemoryError:
            raise out_of_memory() from None

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """Sums of products of grid numbers; see `core.protocols.Engine`."""
        from gibbous.disintegrate import plain

        codes = self._look()
        count_routes.check_contexts([moment.context for moment in moments], codes.schema)
        kept = codes.numbers if isinstance(codes, Slabs) else tuple(p for p, _ in codes.numbers)
        count_routes.check_moments(moments, kept, codes.rows)
        return reduce(plain.added, (plain.sums(part, moments) for part in slabs(codes)))

    def recoded(self, changes: Mapping[int, Change]) -> LocalEngine:
        """An engine with the same records under a coarser public schema."""
        codes = self._look()
        if isinstance(codes, Slabs):
            return self._with(codes.recoded(changes))
        return self._with(recoded(codes, changes))

    def split(self, parts: int, words: Words64) -> tuple[LocalEngine, ...]:
        """Engines with the records of random parts; see `core.protocols.Engine`."""
        codes, to = self._look(), self._spilling
        if isinstance(codes, Slabs):
            return tuple(map(self._with, codes.split(parts, words, to.folder, slab=to.slab)))
        return tuple(map(self._with, parted(codes, parts, words)))

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, beyond the records; an upper bound.

        Of records on disk, what is read of them at once is counted in.
        """
        width = max(1, len({column for context in contexts for column in context.columns}))
        slab = self._spilling.slab if rows * width > self._spilling.above else None
        if isinstance(self._store, Slabs):
            slab, width = self._store.bytes, self._store.row_bytes
        elif self._store is not None:
            slab = None
        need = count_routes.estimate(
            contexts,
            rows,
            threads=within_share(self.threads),
            limit=self.memory_limit,
            slab=None if slab is None else max(1, slab // width),
        )
        return need + 2 * (slab or 0)

    def workers(self) -> None:
        """None: this process draws and writes the rows."""
        return

    def close(self) -> None:
        """Forget the records: any later `tally` raises."""
        self._forget()
        self._closed = True

    def _look(self) -> Store:
        """The codes, wherever they are; EngineFailure if closed, or nothing was scanned."""
        if self._closed:
            raise closed()
        if self._store is None:
            raise not_scanned()
        return self._store

    def _forget(self) -> None:
        codes, self._store = self._store, None
        if isinstance(codes, Slabs):
            codes.release()

    def _with(self, codes: Store) -> LocalEngine:
        """An engine of the same settings that holds other codes."""
        engine = LocalEngine(
            threads=self.threads,
            memory_limit=self.memory_limit,
            scratch=self._spilling.folder,
            held=self._spilling.above,
            slab=self._spilling.slab,
        )
        engine.take(codes)
        return engine

    def _tally(
        self, codes: Store, contexts: Sequence[Context], progress: Progress
    ) -> tuple[Counts, ...]:
        from gibbous.disintegrate import passes, schedule  # these load numba

        if compiled.cold():
            progress("compile", 0, 1)
        on_disk, limit, done = isinstance(codes, Slabs), self.memory_limit, 0
        tables = count_routes.tables(contexts, codes.rows, limit) if on_disk else None
        gathering = passes.Gathering(contexts, tables)
        threads = within_share(self.threads)
        needed = sorted({column for context in contexts for column in context.columns})
        for part in slabs(codes, needed):
            columns = contiguous(part)
            jobs = schedule.jobs(columns, contexts, threads, limit, of=codes.rows, tables=tables)
            told = schedule.within(progress, done, done + part.rows, codes.rows)
            with closing(schedule.run(jobs, threads, told)) as arriving:
                for positions, results in arriving:
                    for position, result in zip(positions, results, strict=True):
                        gathering.add(position, result)
            done += part.rows
        return gathering.finish()


def slabs(codes: Store, columns: Sequence[int] | None = None) -> Iterator[Codes]:
    """The records, some at a time, those in memory all at once; see `Slabs.read`."""
    if isinstance(codes, Slabs):
        yield from codes.read(columns)
    else:
        yield codes


def parted(codes: Codes, parts: int, words: Words64) -> list[Codes]:
    """Records divided at random: each goes to one part, independently of what it says.

    A cryptographic word modulo `parts` is uniform up to parts / 2^64.
    """
    chosen = words(codes.rows) % np.uint64(parts)
    return [codes.part(chosen == np.uint64(part)) for part in range(parts)]


def contiguous(codes: Codes) -> np.ndarray:
    """(columns, rows) in one read-only piece, one run a column; not copied if it is so already."""
    columns = np.ascontiguousarray(codes.by_column).view()
    columns.flags.writeable = False  # one type for the compiled kernels, whatever came in
    return columns


def held_limit() -> int:
    """Bytes of codes that stay in memory: an eighth of what counting may use, at most 192 MiB."""
    return min(HELD, default_limit() // 8)


def _fit(codes: Codes) -> bool:
    columns = codes.by_column
    sizes = zip(columns, codes.schema.sizes, strict=True)
    return columns.dtype.kind == "u" and (
        not codes.rows or all(int(column.max()) < size for column, size in sizes)
    )
