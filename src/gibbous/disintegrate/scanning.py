"""Scanning: a source and its schema in; secret codes and the fingerprint of the rows out.

The next rows are decoded while the last ones are encoded, and, with two threads, fingerprinted.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.protocols import Progress, Words64
from gibbous.core.schema import Schema
from gibbous.disintegrate.records import Store
from gibbous.disintegrate.slabs import SLAB, SlabWriter, row_bytes

if TYPE_CHECKING:
    import polars as pl

    from gibbous.disintegrate.persons import People
    from gibbous.disintegrate.slabs import Slabs
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
    numbers: Sequence[int] = (),
    threads: int = 1,
) -> tuple[Codes, bytes]:
    """Read, fingerprint, validate and encode, in memory.

    Args:
        source: a path, a folder or pattern of Parquet files, or a frame.
        key: secret key of this installation's ledger.
        options: how to read a text file; None for the defaults.
        numbers: positions of numeric columns whose numbers are kept beside their bins.
        threads: with two, fingerprints are made beside the codes.
    Returns:
        Secret codes, and the keyed fingerprint (32 bytes) of the rows as they were read.
    Guarantee:
        A person of the schema's unit has at most `max_rows` rows in the codes; which ones is drawn
        with words of the operating system.
    Raises:
        InputRejected, SchemaMismatch, ResourceLimit: without any cell value in the text.
    """
    codes, mark = scan_to(
        source,
        schema,
        key=key,
        options=options,
        progress=progress,
        numbers=numbers,
        threads=threads,
        spilling=None,
        kernels=False,
    )
    assert isinstance(codes, Codes)
    return codes, mark


def scan_to(
    source: Any,
    schema: Schema,
    *,
    key: bytes,
    options: ReadOptions | None,
    progress: Progress,
    numbers: Sequence[int],
    threads: int,
    spilling: Spilling | None,
    kernels: bool = True,
) -> tuple[Store, bytes]:
    """The same, on disk where the codes are more than `spilling` allows in memory.

    Args:
        kernels: whether compiled kernels may be used, as they will be to count.
    Raises:
        ResourceLimit: the disk is full, too.
    """
    from gibbous.encode.levels import coded, dictionaries
    from gibbous.read import row_sums
    from gibbous.read.fingerprint import Fingerprint
    from gibbous.read.source import ReadOptions, null_text, read_slices

    progress("read", 0, 100)
    known = dictionaries(schema)
    with ExitStack() as stack:
        rows, frames = stack.enter_context(
            read_slices(source, schema=schema, options=options or ReadOptions())
        )
        adding = row_sums.compiled if kernels and rows >= MANY else row_sums.plain
        mark = Fingerprint(key, null_text(source, schema), adding=adding)
        encoder = _encoder(schema, rows, numbers, spilling)
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
            progress("read", 100 * encoder.done // max(1, rows), 100)
        if marked is not None:
            marked.result()
        codes = encoder.finish(progress)
    progress("read", 100, 100)
    return codes, mark.digest()


class _Encoding(Protocol):
    """Slices of rows in, codes out."""

    @property
    def done(self) -> int: ...

    def add(self, frame: pl.DataFrame) -> None: ...

    def finish(self, progress: Progress) -> Store: ...

    def drop(self) -> None: ...


def _encoder(
    schema: Schema, rows: int, numbers: Sequence[int], spilling: Spilling | None
) -> _Encoding:
    words = _words(schema)
    if spilling is None or rows * row_bytes(schema, numbers) <= spilling.above:
        return _InMemory(schema, rows, numbers, words)
    return _OnDisk(schema, rows, numbers, words, spilling)


class _InMemory:
    """Codes in memory."""

    def __init__(
        self, schema: Schema, rows: int, numbers: Sequence[int], words: Words64 | None
    ) -> None:
        from gibbous.encode.encode import Encoder

        self._encoder = Encoder(schema, rows, words=words, numbers=numbers)

    @property
    def done(self) -> int:
        return self._encoder.done

    def add(self, frame: pl.DataFrame) -> None:
        self._encoder.add(frame)

    def finish(self, progress: Progress) -> Codes:
        return self._encoder.finish()

    def drop(self) -> None:
        return None


class _OnDisk:
    """Codes on disk, and the words of persons beside them until their rows are bounded."""

    def __init__(
        self,
        schema: Schema,
        rows: int,
        numbers: Sequence[int],
        words: Words64 | None,
        spilling: Spilling,
    ) -> None:
        from gibbous.encode.encode import Faults, SliceEncoder

        self._schema, self._unit = schema, schema.unit
        self._slices, self._faults = SliceEncoder(schema, numbers=numbers), Faults(schema)
        self._writer: SlabWriter | None = SlabWriter(
            schema,
            numbers,
            spilling.folder,
            slab=spilling.slab,
            need=rows * row_bytes(schema, numbers),
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

    def finish(self, progress: Progress) -> Slabs:
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
                self._unit.max_rows, lambda share: progress("persons", int(100 * share), 100)
            )
            progress("persons", 100, 100)
            return codes if stay is None else _kept(codes, stay)
        except BaseException:
            codes.release()
            raise

    def drop(self) -> None:
        """Give the disk back whatever did not become the result."""
        if self._writer is not None:
            self._writer.drop()
        if self._people is not None:
            self._people.release()

    def _cut(self, size: int) -> None:
        """Hand over the words of slabs of so many rows; 0: of all rows that are left."""
        assert self._people is not None
        held = sum(lanes.shape[1] for lanes in self._waiting)
        size = size or held
        if not 0 < size <= held:
            return
        lanes = np.concatenate(self._waiting, axis=1)
        while lanes.shape[1] >= size:
            self._people.add(lanes[:, :size])
            lanes = lanes[:, size:]
        self._waiting = [lanes]


def _kept(codes: Slabs, stay: list[np.ndarray]) -> Slabs:
    kept = codes.keep(stay)
    codes.release()
    return kept


def _words(schema: Schema) -> Words64 | None:
    if schema.unit is None or schema.unit.kind != "person":
        return None
    from gibbous.privacy.entropy import words  # loads OpenDP

    return words
