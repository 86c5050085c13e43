"""Slabs: codes of some rows as one block of bytes; keyed words of rows, and the choices that hang on them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.codes import Codes, joined
from gibbous.core.context import mix64
from gibbous.core.schema import Schema
from gibbous.encode.persons import surplus

CELLS = 1 << 21
"""Codes a slab at most: 2 MB where codes are bytes, well below what Spark puts into one batch."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slab:
    """Codes of some rows. Secret.

    Attributes:
        codes: (columns, rows), of the type of the schema's codes.
        numbers: float64 (numbers kept, rows).
    """

    codes: np.ndarray
    numbers: np.ndarray

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])


def rows_of(columns: int) -> int:
    """Rows a slab, so that it has at most `CELLS` codes."""
    return max(1_024, min(1 << 18, CELLS // max(1, columns)))


def opened(row: Mapping[str, Any], schema: Schema) -> Slab:
    """A slab from the bytes of its codes and numbers, at least one row; nothing is copied."""
    codes = np.frombuffer(row["codes"], dtype=schema.code_dtype()).reshape(len(schema), -1)
    numbers = np.frombuffer(row["numbers"], dtype=np.float64).reshape(-1, codes.shape[1])
    return Slab(codes, numbers)


def together(slabs: Sequence[Slab], schema: Schema, numbers: Sequence[int]) -> Codes:
    """The rows of some slabs as secret codes, column after column."""

    def codes_of(slab: Slab) -> Codes:
        kept = tuple(zip(numbers, slab.numbers, strict=False))
        return Codes(schema, slab.codes.T, secret=True, numbers=kept)

    return joined([codes_of(slab) for slab in slabs])


def gathered(slabs: Iterable[Slab], most: int) -> Iterator[list[Slab]]:
    """Slabs in groups of about `most` bytes; a group has at least one."""
    group: list[Slab] = []
    size = 0
    for slab in slabs:
        group.append(slab)
        size += slab.codes.nbytes + slab.numbers.nbytes
        if size >= most:
            yield group
            group, size = [], 0
    if group:
        yield group


def row_words(codes: np.ndarray, numbers: np.ndarray, key: int) -> np.ndarray:
    """One keyed 64-bit word a row, uint64 (rows,), of its codes (columns, rows) and numbers alone.

    Equal rows have equal words, wherever they stand.
    """
    with np.errstate(over="ignore"):
        steps = mix64(np.arange(1, len(codes) + 2, dtype=np.uint64) * _ODD + np.uint64(key))
        total = np.full(codes.shape[1], steps[-1])
        for column, step in zip(codes, steps, strict=False):
            total += column.astype(np.uint64) * (step | np.uint64(1))
        for kept in numbers:
            total = mix64(total) + kept.view(np.uint64)
        return mix64(total)


def check_of(codes: np.ndarray, numbers: np.ndarray, key: int) -> int:
    """The check of a slab: an int64 that holds the sum of its words modulo 2^64."""
    return int(row_words(codes, numbers, key).sum(dtype=np.uint64).astype(np.int64))


def parts_of(
    codes: np.ndarray, numbers: np.ndarray, parts: int, *, key: bytes, task: int
) -> np.ndarray:
    """The random part of each row of a partition; the same when a task is done again.

    Word i of a keyed stream is for the i-th row in a keyed order of what the rows hold; equal rows
    may swap words, which changes no count.

    Args:
        codes: (columns, rows), all rows of the partition, in any order.
        numbers: float64 (numbers kept, rows).
        key: 32 bytes of the system's entropy, of this division alone.
        task: number of the partition.
    Returns:
        uint64 (rows,), below `parts`.
    Guarantee:
        Parts are as good as drawn independently and uniformly, whatever the rows hold, for whoever
        cannot tell SHAKE-256 under a secret key from a random function (docs/proofs/parallel.md).
    """
    order = np.argsort(row_words(codes, numbers, int.from_bytes(key[:8], "little")), kind="stable")
    stream = hashlib.shake_256(b"gibbous-parts" + task.to_bytes(8, "little") + key)
    out = np.empty(len(order), dtype=np.uint64)
    words = np.frombuffer(stream.digest(8 * len(order)), dtype="<u8")
    out[order] = words % np.uint64(parts)
    return out


def shuffled_words(words: np.ndarray, groups: np.ndarray, key: int) -> np.ndarray:
    """A word a row that differs between equal rows, and does not depend on the order they come in.

    Equal rows of one group are numbered, and the number is hashed in: which of them gets which word
    makes no difference, and all words look drawn at random to whoever has not the key. All are
    uint64 (rows,), `words` from `row_words`.
    """
    order = np.lexsort((words, groups))
    sorted_words, sorted_groups = words[order], groups[order]
    new = np.ones(len(words), dtype=bool)
    new[1:] = (sorted_words[1:] != sorted_words[:-1]) | (sorted_groups[1:] != sorted_groups[:-1])
    starts = np.flatnonzero(new)
    number = np.arange(len(words)) - np.repeat(starts, np.diff(starts, append=len(words)))
    out = np.empty(len(words), dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = mix64(sorted_words + np.uint64(key))
        out[order] = mix64(mixed ^ mix64(sorted_groups + (number.astype(np.uint64) + 1) * _ODD))
    return out


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
    """Which rows stay when a person keeps at most `most`, as good as drawn at random; increasing positions.

    The choice hangs on the person's own rows and a secret key, not on their order: a task that is
    done again keeps the same rows. All rows of each person are there; people: from `person_words`.
    """
    words = row_words(codes, numbers, key)
    with np.errstate(over="ignore"):
        group = people[0] + mix64(people[1])
    chosen = shuffled_words(words, group, key)
    return np.delete(np.arange(len(words)), surplus(people, most, chosen))
