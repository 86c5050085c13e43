"""Persons: identifiers slab by slab in, which rows stay out, when each keeps at most so many rows.

For records that are too many for memory. An identifier becomes keyed words: a whole number, a day or
a float one word, by a bijection; text two, by hashes under seeds that the operating system gives and
nobody sees. Two texts agree in both words with probability about 2^-128, and then count as one
person. The words lie on disk, sorted within each slab, and are grouped a range of words at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gibbous.core.context import mix64
from gibbous.core.protocols import Words64
from gibbous.disintegrate.spill import SpillFile
from gibbous.encode.levels import as_text
from gibbous.encode.persons import first_without, identifiers, no_person, surplus

RANGE = 1 << 20  # rows whose words are grouped at once
UNKNOWN = 1 << 26  # rows that are made ready for where nobody knows their number


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Sorted:
    """Words of one slab on disk: a block a lane, then the row within the slab of each.

    Attributes:
        start: first byte.
        rows: of the slab.
        cuts: int64 (ranges + 1,): where each range of words starts.
    """

    start: int
    rows: int
    cuts: np.ndarray


class People:
    """Who every row belongs to. Secret.

    Args:
        name: of the column of identifiers.
        rows: of all slabs; None where nobody knows.
        folder: see `spill.scratch_folder`.
        words: cryptographic 64-bit words.
    """

    def __init__(self, name: str, rows: int | None, folder: Path, words: Words64) -> None:
        self._name, self._words, self._file = name, words, SpillFile(folder)
        self._seeds = words(2)
        self._ranges = 1 << max(0, ((UNKNOWN if rows is None else rows) // RANGE).bit_length())
        self._slabs: list[_Sorted] = []
        self._lanes = 0
        self._rows = self._first_missing = 0

    def __repr__(self) -> str:
        return "<People, secret>"

    def lanes(self, people: pl.Series) -> np.ndarray:
        """Keyed words of some rows, uint64 (1 or 2, rows); rows without an identifier are noted."""
        people = identifiers(people)
        without = first_without(people)
        if without and not self._first_missing:
            self._first_missing = self._rows + without
        self._rows += len(people)
        return _words_of(people, self._seeds)

    def add(self, lanes: np.ndarray) -> None:
        """Keep the words of one slab; ResourceLimit where the disk is full."""
        self._lanes = len(lanes)
        order = np.argsort(lanes[0]).astype(np.uint32)
        first = lanes[0][order]
        step = (1 << 64) // self._ranges
        edges = np.array([step * i for i in range(1, self._ranges)], dtype=np.uint64)
        cuts = np.concatenate(([0], np.searchsorted(first, edges), [len(order)]))
        start = self._file.append(first, *(lane[order] for lane in lanes[1:]), order)
        self._slabs.append(_Sorted(start, len(order), cuts.astype(np.int64)))

    def stay(self, most: int, progress: Callable[[float], object]) -> list[np.ndarray] | None:
        """Which rows stay when each person keeps at most `most` >= 1, uniformly at random.

        Gives bool (rows of the slab,) a slab, or None when every row stays; SchemaMismatch where a row
        has no identifier. `progress` is told the share that is done.
        """
        if self._first_missing:
            raise no_person(self._name, self._first_missing)
        starts = np.cumsum([0, *(slab.rows for slab in self._slabs)])
        dropped = np.zeros(starts[-1] // 8 + 1, dtype=np.uint8)  # a bit a row
        for i in range(self._ranges):
            progress(i / self._ranges)
            out = self._dropped(i, most, starts)
            np.bitwise_or.at(dropped, out >> 3, (1 << (out & 7)).astype(np.uint8))
        if not dropped.any():
            return None
        return [_unset(dropped, a, b) for a, b in zip(starts[:-1], starts[1:], strict=True)]

    def release(self) -> None:
        """Forget the words."""
        self._file.release()

    def _dropped(self, part: int, most: int, starts: np.ndarray) -> np.ndarray:
        """Rows, int64, that go, among the persons in one range of words."""
        who, row = np.empty((self._lanes, 0), np.uint64), np.empty(0, np.int64)
        dice: np.ndarray | None = None
        gone = []
        for slab, start in zip(self._slabs, starts, strict=False):
            lanes, rows = self._part(slab, part)
            who, row = np.concatenate((who, lanes), axis=1), np.concatenate((row, rows + start))
            if dice is not None:
                dice = np.concatenate((dice, self._words(len(rows))))
            if len(row) > 4 * RANGE:  # somebody has very many rows: thin them out on the way
                dice = self._words(len(row)) if dice is None else dice
                out = surplus(who, most, dice)
                gone.append(row[out])
                keep = np.ones(len(row), dtype=bool)
                keep[out] = False
                who, row, dice = who[:, keep], row[keep], dice[keep]
        gone.append(row[surplus(who, most, self._words if dice is None else dice)])
        return np.concatenate(gone)

    def _part(self, slab: _Sorted, part: int) -> tuple[np.ndarray, np.ndarray]:
        a, b = int(slab.cuts[part]), int(slab.cuts[part + 1])
        lanes, rows = np.empty((self._lanes, b - a), np.uint64), np.empty(b - a, np.uint32)
        for i, lane in enumerate(lanes):
            self._file.get(slab.start + 8 * (i * slab.rows + a), lane)
        self._file.get(slab.start + 8 * self._lanes * slab.rows + 4 * a, rows)
        return lanes, rows.astype(np.int64)


def _words_of(people: pl.Series, seeds: np.ndarray) -> np.ndarray:
    dtype, missing = people.dtype, people.null_count() > 0
    if dtype == pl.Boolean or (
        dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128, pl.UInt128)
    ):
        people = people.cast(pl.Int64)
    elif dtype.is_float():
        people = people.cast(pl.Float64) + 0.0  # one zero
    elif dtype == pl.Date or isinstance(dtype, pl.Datetime):
        people = people.to_physical().cast(pl.Int64)
    elif dtype != pl.UInt64:
        text = as_text(people)
        return np.stack([text.hash(seed=int(seed)).to_numpy() for seed in seeds])
    numbers = (people.fill_null(0) if missing else people).to_numpy()
    return mix64(numbers.view(np.uint64) + seeds[0])[None]


def _unset(bits: np.ndarray, low: int, high: int) -> np.ndarray:
    """Bits low..high as bool, turned over."""
    start = low // 8
    some = np.unpackbits(bits[start : high // 8 + 1], bitorder="little")
    found: np.ndarray = some[low - 8 * start : high - 8 * start] == 0
    return found
