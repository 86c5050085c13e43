"""The look whether columns are tied, where records are few: its score, range and price, what it changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.contract.cases import binary_schema, secret
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import Relation
from gibbous.core.schema import Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import _adaptive_margins as module
from gibbous.mechanisms._adaptive_margins import TIED, measure_margins, tied
from gibbous.mechanisms._adaptive_model import Known
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.structure.cliques import pairs
from tests.adaptive_gibbs.made import paid, ran, schema_of

BINARY = binary_schema(3)
KNOWN = Known(
    BINARY,
    BINARY,
    shares=(np.array([0.25, 0.75]), np.array([0.5, 0.5]), np.array([0.625, 0.375])),
    rows=3.25,
)
FEW = AdaptiveGibbs(epsilon=1.0)
WIDE = schema_of(*[12] * 6)  # at 800 records a 1-way error of .15


def copied(rows: int = 800) -> np.ndarray:
    """The same random code in every column."""
    code = np.random.default_rng(5).integers(0, 12, rows)
    return np.repeat(code[:, None], len(WIDE), axis=1)


def apart(rows: int = 800, levels: int = 12) -> np.ndarray:
    """Columns that have nothing to do with each other."""
    return np.random.default_rng(6).integers(0, levels, (rows, len(WIDE)))


def asked(
    values: np.ndarray, relation: Relation, known: Known = KNOWN
) -> tuple[np.ndarray, float, float]:
    """What the look hands to the exponential mechanism: scores, their factor there, the range paid."""
    schema = known.schema
    found: list[tuple[np.ndarray, float, float]] = []

    def choice(scores: np.ndarray, *, epsilon: Fraction, sensitivity: Fraction | int) -> int:
        factor = epsilon / (2 * Fraction(sensitivity))
        found.append((np.array(scores), float(factor), float(epsilon)))
        return 0

    engine = LocalEngine.from_codes(secret(schema, values))
    method = AdaptiveGibbs(epsilon=4.0, relation=relation)
    curator = Curator(engine, method.plan(schema, None).total, schema, relation=relation)
    split = method._split(schema, curator.measure)
    with patched(entropy, "exponential_choice", value=choice):
        tied(curator, known, pairs(schema.sizes, split.limits), split)
    curator.close()
    return found[0]


def worst_range(relation: Relation) -> float:
    """Largest range of the loss of a look, in parts of what is paid, over neighbors of up to three rows."""
    rows = np.array(list(itertools.product((0, 1), repeat=3)))
    worst = 0.0
    for chosen in itertools.combinations_with_replacement(range(8), 2):
        scores, factor, epsilon = asked(rows[list(chosen)], relation)
        kept = chosen if relation == "add_remove" else chosen[:1]
        for row in range(8):
            moved = factor * (asked(rows[[*kept, row]], relation)[0] - scores)
            worst = max(worst, float(moved.max() - moved.min()) / epsilon)
    return worst


def summed() -> AbstractContextManager[None]:
    """A broken build: the sum of the distances in place of their mean."""
    honest: Callable[..., Any] = module.gaps
    return patched(module, "gaps", value=lambda *given: honest(*given) * len(given[1]))


def of_one_step() -> AbstractContextManager[None]:
    """A broken build: a row that is replaced moves a distance as one that is added."""
    return patched(module, "steps", value=lambda relation: 1)


def test_the_score_is_the_mean_distance_from_independence_less_the_threshold() -> None:
    values = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])

    scores, _, _ = asked(values, "add_remove")

    far, chance, most = [], [], []
    for a, b in itertools.combinations(range(3), 2):
        (p, q), (r, s) = sorted(KNOWN.shares[a]), sorted(KNOWN.shares[b])
        most.append(2 * KNOWN.rows * (1 - p * r - q * s))
        counts = np.zeros((2, 2))
        for row in values:
            counts[row[a], row[b]] += 1
        for one, other in itertools.product((0, 1), repeat=2):
            expected = KNOWN.rows * KNOWN.shares[a][one] * KNOWN.shares[b][other]
            far.append(abs(counts[one, other] - expected))
            chance.append(min(2 * expected, np.sqrt(2 / np.pi * expected)))
    least = (TIED * sum(most) + (1 - TIED) * sum(chance)) / 3
    assert scores == pytest.approx([sum(far) / 3 - least, least - sum(far) / 3], abs=0.002)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "relation", "honest"),
    [
        (nullcontext, "add_remove", True),
        (nullcontext, "replace_one", True),
        (summed, "add_remove", False),
        (of_one_step, "replace_one", False),
    ],
)
def test_the_loss_of_a_look_keeps_within_the_range_that_is_paid(
    build: Callable[[], AbstractContextManager[None]], relation: Relation, honest: bool
) -> None:
    with build():
        worst = worst_range(relation)

    assert (worst <= 1 + 1e-9) is honest
    assert worst > 0.5


def looks(
    values: np.ndarray, method: AdaptiveGibbs = FEW, schema: Schema = WIDE
) -> tuple[list[bool], Curator]:
    """What the looks of one run found, and its curator."""
    found: list[bool] = []
    honest: Callable[..., bool] = module.tied

    def watched(*given: Any) -> bool:
        found.append(honest(*given))
        return found[-1]

    with patched(module, "tied", value=watched):
        _, curator = ran(method, schema, values)
    return found, curator


@pytest.mark.slow
def test_few_records_of_tied_columns_are_told_from_others_and_all_is_spent() -> None:
    for values, answer in ((copied(), True), (apart(), False)):
        found, curator = looks(values)

        assert found == [answer]
        whole = FEW.plan(WIDE, None).total.mu_squared
        assert whole * (1 - Fraction(1, 10**8)) <= paid(curator) <= whole


def of_records() -> AbstractContextManager[None]:
    """A broken build: nine tenths of the records, which is further than copies of few levels can be."""
    return patched(module, "TIED", value=0.9 * 500 / 345)


@pytest.mark.parametrize(("build", "answer"), [(nullcontext, True), (of_records, False)])
def test_copies_of_a_skewed_column_of_few_levels_are_tied(
    build: Callable[[], AbstractContextManager[None]], answer: bool
) -> None:
    # Copies are 345 of 500 records from independence, where columns of many levels would be 1,000.
    held, schema = np.array([400, 50, 25, 25]), schema_of(*[4] * 8)
    few = np.repeat(np.repeat(np.arange(4), held)[:, None], 8, axis=1)
    with build():
        scores, _, _ = asked(
            few, "add_remove", Known(schema, schema, shares=(held / 500,) * 8, rows=500.0)
        )

    assert bool(scores[0] > 0) is answer


def without_chance() -> AbstractContextManager[None]:
    """A broken build: records that chance takes from independence count as tied."""
    return patched(module, "expected_errors", value=lambda tables, *_: np.zeros(len(tables)))


@pytest.mark.parametrize(("build", "answer"), [(nullcontext, False), (without_chance, True)])
@pytest.mark.slow
def test_columns_of_many_levels_are_not_tied_by_chance(
    build: Callable[[], AbstractContextManager[None]], answer: bool
) -> None:
    # 2,200 records in pairs of 3,600 cells; their noisy number is 3.9 deviations from where nobody looks.
    with build():
        found, _ = looks(apart(2_200, 60), schema=schema_of(*[60] * 6))

    assert found == [answer]


@pytest.mark.slow
def test_tied_columns_have_a_fifth_spent_on_single_columns() -> None:
    prices: list[Fraction] = []

    def watched(*given: Any, price: Fraction, **rest: Any) -> Any:
        prices.append(price)
        return measure_margins(*given, price=price, **rest)

    with patched(module, "measure_margins", value=watched):
        for values in (copied(), apart()):
            ran(FEW, WIDE, values)

    whole = FEW.plan(WIDE, None).total.mu_squared
    assert prices[0] == whole / 10  # with the tenth that was spent at first
    assert prices[1] > 3 * prices[0]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "epsilon"), [(20_000, 1.0), (20, 1.0)])
def test_many_records_are_not_looked_at_nor_those_that_noise_blurs(
    rows: int, epsilon: float
) -> None:
    assert looks(copied(rows), AdaptiveGibbs(epsilon=epsilon))[0] == []
