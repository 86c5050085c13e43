"""Counting on executors: the codes of a partition in, partial counts in pieces out. No noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import EngineFailure
from gibbous.core.moment import Moment
from gibbous.core.recode import Change, Reading, recoded
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense
from gibbous.disintegrate.spark import pieces as cut
from gibbous.disintegrate.spark import slabs
from gibbous.disintegrate.spark.estimate import GATHER
from gibbous.disintegrate.spark.shield import Batches, one_row, rows, shielded, task

PIECES = "context int, part int, cells binary"
CHECK, ERROR = -1, -2  # in place of a context: what a task has read; what it refused


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recoding:
    """A step of a view: a coarser public schema."""

    changes: Mapping[int, Change]
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Share:
    """A step of a view: one of `parts` random parts of the records; see `slabs.parts_of`."""

    parts: int
    which: int
    key: bytes


Step = Recoding | Share | Reading


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountJob:
    """What is counted of the codes.

    Attributes:
        schema: of the codes as they are kept.
        numbers: positions of the numbers kept.
        steps: what makes a view of them.
        contexts: to be counted; or those of the moments.
        moments: to be summed in place of counting; () to count.
        buckets: see `pieces.pieces`.
        limit: bytes that counting may need in a task.
        gather: bytes of codes that are counted at once.
    """

    schema: Schema
    numbers: tuple[int, ...]
    steps: tuple[Step, ...]
    contexts: tuple[Context, ...]
    moments: tuple[Moment, ...]
    buckets: int
    limit: int
    gather: int = GATHER


def counted(job: CountJob, batches: Batches) -> Iterator[Any]:
    """Partial counts of the codes of one partition; see `PIECES`."""
    return shielded(_counted(job, batches), _refusal_of)


def added(contexts: Sequence[Context], batches: Batches) -> Iterator[Any]:
    """Add up all pieces of the parts that Spark brought here."""
    return shielded(_added(contexts, batches), _refusal_of)


def _counted(job: CountJob, batches: Batches) -> Iterator[Any]:
    read = np.zeros(2, dtype=np.int64)
    tables: dict[int, np.ndarray] = {}
    # Where records are shared out, equal rows are numbered over the whole partition.
    most = 1 << 62 if any(isinstance(step, Share) for step in job.steps) else job.gather
    for group in slabs.gathered(_slabs(job, batches, read), most):
        codes = _view(job, slabs.together(group, job.schema, job.numbers))
        del group
        if not codes.rows:
            continue
        for place, found in _tallied(job, codes):
            context = job.contexts[place]
            if cut.dense_here(context):
                assert isinstance(found.cells, Dense)
                known, more = tables.get(place), found.cells.values
                tables[place] = more if known is None else known + more
            else:
                yield from _piece_batches(place, cut.pieces(context, found.cells, job.buckets))
    for place in sorted(tables):
        table = Dense(tables.pop(place))
        yield from _piece_batches(place, cut.pieces(job.contexts[place], table, job.buckets))
    yield _piece_batch(CHECK, task(), read.tobytes())


def _tallied(job: CountJob, codes: Codes) -> Iterator[tuple[int, Counts]]:
    """Counts of the contexts: those with whole tables in one pass, each of the others in its own."""
    if job.moments:
        from gibbous.disintegrate.plain import sums

        yield from enumerate(sums(codes, job.moments))
        return
    tally = _tally(codes, job.limit)
    small = [i for i, context in enumerate(job.contexts) if cut.dense_here(context)]
    whole = [replace(job.contexts[i], support="dense") for i in small]
    yield from zip(small, tally(whole) if whole else (), strict=True)
    for i, context in enumerate(job.contexts):
        if not cut.dense_here(context):
            yield i, tally([replace(context, support="seen")])[0]


def _tally(codes: Codes, limit: int) -> Callable[[Sequence[Context]], tuple[Counts, ...]]:
    from gibbous.disintegrate import plain
    from gibbous.disintegrate.records import LocalEngine

    try:
        import gibbous.disintegrate.count_kernels  # noqa: F401 - compiled, or not to be had here
    except EngineFailure:
        return partial(plain.counts, codes)
    return LocalEngine.from_codes(codes, threads=1, memory_limit=limit).tally


def _slabs(job: CountJob, batches: Batches, read: np.ndarray) -> Iterator[slabs.Slab]:
    for row in rows(batches):
        read += (row["rows"], row["sum"])
        if row["codes"] is not None:
            yield slabs.opened(row, job.schema)


def _view(job: CountJob, codes: Codes) -> Codes:
    for step in job.steps:
        if isinstance(step, Recoding):
            codes = recoded(codes, step.changes, step.schema)
            continue
        if isinstance(step, Reading):
            codes = step.of(codes)
            continue
        kept = [kept for _, kept in codes.numbers]
        numbers = np.stack(kept) if kept else np.empty((0, codes.rows))
        part = slabs.parts_of(codes.by_column, numbers, step.parts, key=step.key, task=task())
        codes = codes.part(part == np.uint64(step.which))
    return codes


def _added(contexts: Sequence[Context], batches: Batches) -> Iterator[Any]:
    parts: dict[tuple[int, int], cut.Part] = {}
    for row in rows(batches):
        place, number = row["context"], row["part"]
        if place < 0:
            yield _piece_batch(place, number, row["cells"])
            continue
        found = parts.get((place, number))
        if found is None:
            found = parts[place, number] = cut.Part(contexts[place], number)
        found.add(row["cells"])
    for place, number in sorted(parts):
        yield from _piece_batches(place, parts.pop((place, number)).pieces())


def _refusal_of(words: str) -> Any:
    return _piece_batch(ERROR, 0, words.encode())


def _piece_batches(place: int, found: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    for part, data in found:
        yield _piece_batch(place, part, data)


def _piece_batch(place: int, part: int, data: bytes) -> Any:
    return one_row(PIECES, context=place, part=part, cells=data)
