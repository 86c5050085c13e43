"""Context columns that are picked and paid for: the law of the picks by hand, the price, what breaks it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import gibbous as gb
from gibbous.contract.cases import secret
from gibbous.contract.runs import curated, release
from gibbous.contract.saboteurs import patched
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.exact import exact
from gibbous.core.schema import Impossible, Schema
from gibbous.mechanisms import _chosen_contexts
from gibbous.mechanisms._chosen_contexts import Contexts
from gibbous.mechanisms.parallel import Parallel
from gibbous.perturb.add import Add
from gibbous.privacy import entropy
from gibbous.privacy.noise import geometric_for
from gibbous.privacy.purse import Purse
from gibbous.sampling.structural_zeros import uniform_rows
from gibbous.structure.choice import Network
from gibbous.structure.contexts import given_or_ring
from tests.mechanisms.test_public_contexts import CELLS, ROWS, SCHEMA, SIZES, TABLE, fits, law

KINDS = (gb.Pegs, gb.BlockPegs)
MANY = np.repeat(TABLE, 400, axis=0)  # so that no table is too large to be picked
ALPHA, RUNS, LEVEL = 0.5, 3_000, 1e-7
PAIRS = ((1, 0), (2, 0), (2, 1))


@pytest.fixture
def _exact_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """1-way tables without noise: what is left is the law of the picks."""
    monkeypatch.setattr(entropy, "geometric", lambda values, scale, **_: values)


def score(table: np.ndarray, shares: list[np.ndarray], rows: float, one: int, two: int) -> float:
    """Distance of a pair from the product of its margins, less the caution for its cells."""
    seen = np.zeros((SIZES[one], SIZES[two]))
    np.add.at(seen, (table[:, one], table[:, two]), 1)
    lost = 0.4 * math.sqrt(2 / math.pi) * ALPHA * seen.size
    return float(np.abs(seen - rows * np.outer(shares[one], shares[two])).sum()) - lost


def picks(table: np.ndarray, epsilon: float, known: np.ndarray) -> dict[Any, float]:
    """P(order of the tree's edges) by enumeration: the exponential mechanism twice, sensitivity 1."""
    shares = [np.bincount(known[:, j], minlength=s) / len(known) for j, s in enumerate(SIZES)]

    def choice(edges: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], float]]:
        weights = [
            math.exp(epsilon / 2 * score(table, shares, len(known), *edge)) for edge in edges
        ]
        for edge, weight in zip(edges, weights, strict=True):
            yield edge, weight / sum(weights)

    found: dict[Any, float] = {}
    for first, mass in choice(list(PAIRS)):
        (last,) = set(range(3)) - set(first)
        for second, share in choice([(last, first[1]), (last, first[0])]):
            found[first, second] = mass * share
    return found


def picked(curator: Any, contexts: Contexts) -> Any:
    """The same name for what a run picked: columns with their parent, in order."""
    root, *others = contexts.chosen(curator)
    assert root.parents == ()
    return tuple((c.targets[0], c.parents[0]) for c in others)


def counts_of(epsilon: int, relation: Any) -> Counter[Any]:
    mechanism = gb.Pegs(choice=epsilon, parents=1, relation=relation)
    plan = mechanism.plan(SCHEMA, 0)
    contexts = Contexts.of(mechanism, SCHEMA, ALPHA)
    seen: Counter[Any] = Counter()
    codes = secret(SCHEMA, TABLE)
    for _ in range(RUNS):
        with curated(mechanism, codes, plan) as curator:
            seen[picked(curator, contexts)] += 1
    return seen


@pytest.mark.statistical
@pytest.mark.usefixtures("_exact_margins")
@pytest.mark.parametrize(("relation", "steps"), [("add_remove", 1), ("replace_one", 2)])
def test_picks_follow_the_exponential_mechanism_and_a_saboteur_does_not(
    relation: Any, steps: int
) -> None:
    """choice = 8: half of it for two picks, hence epsilon 2 of each. The saboteur forgets to divide."""
    expected = picks(TABLE, 2 / steps, TABLE)

    def p_value() -> float:
        seen = counts_of(8, relation)
        assert seen.keys() <= expected.keys()
        truth = np.array(list(expected.values())) * RUNS
        return float(chisquare([seen[e] for e in expected], truth, sum_check=False).pvalue)

    assert p_value() > LEVEL
    looking_away = patched(Purse, "pay", value=lambda self, price: True)
    with patched(Contexts, "_picks", value=1), looking_away:
        assert p_value() < LEVEL


