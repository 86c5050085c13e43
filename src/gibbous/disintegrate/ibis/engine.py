"""IbisEngine: records of any source, encoded by the same code as everywhere, counted in DuckDB by SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Radix
from gibbous.core.cores import usable_cores
from gibbous.core.errors import EngineFailure, GibbousError, ResourceLimit
from gibbous.core.extras import require
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, recoded, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate import cover, layout, memory, sums
from gibbous.disintegrate.ibis import expression
from gibbous.disintegrate.ibis.gathered import gathered
from gibbous.disintegrate.ibis.held import Held, scan
from gibbous.disintegrate.ibis.store import Store

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

GROUP = 64  # bytes of one group of an answer, while it becomes a table


class IbisEngine:
    """Counts in a private DuckDB file: for databases, and for files larger than memory.

    Args:
        options: how text files are read; None for the defaults.
        threads: of DuckDB; None for the cores this process may use. Results do not depend on it.
        memory_limit: bytes that one `tally` may need, half of them for DuckDB's buffers; None for
            `memory.default_limit()`.
        scratch: folder for the encoded records; None for GIBBOUS_SCRATCH, or the temporary folder.
        disk_limit: most bytes that DuckDB may spill; None for 90 % of what is free there.
    Raises:
        EngineFailure: duckdb or ibis is not installed.
    """

    name: ClassVar[str] = "duckdb"
    __slots__ = ("_closed", "_held", "disk_limit", "memory_limit", "options", "scratch", "threads")

    def __init__(
        self,
        options: ReadOptions | None = None,
        *,
        threads: int | None = None,
        memory_limit: int | None = None,
        scratch: Path | str | None = None,
        disk_limit: int | None = None,
    ) -> None:
        require(("duckdb", "ibis", "pyarrow"), "duckdb")
        self.options = options
        self.threads = max(1, usable_cores() if threads is None else threads)
        self.memory_limit = memory.default_limit() if memory_limit is None else memory_limit
        self.scratch, self.disk_limit = scratch, disk_limit
        self._held: Held | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<IbisEngine, {'closed' if self._closed else 'open'}>"

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
        """Open, validate and encode the input and keep it inside; see `core.protocols.Engine`.

        Args:
            source: what `sources.opened` opens: a path, folder or pattern; an address such as
                "duckdb:///file.db::table"; an ibis Table, a DuckDB relation, or a frame.
        """
        if self._closed:
            raise _closed()
        self._forget()
        store = Store(
            threads=self.threads,
            memory=self._buffers,
            disk=self.disk_limit,
            scratch=self.scratch,
        )
        try:
            self._held, mark = scan(
                source,
                schema,
                store,
                key=key,
                options=self.options,
                progress=progress,
                numbers=numbers,
            )
        except BaseException as error:
            store.release()
            if isinstance(error, GibbousError) and error.state == layout.STATE:
                raise _unspent(error) from None
            raise
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
        held = self._look()
        layout.check_contexts(contexts, schema or held.schema, rows=held.rows, state=state)
        need = self.estimate(contexts, -(-held.rows // parts))
        memory.check_memory(need, self.memory_limit, state=state)

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts, one group-by each; small tables are margins of fewer larger ones.

        Returns:
            One Counts a context: Dense int64 (keys, levels) for support "dense"; Sparse with
            positive counts, sorted by (key, level), for support "seen".
        Raises:
            EngineFailure: closed, not scanned, a context of another schema, or DuckDB failed.
            ResourceLimit: more memory or disk than allowed, or more than 2^63 keys or levels.
        """
        held = self._look()
        self.check(contexts, state=layout.STATE)
        found: list[Dense | Sparse | None] = [None] * len(contexts)
        small = [i for i, c in enumerate(contexts) if _is_small(c)]
        covers = cover.covers(contexts, small, max(held.rows, cover.ROWS))
        rest = [i for i, c in enumerate(contexts) if not _is_small(c)]
        # Of contexts: how many are counted at once hangs on the number of records.
        done, total = 0, len(contexts)
        try:
            for one in covers:
                progress("count", done, total)
                done += len(one.places)
                table = _dense(self._count(held, one.table))
                for i in one.places:
                    shape = contexts[i].keys, contexts[i].levels
                    found[i] = Dense(cover.margin(table, one, contexts[i]).reshape(shape))
            for done, i in enumerate(rest, total - len(rest)):
                progress("count", done, total)
                found[i] = self._count(held, contexts[i])
        except MemoryError:
            raise memory.out_of_memory() from None
        progress("count", total, total)
        return tuple(Counts(c, cells) for c, cells in zip(contexts, found, strict=True) if cells)

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """Sums of products of grid numbers; see `core.protocols.NumberEngine`."""
        held = self._look()
        layout.check_contexts([one.context for one in moments], held.schema)
        if any(one.bound * max(held.rows, 1) >= 1 << 62 for one in moments):
            raise ResourceLimit(
                "SUMS",
                "A sum over all records may pass 63 bits.",
                "Sums are taken in whole numbers of 64 bits.",
                "Declare fewer decimals for the column.",
            )
        totals: tuple[Counts, ...] = ()
        for codes in held.slices():
            part = sums.sums(codes, moments)
            totals = tuple(map(_joined, totals, part)) if totals else part
        return totals

    def recoded(self, changes: Mapping[int, Change]) -> IbisEngine:
        """An engine with the same records under a coarser public schema: a table of its own."""
        held = self._look()
        coarser = recoded_schema(held.schema, changes)
        made = held.beside(coarser)
        try:
            for codes in held.slices():
                made.append(recoded(codes, changes, coarser))
        except BaseException:
            made.release()
            raise
        return self._with(made)

    def split(self, parts: int, words: Words64) -> tuple[IbisEngine, ...]:
        """Engines with the records of random parts; see `core.protocols.NumberEngine`."""
        held = self._look()
        made: list[Held] = []
        try:
            for _ in range(parts):
                made.append(held.beside(held.schema))
            for codes in held.slices():
                chosen = words(codes.rows) % np.uint64(parts)
                for part, one in enumerate(made):
                    one.append(codes.part(chosen == np.uint64(part)))
        except BaseException:
            for one in made:
                one.release()
            raise
        return tuple(self._with(one) for one in made)

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, DuckDB's buffers included; an upper bound."""
        results, working = 0, 0
        for context in contexts:
            groups = min(rows, context.cells)
            if not isinstance(context.key, Radix):
                groups = rows  # combinations of parents, before they are hashed
            results += 8 * context.cells if context.support == "dense" else 24 * groups
            working = max(working, GROUP * groups)
        return results + working + min(self._buffers, (64 << 20) + 256 * rows)

    def write(
        self, batches: Iterable[Codes], schema: Schema, path: Path, *, format: str, seed: int
    ) -> int:
        """Decode and write rows to one file; return the number of rows."""
        from gibbous.disintegrate.writer import write_rows

        return write_rows(batches, schema, path, format=format, seed=seed).rows

    def close(self) -> None:
        """Forget the records: any later `tally` raises, and nothing is left on disk."""
        self._forget()
        self._closed = True

    @property
    def _buffers(self) -> int:
        return self.memory_limit // 2

    def _look(self) -> Held:
        if self._closed:
            raise _closed()
        if self._held is None:
            raise EngineFailure(
                "NOTSCANNED",
                "The engine holds no records.",
                "Records are scanned before they are counted.",
                "Call scan first.",
            )
        return self._held

    def _forget(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def _with(self, held: Held) -> IbisEngine:
        """An engine of the same settings that holds other records of the same store."""
        engine = IbisEngine(
            self.options,
            threads=self.threads,
            memory_limit=self.memory_limit,
            scratch=self.scratch,
            disk_limit=self.disk_limit,
        )
        engine._held = held
        return engine

    def _count(self, held: Held, context: Context) -> Dense | Sparse:
        sql = expression.statement(held.table, context, "duckdb")
        return gathered(context, held.store.run(sql))


def _is_small(context: Context) -> bool:
    dense = context.support == "dense" and isinstance(context.key, Radix)
    return dense and context.cells <= layout.SMALL


def _dense(cells: Dense | Sparse) -> np.ndarray:
    assert isinstance(cells, Dense)
    return cells.values.ravel()


def _joined(total: Counts, part: Counts) -> Counts:
    assert isinstance(total.cells, Dense)
    assert isinstance(part.cells, Dense)
    return Counts(total.context, Dense(total.cells.values + part.cells.values))


def _unspent(error: GibbousError) -> GibbousError:
    """The same error of a run that has reserved nothing: records are read before that."""
    return type(error)(error.name, error.wrong, error.allowed, error.fix)


def _closed() -> EngineFailure:
    return EngineFailure(
        "CLOSED",
        "The engine is closed: its records were forgotten.",
        "Records are counted before rows are written, never after.",
        "Start a new run.",
        state="What was reserved stays spent.",
    )
