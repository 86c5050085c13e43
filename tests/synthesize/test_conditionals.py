"""Noisy tables to conditionals: clipping, smoothing, back-off, nearest keys and margins, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gibbous.core.context import Hashed, MinHash, Radix, keys_of
from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Impossible
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.sampling.conditionals import conditionals, margins
from gibbous.sampling.program import pack
from tests.synthesize.made import NOISE, context_of, noisy, rows_like, schema_of

SIZES = (2, 2, 3)
CONTEXT = context_of(SIZES, [0], [1, 2])
#                      c1 c2:  00       01      02      10      11        12
VALUES = np.array([[4, 0], [-3, 9], [0, -1], [-2, -5], [-1, -1], [0, 0]])
GIBBS = Recipe("gibbs", (0,), kappa=0.0)


def one(values: np.ndarray = VALUES, recipe: Recipe = GIBBS, extra: tuple[Table, ...] = ()):  # type: ignore[no-untyped-def]
    tables = Tables(schema_of(SIZES), (Table(CONTEXT, Dense(values), NOISE),), recipe, extra)
    return conditionals(tables)[0]


def law_of(found, key: int) -> list[float]:  # type: ignore[no-untyped-def]
    parents = np.array([[key // 3], [key % 3]], dtype=np.uint64)
    slot = int(found.resolve(np.array([key], dtype=np.uint64), parents)[0])
    return [] if slot < 0 else found.shares[slot].tolist()


def test_negative_counts_are_read_as_zero() -> None:
    found = one()

    assert law_of(found, 0) == [1, 0]
    assert law_of(found, 1) == [0, 1]


def test_counts_at_or_below_the_floor_are_read_as_zero() -> None:
    found = one(recipe=replace(GIBBS, floor=4))

    assert law_of(found, 0) == pytest.approx([0, 1])  # nothing of its own: the prefix c1 = 0


def test_an_empty_key_backs_off_to_its_prefix_then_to_the_margin() -> None:
    found = one()

    assert law_of(found, 2) == pytest.approx([4 / 13, 9 / 13])  # prefix c1 = 0
    assert law_of(found, 5) == pytest.approx(
        margins(Tables(schema_of(SIZES), (Table(CONTEXT, Dense(VALUES), NOISE),), GIBBS))[0]
    )


def test_kappa_pulls_toward_the_noisy_margin() -> None:
    ones = Table(
        context_of(SIZES, [0], []), Dense(np.array([[30, 10]])), NoiseInfo("gaussian", 1e-3)
    )
    found = one(recipe=replace(GIBBS, kappa=2.0), extra=(ones,))

    assert law_of(found, 0) == pytest.approx([(4 + 2 * 0.75) / 6, 2 * 0.25 / 6], abs=1e-4)
    assert law_of(found, 5) == pytest.approx([0.75, 0.25], abs=1e-4)


def test_a_margin_of_a_precise_table_outweighs_a_noisy_one() -> None:
    precise = Table(
        context_of(SIZES, [2], []), Dense(np.array([[6, 3, 1]])), NoiseInfo("gaussian", 0.01)
    )
    rough = Table(
        context_of(SIZES, [2], []), Dense(np.array([[0, 0, 90]])), NoiseInfo("gaussian", 100.0)
    )

    shares = margins(Tables(schema_of(SIZES), (), GIBBS, (rough, precise)))

    assert shares[2] == pytest.approx([0.6, 0.3, 0.1], abs=1e-3)
    assert shares[1] == pytest.approx([0.5, 0.5])


def test_a_column_of_thresholded_tables_only_takes_their_sums() -> None:
    cells = Sparse(
        np.array([0, 4], dtype=np.uint64), np.array([1, 0], dtype=np.uint64), np.array([30, 10])
    )
    sparse = Table(
        context_of(SIZES, [0], [1, 2], support="seen"), cells, NoiseInfo("gaussian", 1.0, 5)
    )

    shares = margins(Tables(schema_of(SIZES), (sparse,), GIBBS))

    assert shares[0] == pytest.approx([0.25, 0.75])
    assert shares[1] == pytest.approx([0.75, 0.25])
    assert shares[2] == pytest.approx([0.75, 0.25, 0])


def test_reject_keeps_the_previous_value_where_the_table_has_no_key() -> None:
    found = one(recipe=replace(GIBBS, fallback="reject"))

    assert law_of(found, 2) == []
    assert law_of(found, 0) == [1, 0]


def test_a_table_of_nothing_is_uniform() -> None:
    found = one(np.full((6, 2), -4))

    assert [law_of(found, k) for k in range(6)] == [[0.5, 0.5]] * 6


def brute_nearest(table: Table, key: np.ndarray) -> int:
    """Key of least Hamming distance; then the largest total, then the smallest key."""
    assert isinstance(table.cells, Sparse)
    sizes, totals = table.context.parent_sizes, {}
    for k, n in zip(table.cells.keys.tolist(), table.cells.values.tolist(), strict=True):
        totals[k] = totals.get(k, 0) + n

    def codes(k: int) -> list[int]:
        return [int(c) for c in np.unravel_index(k, sizes)]

    return min(
        totals,
        key=lambda k: (sum(a != b for a, b in zip(codes(k), key, strict=True)), -totals[k], k),
    )


def test_nearest_is_the_brute_force_nearest() -> None:
    sizes = (3, 4, 5, 3, 4)
    rows = rows_like(sizes, 60, seed=3)
    table = noisy(context_of(sizes, [0], [1, 2, 3, 4], support="seen"), rows, 1, threshold=1)
    recipe = Recipe("gibbs", (0,), fallback="nearest")
    found = conditionals(Tables(schema_of(sizes), (table,), recipe))[0]
    keys = np.arange(4 * 5 * 3 * 4, dtype=np.uint64)
    parents = np.stack(np.unravel_index(keys.astype(int), (4, 5, 3, 4))).astype(np.uint64)

    slots = found.resolve(keys, parents)

    checked = 0
    for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
        nearest = brute_nearest(table, parents[:, key])
        apart = (np.array(np.unravel_index(nearest, (4, 5, 3, 4))) != parents[:, key]).sum()
        if apart < 4:  # nothing in common with any key: the margin
            assert found.keys[slot] == nearest
            checked += 1
        else:
            assert slot == found.last
    assert checked > 100


def test_nearest_with_many_parents_is_refused() -> None:
    sizes = (2,) * 10
    table = noisy(
        context_of(sizes, [0], list(range(1, 10)), support="seen"), rows_like(sizes, 90, 1), 1
    )

    with pytest.raises(ResourceLimit, match="at most 8 parents"):
        conditionals(Tables(schema_of(sizes), (table,), Recipe("gibbs", (0,), fallback="nearest")))


@pytest.mark.parametrize("key", [Hashed(8), MinHash(2, 8)])
def test_hashed_keys_back_off_to_the_margin(key: Hashed | MinHash) -> None:
    rows = rows_like(SIZES, 40, seed=5)
    table = noisy(context_of(SIZES, [0], [1, 2], key, "seen"), rows, 1)
    for fallback in ("prefix", "nearest"):
        found = conditionals(
            Tables(schema_of(SIZES), (table,), Recipe("gibbs", (0,), fallback=fallback))
        )[0]
        held = np.isin(np.arange(8), found.keys)
        slots = found.resolve(np.arange(8, dtype=np.uint64), np.zeros((2, 8), dtype=np.uint64))
        assert (slots[~held] == found.last).all()
        assert (slots[held] < found.last).all()


def test_dense_and_sparse_tables_of_the_same_counts_have_the_same_conditionals() -> None:
    rows = rows_like(SIZES, 200, seed=6)
    for key in (Radix(), Hashed(4)):
        shares = []
        for support in ("dense", "seen"):
            context = context_of(SIZES, [0], [1, 2], key, support)
            table = noisy(context, rows, 1, threshold=0)
            if support == "dense":
                table = replace(table, cells=Dense(_exact(context, rows)))
            found = conditionals(Tables(schema_of(SIZES), (table,), GIBBS))[0]
            slots = found.resolve(keys_of(context, rows), rows[:, [1, 2]].T.astype(np.uint64))
            shares.append(found.shares[slots])
        assert shares[0] == pytest.approx(shares[1])


def _exact(context, rows: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    values = np.zeros((context.keys, context.levels), dtype=np.int64)
    np.add.at(values, (keys_of(context, rows).astype(int), rows[:, 0]), 1)
    return values


def test_impossible_levels_have_no_share() -> None:
    schema = schema_of(SIZES, (Impossible((("c0", (1,)),)),))
    tables = Tables(schema, (Table(CONTEXT, Dense(VALUES), NOISE),), replace(GIBBS, kappa=1.0))

    found = conditionals(tables)[0]

    assert (found.shares[:, 1] == 0).all()
    assert found.shares[:, 0] == pytest.approx(1)


@pytest.mark.parametrize("wide", [False, True])
def test_alias_tables_carry_the_probabilities(wide: bool) -> None:
    generator = np.random.default_rng(7)
    shares = generator.dirichlet([0.3] * 40, 50)
    shares[:, ::3] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    shares[0] = np.eye(40)[7]
    bits, low = (32, 32) if wide else (24, 8)

    packed = pack(shares, wide)

    threshold = (packed[:-1].astype(np.uint64) >> np.uint64(low)).astype(float) / 2.0**bits
    alias = (packed[:-1].astype(np.uint64) & np.uint64((1 << low) - 1)).astype(int)
    implied = threshold.copy()
    for slot in range(50):
        np.add.at(implied[slot], alias[slot], 1 - threshold[slot])
    assert implied / 40 == pytest.approx(shares, abs=2.0 ** (1 - bits))
    assert (implied[shares == 0] == 0).all()
    assert (packed[:-1] != packed[-1, 0]).all()  # the mark for "keep" is nowhere else


def test_an_alias_cell_never_equals_the_keep_mark_with_256_levels() -> None:
    for shares in (np.eye(256)[255], np.full(256, 1 / 256)):
        packed = pack(shares[None, :], wide=False)
        assert (packed[0] != 0xFFFFFFFF).all()
        assert packed[1, 0] == 0xFFFFFFFF
