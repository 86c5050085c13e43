"""The numpy twin of the kernels: the definition of every sampled byte, slow and plain."""

from __future__ import annotations

import numpy as np

from gibbous.core.context import keys_of, mix64, strides
from gibbous.core.stream import GOLDEN, stream_key
from gibbous.sampling.program import Program, Step
from gibbous.sampling.structural_zeros import allowed_levels

_S32, _S8, _LOW = np.uint64(32), np.uint64(8), np.uint64(0xFFFFFFFF)


def run(
    program: Program, order: np.ndarray, keys: np.ndarray, numbers: np.ndarray, state: np.ndarray
) -> None:
    """Execute steps on rows, in place.

    Args:
        order: int64 (executions,): positions in (*program.start, *program.steps).
        keys: uint64 (executions,): key of each execution's stream.
        numbers: uint64 (rows,): number of each row; with a key it determines the row's word.
    """
    steps = (*program.start, *program.steps)
    for at, key in zip(order, keys, strict=True):
        draw_step(steps[at], key, numbers, state)


def draw_step(step: Step, key: np.uint64, numbers: np.ndarray, state: np.ndarray) -> None:
    """One draw of one step for all rows, in place; arguments as in run."""
    word = mix64(numbers * np.uint64(GOLDEN) + key)
    slots = slots_of(step, state)
    if step.packed is None:
        _draw_cells(step, slots, word, state)
    elif step.rules:
        _draw_masked(step, slots, word, state)
    else:
        _draw_alias(step, slots, word, state[step.targets[0]])


def slots_of(step: Step, state: np.ndarray) -> np.ndarray:
    """Slot of each row, int64; the number of slots stands for: keep the value."""
    if step.conditional is None:
        return np.zeros(state.shape[1], dtype=np.int64)
    context = step.conditional.context
    keys = keys_of(context, state.T)
    if step.slots is not None:
        return step.slots[keys.astype(np.int64)]
    found = step.conditional.resolve(keys, state[list(context.parents)])
    return np.where(found < 0, step.conditional.slots, found)


def _draw_alias(step: Step, slots: np.ndarray, word: np.ndarray, column: np.ndarray) -> None:
    assert step.packed is not None
    own = ((word >> _S32) * np.uint64(step.packed.shape[1])) >> _S32
    cell = step.packed[slots, own.astype(np.int64)]
    point = word & _LOW
    if step.packed.dtype == np.uint32:
        take = (point >> _S8) < (cell.astype(np.uint64) >> _S8)
        other = cell & np.uint32(255)
    else:
        take = point < (cell >> _S32)
        other = cell & _LOW
    drawn = np.where(take, own, other.astype(np.uint64))
    keep = slots == len(step.packed) - 1
    column[:] = np.where(keep, column, drawn)


def _draw_masked(step: Step, slots: np.ndarray, word: np.ndarray, state: np.ndarray) -> None:
    """Draw among the levels that are possible given the row; keep the value where none is."""
    assert step.packed is not None
    shares = step.conditional.shares if step.conditional is not None else step.margin
    assert shares is not None
    levels, target = step.packed.shape[1], step.targets[0]
    shares = shares.reshape(-1, levels)
    allowed = allowed_levels(step.rules, state, target, levels)
    assert allowed is not None
    keep = (slots == len(shares)) | ~allowed.any(axis=1)
    weights = shares[np.minimum(slots, len(shares) - 1)] * allowed
    empty = weights.sum(axis=1) <= 0
    weights[empty] = allowed[empty]
    sums = np.cumsum(weights, axis=1)
    point = (word >> np.uint64(11)).astype(np.float64) * 2.0**-53 * sums[:, -1]
    level = (sums <= point[:, None]).sum(axis=1)
    # Rounding must not lead past the last level that has weight.
    last = levels - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    state[target] = np.where(keep, state[target], np.minimum(level, last))


def _draw_cells(step: Step, slots: np.ndarray, word: np.ndarray, state: np.ndarray) -> None:
    """Several targets at once: a cell of the slot by its share, decoded into columns."""
    conditional = step.conditional
    assert conditional is not None
    context = conditional.context
    kept = slots < conditional.slots
    slots = np.minimum(slots, conditional.slots - 1)
    first, last = conditional.starts[slots], conditional.starts[slots + 1]
    below, above = conditional.sums[first], conditional.sums[last]
    point = below + (word >> np.uint64(11)).astype(np.float64) * 2.0**-53 * (above - below)
    at = np.searchsorted(conditional.sums[1:], point, side="right")
    at = np.clip(at, first, np.maximum(last - 1, first))
    for place, step_of in enumerate(strides(context.target_sizes)):
        size = np.uint64(context.target_sizes[place])
        again = mix64(word ^ np.uint64(stream_key(place)))  # a word for each column of a bare slot
        spread = ((again >> _S32) * size) >> _S32
        if len(conditional.levels):
            inside = np.minimum(at, len(conditional.levels) - 1)
            code = (conditional.levels[inside] // np.uint64(step_of)) % size
            spread = np.where(last > first, code, spread)
        column = state[context.targets[place]]
        state[context.targets[place]] = np.where(kept, spread, column)
