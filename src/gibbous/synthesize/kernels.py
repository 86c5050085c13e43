"""Compiled kernels; import this module only where they are needed, since importing numba is slow.

Each kernel has a numpy twin in `reference` or `exact` that it equals bit for bit. A block of 2048
rows goes through all steps before the next block starts, so that its codes stay in cache. All
arithmetic is unsigned, and columns are sliced before they are indexed, or loops lose their vectors.
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
    AT_RANKS,
    AT_RULES,
    BITS,
    KIND,
    LAST,
    LEVELS,
    LOOKUP,
    MASKED,
    PARENTS,
    PROBES,
    RULES,
    SHIFT,
    SMALL,
    TARGET,
    WIDTH,
)

Array = np.ndarray
BLOCK = 2048
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
BYTE = np.uint32(255)
S8 = np.uint32(8)


@njit("int64[::1](uint64[:,::1], int64[::1], uint64[::1])")
def search_rows(cumulative: Array, slots: Array, points: Array) -> Array:
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


@njit
def vose(shares: Array, threshold: Array, alias: Array) -> None:
    """Alias tables of weights, one a row: take cell i below threshold[i], else its alias.

    Source:
        Vose (1991). A cell of weight 0 gets threshold 0.
    """
    rows, n = shares.shape
    small, large = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    scaled = np.empty(n)
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


@njit(inline="always")
def _mix(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> S30)) * M1
    x = (x ^ (x >> S27)) * M2
    return x ^ (x >> S31)


@njit
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


@njit
def wide_keys(
    state: Array, low: int, high: int, step: Array, parents: Array, weights: Array, keys: Array
) -> None:
    """Keys of any kind, uint64."""
    rows = high - low
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


@njit(inline="always")
def _find(ids, slots, at, bits, wanted):  # type: ignore[no-untyped-def]
    """Slot of an id in an open-addressing table of 2**bits entries, or -1."""
    mask = np.uint64((1 << bits) - 1)
    place = _mix(wanted) & mask
    while True:
        slot = np.int64(slots[at + np.int64(place)])
        if slot < 0 or ids[at + np.int64(place)] == wanted:
            return slot
        place = (place + np.uint64(1)) & mask


@njit
def fill_hash(ids: Array, slots: Array, wanted: Array, values: Array) -> None:
    """Enter ids and their slots into an empty open-addressing table of 2**k entries."""
    mask = np.uint64(len(ids) - 1)
    for i in range(len(wanted)):
        place = _mix(wanted[i]) & mask
        while slots[np.int64(place)] >= 0:
            place = (place + np.uint64(1)) & mask
        ids[np.int64(place)] = wanted[i]
        slots[np.int64(place)] = values[i]


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
        at = step[AT_RANKS]
        if slot >= 0 and (found < 0 or ranks[at + slot] < ranks[at + found]):
            found = slot
    return found if found >= 0 else step[LAST]


@njit
def small_words(first: int, key: int, levels: int, keys: Array, own: Array, points: Array) -> None:
    """Words of a stream, split: a level, a 24-bit point, and the place of the level's cell."""
    wide, wide32 = np.uint64(levels), np.uint32(levels)
    for i in range(len(keys)):
        word = _mix((np.uint64(first) + np.uint64(i)) * GOLDEN + np.uint64(key))
        level = np.uint32(((word >> S32) * wide) >> S32)
        own[i] = level
        points[i] = np.uint32(word & LOW) >> S8
        keys[i] = keys[i] * wide32 + level


@njit
def pick_small(cells: Array, places: Array, own: Array, points: Array, found: Array) -> None:
    """Alias draws from cells of a 24-bit threshold and an 8-bit alias, without a branch."""
    for i in range(len(places)):
        found[i] = cells[places[i]]
    for i in range(len(places)):
        take = np.uint32(0) - np.uint32(points[i] < (found[i] >> S8))
        found[i] = (own[i] & take) | (found[i] & BYTE & ~take)


@njit
def _small_step(state, low, high, first, step, key, parents, cells, buffers):  # type: ignore[no-untyped-def]
    """Key, word and draw of a step whose keys are slots and whose cells are 32 bits."""
    rows = high - low
    keys, own, points, found = (
        buffers[0, :rows],
        buffers[1, :rows],
        buffers[2, :rows],
        buffers[3, :rows],
    )
    small_keys(state, low, high, step, parents, keys)
    small_words(first, key, step[LEVELS], keys, own, points)
    pick_small(cells[step[AT_CELLS] :], keys, own, points, found)
    column = state[step[TARGET], low:high]
    for i in range(rows):
        column[i] = found[i]


@njit
def _wide_step(state, low, high, first, step, key, parents, cells, tables, keys):  # type: ignore[no-untyped-def]
    """Key, lookup, word and draw of a step of any kind that no structural zero touches."""
    weights, maps, probes, probe_steps, ranks, ids, slots = tables
    wide_keys(state, low, high, step, parents, weights, keys)
    column, levels = state[step[TARGET], low:high], np.uint64(step[LEVELS])
    packed = cells[step[AT_CELLS] :]
    for i in range(high - low):
        slot = np.int64(keys[i])
        if step[LOOKUP] == 1:
            slot = np.int64(maps[step[AT_MAP] + slot])
        elif step[LOOKUP] == 2:
            slot = _search(
                state, low + i, keys[i], step, parents, probes, probe_steps, ranks, ids, slots
            )
        if slot < 0:
            continue
        word = _mix((np.uint64(first) + np.uint64(i)) * GOLDEN + np.uint64(key))
        own = ((word >> S32) * levels) >> S32
        cell = packed[np.uint64(slot) * levels + own]
        if cells.itemsize == 4:
            take = (np.uint32(word & LOW) >> S8) < (np.uint32(cell) >> S8)
            other = np.uint64(np.uint32(cell) & BYTE)
        else:
            take = (word & LOW) < (np.uint64(cell) >> S32)
            other = np.uint64(cell) & LOW
        column[i] = own if take else other


@njit
def run_small(
    state: Array,
    low: int,
    high: int,
    first: int,
    order: Array,
    words: Array,
    steps: Array,
    parents: Array,
    cells: Array,
) -> None:
    """Run a program of small steps on rows low..high; row `low` has number `first`.

    Args:
        state: (columns, rows) codes, C-contiguous.
        order: (executions,): which step runs when.
        words: uint64 (executions,): key of each execution's stream.
    """
    buffers = np.empty((4, BLOCK), dtype=np.uint32)
    for start in range(low, high, BLOCK):
        stop = min(high, start + BLOCK)
        number = first + (start - low)
        for e in range(len(order)):
            step = steps[order[e]]
            _small_step(state, start, stop, number, step, words[e], parents, cells, buffers)


@njit
def run_wide(
    state: Array,
    low: int,
    high: int,
    first: int,
    order: Array,
    words: Array,
    steps: Array,
    parents: Array,
    cells: Array,
    tables: tuple[Array, ...],
) -> None:
    """Run a program with any keys, tables and cells; arguments as in run_small."""
    buffers, keys = np.empty((4, BLOCK), dtype=np.uint32), np.empty(BLOCK, dtype=np.uint64)
    for start in range(low, high, BLOCK):
        stop = min(high, start + BLOCK)
        number = first + (start - low)
        for e in range(len(order)):
            step = steps[order[e]]
            _wide_step(
                state, start, stop, number, step, words[e], parents, cells, tables, keys
            )
