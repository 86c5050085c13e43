"""The person unit on executors: which rows of a person stay, whatever order they come in."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from gibbous.core.context import mix64
from gibbous.disintegrate.spark import slabs


def person_words(values: pl.Series, root: bytes) -> np.ndarray:
    """Two keyed words of each identifier, uint64 (2, rows): equal identifiers, equal words."""

    def derived(what: bytes) -> bytes:
        return hashlib.blake2b(what, key=root, digest_size=16, person=b"gibbous-person").digest()

    if values.dtype.is_integer() and values.dtype not in (pl.Int128, pl.UInt64):
        whole = values.cast(pl.Int64).fill_null(0).to_numpy().view(np.uint64)
        first, second = np.frombuffer(derived(b"whole"), dtype=np.uint64)
        with np.errstate(over="ignore"):
            return np.stack(
                (mix64(mix64(whole + first) ^ second), mix64(mix64(whole + second) ^ first))
            )
    text = values.cast(pl.String).fill_null("")
    distinct = text.unique()
    digests = [derived(b"text:" + one.encode("utf-8", "surrogatepass")) for one in distinct]
    table = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
    place = text.cast(pl.Enum(distinct)).to_physical().to_numpy()
    return np.ascontiguousarray(table[place].T)


def bounded_rows(
    codes: np.ndarray, numbers: np.ndarray, people: np.ndarray, most: int, key: int
) -> np.ndarray:
    """Which rows stay when a person keeps at most `most`, as good as drawn at random.

    The choice hangs on the person's own rows and a secret key, not on their order: a task that is
    done again keeps the same rows.

    Args:
        codes: (columns, rows), all rows of each person that occurs.
        numbers: float64 (numbers kept, rows).
        people: uint64 (2, rows), from `person_words`.
        most: >= 1.
        key: 64 bits.
    Returns:
        Positions of rows, int64, increasing.
    """
    words = slabs.row_words(codes, numbers, key)
    with np.errstate(over="ignore"):
        group = people[0] + mix64(people[1])
    chosen = slabs.shuffled_words(words, group, key)
    order = np.lexsort((chosen, people[1], people[0]))
    first, second = people[0][order], people[1][order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    starts = np.flatnonzero(new)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    stay: np.ndarray = np.sort(order[place < most])
    return stay
