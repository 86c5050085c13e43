"""Slabs: encoded records on disk, some rows at a time; written once, read as often as they are counted.

A slab holds some hundred thousand rows as (columns, rows) in one piece, then the numbers that were
kept beside them. Two buffers take turns: while one slab is counted, the next one is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.protocols import Words64
from gibbous.core.recode import Change, recoded, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.secret import Secret
from gibbous.disintegrate.spill import SpillFile

SLAB = 24 << 20  # bytes of codes and numbers of one slab
LEAST, MOST = 1 << 10, 1 << 21  # rows of a slab, however many or few columns there are


@dataclass(frozen=True, slots=True)
class Place:
    """Where a slab lies: first byte, and number of rows."""

    start: int
    rows: int


class Slabs(Secret):
    """Records of a schema on disk. Secret.

    Args:
        schema: what the codes mean.
        numbers: positions of the columns whose numbers are kept.
        file: holds the slabs; this object is one of its users.
        places: the slabs, in order.
        layout: schema of the codes on disk, where they are shown under a coarser one.
        changes: what makes the coarser codes, one after the other.
    """

    def __init__(
        self,
        schema: Schema,
        numbers: tuple[int, ...],
        file: SpillFile,
        places: Sequence[Place],
        *,
        layout: Schema | None = None,
        changes: tuple[tuple[Mapping[int, Change], Schema], ...] = (),
    ) -> None:
        self.schema, self.numbers, self.places = schema, numbers, tuple(places)
        self.rows = sum(place.rows for place in places)
        self._file, self._layout, self._changes = file, layout or schema, changes

    @property
    def bytes(self) -> int:
        """Bytes of the largest slab."""
        return max((self._size(place) for place in self.places), default=0)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return row_bytes(self._layout, self.numbers)

    def read(self, columns: Sequence[int] | None = None) -> Iterator[Codes]:
        """The records, slab by slab; at least one slab, which is empty where there are no records.

        Codes of columns that are not asked for mean nothing; all are good until the next ones are asked for.
        """
        if self._changes:
            columns = None  # new cut points look at other columns
        wanted = range(len(self._layout)) if columns is None else sorted(set(columns))
        buffers = [np.empty(self.bytes, dtype=np.uint8) for _ in self.places[:2]]
        pool = ThreadPoolExecutor(1, thread_name_prefix="gibbous-read")
        try:
            if not self.places:
                yield self._shown(_empty(self._layout, self.numbers))
            coming = None
            for i, place in enumerate(self.places):
                now = coming or pool.submit(self._read, place, buffers[i % 2], wanted)
                found = now.result()
                coming = None
                if i + 1 < len(self.places):
                    after, buffer = self.places[i + 1], buffers[(i + 1) % 2]
                    coming = pool.submit(self._read, after, buffer, wanted)
                yield self._shown(found)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # nobody writes into a buffer afterwards

    def recoded(self, changes: Mapping[int, Change]) -> Slabs:
        """The same records under a coarser schema: recoded whenever they are read, never copied."""
        coarser = recoded_schema(self.schema, changes)
        return Slabs(
            coarser,
            self.numbers,
            self._file.shared(),
            self.places,
            layout=self._layout,
            changes=(*self._changes, (changes, coarser)),
        )

    def split(self, parts: int, words: Words64, folder: Path, *, slab: int) -> list[Slabs]:
        """Copies of the records in random parts, in slabs of so many bytes; see `records.parted`."""
        need = -(-self.rows * row_bytes(self.schema, self.numbers) // parts)
        writers = [
            SlabWriter(self.schema, self.numbers, folder, slab=slab, need=need)
            for _ in range(parts)
        ]
        try:
            for codes in self.read():
                chosen = words(codes.rows) % np.uint64(parts)
                for part, writer in enumerate(writers):
                    mine = codes.part(chosen == np.uint64(part))
                    writer.add(mine.by_column, dict(mine.numbers))
            return [writer.finish() for writer in writers]
        except BaseException:
            for writer in writers:
                writer.drop()
            raise

    def keep(self, chosen: Sequence[np.ndarray]) -> Slabs:
        """Drop rows for good, each slab in its place; chosen: bool (rows of the slab,), what stays."""
        assert not self._changes
        places = []
        for place, stays in zip(self.places, chosen, strict=True):
            if stays.all():
                places.append(place)
                continue
            codes = self._read(place, np.empty(self._size(place), dtype=np.uint8), None)
            kept = codes.part(stays)
            start = place.start + self._file.put(place.start, kept.by_column)
            for _, numbers in kept.numbers:
                start += self._file.put(start, numbers)
            places.append(Place(place.start, kept.rows))
        return Slabs(self.schema, self.numbers, self._file.shared(), places)

    def release(self) -> None:
        """Give the records up; the disk has its room back when nobody else looks at them."""
        self._file.release()

    def _size(self, place: Place) -> int:
        return place.rows * row_bytes(self._layout, self.numbers)

    def _read(self, place: Place, buffer: np.ndarray, wanted: Sequence[int] | None) -> Codes:
        kind, columns, rows = self._layout.code_dtype(), len(self._layout), place.rows
        held = columns * rows * np.dtype(kind).itemsize
        values = buffer[:held].view(kind).reshape(columns, rows)
        for low, high in _runs(wanted, columns):
            start = place.start + low * rows * np.dtype(kind).itemsize
            self._file.get(start, values[low:high])
        kept = np.empty((len(self.numbers), rows))
        self._file.get(place.start + held, kept)
        numbers = tuple(zip(self.numbers, kept, strict=True))
        return Codes(self._layout, values.T, secret=True, numbers=numbers)

    def _shown(self, codes: Codes) -> Codes:
        for changes, coarser in self._changes:
            codes = recoded(codes, changes, coarser)
        return codes


class SlabWriter(Secret):
    """Encoded rows in, slabs on disk out; ResourceLimit where the disk is full.

    Args:
        numbers: positions of the columns whose numbers come with them.
        folder: see `spill.scratch_folder`.
        slab: bytes of a slab, about.
        need: bytes of all slabs, as far as known.
    """

    def __init__(
        self,
        schema: Schema,
        numbers: Sequence[int],
        folder: Path,
        *,
        slab: int = SLAB,
        need: int = 0,
    ) -> None:
        self._schema, self._numbers = schema, tuple(numbers)
        self._file = SpillFile(folder, need)
        rows = min(MOST, max(LEAST, slab // max(1, row_bytes(schema, self._numbers))))
        self._values = np.empty((len(schema), rows), dtype=schema.code_dtype())
        self._kept = np.empty((len(self._numbers), rows))
        self._filled = 0
        self._places: list[Place] = []

    @property
    def slab_rows(self) -> int:
        """Rows of every slab but the last."""
        return int(self._values.shape[1])

    def add(self, codes: np.ndarray, numbers: Mapping[int, np.ndarray]) -> None:
        """Take more rows: codes (columns, rows), and numbers, position -> float64 (rows,)."""
        done, rows = 0, codes.shape[1]
        while done < rows:
            take = min(rows - done, self.slab_rows - self._filled)
            here, there = slice(self._filled, self._filled + take), slice(done, done + take)
            self._values[:, here] = codes[:, there]
            for i, place in enumerate(self._numbers):
                self._kept[i, here] = numbers[place][there]
            self._filled += take
            done += take
            if self._filled == self.slab_rows:
                self._flush()

    def finish(self) -> Slabs:
        """What was written."""
        if self._filled:
            self._flush()
        return Slabs(self._schema, self._numbers, self._file, self._places)

    def drop(self) -> None:
        """Forget what was written."""
        self._file.release()

    def _flush(self) -> None:
        rows, self._filled = self._filled, 0
        start = self._file.append(self._values[:, :rows], self._kept[:, :rows])
        self._places.append(Place(start, rows))


def row_bytes(schema: Schema, numbers: Sequence[int] = ()) -> int:
    """Bytes of one encoded row."""
    return len(schema) * np.dtype(schema.code_dtype()).itemsize + 8 * len(numbers)


def _runs(wanted: Sequence[int] | None, columns: int) -> list[tuple[int, int]]:
    """Neighboring columns together: (first, behind the last)."""
    if wanted is None:
        return [(0, columns)]
    runs: list[tuple[int, int]] = []
    for column in wanted:
        if runs and runs[-1][1] == column:
            runs[-1] = (runs[-1][0], column + 1)
        else:
            runs.append((column, column + 1))
    return runs


def _empty(schema: Schema, numbers: tuple[int, ...]) -> Codes:
    values = np.zeros((len(schema), 0), dtype=schema.code_dtype())
    return Codes(schema, values.T, secret=True, numbers=tuple((n, np.zeros(0)) for n in numbers))
