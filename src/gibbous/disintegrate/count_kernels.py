"""Compiled kernels: columns of codes in, cell ids or counts out, in blocks that stay in the cache.

The shapes are those of `layout`: a cell id is a sum of code x step over terms (mixed radix), plus,
for hashed keys, words looked up by the mixed radix of a group of parents. Array and sizes were
checked before: nothing here checks bounds. All arithmetic is unsigned (numba turns int64 mixed with
uint64 into float64), and every array is sliced before it is indexed (a signed offset inside an
index stops the compiler from using vector instructions).
"""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit
from gibbous.disintegrate.count_routes import HashGroups, Terms

Array = np.ndarray
Cells = tuple[Array, Array, Array]  # keys, levels, counts
BLOCK = 4096  # rows a block: 16 KB of 32-bit ids, in the first-level cache with the columns
LANES = 4  # copies of a small table, so that equal neighbors do not wait for each other


@njit(inline="always")
def fill(columns: Array, start: int, ids: Array, cols: Array, steps: Array) -> None:
    """ids[i] = sum over terms of code * step, for rows start..start+len(ids)."""
    n, terms = len(ids), len(cols)
    if terms == 0:
        ids[:] = 0
        return
    end = start + n
    a, s = columns[cols[0], start:end], steps[0]
    done = 1
    if terms % 2 == 1:
        for i in range(n):
            ids[i] = a[i] * s
    else:
        b, t = columns[cols[1], start:end], steps[1]
        for i in range(n):
            ids[i] = a[i] * s + b[i] * t
        done = 2
    while done < terms:
        a, s = columns[cols[done], start:end], steps[done]
        b, t = columns[cols[done + 1], start:end], steps[done + 1]
        for i in range(n):
            ids[i] += a[i] * s + b[i] * t
        done += 2


@njit
def count_many(
    columns: Array,
    low: int,
    high: int,
    first: Array,
    cols: Array,
    steps: Array,
    base: Array,
    tables: Array,
) -> None:
    """Add rows low..high to many small tables in one pass.

    Args:
        columns: codes (columns, rows).
        first: int64 (contexts + 1,): terms of context c are first[c]..first[c+1].
        cols: int64 (terms,). steps: uint64 (terms,), already times LANES.
        base: int64 (contexts + 1,): where each table starts in `tables`.
        tables: uint32, LANES interleaved copies of each table; at most 2^32 - 1 rows a call.
    """
    buffer = np.empty(BLOCK, np.uint32)
    one, two, three = np.uint32(1), np.uint32(2), np.uint32(3)
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        ids = buffer[:n]
        whole = n - n % LANES
        for c in range(len(base) - 1):
            a, b = first[c], first[c + 1]
            fill(columns, start, ids, cols[a:b], steps[a:b])
            table = tables[base[c] : base[c + 1]]
            for i in range(0, whole, LANES):
                table[ids[i]] += one
                table[ids[i + 1] + one] += one
                table[ids[i + 2] + two] += one
                table[ids[i + 3] + three] += one
            for i in range(whole, n):
                table[ids[i]] += one


@njit
def count_radix(
    columns: Array, low: int, high: int, cols: Array, steps: Array, table: Array
) -> None:
    """Add rows low..high to one table, int64 (cells,), of at most 2^32 cells."""
    buffer = np.empty(BLOCK, np.uint32)
    for start in range(low, high, BLOCK):
        ids = buffer[: min(BLOCK, high - start)]
        fill(columns, start, ids, cols, steps)
        for i in range(len(ids)):
            table[ids[i]] += 1


@njit
def count_ids(ids: Array, table: Array) -> None:
    """Add uint64 cell ids to one table, int64 (cells,)."""
    for i in range(len(ids)):
        table[ids[i]] += 1


@njit
def radix_ids(columns: Array, low: int, cols: Array, steps: Array, out: Array) -> None:
    """Mixed-radix ids of rows low..low+len(out) into out, uint64."""
    for start in range(0, len(out), BLOCK):
        fill(columns, low + start, out[start : start + BLOCK], cols, steps)


@njit
def lookup_ids(
    columns: Array,
    low: int,
    cols: Array,
    steps: Array,
    keys: Array,
    t_cols: Array,
    t_steps: Array,
    out: Array,
) -> None:
    """Ids whose key is looked up by the mixed radix of all parents.

    Args:
        cols, steps: terms of the parents. keys: uint64, key x levels of each combination of them.
        t_cols, t_steps: terms of the targets.
        out: uint64 (rows,), rows low..low+len(out).
    """
    buffer = np.empty(BLOCK, np.uint32)
    for start in range(0, len(out), BLOCK):
        ids = out[start : start + BLOCK]
        place = buffer[: len(ids)]
        fill(columns, low + start, ids, t_cols, t_steps)
        fill(columns, low + start, place, cols, steps)
        for i in range(len(ids)):
            ids[i] += keys[place[i]]


