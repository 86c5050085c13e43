"""The person unit: at most `max_rows` rows of each person, chosen at random."""

from __future__ import annotations

import numpy as np
import polars as pl

from gibbous.core.errors import SchemaMismatch
from gibbous.core.protocols import Words64
from gibbous.read.fields import shown


def bounded(people: pl.Series, max_rows: int, words: Words64) -> np.ndarray | None:
    """Which rows stay when each person keeps at most `max_rows` rows, uniformly at random.

    Args:
        people: identifier of each row.
        max_rows: the most rows of one person, >= 1.
        words: cryptographic 64-bit words; asked for only when somebody has too many rows.
    Returns:
        bool (rows,), or None when every row stays.
    Raises:
        SchemaMismatch: a row has no identifier.
    """
    unknown = people.is_null()
    if people.dtype.is_float():
        unknown |= people.is_nan().fill_null(value=False)
    if unknown.any():
        raise SchemaMismatch(
            "NULLID",
            f"Column {shown(people.name)}, the person identifier, is missing, first "
            f"in data row {int(unknown.arg_max() or 0) + 1:,}.",
            "Every row belongs to a person.",
            "Complete the identifier, or drop those rows before.",
        )
    person = people.rank("dense").to_numpy().astype(np.int64) - 1
    if people.is_empty() or np.bincount(person).max() <= max_rows:
        return None
    heavy = np.flatnonzero(np.bincount(person)[person] > max_rows)
    order = heavy[np.lexsort((words(len(heavy)), person[heavy]))]
    first = np.flatnonzero(np.diff(person[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    keep = np.ones(len(person), dtype=bool)
    keep[order[place >= max_rows]] = False
    return keep
