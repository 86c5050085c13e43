"""A frame of confidential values -> Codes under a schema; every value is checked before any charge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import SchemaMismatch
from gibbous.core.protocols import Words64
from gibbous.core.schema import Column, Schema, impossible_mask
from gibbous.encode import bins, cell_text, levels
from gibbous.encode.faults import MISSING, OUTSIDE, Fault, found, in_order, refuse
from gibbous.encode.persons import bounded
from gibbous.read.conform import conform
from gibbous.read.fields import shown
from gibbous.read.slices import row_slices

MAX_LEVELS = 10_000


def encode(
    frame: pl.DataFrame,
    schema: Schema,
    *,
    words: Words64 | None = None,
    max_levels: int = MAX_LEVELS,
) -> Codes:
    """Validate every value and encode the records.

    Args:
        frame: columns as `read.source.read_columns` gives them; not modified.
        words: cryptographic 64-bit words, for cutting persons with too many rows; None takes the
            operating system's.
        max_levels: most codes of one column.
    Returns:
        Secret codes in the order of the rows, (rows, columns); under a person unit at most
        `max_rows` randomly chosen rows of each person.
    Raises:
        SchemaMismatch: a column is missing, unexpected or of an unusable type; a value is outside
            its levels or bounds, unreadable, or missing without being declared so; a row is
            declared impossible; a person has no identifier. Columns and row numbers, never values.
    """
    encoder = Encoder(schema, frame.height, words=words, max_levels=max_levels)
    for part in row_slices(frame):
        encoder.add(part)
    return encoder.finish()


class Encoder:
    """The same from slices of rows, kept together in memory.

    Args:
        rows: number of rows of all slices together.
        numbers: positions of numeric columns whose numbers are kept beside their bins.
    """

    def __init__(
        self,
        schema: Schema,
        rows: int,
        *,
        words: Words64 | None = None,
        max_levels: int = MAX_LEVELS,
        numbers: Sequence[int] = (),
    ) -> None:
        self._slices = SliceEncoder(schema, max_levels=max_levels, numbers=numbers)
        self._numbers = {place: np.zeros(rows) for place in numbers}
        self._schema = schema
        self._words = words
        self._values = empty_codes(schema, rows)
        self._faults = Faults(schema)
        self._people: list[pl.Series] = []

    def __repr__(self) -> str:
        return "<Encoder, secret>"

    @property
    def done(self) -> int:
        """Rows so far."""
        return self._faults.rows

    def add(self, frame: pl.DataFrame) -> None:
        """Encode the next rows; what does not fit is collected, but for names and types of columns."""
        part = self._slices.encode(frame)
        rows = slice(self.done, self.done + frame.height)
        self._values.T[:, rows] = part.codes
        for place, kept in part.numbers:
            self._numbers[place][rows] = kept
        self._faults.add(part)
        unit = self._schema.unit
        if unit is not None and unit.column is not None:
            self._people.append(frame.get_column(unit.column))

    def finish(self) -> Codes:
        """Codes of all rows; see `encode`."""
        self._faults.refuse()
        numbers = tuple(self._numbers.items())
        codes = Codes(self._schema, self._values, secret=True, numbers=numbers)
        unit = self._schema.unit
        if unit is not None and self._people:
            people = pl.concat(self._people)
            if self._words is None:
                from gibbous.privacy.entropy import words  # loads OpenDP

                self._words = words
            keep = bounded(people, unit.max_rows, self._words)
            if keep is not None:
                return codes.part(keep)
        return codes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice:
    """Some rows, encoded. Secret.

    Attributes:
        codes: (columns, rows), of the type of the schema's codes; zeros in a column that has faults.
        numbers: ((column position, float64 (rows,)), ...) as asked for.
        faults: ((column position, fault), ...) with rows counted from 1 within the slice.
        impossible: ((number of the rule from 1, first row it hits, from 1), ...).
    """

    codes: np.ndarray
    numbers: tuple[tuple[int, np.ndarray], ...]
    faults: tuple[tuple[int, Fault], ...]
    impossible: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])


class SliceEncoder:
    """Slices of rows in, codes and faults of each slice out; keeps nothing of them.

    Args:
        max_levels: most codes of one column; beyond, SchemaMismatch.
        numbers: positions of numeric columns whose numbers are wanted, too.
    """

    def __init__(
        self, schema: Schema, *, max_levels: int = MAX_LEVELS, numbers: Sequence[int] = ()
    ) -> None:
        large = next((c for c in schema if c.size > max_levels), None)
        if large is not None:
            raise SchemaMismatch(
                "TOOMANYLEVELS",
                f"Column {shown(large.name)} has {large.size:,} levels or bins.",
                f"At most {max_levels:,} a column.",
                "Bin it, drop it (ignore), or replace it by a public grouping of its levels.",
            )
        self._schema, self._numbers, self._known = schema, tuple(numbers), False
        self._accepted = [None if c.binned else levels.accepted(c) for c in schema]
        self._rules = [Schema(schema.columns, impossible=(rule,)) for rule in schema.impossible]

    def encode(self, frame: pl.DataFrame) -> Slice:
        """Encode some rows; SchemaMismatch where names or types of the columns do not fit."""
        if not self._known:
            conform(frame.schema, self._schema)
            self._known = True
        values = empty_codes(self._schema, frame.height)
        faults: list[tuple[int, Fault]] = []
        numbers = []
        for index, (column, accepted) in enumerate(zip(self._schema, self._accepted, strict=True)):
            series = frame.get_column(column.name)
            codes, wrong = encode_column(series, column, accepted)
            faults += [(index, fault) for fault in wrong]
            if not wrong:
                values[:, index] = codes
            if index in self._numbers:
                read = cell_text.column_numbers if cell_text.lenient(column) else bins.numbers
                numbers.append((index, np.zeros(frame.height) if wrong else read(series, column)))
        hits = [] if faults else [impossible_mask(rule, values) for rule in self._rules]
        found = [(number, int(hit.argmax()) + 1) for number, hit in enumerate(hits, 1) if hit.any()]
        return Slice(values.T, tuple(numbers), tuple(faults), tuple(found))


class Faults:
    """What does not fit, over all slices."""

    def __init__(self, schema: Schema) -> None:
        self.rows = 0
        self._schema = schema
        self._faults: dict[tuple[int, str], Fault] = {}
        self._impossible: dict[int, int] = {}

    def add(self, part: Slice) -> None:
        """Take in the faults of the next slice."""
        self.join(part.faults, part.impossible, part.rows)

    def join(
        self, faults: Iterable[tuple[int, Fault]], impossible: Iterable[tuple[int, int]], rows: int
    ) -> None:
        """The same from the parts of a `Slice`, which follow the `rows` rows before them."""
        for index, fault in faults:
            self._faults.setdefault((index, fault.name), fault.later(self.rows))
        for number, first in impossible:
            self._impossible.setdefault(number, self.rows + first)
        self.rows += rows

    def refuse(self) -> None:
        """Raise one SchemaMismatch for everything that does not fit."""
        refuse(in_order(self._faults))
        for number, first in sorted(self._impossible.items()):
            rule = self._schema.impossible[number - 1]
            raise SchemaMismatch(
                "IMPOSSIBLE",
                f"Impossible combination {number} (over {', '.join(shown(n) for n, _ in rule.where)}) "
                f"occurs, first in data row {first:,}.",
                "A combination that is declared impossible does not occur.",
                "Correct the data, or narrow [[impossible]] in the schema.",
            )


def encode_column(
    values: pl.Series, column: Column, accepted: levels.Accepted | None = None
) -> tuple[np.ndarray, list[Fault]]:
    """Codes of one column (rows,), whole numbers, meaningful where there are no faults; and the faults.

    `accepted` is its `levels.accepted`, if that is known already.
    """
    if cell_text.lenient(column):
        return cell_text.column_codes(values, column), []
    null = values.is_null().to_numpy() if values.null_count() else None
    if column.binned:
        bins.check_bounds(column)
        codes, faults = bins.bin_codes(values, column)
    else:
        codes, faults = levels.level_codes(values, column, accepted), []
        unknown = codes == levels.UNKNOWN
        if null is not None:
            unknown &= ~null
        if column.other_code is None:
            faults = found(OUTSIDE, column.name, unknown)
        elif unknown.any():
            codes[unknown] = column.other_code
    if null is not None:
        if column.missing_code is None:
            faults += found(MISSING, column.name, null)
        else:
            codes[null] = column.missing_code
    return codes, faults
