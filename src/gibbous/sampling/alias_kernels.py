"""Compiled draws from alias tables: keys, slots and levels of many rows, step after step.

Each kernel has a numpy twin in `alias_twins` or `exact_draws` that it equals bit for bit. A block of 2048
rows goes through all steps before the next block starts, so that its codes stay in cache. All
arithmetic is unsigned, and columns are sliced before they are indexed, or loops lose their vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbous.core.kernel import kernel
from gibbous.sampling.step_fields import (
    AT_CELLS,
    AT_HASH,
    AT_MAP,
    AT_PARENTS,
    AT_PROBES,
    AT_RANKS,
    BITS,
    KEEP32,
    KEEP64,
    KIND,
    LAST,
    LEVELS,
    LOOKUP,
    PARENTS,
    PROBES,
    SHIFT,
    SMALL,
    TARGET,
    WIDTH,
    Flat,
)

Array = np.ndarray
BLOCK = 2048
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
BYTE = np.uint32(255)
KEPT, KEPT_WIDE = np.uint32(KEEP32), np.uint64(KEEP64)


@kernel()
def search_rows(cumulative: Array, slots: Array, points: Array, levels: Array) -> None:
    """First level whose running sum exceeds the point, by bisection; twin: `exact.search`."""
    for i in range(len(slots)):
        low, high = 0, cumulative.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[slots[i], middle] <= points[i]:
                low = middle + 1
            else:
                high = middle
        levels[i] = low


@kernel()
def vose(shares: Array, threshold: Array, alias: Array, lists: Array, scaled: Array) -> None:
    """Alias tables of weights, one a row: take cell i below threshold[i], else its alias.

    Args:
        lists, scaled: int64 (2, levels) and float64 (levels,): room.

    Source:
        Vose (1991). A cell of weight 0 gets threshold 0.
    """
    rows, n = shares.shape
    small, large = lists[0], lists[1]
    for r in range(rows):
        total, best = 0.0, 0
        for i in range(n):
            total += shares[r, i]
            if shares[r, i] > shares[r, best]:
                best = i
        lows, highs = 0, 0
        for i in range(n):
            scaled[i] = shares[r, i] / total * n
            if scaled[i] < 1.0:
                small[lows] = i
                lows += 1
            else:
                large[highs] = i
                highs += 1
        while lows and highs:
            lows -= 1
            one, other = small[lows], large[highs - 1]
            threshold[r, one], alias[r, one] = scaled[one], other
            scaled[other] -= 1.0 - scaled[one]
            if scaled[other] < 1.0:
                highs -= 1
                small[lows] = other
                lows += 1
        for i in range(highs):
            threshold[r, large[i]], alias[r, large[i]] = 1.0, large[i]
        for i in range(lows):  # rounding alone leaves these
            one = small[i]
            threshold[r, one] = 1.0 if shares[r, one] > 0.0 else 0.0
            alias[r, one] = one if shares[r, one] > 0.0 else best


@kernel(inline="always")
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> S30)) * M1
    x = (x ^ (x >> S27)) * M2
    return x ^ (x >> S31)


@kernel()
def small_keys(state: Array, low: int, high: int, step: Array, parents: Array, keys: Array) -> None:
    """Mixed-radix keys below 2**32, as uint32: twice as many a vector."""
    rows = high - low
    for i in range(rows):
        keys[i] = np.uint32(0)
    for j in range(step[AT_PARENTS], step[AT_PARENTS] + step[PARENTS]):
        column = state[np.int64(parents[j, 0]), low:high]
        weight = np.uint32(parents[j, 1])
        for i in range(rows):
            keys[i] += np.uint32(column[i]) * weight


@kernel()
def wide_keys(state: Array, low: int, high: int, step: Array, flat: Flat, keys: Array) -> None:
    """Keys of any kind, uint64."""
    rows, parents, weights = high - low, flat.parents, flat.weights
    for i in range(rows):
        keys[i] = np.uint64(0)
    first, last = step[AT_PARENTS], step[AT_PARENTS] + step[PARENTS]
    if step[KIND] == 2:
        width = step[WIDTH]
        for i in range(rows):
            total = np.uint64(0)
            for w in range(width):
                best = np.uint64(0xFFFFFFFFFFFFFFFF)
                for j in range(first, last):
                    code = np.int64(state[np.int64(parents[j, 0]), low + i])
                    best = min(best, weights[np.int64(parents[j, 2]) + code * width + w])
                total = _mix(total ^ best)
            keys[i] = total
    else:
        for j in range(first, last):
            column = state[np.int64(parents[j, 0]), low:high]
            if step[KIND] == 0:
                weight = parents[j, 1]
                for i in range(rows):
                    keys[i] += np.uint64(column[i]) * weight
            else:
                words = weights[np.int64(parents[j, 2]) :]
                for i in range(rows):
                    keys[i] += words[column[i]]
    if step[KIND] != 0:
        shift = np.uint64(step[SHIFT])
        for i in range(rows):
            keys[i] = np.uint64(0) if shift == np.uint64(64) else keys[i] >> shift


@kernel(inline="always")
def _find(ids: Array, slots: Array, at: int, bits: int, sought: np.uint64) -> np.int64:
    """Slot of an id in an open-addressing table of 2**bits entries, or -1."""
    mask = np.uint64((1 << bits) - 1)
    place = _mix(sought) & mask
    while True:
        slot = np.int64(slots[at + np.int64(place)])
        if slot < 0 or ids[at + np.int64(place)] == sought:
            return slot
        place = (place + np.uint64(1)) & mask


@kernel()
def fill_hash(ids: Array, slots: Array, wanted: Array, values: Array) -> None:
    """Enter ids and their slots into an empty open-addressing table of 2**k entries."""
    mask = np.uint64(len(ids) - 1)
    for i in range(len(wanted)):
        place = _mix(wanted[i]) & mask
        while slots[np.int64(place)] >= 0:
            place = (place + np.uint64(1)) & mask
        ids[np.int64(place)] = wanted[i]
        slots[np.int64(place)] = values[i]


@kernel()
def _search(state: Array, row: int, key: np.uint64, step: Array, flat: Flat) -> np.int64:
    """Slot of a key: its own, else the best of the first stage that has one, else the last."""
    best = _find(flat.ids, flat.slots, step[AT_HASH], step[BITS], key)
    if best >= 0:
        return best
    stage, probes = np.int64(-1), flat.probes
    for q in range(step[AT_PROBES], step[AT_PROBES] + step[PROBES]):
        if best >= 0 and np.int64(probes[q, 0]) != stage:
            return best
        stage = np.int64(probes[q, 0])
        probed = probes[q, 1]
        for j in range(step[PARENTS]):
            code = np.uint64(state[np.int64(flat.parents[step[AT_PARENTS] + j, 0]), row])
            probed += code * flat.probe_steps[np.int64(probes[q, 2]) + j]
        slot = _find(flat.ids, flat.slots, step[AT_HASH], step[BITS], probed)
        at = step[AT_RANKS]
        if slot >= 0 and (best < 0 or flat.ranks[at + slot] < flat.ranks[at + best]):
            best = slot
    return best if best >= 0 else step[LAST]


@kernel()
def slots_of(
    state: Array, low: int, high: int, step: Array, flat: Flat, wide: Array, slots: Array
) -> None:
    """Slot of each row of a block, uint32."""
    rows = high - low
    if step[SMALL] == 1:
        small_keys(state, low, high, step, flat.parents, slots)
    else:
        wide_keys(state, low, high, step, flat, wide)
        if step[LOOKUP] == 2:
            for i in range(rows):
                slots[i] = np.uint32(_search(state, low + i, wide[i], step, flat))
        else:
            for i in range(rows):
                slots[i] = np.uint32(wide[i])
    if step[LOOKUP] == 1:
        direct = flat.maps[step[AT_MAP] :]
        for i in range(rows):
            slots[i] = direct[slots[i]]


@kernel()
def words32(first: int, key: int, levels: int, places: Array, drawn: Array) -> None:
    """Words of a stream: a 24-bit point and a level in one number, and the place of that level's cell."""
    start, wide, wide32 = np.uint64(first), np.uint64(levels), np.uint32(levels)
    for i in range(len(places)):
        word = _mix((start + np.uint64(i)) * GOLDEN + np.uint64(key))
        level = np.uint32(((word >> S32) * wide) >> S32)
        drawn[i] = (np.uint32(word & LOW) & ~BYTE) | level
        places[i] = places[i] * wide32 + level


