"""Compiled kernels; import this module only where they are needed, since importing numba is slow.

Each kernel has a numpy twin in `reference` or `exact` that it equals bit for bit. A block of 2048
rows goes through all steps before the next block starts, so that its codes stay in cache.
"""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit
from gibbous.synthesize.layout import (
    AT_CELLS,
    AT_HASH,
    AT_MAP,
    AT_MASK,
    AT_PARENTS,
    AT_PROBES,
    AT_RULES,
    BITS,
    KEPT,
    KIND,
    LAST,
    LEVELS,
    LOOKUP,
    PARENTS,
    PROBES,
    RULES,
    SHIFT,
    TARGET,
    WIDTH,
)

BLOCK = 2048
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@njit("int64[::1](uint64[:,::1], int64[::1], uint64[::1])")
def search_rows(cumulative, slots, points):  # type: ignore[no-untyped-def]
    """First level whose running sum exceeds the point, by bisection; twin: `exact.search`."""
    found = np.empty(len(slots), dtype=np.int64)
    for i in range(len(slots)):
        low, high = 0, cumulative.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[slots[i], middle] <= points[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = low
    return found


@njit(inline="always")
def _mix(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> S30)) * M1
    x = (x ^ (x >> S27)) * M2
    return x ^ (x >> S31)


@njit
def _keys(state, low, high, step, parents, weights, keys):  # type: ignore[no-untyped-def]
    """Keys of rows low..high into keys[0..], uint64."""
    rows = high - low
    count, at = step[PARENTS], step[AT_PARENTS]
    keys[:rows] = np.uint64(0)
    if step[KIND] == 0:
        for j in range(at, at + count):
            column = state[np.int64(parents[j, 0]), low:high]
            weight = parents[j, 1]
            for i in range(rows):
                keys[i] += np.uint64(column[i]) * weight
        return
    if step[KIND] == 1:
        for j in range(at, at + count):
            column = state[np.int64(parents[j, 0]), low:high]
            words = weights[np.int64(parents[j, 2]) :]
            for i in range(rows):
                keys[i] += words[column[i]]
    else:
        width = step[WIDTH]
        for i in range(rows):
            total = np.uint64(0)
            for w in range(width):
                best = np.uint64(0xFFFFFFFFFFFFFFFF)
                for j in range(at, at + count):
                    code = np.int64(state[np.int64(parents[j, 0]), low + i])
                    best = min(best, weights[np.int64(parents[j, 2]) + code * width + w])
                total = _mix(total ^ best)
            keys[i] = total
    shift = np.uint64(step[SHIFT])
    for i in range(rows):
        keys[i] = np.uint64(0) if shift == np.uint64(64) else keys[i] >> shift


@njit
def _small_keys(state, low, high, step, parents, keys):  # type: ignore[no-untyped-def]
    """Mixed-radix keys below 2**32, uint32: twice as many a vector."""
    rows = high - low
    keys[:rows] = np.uint32(0)
    for j in range(step[AT_PARENTS], step[AT_PARENTS] + step[PARENTS]):
        column = state[np.int64(parents[j, 0]), low:high]
        weight = np.uint32(parents[j, 1])
        for i in range(rows):
            keys[i] += np.uint32(column[i]) * weight


@njit(inline="always")
def _find(ids, slots, at, bits, wanted):  # type: ignore[no-untyped-def]
    """Slot of an id in an open-addressing table of 2**bits entries, or -1."""
    mask = np.uint64((1 << bits) - 1)
    place = _mix(wanted) & mask
    while True:
        slot = slots[at + np.int64(place)]
        if slot < 0 or ids[at + np.int64(place)] == wanted:
            return slot
        place = (place + np.uint64(1)) & mask


@njit
def _search(state, row, key, step, parents, probes, probe_steps, ranks, ids, slots):  # type: ignore[no-untyped-def]
    """Slot of a key: its own, else the best of the first stage that has one, else the last."""
    found = _find(ids, slots, step[AT_HASH], step[BITS], key)
    if found >= 0:
        return found
    stage = np.int64(-1)
    for q in range(step[AT_PROBES], step[AT_PROBES] + step[PROBES]):
        if found >= 0 and np.int64(probes[q, 0]) != stage:
            return found
        stage = np.int64(probes[q, 0])
        wanted = probes[q, 1]
        for j in range(step[PARENTS]):
            code = np.uint64(state[np.int64(parents[step[AT_PARENTS] + j, 0]), row])
            wanted += code * probe_steps[np.int64(probes[q, 2]) + j]
        slot = _find(ids, slots, step[AT_HASH], step[BITS], wanted)
        if slot >= 0:
            offset = np.int64(probes[q, 3])
            if found < 0 or ranks[offset + slot] < ranks[offset + found]:
                found = slot
    return found if found >= 0 else np.int32(step[LAST])


@njit
def _slots(state, low, high, step, tables, keys, keys32):  # type: ignore[no-untyped-def]
    """Slot of each row into keys[0..] (2**64 - 1: keep the value)."""
    parents, weights, maps, probes, probe_steps, ranks, ids, slots = tables
    _keys(state, low, high, step, parents, weights, keys)
    if step[LOOKUP] == 1:
        at = step[AT_MAP]
        for i in range(high - low):
            keys[i] = np.uint64(np.int64(maps[at + np.int64(keys[i])]))
    elif step[LOOKUP] == 2:
        for i in range(high - low):
            slot = _search(
                state, low + i, keys[i], step, parents, probes, probe_steps, ranks, ids, slots
            )
            keys[i] = np.uint64(np.int64(slot))


@njit
def _words(first, key, rows, words):  # type: ignore[no-untyped-def]
    for i in range(rows):
        words[i] = _mix((first + np.uint64(i)) * GOLDEN + key)


@njit
def _draw(column, rows, levels, words, places, cells):  # type: ignore[no-untyped-def]
    """Alias draws: cells hold a 24-bit threshold and an 8-bit alias, or 32 and 32 bits."""
    wide = np.uint64(levels)
    for i in range(rows):
        level = ((words[i] >> S32) * wide) >> S32
        words[i] = (words[i] & LOW) | (level << S32)
        places[i] = places[i] * wide + level
    if cells.itemsize == 4:
        for i in range(rows):
            cell = np.uint32(cells[places[i]])
            point = np.uint32(words[i]) >> np.uint32(8)
            own = np.uint32(words[i] >> S32)
            other = cell & np.uint32(255)
            column[i] = own if point < (cell >> np.uint32(8)) else other
    else:
        for i in range(rows):
            cell = np.uint64(cells[places[i]])
            other = cell & LOW
            own = words[i] >> S32
            column[i] = own if (words[i] & LOW) < (cell >> S32) else other
