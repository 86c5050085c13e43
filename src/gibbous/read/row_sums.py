"""Parts of the hashes of rows in, the sum of all hashes out: what a fingerprint does once a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

LANES = 2
BLOCK = 1 << 15
_PACKED = 1 << 12  # values that columns have together: tables that stay in the cache
_SHORT = 1 << 16  # values that a 16-bit place can name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part:
    """What columns add to the hash of each row: words (lanes, n), looked up by place if there is one."""

    place: np.ndarray | None
    words: np.ndarray

    def joined(self, other: Part) -> Part:
        """One part for two columns that have few values together."""
        assert self.place is not None
        assert other.place is not None
        size = other.words.shape[1]
        place = self.place.astype(np.uint16) * np.uint16(size) + other.place
        words = self.words[:, :, None] + other.words[:, None, :]
        return Part(place, words.reshape(LANES, -1))


Adding = Callable[[Sequence[Part], Sequence[np.uint64], int], list[int]]
"""(parts of the columns, first word of each lane, rows) -> sum of the rows' hashes in each lane."""


def packed(parts: Sequence[Part]) -> list[Part]:
    """The same sums in fewer look-ups: columns of few values are joined."""
    out = [p for p in parts if p.place is None]
    small = sorted((p for p in parts if p.place is not None), key=lambda p: p.words.shape[1])
    last: Part | None = None
    for part in small:
        if last is not None and last.words.shape[1] * part.words.shape[1] <= _PACKED:
            last = last.joined(part)
            continue
        if last is not None:
            out.append(last)
        last = part
    return out if last is None else [*out, last]


def plain(parts: Sequence[Part], steps: Sequence[np.uint64], rows: int) -> list[int]:
    """`Adding` by numpy."""
    sums = [0] * len(steps)
    for start in range(0, rows, BLOCK):
        block = slice(start, min(start + BLOCK, rows))
        places = [None if p.place is None else p.place[block].astype(np.intp) for p in parts]
        for lane, step in enumerate(steps):
            total = np.full(block.stop - start, step)
            for part, place in zip(parts, places, strict=True):
                row = part.words[lane]
                total += row[block] if place is None else row.take(place, mode="clip")
            sums[lane] += int(mix(total).sum(dtype=np.uint64))
    return sums


def compiled(parts: Sequence[Part], steps: Sequence[np.uint64], rows: int) -> list[int]:
    """`Adding` by a kernel, in a fifth of the time; the same sums; EngineFailure without numba."""
    from gibbous.read.row_kernels import add_up  # loads numba

    looked_up = [p for p in parts if p.place is not None and p.words.shape[1] <= _SHORT]
    others = [p for p in parts if p.place is None or p.words.shape[1] > _SHORT]
    places = np.empty((len(looked_up), rows), dtype=np.uint16)
    for i, part in enumerate(looked_up):
        assert part.place is not None
        places[i] = part.place
    ends = np.cumsum([0, *(p.words.shape[1] for p in looked_up)], dtype=np.int64)
    words = np.concatenate([np.empty((LANES, 0), np.uint64), *(p.words for p in looked_up)], axis=1)
    known = np.zeros((LANES, rows if others else 0), dtype=np.uint64)
    for part in others:
        known += part.words if part.place is None else part.words[:, part.place]
    sums = np.zeros(LANES, dtype=np.uint64)
    add_up(places, ends, words, known, np.array(steps, dtype=np.uint64), sums)
    return [int(total) for total in sums]


def mix(words: np.ndarray) -> np.ndarray:
    """mix64 in place; in blocks that stay in the cache, it takes a fifth of the time."""
    spare = np.empty_like(words)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        np.right_shift(words, np.uint64(shift), out=spare)
        words ^= spare
        words *= np.uint64(factor)
    return words