@kernel()
def pick32(cells: Array, places: Array, drawn: Array, column: Array) -> None:
    """Alias draws from cells of a 24-bit threshold and an 8-bit alias, without branches."""
    for i in range(len(places)):
        places[i] = cells[places[i]]
    for i in range(len(places)):
        cell, own = places[i], drawn[i]
        # Point and level in one number are below the bare threshold just where the point is.
        taken = own if own < (cell & ~BYTE) else cell
        column[i] = column[i] if cell == KEPT else taken & BYTE


@kernel()
def draw64(first: int, key: int, levels: int, cells: Array, slots: Array, column: Array) -> None:
    """Alias draws from cells of a 32-bit threshold and a 32-bit alias."""
    start, wide = np.uint64(first), np.uint64(levels)
    for i in range(len(slots)):
        word = _mix((start + np.uint64(i)) * GOLDEN + np.uint64(key))
        own = ((word >> S32) * wide) >> S32
        cell = cells[np.uint64(slots[i]) * wide + own]
        if cell != KEPT_WIDE:
            column[i] = own if (word & LOW) < (cell >> S32) else cell & LOW


class Room(NamedTuple):
    """Memory of one call of `run`: places and words of a block of rows, and wide keys."""

    places: Array
    words: Array
    wide: Array


def room() -> Room:
    """Room for any program."""
    places, words = np.empty((2, BLOCK), dtype=np.uint32)
    return Room(places, words, np.empty(BLOCK, dtype=np.uint64))


@kernel()
def run(
    state: Array, low: int, high: int, first: int, order: Array, keys: Array, flat: Flat, room: Room
) -> None:
    """Run a program on rows low..high; row `low` has number `first`.

    Args:
        state: (columns, rows) codes, C-contiguous.
        order: int64 (executions,): which step runs when.
        keys: uint64 (executions,): key of each execution's stream.
        flat: the steps; cells of 64 bits for columns of more than 256 levels.
    """
    for start in range(low, high, BLOCK):
        stop = min(high, start + BLOCK)
        rows, number = stop - start, first + (start - low)
        places, words = room.places[:rows], room.words[:rows]
        for e in range(len(order)):
            step = flat.steps[order[e]]
            slots_of(state, start, stop, step, flat, room.wide, places)
            column, cells = state[step[TARGET], start:stop], flat.cells[step[AT_CELLS] :]
            if flat.cells.itemsize == 4:
                words32(number, keys[e], step[LEVELS], places, words)
                pick32(cells, places, words, column)
            else:
                draw64(number, keys[e], step[LEVELS], cells, places, column)
