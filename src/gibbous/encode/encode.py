"""A frame of confidential values -> Codes under a schema; every value is checked before any charge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import SchemaMismatch
from gibbous.core.protocols import Words64
from gibbous.core.schema import Column, Schema, impossible_mask
from gibbous.encode import bins, levels
from gibbous.encode.faults import MISSING, OUTSIDE, Fault, found, in_order, refuse
from gibbous.encode.unit import bounded
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
        schema: the declared schema.
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
    """The same from slices of rows.

    Args:
        schema: the declared schema.
        rows: number of rows of all slices together.
        words, max_levels: as for `encode`.
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
        _check_sizes(schema, max_levels)
        self._numbers = {place: np.zeros(rows) for place in numbers}
        self.done = 0
        self._schema = schema
        self._words = words
        self._values = empty_codes(schema, rows)
        self._accepted = [None if c.binned else levels.accepted(c) for c in schema]
        self._faults: dict[tuple[int, str], Fault] = {}
        self._people: list[pl.Series] = []

    def __repr__(self) -> str:
        return "<Encoder, secret>"

    def add(self, frame: pl.DataFrame) -> None:
        """Encode the next rows; what does not fit is collected.

        Raises:
            SchemaMismatch: names or types of the columns do not fit.
        """
        if self.done == 0:
            conform(frame.schema, self._schema)
        start, self.done = self.done, self.done + frame.height
        for index, (column, accepted) in enumerate(zip(self._schema, self._accepted, strict=True)):
            codes, wrong = encode_column(frame.get_column(column.name), column, accepted)
            if not wrong:
                self._values[start : self.done, index] = codes
            if index in self._numbers and not wrong:
                found = bins.numbers(frame.get_column(column.name), column)
                self._numbers[index][start : self.done] = found
            for fault in wrong:
                place, known = (index, fault.name), self._faults.get((index, fault.name))
                self._faults[place] = fault.later(start) if known is None else known.and_also(fault)
        unit = self._schema.unit
        if unit is not None and unit.column is not None:
            self._people.append(frame.get_column(unit.column))

    def finish(self) -> Codes:
        """Codes of all rows; see `encode`.

        Raises:
            SchemaMismatch: a value or a row does not fit.
        """
        refuse(in_order(self._faults))
        _check_impossible(self._schema, self._values)
        numbers = tuple(self._numbers.items())
        codes = Codes(self._schema, self._values, secret=True, numbers=numbers)
        unit = self._schema.unit
        if unit is not None and self._people:
            people = pl.concat(self._people)
            keep = bounded(people, unit.max_rows, self._words or _system_words())
            if keep is not None:
                return codes.part(keep)
        return codes


def encode_column(
    values: pl.Series, column: Column, accepted: levels.Accepted | None = None
) -> tuple[np.ndarray, list[Fault]]:
    """Codes of one column, and what does not fit.

    Args:
        values: the column.
        column: its description.
        accepted: its `levels.accepted`, if it is known already.
    Returns:
        Whole numbers (rows,), meaningful where there are no faults; and the faults.
    """
    if column.binned:
        bins.check_bounds(column)
        codes, faults = bins.bin_codes(values, column)
        null = values.is_null().to_numpy() if values.null_count() else None
    else:
        codes, faults = levels.level_codes(values, column, accepted), []
        null = values.is_null().to_numpy() if values.null_count() else None
        unknown = codes == levels.UNKNOWN
        if null is not None:
            unknown &= ~null
        if not unknown.any():
            pass
        elif column.other_code is not None:
            codes[unknown] = column.other_code
        else:
            faults = found(OUTSIDE, column.name, unknown)
    if null is not None:
        if column.missing_code is None:
            faults += found(MISSING, column.name, null)
        else:
            codes[null] = column.missing_code
    return codes, faults


def _check_sizes(schema: Schema, most: int) -> None:
    large = [c for c in schema if c.size > most]
    if large:
        raise SchemaMismatch(
            "TOOMANYLEVELS",
            f"Column {shown(large[0].name)} has {large[0].size:,} levels or bins.",
            f"At most {most:,} a column.",
            "Bin it, drop it (ignore), or replace it by a public grouping of its levels.",
        )


def _check_impossible(schema: Schema, values: np.ndarray) -> None:
    if not schema.impossible:
        return
    for number, rule in enumerate(schema.impossible, 1):
        alone = Schema(schema.columns, impossible=(rule,))
        hit = impossible_mask(alone, values)
        if hit.any():
            raise SchemaMismatch(
                "IMPOSSIBLE",
                f"Impossible combination {number} (over {', '.join(shown(n) for n, _ in rule.where)}) "
                f"occurs in {int(hit.sum()):,} rows, first in data row {int(hit.argmax()) + 1:,}.",
                "A combination that is declared impossible does not occur.",
                "Correct the data, or narrow [[impossible]] in the schema.",
            )


def _system_words() -> Words64:
    from gibbous.privacy.entropy import words

    return words
