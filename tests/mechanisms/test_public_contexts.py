"""Contexts by a public word, and nearest keys: the law of rows by enumeration, the price, refusals."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from scipy.stats import chisquare

import gibbous as gb
from gibbous.contract.runs import release
from gibbous.contract.saboteurs import patched
from gibbous.core.context import Context, keys_of
from gibbous.core.errors import ParameterError
from gibbous.core.schema import Column, Schema
from gibbous.perturb.add import Add
from gibbous.structure.contexts import Public, given_or_ring

SIZES = (2, 2, 3)
SCHEMA = Schema(
    tuple(Column(f"x{j}", "nominal", levels=tuple(range(s))) for j, s in enumerate(SIZES))
)
TABLE = np.array([[0, 0, 2], [0, 0, 2], [1, 1, 0], [1, 1, 1], [0, 1, 1]])
CELLS = list(itertools.product(*map(range, SIZES)))
ROWS, LEVEL = 40_000, 1e-7
WORDS = get_args(Public)


def nearest(context: Context, row: Sequence[int]) -> np.ndarray:
    """Records of each nearest key that has some, bool (keys, records)."""
    parents = TABLE[:, context.parents]
    apart = (parents != np.array(row)[list(context.parents)]).sum(axis=1)
    kinds = np.unique(parents[apart == apart.min()], axis=0)
    return np.array([(parents == kind).all(axis=1) for kind in kinds])


def law(
    contexts: Sequence[Context], weigh: Any, *, nearby: bool = False, seeds: Any = None
) -> dict[Any, float]:
    """One pass from a seed (by default uniform); counts of a key by hand, keys by the public function."""
    state = seeds or dict.fromkeys(CELLS, 1 / len(CELLS))
    for context in contexts:
        target = context.targets[0]
        keys = keys_of(context, TABLE)
        after: dict[Any, float] = dict.fromkeys(CELLS, 0.0)
        for row, mass in state.items():
            held = (keys == keys_of(context, np.array([row]))[0])[None]
            kinds = nearest(context, row) if nearby and not held.any() else held
            for mine in kinds:
                counts = np.bincount(TABLE[mine, target], minlength=SIZES[target])
                weights = weigh(counts)
                for level, share in enumerate(weights / weights.sum()):
                    moved = (*row[:target], level, *row[target + 1 :])
                    after[moved] += mass * share / len(kinds)
        state = after
    return state


def fits(one: Any, expected: dict[Any, float], rows: int = ROWS) -> bool:
    seen = Counter(map(tuple, release(one, SCHEMA, TABLE, rows).values.tolist()))
    possible = [cell for cell in CELLS if expected[cell] > 0]
    if sum(seen[cell] for cell in possible) < rows:
        return False
    truth = np.array([expected[cell] for cell in possible]) * rows
    return bool(chisquare([seen[cell] for cell in possible], truth, sum_check=False).pvalue > LEVEL)


@pytest.mark.statistical
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("kind", [gb.Pegs, gb.BlockPegs])
def test_rows_follow_the_law_of_the_public_contexts_and_a_saboteur_does_not(
    word: Public, kind: Any
) -> None:
    one = kind(epsilon=3, contexts=word, **({"block": 1} if kind is gb.BlockPegs else {}))
    contexts = given_or_ring(SCHEMA, word, 2)
    ones, unit = Add.within(Fraction(1)).scaled  # a third of epsilon for each column

    expected = law(contexts, lambda counts: counts + ones / unit)

    assert fits(one, expected)
    honest = Add.weights
    with patched(Add, "weights", value=lambda self, counts: honest(self, 9 * counts)):
        assert not fits(one, expected)


@pytest.mark.statistical
def test_diverse_rows_take_a_nearest_key_and_uniform_ones_do_not() -> None:
    contexts = given_or_ring(SCHEMA, "lsh", 2)
    expected = law(contexts, lambda counts: counts + (counts.sum() == 0), nearby=True)

    # l = 1 perturbs nothing: the law of the raw conditionals.
    assert fits(gb.DiversePegs(l=1, contexts="lsh", fallback="nearest"), expected)
    assert not fits(gb.DiversePegs(l=1, contexts="lsh"), expected)


@pytest.mark.parametrize("word", WORDS)
def test_public_contexts_cost_nothing_and_read_no_record(word: Public) -> None:
    for kind in (gb.Pegs, gb.BlockPegs, gb.DiversePegs):
        assert kind(contexts=word).plan(SCHEMA, 50).total == kind().plan(SCHEMA, 50).total


def test_ordered_contexts_are_the_columns_before() -> None:
    found = [c.parents for c in given_or_ring(SCHEMA, "ordered", 2)]

    assert found == [(), (0,), (0, 1)]


@pytest.mark.parametrize("kind", [gb.Pegs, gb.BlockPegs, gb.DiversePegs, gb.NoisyPegs, gb.Sbhg])
def test_another_word_is_refused(kind: Any) -> None:
    with pytest.raises(ParameterError, match="contexts of"):
        kind(contexts="mutual")
    if kind in (gb.NoisyPegs, gb.Sbhg):
        with pytest.raises(ParameterError, match="contexts of"):
            kind(contexts="lsh")
