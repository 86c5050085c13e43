"""Compiled kernel of the closing pass."""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import njit
from gibbous.synthesize.loglinear.kernels import ONE, Array, U
from gibbous.synthesize.loglinear.layout import (
    AT_OTHER,
    AT_OWN,
    AT_RULE,
    LEVELS,
    OTHERS,
    RULES,
    WIDTH,
)


@njit(inline="always")
def _bar(
    state: Array,
    row: np.uint64,
    step: Array,
    rules: Array,
    others: Array,
    hits: Array,
    gain: Array,
) -> None:
    """Levels that a structural zero rules out gain nothing ever."""
    for r in range(U(step[AT_RULE]), U(step[AT_RULE] + step[RULES])):
        own, first = U(rules[r, AT_OWN]), U(rules[r, AT_OTHER])
        applies = True
        for o in range(first, first + U(rules[r, OTHERS])):
            applies = applies and hits[U(others[o, 1]) + U(state[U(others[o, 0]), row])] != 0
        if applies:
            for v in range(U(step[LEVELS])):
                if hits[own + v] != 0:
                    gain[v] = np.float32(-np.inf)


@njit(inline="always")
def _run_of(codes: Array, uses: Array, terms: Array, use: int | np.uint64) -> np.uint64:
    """Where the run of levels of a use begins for a row of codes."""
    place = U(uses[use, 1])
    begin = U(uses[use, 2])
    for t in range(begin, begin + U(uses[use, 3])):
        place += U(codes[U(terms[t, 0])]) * U(terms[t, 1])
    return place


_CLOSE = (
    "int64({0}[:,::1], int64, int64, int64[::1], int64[::1], int64[:,::1], int64[:,::1], "
    "int64[::1], int64[:,::1], int32[::1], float32[::1], int64[:,::1], int64[:,::1], "
    "int64[:,::1], uint8[::1], float64)"
)


@njit(*(_CLOSE.format(kind) for kind in ("uint8", "uint16")))
def close(
    state: Array,
    low: int,
    high: int,
    columns: Array,
    first_use: Array,
    uses: Array,
    terms: Array,
    first_copy: Array,
    copies: Array,
    short: Array,
    weights: Array,
    steps: Array,
    rules: Array,
    others: Array,
    hits: Array,
    keep: float,
) -> int:
    """One pass over the rows low..high: move a value where that brings their margins nearer.

    Args:
        state: (columns, rows) codes; changed in place.
        columns: that may change.
        first_use: int64 (columns + 1,): rows of `uses` of each column.
        uses: int64 (uses, 4): goal, offset in `short`, first term, number of terms.
        terms: int64 (terms, 2): other column, stride.
        first_copy: int64 (goals + 1,): rows of `copies` of each goal.
        copies: int64 (copies, 2): the column whose axis is last, the use.
        short: int32: rows that each cell lacks, a copy for each column of a goal, that column's axis
            last and padded to WIDTH; kept up to date.
        weights: float32 (goals,).
        steps, rules, others, hits: structural zeros, see `layout.Flat`.
        keep: how much nearer a move has to bring them, in shares of what it costs to move a value
            between cells that lack nothing (the sum of the weights).
    Returns:
        The number of values moved.
    """
    widest = np.int64(1)
    for j in columns:
        widest = max(widest, steps[j, WIDTH])
    gain = np.empty(widest, dtype=np.float32)
    codes = np.empty(state.shape[0], dtype=np.int64)
    moved = np.int64(0)
    for i in range(low, high):
        row = U(i)
        for j in range(U(state.shape[0])):
            codes[j] = state[j, row]
        for j in columns:
            levels, width, own = U(steps[j, LEVELS]), U(steps[j, WIDTH]), U(codes[j])
            for v in range(width):
                gain[v] = np.float32(0.0)
            plus = np.float32(0.0)
            for use in range(U(first_use[j]), U(first_use[j + 1])):
                weight = weights[U(uses[use, 0])]
                at = _run_of(codes, uses, terms, use)
                for v in range(width):
                    gain[v] += weight * np.float32(short[at + v])
                plus += weight
            gain[own] += plus
            if steps[j, RULES]:
                _bar(state, row, steps[j], rules, others, hits, gain)
            best, most = own, gain[own] + np.float32(keep) * plus
            for v in range(levels):
                if gain[v] > most:
                    best, most = U(v), gain[v]
            if best == own:
                continue
            moved += 1
            for use in range(U(first_use[j]), U(first_use[j + 1])):
                goal = U(uses[use, 0])
                for c in range(U(first_copy[goal]), U(first_copy[goal + ONE])):
                    last, twin = U(copies[c, 0]), U(copies[c, 1])
                    codes[j] = own
                    short[_run_of(codes, uses, terms, twin) + U(codes[last])] += np.int32(1)
                    codes[j] = best
                    short[_run_of(codes, uses, terms, twin) + U(codes[last])] -= np.int32(1)
            state[U(j), row] = best
    return int(moved)
