"""Compiled kernels equal their numpy twins bit for bit, whatever the widths, codes and rules."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Schema
from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear import margins, step_tables, twins
from gibbous.sampling.loglinear.chains import draw, schedule, spread
from gibbous.sampling.loglinear.step_tables import NEVER, flatten, model_rules, to_units
from tests.loglinear import made

PLAIN = made.schema((2, 3, 4, 9, 17))
RULED = made.schema(
    (2, 3, 4, 9, 17), {1: (0,), 3: (1, 2, 8)}, {4: (3,)}, {0: (1,), 2: (0,), 3: (5,)}
)
CLIQUES = (
    (0,),
    (1,),
    (3,),
    (4,),
    (0, 1),
    (1, 2),
    (2, 3),
    (3, 4),
    (0, 3, 4),
    (1, 2, 3),
    (0, 2),
    (1, 4),
)
WIDE = made.schema((300, 5, 2), {0: (0, 299), 1: (4,)})
CASES = {
    "narrow columns": (PLAIN, CLIQUES, ()),
    "structural zeros": (RULED, CLIQUES, ()),
    "two columns together": (RULED, CLIQUES, ((1, 3), (0, 2))),
    "16-bit codes": (WIDE, ((0,), (0, 1), (1, 2), (0, 2)), ()),
    "16-bit codes together": (WIDE, ((0,), (0, 1), (1, 2), (0, 2)), ((1, 2),)),
    "a column in no clique": (PLAIN, ((0, 1),), ()),
}


@pytest.mark.parametrize("case", CASES)
def test_sweeps_equal_the_twin(case: str) -> None:
    schema, cliques, blocks = CASES[case]
    model = made.model(schema.sizes, cliques, spread=2.0, blocks=blocks)
    flat = flatten(model, model_rules(model, schema))
    state = _any_state(schema, 1500)
    twin = state.copy()
    order, keys = schedule(flat, 0, 3, 7)

    draw(flat, state, order, keys, first=11)
    twins.sweep(flat, twin, order, keys, 11)

    assert np.array_equal(state, twin)
    assert (state != _any_state(schema, 1500)).any()


@pytest.mark.parametrize("limit", [0, 1, 64, 1 << 20], ids=str)
def test_logits_are_the_sum_of_the_cliques_however_they_are_folded(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made.model(PLAIN.sizes, CLIQUES, spread=0.5)
    monkeypatch.setattr(step_tables, "FOLD", limit)
    flat = flatten(model, ())
    state = _any_state(PLAIN, 50)

    for column, size in enumerate(PLAIN.sizes):
        found = twins.logits(flat, state, flat.steps[column])

        assert (found[:, size:] <= NEVER).all()
        wanted = _logits(model, state, column)
        shift = found[:, :size] - wanted
        assert (shift == shift[:, :1]).all(), "the same but for a constant of each row"


def test_a_row_without_any_possible_level_keeps_what_it_has() -> None:
    schema = made.schema((2, 3), {0: (1,), 1: (0, 1, 2)})
    model = made.model(schema.sizes, ((0, 1),))
    flat = flatten(model, model_rules(model, schema))
    state = np.array([[1] * 40, [2] * 40], dtype=np.uint8)

    draw(flat, state, np.array([1]), np.array([5], dtype=np.uint64))

    assert (state[1] == 2).all()


def test_threads_and_slices_change_no_byte() -> None:
    model = made.model(PLAIN.sizes, CLIQUES)
    flat = flatten(model, ())
    order, keys = schedule(flat, 0, 1, 7)
    states = []
    for threads in (1, 2, 3):
        state = np.zeros((5, 20_001), dtype=np.uint8)
        draw(flat, state, order, keys, threads=threads)
        states.append(state)
    part = np.zeros((5, 300), dtype=np.uint8)
    draw(flat, part, order, keys, first=9_000)

    assert np.array_equal(states[0], states[1])
    assert np.array_equal(states[0], states[2])
    assert np.array_equal(states[0][:, 9_000:9_300], part)


FORKED = """
import os, signal
import numpy as np
from gibbous.sampling.loglinear.chains import spread

def filled():
    out = np.zeros(40)
    spread(lambda low, high: out.__setitem__(slice(low, high), 1.0), 40, 3, 7)
    return out.sum()

assert filled() == 40 and filled() == 40
child = os.fork()
if not child:
    signal.alarm(20)  # a fork that waits for its parent's threads waits for ever
    os._exit(int(filled() != 40))
print(os.waitpid(child, 0)[1])
"""


def test_a_fork_has_threads_of_its_own() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED]

    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == "0"


def test_an_error_in_a_thread_reaches_the_caller_after_all_slices_ended() -> None:
    done = []

    def work(low: int, high: int) -> None:
        if low == 0:
            raise MemoryError
        done.append((low, high))

    with pytest.raises(MemoryError):
        spread(work, 30, 2, 10)

    assert sorted(done) == [(10, 20), (20, 30)]


@pytest.mark.parametrize("case", ["narrow columns", "16-bit codes"])
def test_counts_are_those_of_brute_force(case: str) -> None:
    schema, cliques, _ = CASES[case]
    state = _any_state(schema, 700)

    for clique, found in zip(cliques, margins(state, schema.sizes, cliques), strict=True):
        assert np.array_equal(found, made.counts(state, schema.sizes, clique))


def test_extreme_thetas_neither_overflow_nor_undo_each_other() -> None:
    cliques = tuple((0, j) for j in range(1, 40))
    sizes = (3,) + (2,) * 39
    theta = tuple(np.array([[1e9, 1e9], [-1e9, -1e9], [0.0, 0.0]]) for _ in cliques)
    flat = flatten(LogLinear(sizes, cliques, theta), ())
    state = np.ones((40, 500), dtype=np.uint8)

    draw(flat, state, np.array([0]), np.array([3], dtype=np.uint64))

    assert (state[0] == 0).all()


@pytest.mark.parametrize(
    ("sizes", "blocks"), [((1 << 17, 2), ()), ((300, 300), ((0, 1),))], ids=["column", "block"]
)
def test_refuses_more_levels_than_a_draw_can_hold(
    sizes: tuple[int, int], blocks: tuple[tuple[int, int], ...]
) -> None:
    with pytest.raises(ResourceLimit, match="levels at once"):
        flatten(LogLinear(sizes, (), (), blocks=blocks), ())


def _any_state(schema: Schema, rows: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    state = np.stack([rng.integers(0, size, rows) for size in schema.sizes])
    return np.ascontiguousarray(state, dtype=schema.code_dtype())


def _logits(model: LogLinear, state: np.ndarray, column: int) -> np.ndarray:
    total = np.zeros((state.shape[1], model.sizes[column]), dtype=np.int64)
    for level in range(model.sizes[column]):
        moved = state.copy()
        moved[column] = level
        for clique, theta in zip(model.cliques, model.theta, strict=True):
            if column in clique:
                total[:, level] += to_units(theta)[tuple(moved[j] for j in clique)]
    return total
