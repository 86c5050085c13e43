"""Every engine counts what a dictionary counts: routes, keys, types, threads, row orders."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed, Key, MinHash, Radix
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate import count_routes, passes, plain, schedule
from gibbous.disintegrate.records import LocalEngine, contiguous
from tests.disintegrate.brute import as_dict, codes_of, context_of, count, schema_of

KEYS = st.one_of(
    st.just(Radix()),
    st.builds(Hashed, st.sampled_from([1, 2, 64]), st.integers(-5, 1 << 70)),
    st.builds(MinHash, st.integers(1, 5), st.sampled_from([1, 2, 64]), st.integers(0, 9)),
)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Codes, list[Context]]:
    """A table, and contexts over its columns."""
    small = st.one_of(st.integers(1, 12), st.sampled_from([1, 2, 255, 256, 257]))
    schema = schema_of(draw(st.lists(small, min_size=1, max_size=7)))
    rows = draw(st.sampled_from([0, 1, 2, 5, 60]))
    codes = codes_of(schema, rows, np.random.default_rng(draw(st.integers(0, 1 << 32))))
    contexts = []
    for _ in range(draw(st.integers(1, 6))):
        order = draw(st.permutations(range(len(schema))))
        cut = draw(st.integers(1, len(order)))
        end = draw(st.integers(cut, min(len(order), cut + 4)))
        targets, parents = tuple(order[:cut][:2]), tuple(order[cut:end])
        key = draw(KEYS)
        context = context_of(schema, targets, parents, key, seen=draw(st.booleans()))
        if context.support == "dense" and context.cells > 10**5:
            context = context_of(schema, targets, parents, key, seen=True)
        contexts.append(context)
    return codes, contexts


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems(), st.integers(1, 3))
def test_engines_agree_with_brute_force(problem: tuple[Codes, list[Context]], threads: int) -> None:
    codes, contexts = problem

    slow = plain.counts(codes, contexts)
    fast = LocalEngine.from_codes(codes, threads=threads).tally(contexts)

    for context, one, two in zip(contexts, slow, fast, strict=True):
        truth = count(context, codes)
        assert as_dict(one) == truth
        assert as_dict(two) == truth
        assert one.context == two.context == context


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("key", [Radix(), Hashed(256, 3), MinHash(3, 256, 3)], ids=repr)
@pytest.mark.parametrize("seen", [False, True], ids=["dense", "seen"])
def test_engines_agree_for_each_type_of_code(dtype: str, key: Key, seen: bool) -> None:
    schema = schema_of([7, 40, 11, 23])
    codes = codes_of(schema, 9000, np.random.default_rng(1), dtype)
    contexts = [context_of(schema, (2,), (0, 3), key, seen=seen)]
    contexts.append(context_of(schema, (1, 0), (2, 3), key, seen=seen))

    slow = plain.counts(codes, contexts)
    fast = LocalEngine.from_codes(codes).tally(contexts)

    assert [as_dict(c) for c in fast] == [as_dict(c) for c in slow]
    assert as_dict(slow[0]) == count(contexts[0], codes)


@pytest.mark.parametrize("key", [Hashed(1 << 12, 5), MinHash(2, 1 << 12, 5)], ids=repr)
def test_hashed_keys_agree_when_parents_are_too_many_to_look_up(key: Key) -> None:
    schema = schema_of([3, 90, 80, 70, 1, 60])
    codes = codes_of(schema, 5000, np.random.default_rng(2))
    context = context_of(schema, (0,), (1, 2, 3, 4, 5), key)
    assert count_routes.key_table(context) is None

    fast = LocalEngine.from_codes(codes).tally([context])[0]

    assert as_dict(fast) == count(context, codes)


@pytest.mark.parametrize(
    ("sizes", "route"),
    [([3, 4, 5], "small"), ([90, 80], "dense"), ([90, 80, 70], "sort"), ([60000] * 4, "pairs")],
    ids=["small", "dense", "sort", "pairs"],
)
def test_each_route_counts_the_keys_that_occur(sizes: list[int], route: str) -> None:
    schema = _wide(sizes)
    codes = codes_of(schema, 4000, np.random.default_rng(3))
    half = len(sizes) // 2
    columns = tuple(range(len(sizes)))
    context = context_of(schema, columns[half:], columns[:half], seen=True)
    assert count_routes.choose_route(context, codes.rows, 1 << 30) == route

    fast = LocalEngine.from_codes(codes, memory_limit=1 << 30).tally([context])[0]
    slow = plain.counts(codes, [context])[0]

    assert as_dict(fast) == as_dict(slow) == count(context, codes)


def test_cells_of_64_bits_are_sorted_as_numbers() -> None:
    schema = _wide([60000, 60000, 60000])
    codes = codes_of(schema, 3000, np.random.default_rng(4))
    context = context_of(schema, (0,), (1, 2), seen=True)
    assert 1 << 32 < context.cells < 1 << 63

    fast = LocalEngine.from_codes(codes).tally([context])[0]

    assert as_dict(fast) == count(context, codes)


def test_c6_a_domain_of_10_to_the_30_is_never_enumerated() -> None:
    schema = schema_of([100] * 15)
    codes = codes_of(schema, 2000, np.random.default_rng(5))
    context = context_of(schema, tuple(range(9)), tuple(range(9, 15)), seen=True)
    assert context.cells == 10**30

    engine = LocalEngine.from_codes(codes)

    truth = count(context, codes)
    assert (
        as_dict(engine.tally([context])[0]) == as_dict(plain.counts(codes, [context])[0]) == truth
    )
    assert engine.estimate([context], codes.rows) < 10 << 20


@pytest.mark.slow
def test_c17_the_order_of_rows_and_the_number_of_threads_change_nothing() -> None:
    schema = schema_of([5, 9, 33, 120, 40])
    rng = np.random.default_rng(6)
    codes = codes_of(schema, count_routes.SPLIT + 12345, rng)
    mixed = Codes(schema, np.asfortranarray(codes.values[rng.permutation(codes.rows)]), True)
    contexts = [context_of(schema, (a,), (b,)) for a, b in combinations(range(5), 2)]
    contexts += [context_of(schema, (0,), (2, 3), seen=True), context_of(schema, (4,), (0, 2, 3))]
    contexts += [context_of(schema, (1,), (2, 3), Hashed(64)), context_of(schema, (3,), (2,))]
    truth = plain.counts(codes, contexts)

    for held in (codes, mixed):
        for threads in (1, 2, 5):
            got = LocalEngine.from_codes(held, threads=threads).tally(contexts)
            for one, two in zip(truth, got, strict=True):
                assert as_dict(one) == as_dict(two)


def test_rows_major_and_read_only_codes_are_counted_too() -> None:
    schema = schema_of([5, 9])
    values = np.ascontiguousarray(codes_of(schema, 50, np.random.default_rng(7)).values)
    values.flags.writeable = False
    codes = Codes(schema, values)
    context = context_of(schema, (0,), (1,))

    got = LocalEngine.from_codes(codes).tally([context])[0]

    assert as_dict(got) == count(context, codes)


@pytest.mark.parametrize("rows", [0, 1])
def test_c1_c2_no_row_one_row_one_column_one_level(rows: int) -> None:
    schema = schema_of([1])
    codes = Codes(schema, np.zeros((rows, 1), dtype=np.uint8))
    keys: list[Key] = [Radix(), Hashed(4), MinHash(2, 4)]
    contexts = [context_of(schema, (0,), (), k, seen=s) for k in keys for s in (False, True)]

    got = LocalEngine.from_codes(codes).tally(contexts)

    assert [as_dict(c) for c in got] == [count(c, codes) for c in contexts]
    assert LocalEngine.from_codes(codes).tally([]) == ()


def test_c4_identical_and_distinct_rows_are_counted() -> None:
    schema = schema_of([200, 200])
    same = Codes(schema, np.full((2, 5000), 199, dtype=np.uint8).T)
    grid = np.stack(np.divmod(np.arange(40000), 200)).astype(np.uint8)
    context = context_of(schema, (0,), (1,), seen=True)

    one = LocalEngine.from_codes(same).tally([context])[0]
    all_ = LocalEngine.from_codes(Codes(schema, grid.T)).tally([context])[0]

    assert as_dict(one) == {(199, 199): 5000}
    assert set(as_dict(all_).values()) == {1}
    assert len(as_dict(all_)) == 40000


def test_many_small_tables_are_cut_into_passes_that_fit_the_cache() -> None:
    schema = schema_of([9] * 30)
    codes = codes_of(schema, 5000, np.random.default_rng(8))
    contexts = [context_of(schema, (a,), (b, c)) for a, b, c in combinations(range(30), 3)][:100]
    assert sum(c.cells for c in contexts) > 2 * schedule.BUNDLE

    fast = LocalEngine.from_codes(codes).tally(contexts)
    slow = plain.counts(codes, contexts)

    for one, two in zip(fast, slow, strict=True):
        assert np.array_equal(one.cells.values, two.cells.values)


@pytest.mark.slow
def test_the_kernels_keep_one_version_for_each_type_of_code() -> None:
    from gibbous.disintegrate import count_kernels

    schema = schema_of([5, 9])
    for flags in (True, False):
        values = np.zeros((2, 3), dtype=np.uint8)
        values.flags.writeable = flags
        table, columns = context_of(schema, (0, 1)), contiguous(Codes(schema, values.T))
        passes.small(columns, [table], 0, 3, lambda _: None, few=0)

    signatures = count_kernels.count_many.dispatcher().signatures
    assert len(signatures) == len({str(signature[0].dtype) for signature in signatures}) > 0


@pytest.mark.slow
def test_c8_a_cell_of_more_than_2_to_the_31_records_is_exact() -> None:
    # Zero pages: the column takes no memory.
    schema = schema_of([2, 2])
    rows = (1 << 31) + 7
    codes = Codes(schema, np.zeros((2, rows), dtype=np.uint8).T)
    contexts = [context_of(schema, (0,)), context_of(schema, (0,), (1,), Hashed(2))]

    got = LocalEngine.from_codes(codes, threads=1).tally(contexts)

    assert [sum(as_dict(c).values()) for c in got] == [rows, rows]


def test_c8_partial_counts_beyond_2_to_the_53_are_added_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = schema_of([2, 5000])
    codes = Codes(schema, np.zeros((count_routes.SPLIT, 2), dtype=np.uint8, order="F"))
    big = (1 << 40) + 1
    count_part = passes.dense

    def huge(*args: object) -> list[np.ndarray]:
        return [part * big for part in count_part(*args)]  # type: ignore[arg-type]

    monkeypatch.setattr(passes, "dense", huge)

    got = LocalEngine.from_codes(codes, threads=2).tally([context_of(schema, (0,), (1,))])[0]

    assert got.cells.values.max() == big * count_routes.SPLIT > 1 << 53


@pytest.mark.slow
def test_compiled_counts_do_not_depend_on_numba_num_threads() -> None:
    script = (
        "import numpy as np, hashlib\n"
        "from tests.disintegrate.brute import *\n"
        "from gibbous.disintegrate import engine\n"
        "s = schema_of([5, 9, 120]); c = codes_of(s, 200000, np.random.default_rng(1))\n"
        "e = engine('local'); e.take(c)\n"
        "out = e.tally([context_of(s, (0,), (1, 2)), context_of(s, (1,), (2,))])\n"
        "print(e.threads, hashlib.sha256(b''.join(o.cells.values.tobytes() for o in out)).hexdigest())\n"
    )
    seen = {}
    for number in ("1", "2"):
        shown = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_NUM_THREADS": number},
            cwd=Path(__file__).parents[2],
        ).stdout.split()
        seen[shown[0]] = shown[1]

    assert "1" in seen
    assert len(set(seen.values())) == 1


def _wide(sizes: list[int]) -> Schema:
    edges = {size: tuple(float(e) for e in range(size + 1)) for size in set(sizes)}
    return Schema(tuple(Column(f"c{i}", "numeric", edges=edges[s]) for i, s in enumerate(sizes)))


def test_contexts_that_share_columns_are_margins_of_fewer_tables() -> None:
    schema = schema_of([3, 1, 7, 2, 9, 5, 6, 4, 8])
    codes = codes_of(schema, schedule.COVERED + 777, np.random.default_rng(9))
    contexts = [context_of(schema, (a,), (b,)) for a in range(9) for b in range(9) if a != b]
    contexts += [context_of(schema, (4,), (2, 0)), context_of(schema, (0, 2), (4,), seen=True)]
    contexts += [context_of(schema, (3,)), context_of(schema, (3,)), context_of(schema, (1,))]
    tables = schedule.covers(contexts, range(len(contexts)), codes.rows)

    got = LocalEngine.from_codes(codes).tally(contexts)

    assert len(tables) < len(contexts) / 5
    assert sorted(i for one in tables for i in one.places) == list(range(len(contexts)))
    assert max(one.table.cells for one in tables) <= count_routes.SMALL
    for one, two in zip(plain.counts(codes, contexts), got, strict=True):
        assert as_dict(one) == as_dict(two)
        assert not any(
            two is not other and np.shares_memory(two.cells.values, other.cells.values)
            for other in got
        )


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_small_tables_of_few_rows_and_of_many_are_the_same(dtype: str) -> None:
    schema = schema_of([3, 1, 7, 2, 9])
    codes = codes_of(schema, 9_001, np.random.default_rng(10), dtype)
    tables = [context_of(schema, columns) for columns in combinations(range(5), 2)]
    columns = contiguous(codes)

    kernel = passes.small(columns, tables, 10, 9_000, lambda _: None, few=0)
    numpy = passes.small(columns, tables, 10, 9_000, lambda _: None)

    assert [k.tolist() for k in kernel] == [n.tolist() for n in numpy]
    assert {k.dtype for k in (*kernel, *numpy)} == {np.dtype(np.int64)}
