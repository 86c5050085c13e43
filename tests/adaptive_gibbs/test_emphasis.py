"""A target and weights: what they are called, what they buy, and that choices stay paid for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gibbous as gb
from gibbous.contract.cases import binary_schema, secret
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import zcdp
from gibbous.core.errors import ParameterError, UsageError
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy import entropy
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.privacy.curator import Curator
from gibbous.structure import clique_scores as module
from gibbous.structure.clique_scores import Candidates, pick
from gibbous.structure.cliques import context_of
from gibbous.structure.emphasis import TARGETED, Emphasis, emphasis_of, shared
from tests.adaptive_gibbs.made import chain_rows, paid, ran, rounds_of, schema_of

SIZES = (3, 4, 2, 5, 3)
ROWS = chain_rows(SIZES, 2000)
PAIRS = ((0, 1), (0, 2), (1, 2))
WEIGHTS = np.array([5.0, 1.0, 0.25])
EPSILON = Fraction(1, 2)


def law_of_a_pick(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Probabilities of one real pick, from what the running code hands to the exponential mechanism."""
    asked: list[tuple[np.ndarray, float]] = []

    def choice(scores: np.ndarray, *, epsilon: Fraction, sensitivity: Fraction | int) -> int:
        asked.append((np.array(scores), float(epsilon / (2 * Fraction(sensitivity)))))
        return 0

    schema = binary_schema(3)
    contexts = tuple(context_of(schema.sizes, one) for one in PAIRS)
    expected = tuple(np.full(4, 0.75) for _ in PAIRS)
    some = Candidates(
        PAIRS, contexts, expected, np.array([0.1, 0.2, 0.3]), weights, *np.ones((2, 3))
    )
    engine = LocalEngine.from_codes(secret(schema, values))
    curator = Curator(engine, zcdp(Fraction(10)), schema, relation="add_remove")
    with patched(entropy, "exponential_choice", value=choice):
        pick(curator, some, 1, epsilon=EPSILON)
    curator.close()
    scores, sharpness = asked[0]
    odds: np.ndarray = np.exp(sharpness * (scores - scores.max()))
    return odds / odds.sum()


def worst_range(weights: np.ndarray) -> float:
    """Largest range of the privacy loss of a pick over all tables of up to three rows and one more."""
    rows = np.array(list(itertools.product((0, 1), repeat=3)))
    worst = 0.0
    for size in range(3):
        for chosen in itertools.combinations_with_replacement(range(8), size):
            before = law_of_a_pick(rows[list(chosen)], weights)
            for row in range(8):
                loss = np.log(law_of_a_pick(rows[[*chosen, row]], weights) / before)
                worst = max(worst, float(loss.max() - loss.min()))
    return worst


def forgotten() -> AbstractContextManager[None]:
    """A broken build: the sensitivity of a score without its weight."""
    return patched(module, "most_moved", value=lambda weights: Fraction(1))


@pytest.mark.slow
@pytest.mark.parametrize(("build", "honest"), [(nullcontext, True), (forgotten, False)])
def test_the_loss_of_a_weighted_choice_keeps_within_the_range_that_is_paid(
    build: Callable[[], AbstractContextManager[None]], honest: bool
) -> None:
    with build():
        worst = worst_range(WEIGHTS)

    assert (worst <= float(EPSILON) + 1e-9) is honest
    assert worst > 0.5 * float(EPSILON)


def test_weights_that_are_all_the_same_choose_as_none() -> None:
    values = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0]])

    np.testing.assert_allclose(
        law_of_a_pick(values, np.full(3, 7.0)), law_of_a_pick(values, np.ones(3))
    )


def test_prices_make_the_weighed_noise_least() -> None:
    weights = np.array([4.0, 1.0, 1.0, 0.5])

    each = shared(Fraction(3), weights)

    prices = np.array([float(each[w]) for w in weights])
    best = (weights / np.sqrt(prices)).sum()
    assert sum(each[w] for w in weights.tolist()) == 3
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.full(4, 5.0), 500) * 3:
        assert (weights / np.sqrt(other)).sum() >= best - 1e-6


def test_a_table_counts_for_the_product_of_what_it_holds() -> None:
    schema = schema_of(2, 2, 2, 2)
    asked = AdaptiveGibbs(target="c3", weights={"c0": 2, ("c1", "c0"): 5, "c2": 0.5})

    found = emphasis_of(schema, asked.target, asked.weights)

    assert found.of([(0, 2), (0, 1), (1, 3), (0, 1, 2), (1, 2)]).tolist() == [
        1,
        10,
        TARGETED,
        5,
        0.5,
    ]
    assert Emphasis().of([(0, 1)]).tolist() == [1]


def test_weights_have_one_written_form() -> None:
    one = AdaptiveGibbs(weights={"b": 2, ("a", "c"): 5.0})
    two = AdaptiveGibbs(weights=("a*c=5", "b=2"))

    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.parametrize("weights", [("age",), ("age=x",), ("age=0",), ("age=1000",), {"a": -1}])
def test_what_is_no_weight_is_refused(weights: Any) -> None:
    with pytest.raises(ParameterError, match="not a weight"):
        AdaptiveGibbs(weights=weights)


@pytest.mark.parametrize(
    "given", [{"target": "c22"}, {"weights": {"c22": 2}}, {"weights": {("c0", "c22"): 2}}]
)
def test_a_name_that_is_no_column_is_answered_with_the_nearest(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"c22.*c2"):
        gb.plan(schema_of(*SIZES), AdaptiveGibbs(epsilon=1, **given))


def test_a_method_without_a_target_refuses_one() -> None:
    from gibbous.cli.parameters import build_method

    with pytest.raises(UsageError, match=r"no parameter 'target'.*use adaptive_gibbs"):
        build_method("noisy_pegs", {"epsilon": "1", "target": "income"})


@pytest.mark.parametrize("given", [{"target": "c2"}, {"weights": {"c0": 9, ("c1", "c4"): 0.1}}])
def test_the_whole_budget_is_spent_and_no_more_within_the_planned_noise(
    given: dict[str, Any],
) -> None:
    method, schema = AdaptiveGibbs(epsilon=1.0, cells=rounds_of(*SIZES), **given), schema_of(*SIZES)

    tables, curator = ran(method, schema, ROWS)

    squares = mu_squared_for(Fraction(1), Fraction(1, 10**9))
    assert squares * (1 - Fraction(1, 10**8)) < paid(curator) <= squares
    low, high = method._split(schema).sigmas()
    scales = [t.noise.scale for t in tables.items if t.context.parents]
    assert low <= min(scales)
    assert max(scales) <= high


def test_every_pair_of_a_target_is_bought_before_all_others() -> None:
    tables, _ = ran(
        AdaptiveGibbs(epsilon=1.0, cells=rounds_of(*SIZES), target="c2"), schema_of(*SIZES), ROWS
    )

    wide = [t.context.columns for t in tables.items if len(t.context.columns) > 1]
    assert {frozenset(one) for one in wide[:4]} == {frozenset((2, j)) for j in (0, 1, 3, 4)}


def test_a_target_gets_less_noise_than_its_neighbors_in_a_round() -> None:
    each = shared(Fraction(1), np.array([TARGETED, 1.0]))

    assert math.sqrt(float(each[TARGETED] / each[1.0])) == pytest.approx(
        TARGETED ** (1 / 3), rel=1e-5
    )
