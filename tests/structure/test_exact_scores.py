"""Scores of private choices at 10^12 records, against fractions: float64 adds less than is paid for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from gibbous.core.context import Context
from gibbous.core.errors import UNCHARGED, ResourceLimit
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts, Dense
from gibbous.disintegrate import count_routes
from gibbous.privacy import entropy
from gibbous.structure import choice, clique_scores, greedy
from gibbous.structure.choice import Caution, Margins, pair_scores, parent_scores
from gibbous.structure.clique_scores import lowered, whole

LARGE = 10**12
Score = Callable[[np.ndarray], float]
Exact = Callable[[np.ndarray], Fraction]
STEP = Fraction(1, entropy.GRID)  # of one sensitivity: the error that a score may have

SHAPE = (7, 5)
AGAINST = Context((1,), (0,), (SHAPE[1],), (SHAPE[0],))
SCHEMA = Schema(
    (
        Column("a", "nominal", levels=tuple(range(SHAPE[0]))),
        Column("b", "nominal", levels=tuple(range(SHAPE[1]))),
    )
)


def shares(size: int, seed: int) -> np.ndarray:
    found = np.random.default_rng(seed).dirichlet(np.full(size, 0.4))
    return np.asarray(found)


MARGINS = Margins((shares(SHAPE[0], 1), shares(SHAPE[1], 2)), LARGE + 0.4321)
EXPECTED = MARGINS.rows * np.outer(*MARGINS.shares).ravel()
CAUTION = Caution(noise=3e4, weight=0.4)


def fraction(number: Any) -> Fraction:
    return Fraction(float(number))


def counts(table: np.ndarray) -> list[Counts]:
    return [Counts(AGAINST, Dense(table))]


def pairs_(table: np.ndarray) -> float:
    return float(pair_scores([AGAINST], MARGINS, CAUTION)(counts(table))[0])


def pairs_exact(table: np.ndarray) -> Fraction:
    apart = whole(EXPECTED)
    found = sum(abs(int(n) - fraction(a)) for n, a in zip(table.flat, apart, strict=True))
    return Fraction(found) - fraction(CAUTION.price(AGAINST.cells))


def parents_(table: np.ndarray) -> float:
    return float(parent_scores([AGAINST], MARGINS, CAUTION)(counts(table))[0])


def parents_exact(table: np.ndarray, bits: int = 42) -> Fraction:
    """Shares rounded down to multiples of 2^-bits."""
    held = [Fraction(int(fraction(s) * 2**bits), 2**bits) for s in MARGINS.shares[1]]
    found = Fraction(0)
    for row in table.tolist():
        found += sum(abs(n - sum(row) * s) for n, s in zip(row, held, strict=True))
    return found - fraction(CAUTION.price(AGAINST.cells))


def lowered_score(
    table: np.ndarray, *, noise: float, spread: float, part: float, error: float
) -> float:
    first, ones = np.zeros(1, dtype=np.int64), np.ones(1)
    public = (noise * ones, spread * ones, part * ones, error * ones)
    worth = clique_scores._Part(first, [AGAINST], [whole(EXPECTED)], *public)(counts(table))
    return float(lowered(worth, left=first, kept=0.7 * ones, weights=ones)[0])


def lowered_exact(
    table: np.ndarray, *, noise: float, spread: float, part: float, error: float
) -> Fraction:
    expected, worth = whole(EXPECTED), Fraction(0)
    untold = np.rint(2048 * np.sqrt(noise * noise + spread * expected)) / 2048
    for n, m, less in zip(table.flat, expected, untold, strict=True):
        worth += max(Fraction(0), abs(int(n) - fraction(m)) - fraction(less))
    worth = Fraction(part) * worth - fraction(error)
    return min(worth, fraction(0.7) * worth)


NEAR = {"noise": 0.0, "spread": 0.0, "part": 1.0, "error": 1.2345678e6}
BEYOND = {"noise": 12_345.678, "spread": 1.37, "part": clique_scores.LARGER_PART, "error": 0.0}


def greedy_(table: np.ndarray) -> float:
    return float(
        greedy.scores(
            [(1, (0,))],
            [greedy.table(SCHEMA, (1, (0,)))],
            [Counts(greedy.table(SCHEMA, (1, (0,))), Dense(table.reshape(1, -1)))],
        )[0]
    )


def greedy_exact(table: np.ndarray) -> Fraction:
    total = int(table.sum())
    one, two = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    found = sum(
        abs(int(table[i, j]) - Fraction(one[i] * two[j], total))
        for i in range(SHAPE[0])
        for j in range(SHAPE[1])
    )
    return Fraction(found) / 2


@dataclass(frozen=True)
class Case:
    name: str
    score: Score
    exact: Exact
    sensitivity: int


CASES = (
    Case("pair", pairs_, pairs_exact, 1),
    Case("parents", parents_, parents_exact, 2),
    Case("clique", partial(lowered_score, **NEAR), partial(lowered_exact, **NEAR), 1),
    Case("clique beyond", partial(lowered_score, **BEYOND), partial(lowered_exact, **BEYOND), 1),
    Case("greedy", greedy_, greedy_exact, 2),
)


def tables() -> list[np.ndarray]:
    """Random tables of about 10^12 records, and smaller ones; some close to what is expected."""
    rng = np.random.default_rng(11)
    found = []
    for total in (LARGE, LARGE // 3, 1 << 31, 10**6, 50):
        for near in (True, True, True, False):
            law = np.outer(*MARGINS.shares).ravel() if near else rng.dirichlet(np.ones(35))
            table = np.floor(law * total).astype(np.int64) + rng.integers(
                0, 10**6 if total > 10**9 else 9, 35
            )
            found.append(table.reshape(SHAPE))
    return found


def clipped(value: Fraction, sensitivity: int) -> Fraction:
    """Scores beyond 2^31 sensitivities are clipped there before anything is drawn."""
    most = Fraction(sensitivity) * 2**31
    return max(-most, min(most, value))


def worst_error(score: Score, exact: Exact, sensitivity: int) -> Fraction:
    """The largest difference of a score from its fraction, in sensitivities, after clipping."""
    errors = [
        abs(clipped(fraction(score(table)), sensitivity) - clipped(exact(table), sensitivity))
        for table in tables()
    ]
    return max(errors) / sensitivity


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_G2_scores_of_a_million_million_records_err_by_less_than_a_step(case: Case) -> None:
    assert worst_error(case.score, case.exact, case.sensitivity) <= STEP


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_G2_one_record_among_a_million_million_moves_a_score_by_its_sensitivity_at_most(
    case: Case,
) -> None:
    """Of the fractions exactly; of the floats by two steps more at most, of which four are paid for."""
    for table in tables():
        for cell in ((0, 0), (3, 2), (6, 4)):
            more = table.copy()
            more[cell] += 1
            exact = [case.exact(one) for one in (table, more)]
            drawn = [
                entropy._whole_steps(np.array([case.score(one)]), case.sensitivity * STEP)
                for one in (table, more)
            ]

            assert abs(exact[0] - exact[1]) <= case.sensitivity
            assert abs(int(drawn[0][0]) - int(drawn[1][0])) <= entropy.GRID + entropy.SPARE


def plain_parents(table: np.ndarray) -> float:
    apart = table.sum(axis=1, keepdims=True) * MARGINS.shares[1]
    return float(np.abs(table - apart).sum() - CAUTION.price(AGAINST.cells))


def plain_greedy(table: np.ndarray) -> float:
    joint = table.astype(np.float64)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / joint.sum()
    return float(np.abs(joint - apart).sum() / 2)


@pytest.mark.parametrize(
    ("plain", "exact", "sensitivity"),
    [
        (plain_parents, lambda table: parents_exact(table, 1074), 2),
        (plain_greedy, greedy_exact, 2),
    ],
    ids=["parents", "greedy"],
)
def test_G2_the_same_formulas_in_floats_alone_are_caught(
    plain: Score, exact: Exact, sensitivity: int
) -> None:
    """The saboteur: their products of a million million are off by more steps than are paid for."""
    assert worst_error(plain, exact, sensitivity) > entropy.SPARE * STEP


def test_G2_public_expectations_are_multiples_of_a_binary_fraction_and_add_up_to_half_the_room() -> (
    None
):
    for rows in (0.3, 1e6, 3e13, 1e300):
        found = whole(rows * np.full(1000, 1e-3))

        assert (found * 2048 == np.rint(found * 2048)).all()
        assert found.sum() <= clique_scores.MOST + 1


def test_G2_shares_in_two_digits_add_up_to_one_at_most() -> None:
    for size in (1, 2, 7, 1000):
        first, second = choice.digits(shares(size, size))
        total = int(first.sum()) * choice.DIGIT + int(second.sum())

        assert total <= choice.DIGIT**2
        assert total >= choice.DIGIT**2 - 2 * size


def test_G2_more_records_than_scores_are_exact_for_are_refused_before_the_charge() -> None:
    count_routes.check_contexts([AGAINST], SCHEMA, rows=1 << 40)

    with pytest.raises(ResourceLimit, match="2\\^40 records") as refused:
        count_routes.check_contexts([AGAINST], SCHEMA, rows=(1 << 40) + 1, state=UNCHARGED)

    assert "no budget was spent" in str(refused.value)