@njit
def hashed_ids(
    columns: Array, low: int, groups: HashGroups, levels: np.uint64, targets: Terms, out: Array
) -> None:
    """Ids whose key is the top bits of a sum of words, one word a group of parents.

    Args:
        groups: of parents; terms of group g are first[g]..first[g+1], its words base[g]..base[g+1].
        levels: uint64. targets: their terms.
    """
    first, (cols, steps), base, words, shift = groups
    place_buffer, total_buffer = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint64)
    for start in range(0, len(out), BLOCK):
        ids = out[start : start + BLOCK]
        n = len(ids)
        place, total = place_buffer[:n], total_buffer[:n]
        total[:] = 0
        for g in range(len(base) - 1):
            a, b = first[g], first[g + 1]
            fill(columns, low + start, place, cols[a:b], steps[a:b])
            word = words[base[g] : base[g + 1]]
            for i in range(n):
                total[i] += word[place[i]]
        fill(columns, low + start, ids, targets[0], targets[1])
        for i in range(n):
            ids[i] += (total[i] >> shift) * levels


@njit
def minhash_ids(
    columns: Array, low: int, groups: HashGroups, levels: np.uint64, targets: Terms, out: Array
) -> None:
    """Ids whose key folds, over the width, the least word among the groups of parents.

    Args:
        groups: as in `hashed_ids`; words are (width, words of all groups).
    """
    first, (cols, steps), base, words, shift = groups
    place_buffer = np.empty(BLOCK, np.uint32)
    total_buffer, least_buffer = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    top = np.uint64(0xFFFFFFFFFFFFFFFF)
    for start in range(0, len(out), BLOCK):
        ids = out[start : start + BLOCK]
        n = len(ids)
        place, total, least = place_buffer[:n], total_buffer[:n], least_buffer[:n]
        total[:] = 0
        for w in range(len(words)):
            least[:] = top
            for g in range(len(base) - 1):
                a, b = first[g], first[g + 1]
                fill(columns, low + start, place, cols[a:b], steps[a:b])
                word = words[w, base[g] : base[g + 1]]
                for i in range(n):
                    least[i] = min(least[i], word[place[i]])
            for i in range(n):
                total[i] = mix(total[i] ^ least[i])
        fill(columns, low + start, ids, targets[0], targets[1])
        for i in range(n):
            ids[i] += (total[i] >> shift) * levels


@njit(inline="always")
def mix(x: np.uint64) -> np.uint64:
    """The bijection of core.context.mix64, one word."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def distinct(ids: Array) -> int:
    """How many different ids a sorted array holds."""
    if len(ids) == 0:
        return 0
    left, right = ids[:-1], ids[1:]
    total = 1
    for i in range(len(left)):
        total += left[i] != right[i]
    return total


@njit
def run_lengths(ids: Array, values: Array, counts: Array) -> None:
    """Run-length code of sorted ids, at least one.

    Args:
        ids: uint32 or uint64, sorted.
        values: uint64 (distinct ids,). counts: int64 (distinct ids,). Both are written.
    """
    run, begin = 0, 0
    for i in range(1, len(ids)):
        if ids[i] != ids[i - 1]:
            values[run], counts[run] = ids[begin], i - begin
            run, begin = run + 1, i
    values[run], counts[run] = ids[begin], len(ids) - begin


@njit
def union(keys: Array, levels: Array, more_keys: Array, more_levels: Array) -> int:
    """How many different (key, level) pairs two sorted lists without repeats have together."""
    i, j, total = 0, 0, 0
    while i < len(keys) and j < len(more_keys):
        k, m = keys[i], more_keys[j]
        left = k < m or (k == m and levels[i] <= more_levels[j])
        right = m < k or (k == m and more_levels[j] <= levels[i])
        i += left
        j += right
        total += 1
    return total + len(keys) - i + len(more_keys) - j


@njit
def merge(one: Cells, two: Cells, out: Cells) -> None:
    """Add two sorted lists of counts; `out` has as many places as `union` says."""
    keys, levels, values = one
    more_keys, more_levels, more_values = two
    out_keys, out_levels, out_values = out
    i, j = 0, 0
    for place in range(len(out_keys)):
        left, right = i < len(keys), j < len(more_keys)
        if left and right:
            k, m = keys[i], more_keys[j]
            left = k < m or (k == m and levels[i] <= more_levels[j])
            right = m < k or (k == m and more_levels[j] <= levels[i])
        count = 0
        if right:
            out_keys[place], out_levels[place] = more_keys[j], more_levels[j]
            count += more_values[j]
            j += 1
        if left:
            out_keys[place], out_levels[place] = keys[i], levels[i]
            count += values[i]
            i += 1
        out_values[place] = count
