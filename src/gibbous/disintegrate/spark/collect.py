"""The driver's side: start passes over records, collect reports and counts, refuse what does not fit."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gibbous.core.context import Context
from gibbous.core.errors import MAY_BE_SPENT, UNCHARGED, ResourceLimit, SchemaMismatch
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress
from gibbous.core.schema import Schema
from gibbous.core.secret import Secret
from gibbous.core.tables import Counts
from gibbous.disintegrate.spark import encoding, pieces, slabs
from gibbous.disintegrate.spark import partial as tasks
from gibbous.disintegrate.spark.estimate import passes
from gibbous.disintegrate.spark.faults import guarded, refused, unstable
from gibbous.disintegrate.spark.jobs import awaited
from gibbous.disintegrate.spark.session import quiet
from gibbous.disintegrate.spark.sources import Rows

SLAB = 1 << 13  # rows of a slab where slabs are divided over a number of partitions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kept(Secret):
    """Codes that the executors keep. Secret.

    Attributes:
        session: a classic SparkSession.
        frame: a persisted DataFrame of slabs.
        schema: of the codes.
        numbers: positions of the numbers kept beside them.
        rows: number of rows, after persons were cut.
        sums: partition -> (rows, sum of the words of its rows).
    """

    session: Any
    frame: Any
    schema: Schema
    numbers: tuple[int, ...]
    rows: int
    sums: dict[int, tuple[int, int]]

    def forget(self) -> None:
        """Drop the codes on all executors, and wait until they are gone."""
        with contextlib.suppress(Exception):  # the cluster may be gone, and the codes with it
            self.frame.unpersist(blocking=True)

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return max(1, len(self.sums))


def job_of(
    rows: Rows,
    schema: Schema,
    *,
    key: bytes,
    numbers: Sequence[int],
    partitions: int | None,
    options: Any,
) -> encoding.EncodeJob:
    """How the rows of a source become codes.

    Args:
        key: of the ledger; what is shipped is derived from it and says nothing about it.
        numbers: positions of numeric columns whose numbers are kept.
        partitions: see `SparkEngine`.
    Raises:
        GibbousError: the schema cannot be encoded, or the rows not be read.
    """
    from gibbous.encode.encode import SliceEncoder
    from gibbous.read.fingerprint import root_of

    SliceEncoder(schema, numbers=numbers)  # what is wrong with the schema alone is said here
    root = root_of(key)
    digest = hashlib.blake2b(root, digest_size=8, person=b"gibbous-rowword").digest()
    return encoding.EncodeJob(
        schema,
        root,
        int.from_bytes(digest, "little"),
        tuple(numbers),
        slab=slabs.rows_of(len(schema)) if partitions is None else SLAB,
        names=rows.names,
        paths=rows.paths,
        options=options,
    )


def texts_of(
    session: Any, rows: Rows, job: encoding.EncodeJob, *, most: int, progress: Progress
) -> list[list[str]]:
    """The different texts of each column, none of them missing; ResourceLimit for more than `most`."""
    with quiet():
        source, count = _source(session, rows), len(job.schema)
        frame = source.mapInArrow(partial(encoding.different_texts, job), encoding.TEXTS)
        asked = frame.distinct().limit(most + 1)
        found = awaited(session, asked.toArrow, stage="look", progress=progress)
    texts: list[list[str]] = [[] for _ in range(count)]
    told = (found.column(name).to_pylist() for name in ("place", "text", "report"))
    for place, text, report in zip(*told, strict=True):
        if report is not None:
            raise refused(report, state=UNCHARGED)
        texts[place].append(text)
    if found.num_rows > most:
        raise ResourceLimit(
            "TEXTS",
            f"The columns have more than {most:,} different texts altogether.",
            "The driver holds each once, before kinds and levels are bought.",
            "Leave out columns of free text and identifiers, give the driver a larger machine, "
            "or declare a schema.",
            state=UNCHARGED,
        )
    return texts


def scanned(
    session: Any,
    rows: Rows,
    job: encoding.EncodeJob,
    *,
    key: bytes,
    partitions: int | None,
    progress: Progress,
) -> tuple[Kept, bytes]:
    """Validate and encode all rows on the executors, and keep the codes there.

    Args:
        key, partitions: as for `job_of`.
    Returns:
        The codes, and the keyed fingerprint (32 bytes) of all rows.
    Raises:
        GibbousError: as every engine's scan.
    """
    from pyspark import StorageLevel

    with quiet():
        frame = _encoded(session, rows, job, partitions)
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            asked = frame.mapInArrow(encoding.reported, encoding.REPORTS)
            found = awaited(session, asked.toArrow, stage="read", progress=progress)
            return _joined(session, frame, job, found, rows, key)
        except BaseException:
            frame.unpersist()
            raise


def _source(session: Any, rows: Rows) -> Any:
    """A frame of the rows, or of the numbers of their text files."""
    count = len(rows.paths)
    return session.range(0, count, 1, count) if rows.frame is None else rows.frame


def _encoded(session: Any, rows: Rows, job: encoding.EncodeJob, partitions: int | None) -> Any:
    source, unit = _source(session, rows), job.schema.unit
    if unit is None or unit.column is None:
        frame = source.mapInArrow(partial(encoding.encoded, job), encoding.ENCODED)
        return frame if partitions is None else frame.repartition(partitions)
    count = partitions or max(
        session.sparkContext.defaultParallelism,
        int(guarded(lambda: source._jdf.rdd().getNumPartitions())),
    )
    job = replace(job, buckets=4 * count)
    frame = source.mapInArrow(partial(encoding.encoded, job), encoding.ENCODED)
    frame = frame.repartition(count, "bucket")
    return frame.mapInArrow(partial(encoding.people_cut, job), encoding.ENCODED)


def _joined(
    session: Any, frame: Any, job: encoding.EncodeJob, found: Any, rows: Rows, key: bytes
) -> tuple[Kept, bytes]:
    """Reports of all tasks, in the order of their rows: faults are raised, fingerprints added up."""
    from gibbous.encode.encode import Faults
    from gibbous.encode.faults import Fault
    from gibbous.encode.persons import no_person
    from gibbous.read.fingerprint import Fingerprint, Seen

    told = [json.loads(words) for words in found.column("report").to_pylist() if words is not None]
    for one in told:
        if "error" in one:
            raise refused(json.dumps(one["error"]), state=UNCHARGED)
    faults, mark = Faults(job.schema), Fingerprint(key)
    mark.join(Seen(tuple(rows.names), 0, (0, 0)))
    nobody = 0
    for one in sorted(told, key=lambda one: one["place"]):
        if "nobody" in one:
            nobody = nobody or faults.rows + one["nobody"]
        plain = [(index, Fault(*fault)) for index, *fault in one["faults"]]
        faults.join(plain, [tuple(hit) for hit in one["impossible"]], one["rows"])
        mark.join(Seen(tuple(one["names"]), one["rows"], tuple(one["sums"])))
    _refuse(faults)
    if nobody:
        assert job.schema.unit is not None
        raise no_person(str(job.schema.unit.column), nobody)
    sums = {
        task: (count, total)
        for task, count, total in zip(
            *(found.column(name).to_pylist() for name in ("task", "rows", "sum")), strict=True
        )
        if task >= 0
    }
    count = sum(one for one, _ in sums.values())
    return Kept(session, frame, job.schema, job.numbers, count, sums), mark.digest()


def _refuse(faults: Any) -> None:
    """The faults of all rows as one error, which says what row numbers mean here."""
    try:
        faults.refuse()
    except SchemaMismatch as error:
        found = SchemaMismatch(
            error.name,
            error.wrong,
            error.allowed,
            f"{error.fix} Rows are numbered in the order in which Spark reads them.",
        )
    else:
        return
    raise found


def tallied(
    kept: Kept,
    steps: Sequence[tasks.Step],
    contexts: Sequence[Context],
    *,
    moments: Sequence[Moment] = (),
    limit: int,
    progress: Progress,
) -> tuple[Counts, ...]:
    """Count contexts (or sum moments) in one pass over the codes, or in as many as memory asks for.

    Args:
        steps: what makes a view of the codes.
        contexts: what is counted; the contexts of the moments, if there are any.
        limit: bytes that counting may need in a task.
    Raises:
        EngineFailure: a task failed too often, or a pass met other records than the scan.
        ResourceLimit: memory or disk of the cluster ran out.
    """
    out: dict[int, Counts] = {}
    todo = passes(contexts, kept.rows, kept.partitions)
    for number, one in enumerate(todo):
        job = tasks.CountJob(
            kept.schema,
            kept.numbers,
            tuple(steps),
            tuple(contexts[place] for place in one.places),
            tuple(moments[place] for place in one.places) if moments else (),
            buckets=one.buckets,
            limit=limit,
        )
        with quiet():
            frame = kept.frame.mapInArrow(partial(tasks.counted, job), tasks.PIECES)
            if one.shuffled:
                frame = frame.repartition(one.adders, "context", "part")
                frame = frame.mapInArrow(partial(tasks.added, job.contexts), tasks.PIECES)
            span = 100 * number // len(todo), 100 * (number + 1) // len(todo)
            found = awaited(
                kept.session,
                frame.toArrow,
                stage="count",
                progress=progress,
                state=MAY_BE_SPENT,
                span=span,
            )
        parts = _parts(job.contexts, kept, found)
        for place, context, its in zip(one.places, job.contexts, parts, strict=True):
            out[place] = pieces.counts(context, its)
    progress("count", 100, 100)
    return tuple(out[place] for place in range(len(contexts)))


def _parts(contexts: Sequence[Context], kept: Kept, found: Any) -> list[list[pieces.Part]]:
    """Pieces that came to the driver, added up part by part; what the tasks have read is checked."""
    parts: list[dict[int, pieces.Part]] = [{} for _ in contexts]
    read: dict[int, tuple[int, int]] = {}
    cells = found.column("cells")
    names = (found.column(name).to_pylist() for name in ("context", "part"))
    for row, (place, number) in enumerate(zip(*names, strict=True)):
        data = cells[row].as_py()
        if place == tasks.ERROR:
            raise refused(data.decode(), state=MAY_BE_SPENT)
        if place == tasks.CHECK:
            count, total = np.frombuffer(data, dtype=np.int64)
            read[number] = int(count), int(total)
            continue
        one = parts[place].get(number)
        if one is None:
            one = parts[place][number] = pieces.Part(contexts[place], number)
        one.add(data)
    if read != kept.sums:
        raise unstable(MAY_BE_SPENT)
    return [list(its.values()) for its in parts]
