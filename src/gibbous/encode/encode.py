"""A frame of confidential values -> Codes under a schema; every value is checked before any charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import SchemaMismatch
from gibbous.core.protocols import Words64
from gibbous.core.schema import Column, Schema, impossible_mask
from gibbous.encode import bins, levels
from gibbous.encode.faults import MISSING, OUTSIDE, Fault, found, refuse
from gibbous.encode.unit import bounded
from gibbous.read.conform import conform
from gibbous.read.fields import shown

if TYPE_CHECKING:
    import polars as pl

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
    conform(frame.schema, schema)
    _check_sizes(schema, max_levels)
    values = empty_codes(schema, frame.height)
    faults: list[Fault] = []
    for index, column in enumerate(schema):
        codes, wrong = encode_column(frame.get_column(column.name), column)
        faults += wrong
        if not wrong:
            values[:, index] = codes
    refuse(faults)
    _check_impossible(schema, values)
    if schema.unit is not None and schema.unit.column is not None:
        people = frame.get_column(schema.unit.column)
        keep = bounded(people, schema.unit.max_rows, words or _system_words())
        if keep is not None:
            values = np.ascontiguousarray(values.T[:, keep]).T
    return Codes(schema, values, secret=True)


def encode_column(values: pl.Series, column: Column) -> tuple[np.ndarray, list[Fault]]:
    """Codes of one column, and what does not fit.

    Args:
        values: the column.
        column: its description.
    Returns:
        Whole numbers (rows,), meaningful where there are no faults; and the faults.
    """
    if column.binned:
        bins.check_bounds(column)
        codes, faults = bins.bin_codes(values, column)
        null = values.is_null().to_numpy() if values.null_count() else None
    else:
        codes, faults = levels.level_codes(values, column), []
        null = values.is_null().to_numpy() if values.null_count() else None
        unknown = codes == levels.UNKNOWN
        if null is not None:
            unknown &= ~null
        if column.other_code is not None:
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