def test_the_exact_loss_of_the_picks_is_within_their_half() -> None:
    """All tables of one record less: log-ratios of the enumerated law, at epsilon 2 for two picks."""
    before = picks(TABLE, 1.0, TABLE)
    losses = []
    for gone in range(len(TABLE)):
        after = picks(np.delete(TABLE, gone, axis=0), 1.0, TABLE)
        losses += [abs(math.log(before[e] / after[e])) for e in before]

    assert 0.5 < max(losses) <= 2.0


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_redrawn_in_the_order_of_the_network(kind: Any) -> None:
    """The law of rows given the picks, by enumeration; one in schema order has another one."""
    network = Network((2, 0, 1), ((2,), (0, 2), ()))
    block = {"block": 1} if kind is gb.BlockPegs else {}
    one = kind(epsilon=3, choice=1, **block)
    ones, unit = Add.within(Fraction(1)).scaled
    with patched(_chosen_contexts, "choose_network", value=lambda *_, **__: network):
        contexts = Contexts.of(one, SCHEMA, 1.0)
        with curated(one, secret(SCHEMA, TABLE), one.plan(SCHEMA, 1)) as curator:
            asked = contexts.chosen(curator)

        assert fits(one, law(asked, lambda counts: counts + ones / unit))
        in_schema_order = sorted(asked, key=lambda c: c.targets)
        assert not fits(one, law(in_schema_order, lambda counts: counts + ones / unit))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_is_paid_once_beside_the_rows(kind: Any, relation: Any) -> None:
    one = kind(epsilon=0.5, choice=0.25, relation=relation)
    plan = one.plan(SCHEMA, 40)

    with curated(one, secret(SCHEMA, MANY), plan) as curator:
        one.run(curator, 40)
        spent = sum(claim.epsilon for claim in curator.spent)

    free = kind(epsilon=0.5, relation=relation).plan(SCHEMA, 40).total.epsilon
    assert plan.total.epsilon == free + Fraction(1, 4)
    assert sum(spend.claim.epsilon for spend in plan.spends) == plan.total.epsilon
    assert float(plan.total.epsilon) - 1e-6 < spent <= plan.total.epsilon


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_that_is_not_divided_is_refused_before_it_is_made(kind: Any) -> None:
    one = kind(epsilon=0.5, choice=0.25)
    plan = one.plan(SCHEMA, 40)

    with (
        patched(Contexts, "_picks", value=1),
        pytest.raises(PrivacyRefused, match="more than it planned"),
    ):
        release(one, SCHEMA, MANY, 40, plan)


@pytest.mark.parametrize("kind", KINDS)
def test_public_contexts_are_not_chosen_and_nothing_is_paid_where_nothing_can_be(kind: Any) -> None:
    with pytest.raises(ParameterError, match="Both contexts and choice"):
        kind(contexts="ordered", choice=1).plan(SCHEMA, 10)

    assert kind(parents=0, choice=1).plan(SCHEMA, 10).total == kind().plan(SCHEMA, 10).total
    assert release(kind(parents=0, choice=1), SCHEMA, TABLE, 10).rows == 10


def test_each_part_chooses_for_itself_at_the_price_of_one() -> None:
    one = Parallel(gb.Pegs(epsilon=1, choice=0.5), parts=2)

    assert one.plan(SCHEMA, 10).total.epsilon == exact(5.5)
    assert release(one, SCHEMA, np.repeat(TABLE, 9, axis=0), 10).rows == 10


def likely(table: np.ndarray) -> dict[Any, float]:
    """The law of a seed row whose columns are drawn by the margins of a table."""
    shares = [np.bincount(table[:, j], minlength=s) / len(table) for j, s in enumerate(SIZES)]
    return {
        cell: float(np.prod([q[v] for q, v in zip(shares, cell, strict=True)])) for cell in CELLS
    }


@pytest.mark.statistical
@pytest.mark.usefixtures("_exact_margins")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_start_from_seeds_of_the_margins_and_a_saboteur_from_uniform_ones(kind: Any) -> None:
    """The ring leaves a trace of the seed in its first column: the two laws are told apart."""
    block = {"block": 1} if kind is gb.BlockPegs else {}
    one = kind(epsilon=3, seed_budget=1, **block)
    ones, unit = Add.within(Fraction(1)).scaled

    def weigh(counts: np.ndarray) -> np.ndarray:
        return counts + ones / unit

    expected = law(given_or_ring(SCHEMA, (), 2), weigh, seeds=likely(TABLE))

    # By the law of uniform seeds, as many rows miss the saboteur once in a thousand million runs.
    assert fits(one, expected, 4 * ROWS)
    with patched(Contexts, "pool", value=lambda self, curator: ()):
        assert not fits(one, expected, 4 * ROWS)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", KINDS)
def test_margins_of_seed_rows_are_paid_once_and_noise_of_one_table_is_refused(
    kind: Any, relation: Any
) -> None:
    one = kind(epsilon=0.5, seed_budget=0.25, relation=relation)
    plan, free = one.plan(SCHEMA, 40), kind(epsilon=0.5, relation=relation).plan(SCHEMA, 40)

    with curated(one, secret(SCHEMA, TABLE), plan) as curator:
        one.run(curator, 40)
        spent = sum(claim.epsilon for claim in curator.spent)

    assert plan.total.epsilon == free.total.epsilon + Fraction(1, 4)
    assert float(plan.total.epsilon) - 1e-6 < spent <= plan.total.epsilon
    undivided = patched(Contexts, "_noise", value=lambda self, e: geometric_for(e, 1, relation))
    with undivided, pytest.raises(PrivacyRefused, match="more than it planned"):
        release(one, SCHEMA, TABLE, 40, plan)


def test_margins_that_are_all_noise_below_zero_leave_seed_rows_uniform() -> None:
    seeds = ((0, 0), (0, 0), (0, 0, 5))

    drawn = uniform_rows(SCHEMA, 4_000, entropy.words, seeds)

    assert set(drawn[2]) == {2}
    assert abs(drawn[0].mean() - 0.5) < 0.05  # 6 standard deviations


@pytest.mark.parametrize("kind", KINDS)
def test_seed_rows_are_not_bought_in_vain(kind: Any) -> None:
    impossible = Schema(SCHEMA.columns, impossible=(Impossible((("x0", (1,)), ("x1", (1,)))),))

    with pytest.raises(ParameterError, match="no trace of a seed row"):
        kind(choice=1, seed_budget=1).plan(SCHEMA, 10)
    with pytest.raises(ParameterError, match="have to be possible"):
        kind(seed_budget=1).plan(impossible, 10)
