"""Memory is estimated before counting, from public facts and the number of rows, and kept to."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from gibbous.core import machine
from gibbous.core.context import Context, Hashed, Key, MinHash, Radix
from gibbous.core.errors import ResourceLimit
from gibbous.disintegrate.records import LocalEngine
from tests.disintegrate.brute import codes_of, context_of, schema_of

ROWS = 400_000
SCHEMA = schema_of([10, 90, 80, 200, 7, 90, 100, 250, 250])
WIDE = (1, 2, 3, 5, 6, 7, 8)


def cases() -> dict[str, list[Context]]:
    """Contexts that stress each way of counting."""

    def one(parents: tuple[int, ...], key: Key = Radix(), *, seen: bool = False) -> Context:  # noqa: B008
        return context_of(SCHEMA, (0,), parents, key, seen=seen)

    many = context_of(SCHEMA, WIDE[:3], WIDE[3:], seen=True)
    return {
        "small": [one((4,)), one(())],
        "dense": [one((1, 2, 3))],
        "two dense": [one((1, 2)), one((1, 2, 3))],
        "hashed": [one((1, 2, 3, 4), Hashed(1 << 18))],
        "minhash": [one((1, 2, 3), MinHash(4, 1 << 16))],
        "seen in a dense table": [one((1, 4), seen=True)],
        "sorted": [one((1, 2, 3, 4), seen=True)],
        "two sorted": [one(WIDE[:4], seen=True), one(WIDE[1:5], seen=True)],
        "sorted hashes": [one(WIDE, Hashed(1 << 40), seen=True)],
        "sorted pairs": [many],
    }


@pytest.mark.parametrize("case", list(cases()))
def test_the_estimate_is_an_upper_bound_within_a_factor(case: str) -> None:
    contexts = cases()[case]
    codes = codes_of(SCHEMA, ROWS, np.random.default_rng(1))
    held = LocalEngine.from_codes(codes)
    LocalEngine.from_codes(codes_of(SCHEMA, 10, np.random.default_rng(1))).tally(
        contexts
    )  # compiles

    tracemalloc.start()
    kept = held.tally(contexts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(kept) == len(contexts)
    told = held.estimate(contexts, ROWS)
    assert peak <= told
    assert told <= 4 * peak + (8 << 20)


def test_a_dense_table_over_the_limit_is_refused_before_it_starts() -> None:
    codes = codes_of(SCHEMA, 10, np.random.default_rng(1))
    context = context_of(SCHEMA, (0,), (1, 2, 3, 5, 6, 7))  # 10^13 cells

    tracemalloc.start()
    with pytest.raises(ResourceLimit) as caught:
        LocalEngine.from_codes(codes).tally([context])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert caught.value.exit_code == 10
    assert "TB" in caught.value.render()
    assert peak < 1 << 20


def test_a_memory_error_becomes_one_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = codes_of(SCHEMA, 10, np.random.default_rng(1))
    held = LocalEngine.from_codes(codes)

    def fail(*args: object, **named: object) -> None:
        raise MemoryError

    monkeypatch.setattr("gibbous.disintegrate.passes.dense", fail)

    with pytest.raises(ResourceLimit, match="ran out of memory"):
        held.tally([context_of(SCHEMA, (0,), (1, 2))])


def test_c6_the_estimate_is_exact_arithmetic_for_any_size() -> None:
    vast = context_of(schema_of([250] * 30), tuple(range(3)), tuple(range(3, 30)))

    assert LocalEngine().estimate([vast], 10**12) > 250**30


def test_where_few_cells_occur_a_dense_table_over_the_limit_is_not_tried() -> None:
    schema = schema_of([200, 200])
    codes = codes_of(schema, 30_000, np.random.default_rng(1))
    context = context_of(schema, (0,), (1,), seen=True)
    tight = LocalEngine.from_codes(codes, threads=1, memory_limit=5 << 20)
    loose = LocalEngine.from_codes(codes, threads=1)
    assert context.cells <= 2 * codes.rows

    one, two = tight.tally([context])[0], loose.tally([context])[0]

    assert np.array_equal(one.cells.values, two.cells.values)


def test_the_default_limit_leaves_room_for_others() -> None:
    assert 0 < machine.default_limit() <= 4 << 30
