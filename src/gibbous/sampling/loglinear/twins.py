"""Numpy twins of the compiled kernels: what those must equal, bit for bit."""

from __future__ import annotations

import numpy as np

from gibbous.core.compiled import POWER
from gibbous.core.context import mix64
from gibbous.core.stream import GOLDEN
from gibbous.sampling.loglinear.margin_kernels import Goals
from gibbous.sampling.loglinear.step_tables import (
    AT_OTHER,
    AT_OWN,
    AT_PIECE,
    AT_RULE,
    BITS,
    FIRST,
    LEVELS,
    NEVER,
    OTHERS,
    PIECES,
    RULES,
    SECOND,
    SECOND_SIZE,
    UNIT,
    WIDTH,
    Flat,
)

ROWS = 1 << 12  # at a time


def sweep(flat: Flat, state: np.ndarray, order: np.ndarray, keys: np.ndarray, first: int) -> None:
    """Twin of `gibbs_kernel.sweep` over all rows."""
    for step, key in zip(order, keys, strict=True):
        for low in range(0, state.shape[1], ROWS):
            part = state[:, low : low + ROWS]
            _redraw(flat, part, flat.steps[step], int(key), first + low)


def logits(flat: Flat, state: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Logit units of every level of a step, impossible ones NEVER: int64 (rows, WIDTH)."""
    levels = np.arange(step[WIDTH])
    total = np.zeros((state.shape[1], step[WIDTH]), dtype=np.int64)
    for table, term, terms in flat.pieces[step[AT_PIECE] : step[AT_PIECE] + step[PIECES]]:
        place = np.full(state.shape[1], table, dtype=np.int64)
        for column, stride in flat.terms[term : term + terms]:
            place += state[column].astype(np.int64) * stride
        total += flat.cells[place[:, None] + levels]
    for applies, own in _rules(flat, state, step):
        barred = np.zeros(step[WIDTH], dtype=bool)
        barred[: step[LEVELS]] = own
        total[np.ix_(applies, barred)] = NEVER
    return total


def weights(total: np.ndarray) -> np.ndarray:
    """Twin of `gibbs_kernel.weigh`: int64 (rows, WIDTH)."""
    gap = (total.max(axis=1, keepdims=True) - total).astype(np.int32)
    part = (gap & np.int32(UNIT - 1)).astype(np.float32) * np.float32(1 / UNIT)
    power = np.full(part.shape, np.float32(POWER[-1]))
    for factor in POWER[-2::-1]:
        power = np.float32(factor) + part * power
    whole = (power * np.float32(2.0**30)).astype(np.int32)
    found: np.ndarray = (whole >> np.minimum(gap >> np.int32(BITS), np.int32(31))).astype(np.int64)
    return found


def _redraw(flat: Flat, state: np.ndarray, step: np.ndarray, key: int, first: int) -> None:
    total = logits(flat, state, step)
    stuck = total.max(axis=1) == NEVER
    sums = np.cumsum(weights(total), axis=1)
    numbers = np.arange(first, first + state.shape[1], dtype=np.uint64)
    word = mix64(numbers * np.uint64(GOLDEN) + np.uint64(key)) >> np.uint64(11)
    point = (word.astype(np.float64) * 2.0**-53 * sums[:, -1].astype(np.float64)).astype(np.int64)
    level = (sums[:, :-1] <= point[:, None]).sum(axis=1)
    columns = [step[FIRST]] if step[SECOND] < 0 else [step[FIRST], step[SECOND]]
    codes = [level] if step[SECOND] < 0 else [*np.divmod(level, step[SECOND_SIZE])]
    for column, code in zip(columns, codes, strict=True):
        state[column] = np.where(stuck, state[column], code)


def _rules(flat: Flat, state: np.ndarray, step: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per rule of a step: to which rows it applies, and which levels it then rules out."""
    found = []
    for rule in flat.rules[step[AT_RULE] : step[AT_RULE] + step[RULES]]:
        applies = np.ones(state.shape[1], dtype=bool)
        for column, at in flat.others[rule[AT_OTHER] : rule[AT_OTHER] + rule[OTHERS]]:
            applies &= flat.hits[at + state[column].astype(np.int64)] != 0
        found.append((applies, flat.hits[rule[AT_OWN] : rule[AT_OWN] + step[LEVELS]] != 0))
    return found


def close(
    state: np.ndarray,
    columns: np.ndarray,
    goals: Goals,
    short: np.ndarray,
    flat: Flat,
    keep: float,
    *_room: np.ndarray,
) -> int:
    """Twin of `margin_kernels.close`: plain loops over rows and columns."""
    moved = 0

    def run_of(use: np.ndarray, row: int) -> int:
        at = int(use[1])
        for column, stride in goals.terms[use[2] : use[2] + use[3]]:
            at += int(state[column, row]) * int(stride)
        return at

    for row in range(state.shape[1]):
        for j in columns:
            levels, own = int(flat.steps[j, LEVELS]), int(state[j, row])
            uses = goals.uses[goals.first_use[j] : goals.first_use[j + 1]]
            gain, plus = np.zeros(levels, dtype=np.float32), np.float32(0.0)
            for use in uses:
                at = run_of(use, row)
                gain += goals.weights[use[0]] * short[at : at + levels].astype(np.float32)
                plus += goals.weights[use[0]]
            gain[own] += plus
            for applies, barred in _rules(flat, state[:, row : row + 1], flat.steps[j]):
                if applies[0]:
                    gain[barred] = -np.inf
            best = int(np.argmax(gain))
            if best == own or not gain[best] > gain[own] + np.float32(keep) * plus:
                continue
            moved += 1
            for change, code in ((1, own), (-1, best)):
                state[j, row] = code
                for use in uses:
                    for last, twin in goals.copies[slice(*goals.first_copy[use[0] : use[0] + 2])]:
                        short[run_of(goals.uses[twin], row) + int(state[last, row])] += change
    return moved
