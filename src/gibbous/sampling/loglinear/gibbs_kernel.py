"""Compiled Gibbs sweeps of the log-linear model.

`sweep` has a numpy twin in `twins` that it equals bit for bit. A block of chains goes
through all its draws before the next block starts, so that its codes stay in cache. Indices are
unsigned and arrays are not sliced in inner loops, or the loops lose their vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbous.core.compiled import POWER
from gibbous.core.kernel import kernel
from gibbous.sampling.loglinear.step_tables import (
    AT_OTHER,
    AT_OWN,
    AT_PIECE,
    AT_RULE,
    AT_TABLE,
    AT_TERM,
    BITS,
    FIRST,
    LEVELS,
    NEVER,
    OTHERS,
    PIECES,
    RULES,
    SECOND,
    SECOND_SIZE,
    TERMS,
    UNIT,
    WIDTH,
    Flat,
)

Array = np.ndarray
U = np.uint64
BLOCK = 256  # chains
BUFFER = 4096  # logits that are worked on at a time: they stay in the fastest cache
GOLDEN = U(0x9E3779B97F4A7C15)
M1, M2 = U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
S11, S27, S30, S31 = U(11), U(27), U(30), U(31)
POINT = 2.0**-53
ONE, TWO, FOUR = U(1), U(2), U(4)

D0, D1, D2, D3, D4 = (np.float32(c) for c in POWER)
TOP = np.float32(2.0**30)  # weight of the likeliest level
FRACTION = np.float32(1 / UNIT)
LOW, SHIFT, MOST_SHIFT = np.int32(UNIT - 1), np.int32(BITS), np.int32(31)
IMPOSSIBLE = np.int32(NEVER)


@kernel(inline="always")
def mix(x: np.uint64) -> np.uint64:
    """The bijection of `core.context.mix64`, one word."""
    x = (x ^ (x >> S30)) * M1
    x = (x ^ (x >> S27)) * M2
    return x ^ (x >> S31)


@kernel()
def find_places(state: Array, low: int, high: int, step: Array, flat: Flat, places: Array) -> None:
    """Offset of the run of levels that each row of a block reads in each piece of a step."""
    rows, first, pieces, terms = U(high - low), U(low), flat.pieces, flat.terms
    for q in range(U(step[PIECES])):
        piece = U(step[AT_PIECE]) + q
        base = np.uint32(pieces[piece, AT_TABLE])
        for i in range(rows):
            places[q, i] = base
        begin = U(pieces[piece, AT_TERM])
        for t in range(begin, begin + U(pieces[piece, TERMS])):
            other, stride = U(terms[t, 0]), np.uint32(terms[t, 1])
            for i in range(rows):
                places[q, i] += np.uint32(state[other, first + i]) * stride


@kernel()
def add_up(
    cells: Array, places: Array, first: int, rows: int, pieces: int, width: int, logits: Array
) -> None:
    """Logits of each level of each row: the sum of the runs; four runs at a time."""
    wide, count = U(width), U(pieces)
    for i in range(U(rows)):
        at, row = i * wide, U(first) + i
        a = U(places[U(0), row])
        q = ONE
        if count >= FOUR:
            b, c, d = U(places[ONE, row]), U(places[TWO, row]), U(places[U(3), row])
            for v in range(wide):
                logits[at + v] = cells[a + v] + cells[b + v] + cells[c + v] + cells[d + v]
            q = FOUR
        elif count >= TWO:
            b = U(places[ONE, row])
            for v in range(wide):
                logits[at + v] = cells[a + v] + cells[b + v]
            q = TWO
        else:
            for v in range(wide):
                logits[at + v] = cells[a + v]
        while q + FOUR <= count:
            a, b = U(places[q, row]), U(places[q + ONE, row])
            c, d = U(places[q + TWO, row]), U(places[q + U(3), row])
            for v in range(wide):
                logits[at + v] += cells[a + v] + cells[b + v] + cells[c + v] + cells[d + v]
            q += FOUR
        if q + TWO <= count:
            a, b = U(places[q, row]), U(places[q + ONE, row])
            for v in range(wide):
                logits[at + v] += cells[a + v] + cells[b + v]
            q += TWO
        if q < count:
            a = U(places[q, row])
            for v in range(wide):
                logits[at + v] += cells[a + v]


@kernel()
def mask(state: Array, low: int, rows: int, step: Array, flat: Flat, logits: Array) -> None:
    """Make the levels impossible that a structural zero rules out, given the row's other columns."""
    wide, levels = U(step[WIDTH]), U(step[LEVELS])
    rules, others, hits = flat.rules, flat.others, flat.hits
    for r in range(U(step[AT_RULE]), U(step[AT_RULE] + step[RULES])):
        own, first = U(rules[r, AT_OWN]), U(rules[r, AT_OTHER])
        last = first + U(rules[r, OTHERS])
        for i in range(U(rows)):
            applies = True
            for o in range(first, last):
                code = U(state[U(others[o, 0]), U(low) + i])
                applies = applies and hits[U(others[o, 1]) + code] != 0
            if applies:
                for v in range(levels):
                    if hits[own + v] != 0:
                        logits[i * wide + v] = IMPOSSIBLE


