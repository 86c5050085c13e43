"""Contexts are functions of the public schema alone, and have the sizes they are said to have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbous.core.context import Hashed, MinHash, Radix, keys_of, levels_of
from gibbous.core.errors import ResourceLimit, UsageError
from gibbous.core.schema import Column, Schema
from gibbous.structure.contexts import (
    conditional,
    given_or_ring,
    joint,
    lsh,
    margins,
    minhash,
    named,
    ring,
    topological,
)


def schema_of(*sizes: int) -> Schema:
    return Schema(
        tuple(Column(f"x{j}", "nominal", levels=tuple(range(size))) for j, size in enumerate(sizes))
    )


def test_the_joint_context_numbers_every_combination_once() -> None:
    schema = schema_of(2, 3, 4)
    context = joint(schema)
    rows = np.array(list(np.ndindex(2, 3, 4)))

    levels = levels_of(context, rows)

    assert context.cells == 24
    assert sorted(levels.tolist()) == list(range(24))


def test_a_joint_of_more_than_63_bits_is_split_into_key_and_level() -> None:
    schema = schema_of(*[1000] * 9)
    context = joint(schema, "seen")
    rows = np.zeros((2, 9), dtype=np.uint16)
    rows[1] = 999

    keys, levels = keys_of(context, rows), levels_of(context, rows)

    assert context.parents + context.targets == tuple(range(9))
    assert context.parents
    assert context.cells == schema.cells
    assert keys.tolist() == [0, context.keys - 1]
    assert levels.tolist() == [0, context.levels - 1]


def test_a_joint_of_more_than_126_bits_is_refused_with_its_figure() -> None:
    with pytest.raises(ResourceLimit, match="1e\\+48"):
        joint(schema_of(*[1000] * 16))


def test_margins_have_one_context_a_column_without_parents() -> None:
    found = margins(schema_of(2, 5))

    assert [(c.targets, c.parents, c.cells) for c in found] == [((0,), (), 2), ((1,), (), 5)]


@given(columns=st.integers(1, 9), parents=st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_the_ring_gives_each_column_distinct_others(columns: int, parents: int) -> None:
    found = ring(columns, parents)

    assert len(found) == columns
    for j, chosen in enumerate(found):
        assert j not in chosen
        assert len(set(chosen)) == len(chosen) == min(parents, columns - 1)


def test_the_last_parent_in_the_ring_is_the_column_just_before() -> None:
    assert ring(4, 2) == ((2, 3), (3, 0), (0, 1), (1, 2))


def test_parents_are_exact_while_they_fit_and_hashed_into_a_power_of_two_beyond() -> None:
    schema = schema_of(2, 10, 10)

    exact = conditional(schema, 0, (1, 2), max_keys=100)
    folded = conditional(schema, 0, (1, 2), max_keys=99)

    assert isinstance(exact.key, Radix)
    assert exact.keys == 100
    assert isinstance(folded.key, Hashed)
    assert folded.keys == 64


def test_hashed_keys_stay_below_their_buckets() -> None:
    schema = schema_of(3, 50, 50)
    context = conditional(schema, 0, (1, 2), max_keys=16)
    rows = np.array([(0, a, b) for a in range(50) for b in range(50)])

    keys = keys_of(context, rows)

    assert int(keys.max()) < 16
    assert len(np.unique(keys)) == 16


def test_names_become_positions_and_columns_left_out_have_no_parents() -> None:
    schema = schema_of(2, 2, 2)

    assert named(schema, (("x2", ("x0", "x1")),)) == ((), (), (0, 1))


def test_an_unknown_context_column_is_answered_with_the_nearest() -> None:
    schema = Schema(
        (Column("income", "binary", levels=(0, 1)), Column("age", "binary", levels=(0, 1)))
    )

    with pytest.raises(UsageError, match="Did you mean 'income'"):
        named(schema, (("age", ("incom",)),))


@pytest.mark.parametrize(
    "given_contexts",
    [(("x0", ("x0",)),), (("x0", ("x1", "x1")),), (("x0", ("x1",)), ("x0", ("x2",)))],
    ids=["itself", "a parent twice", "a column twice"],
)
def test_repeated_context_columns_are_refused(given_contexts: object) -> None:
    with pytest.raises(UsageError, match="repeat a column"):
        named(schema_of(2, 2, 2), given_contexts)  # type: ignore[arg-type]


def test_lsh_samples_other_columns_by_a_public_seed_alone() -> None:
    schema = schema_of(*[3] * 8)
    one, same, other = lsh(schema, 3, seed=1), lsh(schema, 3, seed=1), lsh(schema, 3, seed=2)

    assert one == same
    assert one != other
    for j, context in enumerate(one):
        assert context.targets == (j,)
        assert len(set(context.parents)) == 3
        assert j not in context.parents


def test_lsh_keys_agree_exactly_when_the_sampled_columns_agree() -> None:
    schema = schema_of(*[4] * 6)
    context = lsh(schema, 2, seed=5)[0]
    rows = np.array(list(np.ndindex(*[4] * 6)), dtype=np.int64)
    keys = keys_of(context, rows)

    part = rows[:, list(context.parents)]

    _, by_part = np.unique(part, axis=0, return_inverse=True)
    assert len(np.unique(keys)) == 16
    assert len({(k, p) for k, p in zip(keys.tolist(), by_part.ravel().tolist(), strict=True)}) == 16


def test_every_column_is_sampled_about_equally_often_by_lsh() -> None:
    schema = schema_of(*[2] * 10)
    counts = np.zeros(10)
    for seed in range(300):
        counts[list(lsh(schema, 3, seed=seed)[0].parents)] += 1

    # 300 draws of 3 in 9 columns: mean 100, sd 8.2; 5 sd, so level below 1e-5 for nine columns.
    assert counts[0] == 0
    assert np.all(np.abs(counts[1:] - 100) < 41)


@pytest.mark.slow
def test_minhash_collisions_follow_the_jaccard_similarity() -> None:
    schema = schema_of(*[1000] * 9)
    near = np.zeros((2, 9), dtype=np.int64)
    near[1, 1:5] = 7  # 4 of the 8 items of the rest differ: Jaccard 4 / 12
    hits = 0
    for seed in range(1500):
        context = minhash(schema, 1, seed=seed, buckets=1 << 16)[0]
        keys = keys_of(context, near)
        hits += int(keys[0] == keys[1])

    # 1500 trials at 1/3: sd 18.3; 4.5 sd.
    assert abs(hits - 500) < 82


def test_minhash_uses_all_other_columns() -> None:
    contexts = minhash(schema_of(2, 3, 4), 2, buckets=32)

    assert [c.parents for c in contexts] == [(1, 2), (0, 2), (0, 1)]
    assert all(isinstance(c.key, MinHash) and c.keys == 32 for c in contexts)


def test_one_column_alone_has_no_context() -> None:
    schema = schema_of(3)

    for found in (lsh(schema, 2), minhash(schema, 2), given_or_ring(schema, (), 4)):
        assert [(c.targets, c.parents, c.keys) for c in found] == [((0,), (), 1)]


def test_an_order_puts_parents_first() -> None:
    assert topological(((1,), (2,), ())) == (2, 1, 0)
    assert topological(((), (), ())) == (0, 1, 2)


def test_a_cycle_has_no_order() -> None:
    assert topological(((1,), (0,), ())) is None
