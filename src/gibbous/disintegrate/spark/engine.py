"""SparkEngine: encode once on the executors and keep the codes there; count them there; add up; no noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gibbous.core.context import Context
from gibbous.core.errors import MAY_BE_SPENT, UNCHARGED
from gibbous.core.machine import check_memory, default_limit
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, Reading, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.secret import Secret
from gibbous.core.tables import Counts
from gibbous.disintegrate import count_routes
from gibbous.disintegrate.engine_errors import closed, not_scanned, out_of_memory
from gibbous.disintegrate.spark.collect import Kept, job_of, scanned, tallied
from gibbous.disintegrate.spark.estimate import tally_bytes
from gibbous.disintegrate.spark.jobs import check_workers
from gibbous.disintegrate.spark.partial import Recoding, Share, Step
from gibbous.disintegrate.spark.session import Held, held
from gibbous.disintegrate.spark.sources import Rows, is_frame, rows_of
from gibbous.disintegrate.spark.workers import SparkWorkers

if TYPE_CHECKING:
    from gibbous.disintegrate.spark.encoding import EncodeJob
    from gibbous.read.source import ReadOptions

TASK_BYTES = 512 << 20


class SparkEngine(Secret):
    """Counts where the records lie: codes stay with the executors, counts come to the driver.

    Args:
        options: how text files are read; None for the defaults.
        session: a classic SparkSession; None takes the active one, or makes one with safe settings.
        master: of a session that is made here; None for `local[*]`.
        conf: settings of a session that is made here.
        partitions: into how many parts the rows are divided; None leaves them as Spark reads them.
            Counts do not depend on it.
        memory_limit: bytes that one `tally` may need on the driver; None for `default_limit()`.
        task_bytes: bytes that counting may need in one task.

    The session starts when the engine is made, so that what it lacks is said before any charge.

    Raises:
        EngineFailure: pyspark or Java is missing, a worker lacks gibbous, or the cluster is not reached.
    """

    name: ClassVar[str] = "spark"
    threads: ClassVar[int] = 1  # jobs of parts take turns: the cluster's cores are at work on each
    __slots__ = (
        "_closed",
        "_held",
        "_kept",
        "_schema",
        "_steps",
        "_view_of",
        "memory_limit",
        "options",
        "partitions",
        "task_bytes",
    )

    def __init__(
        self,
        options: ReadOptions | None = None,
        *,
        session: Any = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        partitions: int | None = None,
        memory_limit: int | None = None,
        task_bytes: int = TASK_BYTES,
    ) -> None:
        self.options = options
        self.partitions = partitions
        self.memory_limit = default_limit() if memory_limit is None else memory_limit
        self.task_bytes = task_bytes
        self._held: Held | None = held(session, master=master, conf=conf).take()
        self._kept: Kept | None = None
        self._schema: Schema | None = None
        self._steps: tuple[Step, ...] = ()
        self._view_of: SparkEngine | None = None
        self._closed = False
        try:
            check_workers(self._held.session)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<SparkEngine, {'closed' if self._closed else 'open'}>"

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Validate and encode on the executors; see `core.protocols.Engine`.

        Args:
            source: a pyspark DataFrame; the name of a table (`catalog.db.table`); a path, folder or glob
                of Parquet; a Delta folder, where the session reads Delta; a path, folder or glob of CSV
                that all executors see.
            key: secret key of this installation's ledger; it stays in this process.
        Guarantee:
            A person of the schema's unit has at most `max_rows` rows in the codes; which ones hangs on a
            secret key and on that person's rows alone.
        """
        from gibbous.read.source import ReadOptions

        session = self._session()
        self._forget()
        if is_frame(source):
            session = source.sparkSession
        progress("read", 0, 100)
        options = self.options or ReadOptions()
        rows = rows_of(session, source, schema, max_columns=options.max_columns)
        job = job_of(
            rows, schema, key=key, numbers=numbers, partitions=self.partitions, options=options
        )
        job = self._looked(session, rows, job, progress)
        self._kept, mark = scanned(
            session, rows, job, key=key, partitions=self.partitions, progress=progress
        )
        self._schema = job.schema
        progress("read", 100, 100)
        return mark

    def _looked(self, session: Any, rows: Rows, job: EncodeJob, progress: Progress) -> EncodeJob:
        """The job, after what has to be known of the rows before they are encoded."""
        return job

    def check(
        self,
        contexts: Sequence[Context],
        *,
        schema: Schema | None = None,
        parts: int = 1,
        state: str = UNCHARGED,
    ) -> None:
        """Refuse what `tally` would refuse, in a `state` of the charge; see `core.protocols.Engine`."""
        kept, own = self._look()
        count_routes.check_contexts(contexts, schema or own, rows=kept.rows, state=state)
        need = self.estimate(contexts, -(-kept.rows // parts))
        check_memory(need, self.memory_limit, state=state)

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts: partial counts by partition, added up; see `core.protocols.Engine`."""
        kept, _ = self._look()
        self.check(contexts, state=MAY_BE_SPENT)
        try:
            return tallied(kept, self._steps, contexts, limit=self.task_bytes, progress=progress)
        except MemoryError:
            raise out_of_memory() from None

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """Sums of products of grid numbers; see `core.protocols.Engine`."""
        kept, schema = self._look()
        contexts = [one.context for one in moments]
        count_routes.check_contexts(contexts, schema)
        read = next((step for step in self._steps if isinstance(step, Reading)), None)
        numbers = [place for place, _ in read.numbers] if read else kept.numbers
        count_routes.check_moments(moments, numbers, kept.rows)
        need = self.estimate(contexts, kept.rows)
        check_memory(need, self.memory_limit, state=MAY_BE_SPENT)
        return tallied(
            kept, self._steps, contexts, moments=moments, limit=self.task_bytes, progress=silent
        )

    def recoded(self, changes: Mapping[int, Change]) -> SparkEngine:
        """An engine that sees the same kept codes under a coarser public schema."""
        _, schema = self._look()
        coarser = recoded_schema(schema, changes)
        return self._with(Recoding(dict(changes), coarser), coarser)

    def split(self, parts: int, words: Words64) -> tuple[SparkEngine, ...]:
        """Engines of random parts of the same kept codes; see `core.protocols.Engine`.

        A task that is done again divides its records in the same way, so the parts come from a stream
        keyed with the system's entropy: see `slabs.parts_of` for what that promises.
        """
        _, schema = self._look()
        key = words(4).tobytes()
        return tuple(self._with(Share(parts, which, key), schema) for which in range(parts))

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak on the driver; an upper bound."""
        partitions = self._kept.partitions if self._kept is not None else self.partitions or 200
        return tally_bytes(contexts, rows, partitions)

    def workers(self) -> SparkWorkers:
        """Workers of the same session, which stay when the engine is closed; close them, too."""
        if self._held is None:
            raise closed()
        return SparkWorkers(self._held, partitions=self.partitions)

    def close(self) -> None:
        """Drop the kept codes on all executors: any later `tally` raises; let go of the session."""
        if self._closed:
            return
        self._closed = True
        self._forget()
        found, self._held = self._held, None
        if found is not None and self._view_of is None:
            found.let_go()

    def _forget(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and self._view_of is None:
            kept.forget()

    def _session(self) -> Any:
        if self._closed or self._held is None:
            raise closed()
        return self._held.session

    def _look(self) -> tuple[Kept, Schema]:
        self._session()
        if self._view_of is not None and self._view_of._closed:
            raise closed()
        if self._kept is None or self._schema is None:
            raise not_scanned()
        return self._kept, self._schema

    def _read_as(self, reading: Reading) -> SparkEngine:
        return self._with(reading, reading.schema)

    def _with(self, step: Step, schema: Schema) -> SparkEngine:
        """A view of the kept codes; it ends with the engine that it was made from."""
        made = object.__new__(SparkEngine)
        made.options, made.partitions = self.options, self.partitions
        made.memory_limit, made.task_bytes = self.memory_limit, self.task_bytes
        made._held = self._held  # it goes with the engine that holds it, whoever forgets the view
        made._kept, made._schema, made._steps = self._kept, schema, (*self._steps, step)
        made._view_of, made._closed = self._view_of or self, False
        return made