@kernel()
def weigh(logits: Array, width: int, rows: int, stuck: Array) -> None:
    """Logits to whole weights in place: 2**30 for the likeliest level of a row; twin: `twins.weights`."""
    wide = U(width)
    for i in range(U(rows)):
        at = i * wide
        top = logits[at]
        for v in range(wide):
            top = max(top, logits[at + v])
        stuck[i] = top == IMPOSSIBLE
        for v in range(wide):
            logits[at + v] = top - logits[at + v]
    for k in range(U(rows) * wide):
        gap = logits[k]
        part = np.float32(gap & LOW) * FRACTION
        power = D0 + part * (D1 + part * (D2 + part * (D3 + part * D4)))
        logits[k] = np.int32(power * TOP) >> min(gap >> SHIFT, MOST_SHIFT)


@kernel()
def pick(
    weights: Array,
    rows: int,
    number: int,
    key: np.uint64,
    stuck: Array,
    state: Array,
    step: Array,
    low: int,
) -> None:
    """Draw each row's level; a row whose levels are all impossible keeps what it has."""
    wide, first, start = U(step[WIDTH]), U(number), U(low)
    at_first, at_second, size = U(step[FIRST]), U(step[SECOND]), U(step[SECOND_SIZE])
    two = step[SECOND] >= 0
    for i in range(U(rows)):
        at = i * wide
        total = np.int64(0)
        for v in range(wide):
            total += np.int64(weights[at + v])
        word = mix((first + i) * GOLDEN + key)
        point = np.int64(np.float64(word >> S11) * POINT * np.float64(total))
        running, level = np.int64(0), U(0)
        for v in range(wide - ONE):
            running += np.int64(weights[at + v])
            level += U(running <= point)
        if stuck[i]:
            continue
        if two:
            state[at_first, start + i] = level // size
            state[at_second, start + i] = level % size
        else:
            state[at_first, start + i] = level


class Room(NamedTuple):
    """Memory of one call of `sweep`: offsets of runs, logits or weights, rows without a level."""

    places: Array
    logits: Array
    stuck: Array


def room_of(flat: Flat) -> Room:
    """Room for any steps of a model."""
    widest = max(BUFFER, int(flat.steps[:, WIDTH].max()))
    return Room(
        np.empty((int(flat.steps[:, PIECES].max()), BLOCK), dtype=np.uint32),
        np.empty(widest, dtype=np.int32),
        np.empty(BLOCK, dtype=np.uint8),
    )


@kernel()
def sweep(
    state: Array,
    low: int,
    high: int,
    number: int,
    order: Array,
    keys: Array,
    flat: Flat,
    room: Room,
) -> None:
    """Run steps on chains low..high, one after the other, each given all other columns.

    Args:
        state: (columns, chains) codes, C-contiguous; changed in place.
        number: of chain `low` in its stream.
        order: int64 (draws,): which step, in turn.
        keys: uint64 (draws,): key of each draw's stream.
        room: see `room_of`.
    """
    places, logits, stuck = room
    for start in range(low, high, BLOCK):
        stop = min(high, start + BLOCK)
        for e in range(len(order)):
            step = flat.steps[order[e]]
            width, count = step[WIDTH], step[PIECES]
            find_places(state, start, stop, step, flat, places)
            several = max(1, BUFFER // width)
            for first in range(start, stop, several):
                rows = min(several, stop - first)
                add_up(flat.cells, places, first - start, rows, count, width, logits)
                if step[RULES]:
                    mask(state, first, rows, step, flat, logits)
                weigh(logits, width, rows, stuck)
                pick(logits, rows, number + (first - low), keys[e], stuck, state, step, first)
