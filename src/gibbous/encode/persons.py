"""Identifiers of persons in; which rows stay when each person keeps at most so many, at random."""

from __future__ import annotations

import numpy as np
import polars as pl

from gibbous.core.errors import SchemaMismatch
from gibbous.core.protocols import Words64
from gibbous.read.fields import shown


def bounded(people: pl.Series, max_rows: int, words: Words64) -> np.ndarray | None:
    """Which rows stay, bool (rows,), when each person keeps at most `max_rows`, uniformly at random.

    Gives None when every row stays; SchemaMismatch where one has no identifier. Cryptographic 64-bit
    words are asked for only when somebody has too many rows.
    """
    people = identifiers(people)
    row = first_without(people)
    if row:
        raise no_person(people.name, row)
    person = people.rank("dense").to_numpy().astype(np.uint64)
    keep = np.ones(len(person), dtype=bool)
    keep[surplus(person[None], max_rows, words)] = False
    return None if keep.all() else keep


def surplus(who: np.ndarray, most: int, dice: np.ndarray | Words64) -> np.ndarray:
    """Places of the rows that go when each person keeps the `most` rows of the lowest dice.

    Args:
        who: uint64 (lanes, rows): rows that agree in all lanes belong to one person.
        dice: cryptographic: uint64 (rows,), or words to draw them from for those who have too many.
    """
    order = np.lexsort(who[::-1])
    new = np.zeros(len(order), dtype=bool)
    for lane in who:
        new[1:] |= lane[order[1:]] != lane[order[:-1]]
    person = np.cumsum(new)
    size = np.bincount(person, minlength=1)
    heavy = np.flatnonzero(size[person] > most)
    if not len(heavy):
        return heavy
    rows, person = order[heavy], person[heavy]
    rolled = dice[rows] if isinstance(dice, np.ndarray) else dice(len(rows))
    by = np.lexsort((rolled, person))
    first = np.flatnonzero(np.diff(person[by], prepend=-1))
    place = np.arange(len(by)) - np.repeat(first, np.diff(first, append=len(by)))
    gone: np.ndarray = rows[by[place >= most]]
    return gone


def identifiers(people: pl.Series) -> pl.Series:
    """Identifiers as they are compared: text without outer blanks, in one Unicode form (NFC); else missing.

    SchemaMismatch for floats that are not whole, or beyond 2^53: of decimals, two may be one float.
    """
    held = people.drop_nulls().drop_nans() if people.dtype.is_float() else people.clear()
    if ((held.abs() > 1 << 53) | (held != held.round())).any() if len(held) else False:
        raise SchemaMismatch(
            "IDTYPE",
            f"Column {shown(people.name)}, the person identifier, holds floats that are not whole.",
            "Identifiers are text or whole numbers: two persons could have one float.",
            "Convert the column to text.",
        )
    if not isinstance(people.dtype, pl.String | pl.Categorical | pl.Enum):
        return people
    texts = people.cast(pl.String).str.strip_chars()
    if (texts.str.len_bytes() != texts.str.len_chars()).any():
        texts = texts.str.normalize("NFC")
    return texts.set(texts == "", None)


def first_without(people: pl.Series) -> int:
    """The first row without an identifier, from 1; 0 if there is none."""
    unknown = people.is_null()
    if people.dtype.is_float():
        unknown |= people.is_nan().fill_null(value=False)
    return int(unknown.arg_max() or 0) + 1 if unknown.any() else 0


def no_person(column: str, row: int) -> SchemaMismatch:
    """The error for rows that belong to nobody, the first counted from 1."""
    return SchemaMismatch(
        "NULLID",
        f"Column {shown(column)}, the person identifier, is missing, first in data row {row:,}.",
        "Every row belongs to a person.",
        "Complete the identifier, or drop those rows before.",
    )
