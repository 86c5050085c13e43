"""The compiled side of `row_sums`: places and words in, sums of the hashes of rows out."""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit

BLOCK = 1024  # rows whose two words a row stay in the first-level cache


@njit(inline="always")
def _mixed(x: np.uint64) -> np.uint64:
    """`core.context.mix64` of one word."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit("void(uint16[:,::1],int64[::1],uint64[:,::1],uint64[:,::1],uint64[::1],uint64[::1])")
def add_up(
    places: np.ndarray,
    ends: np.ndarray,
    words: np.ndarray,
    known: np.ndarray,
    steps: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the hash of each row to the sum of its lane.

    Args:
        places: (parts, rows): which word of its part a row has.
        ends: (parts + 1,): part p has the words ends[p]..ends[p + 1].
        words: (2, words of all parts).
        known: (2, rows): what is added besides; (2, 0) for nothing.
        steps: (2,): the first word of each lane.
        sums: (2,), modulo 2^64.
    """
    rows, parts, more = places.shape[1], places.shape[0], known.shape[1] > 0
    first, second = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    one, two = sums[0], sums[1]
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        a, b = first[:n], second[:n]
        a[:], b[:] = steps[0], steps[1]
        if more:
            of_one, of_two = known[0, start : start + n], known[1, start : start + n]
            for i in range(n):
                a[i] += of_one[i]
                b[i] += of_two[i]
        for p in range(parts):
            place = places[p, start : start + n]
            of_one, of_two = words[0, ends[p] : ends[p + 1]], words[1, ends[p] : ends[p + 1]]
            for i in range(n):
                a[i] += of_one[place[i]]
                b[i] += of_two[place[i]]
        for i in range(n):
            one += _mixed(a[i])
            two += _mixed(b[i])
    sums[0], sums[1] = one, two
