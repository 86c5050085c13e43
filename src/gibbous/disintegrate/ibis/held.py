"""Held: what one engine holds of a store, a table of codes under a schema; and how it is filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.protocols import Progress
from gibbous.core.schema import Schema
from gibbous.disintegrate.ibis.store import Store

if TYPE_CHECKING:
    from gibbous.disintegrate.persons import People
    from gibbous.read.source import ReadOptions


@dataclass(slots=True, eq=False, repr=False)
class Held:
    """Records of one engine. Secret.

    Attributes:
        store: holds them; this object is one of its users.
        schema: what the codes mean.
        numbers: positions of the columns whose numbers are kept.
        table: their table, with columns c0, c1, ... and n0, ... for numbers.
        rows: how many.
    """

    store: Store
    schema: Schema
    numbers: tuple[int, ...]
    table: str
    rows: int = 0

    def beside(self, schema: Schema) -> Held:
        """An empty table of the same store, which gets one more user."""
        store = self.store.shared()
        try:
            return Held.new(store, schema, self.numbers)
        except BaseException:
            store.release()
            raise

    @staticmethod
    def new(
        store: Store, schema: Schema, numbers: Sequence[int], *, numbered: bool = False
    ) -> Held:
        """An empty table of a store that the caller is one user of already.

        Args:
            numbered: a column `row` numbers the records, until some of them are dropped.
        """
        columns = {f"c{i}": _type(size) for i, size in enumerate(schema.sizes)}
        columns |= {f"n{place}": np.dtype(np.float64) for place in numbers}
        columns |= {"row": np.dtype(np.int64)} if numbered else {}
        return Held(store, schema, tuple(numbers), store.create(columns))

    def __repr__(self) -> str:
        return "<Held, secret>"

    def append(self, codes: Codes) -> None:
        """Add records of the same schema."""
        self.add(codes.by_column, dict(codes.numbers))

    def add(
        self, codes: np.ndarray, numbers: dict[int, np.ndarray], *, numbered: bool = False
    ) -> None:
        """Add records.

        Args:
            codes: (columns, rows).
            numbers: position -> float64 (rows,).
            numbered: as for `new`.
        """
        rows = codes.shape[1]
        if not rows:
            return
        sizes = self.schema.sizes
        part = {f"c{i}": column.astype(_type(sizes[i])) for i, column in enumerate(codes)}
        part |= {f"n{place}": numbers[place] for place in self.numbers}
        part |= {"row": np.arange(self.rows, self.rows + rows)} if numbered else {}
        self.store.append(self.table, part)
        self.rows += rows

    def slices(self) -> Iterator[Codes]:
        """The records, some at a time; at least one slice, which is empty where there are none."""
        kind, columns = self.schema.code_dtype(), range(len(self.schema))
        some = False
        for part in self.store.read(self.table):
            some = True
            values = np.stack([part[f"c{i}"].astype(kind, copy=False) for i in columns])
            numbers = tuple((place, part[f"n{place}"]) for place in self.numbers)
            yield Codes(self.schema, values.T, secret=True, numbers=numbers)
        if not some:
            numbers = tuple((place, np.empty(0)) for place in self.numbers)
            yield Codes(self.schema, empty_codes(self.schema, 0), secret=True, numbers=numbers)

    def keep(self, stay: Sequence[np.ndarray]) -> None:
        """Drop records.

        Args:
            stay: bool, some rows each, in the order in which they were added.
        """
        gone = np.flatnonzero(~np.concatenate(stay))
        self.table = self.store.without(self.table, gone)
        self.rows -= len(gone)

    def release(self) -> None:
        """Drop the table; the store goes with its last user."""
        self.store.release(self.table)


def scan(
    source: Any,
    schema: Schema,
    store: Store,
    *,
    key: bytes,
    options: ReadOptions | None,
    progress: Progress,
    numbers: Sequence[int],
) -> tuple[Held, bytes]:
    """Read, fingerprint, validate and encode; the loop of `disintegrate.scanning`, into a database.

    Args:
        source: see `sources.opened`.
        store: for the codes; handed over to the result.
        key: secret key of this installation's ledger.
    Returns:
        The records, and the keyed fingerprint (32 bytes) of the rows as they were read.
    Guarantee:
        A person of the schema's unit has at most `max_rows` rows; which ones is drawn with words of
        the operating system.
    Raises:
        InputRejected, SchemaMismatch, ResourceLimit, EngineFailure: without any cell value.
    """
    from gibbous.disintegrate.ibis.sources import opened
    from gibbous.encode.encode import Faults, SliceEncoder
    from gibbous.encode.levels import coded, dictionaries
    from gibbous.read.fingerprint import Fingerprint
    from gibbous.read.source import ReadOptions, null_text

    progress("read", 0, 100)
    mark, known = Fingerprint(key, null_text(source, schema)), dictionaries(schema)
    encoder, faults = SliceEncoder(schema, numbers=numbers), Faults(schema)
    with opened(source, schema=schema, options=options or ReadOptions()) as (rows, frames):
        people = _people(schema, rows, store)
        held = Held.new(store, schema, numbers, numbered=people is not None)
        try:
            for frame in frames:
                part = coded(frame, known)
                mark.add(part)
                found = encoder.encode(part)
                faults.add(found)
                held.add(found.codes, dict(found.numbers), numbered=people is not None)
                if people is not None and schema.unit is not None and part.height:
                    people.add(people.lanes(part.get_column(str(schema.unit.column))))
                progress("read", 100 * min(faults.rows, rows) // max(1, rows), 100)
            faults.refuse()
            _bound(held, people, progress)
        finally:
            if people is not None:
                people.release()
    progress("read", 100, 100)
    return held, mark.digest()


def _bound(held: Held, people: People | None, progress: Progress) -> None:
    unit = held.schema.unit
    if people is None or unit is None or not held.rows:
        return
    stay = people.stay(unit.max_rows, lambda share: progress("persons", int(100 * share), 100))
    if stay is not None:
        held.keep(stay)
    progress("persons", 100, 100)


def _people(schema: Schema, rows: int, store: Store) -> People | None:
    unit = schema.unit
    if unit is None or unit.column is None:
        return None
    from gibbous.disintegrate.persons import People
    from gibbous.privacy.entropy import words  # loads OpenDP

    return People(unit.column, rows, store.folder, words)


def _type(size: int) -> np.dtype:
    return np.dtype(np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32)
