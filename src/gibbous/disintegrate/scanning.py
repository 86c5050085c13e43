"""Scanning: a source and its schema in; secret codes and the fingerprint of the rows out.

The next rows are decoded while the last ones are encoded, and, with two threads, fingerprinted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.protocols import Progress, Words64
from gibbous.core.schema import Schema
from gibbous.disintegrate.slabs import SLAB, Slabs, SlabWriter, row_bytes

if TYPE_CHECKING:
    import polars as pl

    from gibbous.disintegrate.persons import People
    from gibbous.read.fingerprint import Fingerprint
    from gibbous.read.source import ReadOptions

MANY = 1 << 17  # rows below which loading a kernel takes longer than it saves


@dataclass(frozen=True, slots=True)
class Spilling:
    """When codes are kept on disk, and where.

    Attributes:
        folder: see `spill.scratch_folder`.
        above: bytes of codes that stay in memory.
        slab: bytes of codes that are read at once.
    """

    folder: Path
    above: int
    slab: int = SLAB


def scan(
    source: Any,
    schema: Schema,
    *,
    key: bytes,
    options: ReadOptions | None,
    progress: Progress,
    numbers: Sequence[int],
    threads: int,
    spilling: Spilling,
) -> tuple[Codes | Slabs, bytes]:
    """Read, fingerprint, validate and encode; on disk where the codes are too many for memory.

    Args:
        source: what `read.source.read_slices` opens.
        numbers: positions of numeric columns whose numbers are kept beside their bins.
        threads: with two, fingerprints are made beside the codes.
    Returns:
        Secret codes, and the keyed fingerprint (32 bytes) of the rows as they were read.
    Guarantee:
        A person of the schema's unit has at most `max_rows` rows in the codes; which ones is drawn
        with words of the operating system.
    Raises:
        InputRejected, SchemaMismatch, ResourceLimit: without any cell value; or the disk is full.
    """
    from gibbous.encode.encode import Encoder
    from gibbous.encode.levels import coded, dictionaries
    from gibbous.read.source import read_slices

    progress("read", 0, 100)
    known, words = dictionaries(schema), words_for(schema)
    with ExitStack() as stack:
        reading = read_slices(source, schema=schema, options=options)
        rows, frames = stack.enter_context(reading)
        mark = fingerprint_of(source, schema, rows, key)
        encoder: Encoder | _OnDisk
        if rows is not None and rows * row_bytes(schema, numbers) <= spilling.above:
            encoder = Encoder(schema, rows, words=words, numbers=numbers)
        else:
            encoder = _OnDisk(schema, rows, numbers, words, spilling, progress)
            stack.callback(encoder.drop)
        beside = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="gibbous-mark"))
        marked: Future[None] | None = None
        for frame in frames:
            part = coded(frame, known)
            if marked is not None:
                marked.result()  # one slice at a time: no queue that grows
            if threads > 1:
                marked = beside.submit(mark.add, part)
            else:
                mark.add(part)
            encoder.add(part)
            progress("read", 100 * encoder.done // max(1, rows) if rows else 0, 100)
        if marked is not None:
            marked.result()
        codes = encoder.finish()
    progress("read", 100, 100)
    return codes, mark.digest()


def kept(slices: Iterable[Codes], schema: Schema, rows: int, spilling: Spilling) -> Codes | Slabs:
    """Codes of `rows` rows in slices, together; on disk (ResourceLimit if full) where they are too many."""
    if rows * row_bytes(schema) <= spilling.above:
        parts = [empty_codes(schema, 0).T, *(part.by_column for part in slices)]
        return Codes(schema, np.concatenate(parts, axis=1).T, secret=True)
    writer = SlabWriter(schema, (), spilling.folder, slab=spilling.slab)
    try:
        for part in slices:
            writer.add(part.by_column, {})
        return writer.finish()
    except BaseException:
        writer.drop()
        raise


class _OnDisk:
    """Codes on disk, and the words of persons beside them until their rows are bounded."""

    def __init__(
        self,
        schema: Schema,
        rows: int | None,
        numbers: Sequence[int],
        words: Words64 | None,
        spilling: Spilling,
        progress: Progress,
    ) -> None:
        from gibbous.encode.encode import Faults, SliceEncoder

        self._unit, self._progress = schema.unit, progress
        self._slices, self._faults = SliceEncoder(schema, numbers=numbers), Faults(schema)
        need = (rows or 0) * row_bytes(schema, numbers)
        self._writer: SlabWriter | None = SlabWriter(
            schema, numbers, spilling.folder, slab=spilling.slab, need=need
        )
        self._people: People | None = None
        if words is not None and self._unit is not None and self._unit.column is not None:
            from gibbous.disintegrate.persons import People

            self._people = People(self._unit.column, rows, spilling.folder, words)
        self._waiting: list[np.ndarray] = []  # words of rows that do not fill a slab yet

    @property
    def done(self) -> int:
        return self._faults.rows

    def add(self, frame: pl.DataFrame) -> None:
        assert self._writer is not None
        part = self._slices.encode(frame)
        self._writer.add(part.codes, dict(part.numbers))
        self._faults.add(part)
        if self._people is not None:
            assert self._unit is not None
            self._waiting.append(self._people.lanes(frame.get_column(str(self._unit.column))))
            self._cut(self._writer.slab_rows)

    def finish(self) -> Slabs:
        self._faults.refuse()
        assert self._writer is not None
        codes = self._writer.finish()
        self._writer = None
        if self._people is None:
            return codes
        assert self._unit is not None
        try:
            self._cut(0)
            stay = self._people.stay(
                self._unit.max_rows, lambda share: self._progress("persons", int(100 * share), 100)
            )
            self._progress("persons", 100, 100)
            if stay is None:
                return codes
            kept = codes.keep(stay)
        except BaseException:
            codes.release()
            raise
        codes.release()
        return kept

    def drop(self) -> None:
        """Give the disk back whatever did not become the result."""
        if self._writer is not None:
            self._writer.drop()
        if self._people is not None:
            self._people.release()

    def _cut(self, size: int) -> None:
        """Hand over the words of slabs of so many rows; 0: of all rows that are left."""
        assert self._people is not None
        waiting = sum(lanes.shape[1] for lanes in self._waiting)
        size = size or waiting
        if not 0 < size <= waiting:
            return
        lanes = np.concatenate(self._waiting, axis=1)
        while lanes.shape[1] >= size:
            self._people.add(lanes[:, :size])
            lanes = lanes[:, size:]
        self._waiting = [lanes]


def fingerprint_of(source: Any, schema: Schema, rows: int | None, key: bytes) -> Fingerprint:
    """A keyed fingerprint of the rows of a source, to which slices are added."""
    from gibbous.read import row_sums
    from gibbous.read.fingerprint import Fingerprint
    from gibbous.read.source import null_text

    many = rows is None or rows >= MANY
    adding = row_sums.compiled if many else row_sums.plain
    return Fingerprint(key, null_text(source, schema), adding=adding)


def words_for(schema: Schema) -> Words64 | None:
    """Words that bound the rows of persons; None where rows are protected."""
    if schema.unit is None or schema.unit.kind != "person":
        return None
    from gibbous.privacy.entropy import words  # loads OpenDP

    return words
