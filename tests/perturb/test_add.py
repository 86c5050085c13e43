"""Add: exact weights, the effective alpha that is charged, and the limits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.perturb.add import Add

COUNTS = np.array([[0, 0, 0], [3, 0, 1], [10**9, 5, 0]])


@pytest.mark.parametrize("alpha", ["1/3", "1", "12.506", "1e-6", "1e6"])
def test_weights_are_counts_plus_the_effective_alpha_exactly(alpha: str) -> None:
    add = Add(Fraction(alpha))
    ones, unit = add.scaled

    weights = add.weights(COUNTS)

    assert weights.dtype == np.uint64
    assert all(
        int(w) == n * unit + ones
        for w, n in zip(weights.flat, COUNTS.ravel().tolist(), strict=True)
    )


@pytest.mark.parametrize("alpha", ["1/3", "1", "12.506", "0.0123", "1e6", "1e11"])
def test_the_effective_alpha_is_never_below_the_one_asked_for(alpha: str) -> None:
    add = Add(Fraction(alpha))

    assert add.effective is not None
    assert 0 <= add.effective / add.alpha - 1 <= Fraction(1, 1 << 22)


def test_the_cost_of_a_draw_is_that_of_the_effective_alpha_rounded_up() -> None:
    add = Add(Fraction(1, 3))
    ones, unit = add.scaled

    exact = math.log1p(unit / ones)

    assert exact <= float(add.epsilon) <= exact * (1 + 1e-11)
    assert float(add.epsilon) <= math.log(4)


@pytest.mark.parametrize("epsilon", ["1", "1/13", "1e-3", "5", "1e-11", "25"])
def test_within_never_costs_more_than_the_budget(epsilon: str) -> None:
    add = Add.within(Fraction(epsilon))

    assert add.epsilon <= Fraction(epsilon)


@pytest.mark.parametrize("epsilon", ["1", "1/13", "1e-3", "5"])
def test_within_finds_the_closed_form_alpha(epsilon: str) -> None:
    alpha = Add.within(Fraction(epsilon)).alpha

    assert float(alpha) == pytest.approx(1 / math.expm1(Fraction(epsilon)), rel=1e-6)


def test_alpha_of_the_paper_at_one_per_row_and_13_columns() -> None:
    """eps = 1 per row, p = 13 gives alpha = 12.506."""
    assert float(Add.within(Fraction(1, 13)).alpha) == pytest.approx(12.506, abs=5e-4)


def test_a_huge_alpha_is_uniform_and_free() -> None:
    add = Add(Fraction(1 << 50))

    assert (add.weights(COUNTS) == 1).all()
    assert add.epsilon == 0
    assert add.effective is None


def test_weights_of_a_key_always_fit_63_bits() -> None:
    counts = np.full((1, 1000), (1 << 62) // 1000)

    for alpha in ("1e-9", "1", "1e11"):
        total = sum(int(w) for w in Add(Fraction(alpha)).weights(counts).flat)
        assert 0 < total < 1 << 63


def test_a_count_beyond_the_limit_still_moves_by_at_most_one_unit() -> None:
    add = Add(Fraction(1, 1000))
    limit = (1 << 62) // (add.scaled[1] * 2)
    one = add.weights(np.array([[limit - 2, 0], [limit, 0], [limit + 5, 0]]))
    two = add.weights(np.array([[limit - 1, 0], [limit + 1, 0], [limit + 6, 0]]))

    assert ((two - one)[:, 0] <= np.uint64(add.scaled[1])).all()


def test_a_column_with_one_level_costs_nothing() -> None:
    assert Add(Fraction(1)).loss(1, "add_remove") == 0
    assert Add(Fraction(1)).reset_loss(1, "replace_one") == 0


def test_a_reset_table_under_replace_one_costs_both_keys() -> None:
    add = Add(Fraction(1))

    assert float(add.reset_loss(2, "add_remove")) == pytest.approx(math.log(2))
    assert float(add.reset_loss(2, "replace_one")) == pytest.approx(math.log(2) + math.log(1.5))


@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(-1), 1.0])
def test_alpha_must_be_a_positive_fraction(alpha: object) -> None:
    with pytest.raises(ParameterError, match="must be a fraction > 0"):
        Add(alpha)  # type: ignore[arg-type]


def test_a_budget_of_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="eps0 is > 0"):
        Add.within(Fraction(0))


def exact_loss(add: Add, counts: Sequence[int], other: Sequence[int]) -> Fraction:
    """Largest probability ratio of one draw, exactly."""
    one, two = (add.weights(np.array([c])).astype(object)[0] for c in (counts, other))
    ratios = [
        Fraction(int(a) * int(two.sum()), int(b) * int(one.sum()))
        for a, b in zip(one, two, strict=True)
    ]
    return max(*ratios, *(1 / r for r in ratios))


def covers(price: Fraction, ratio: Fraction) -> bool:
    """Whether e**price >= ratio, in 60 digits."""
    with mpmath.workdps(60):
        return bool(
            mpmath.mpf(price.numerator) / price.denominator
            >= mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        )


@pytest.mark.parametrize("alpha", ["1/7", "1", "40"])
def test_the_loss_of_one_draw_is_bounded_and_attained_by_enumeration(alpha: str) -> None:
    add, worst = Add(Fraction(alpha)), Fraction(1)
    for a in (0, 1, 2, 1000, 10**7):
        for b in (0, 1, 3, 10**8):
            for c in (0, 2):
                worst = max(worst, exact_loss(add, [a, b, c], [a + 1, b, c]))
                worst = max(worst, exact_loss(add, [a, b + 1, c], [a + 1, b, c]))

    assert covers(add.epsilon, worst)
    assert not covers(add.epsilon * Fraction(9999, 10000), worst)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [2, 5])
def test_a_unit_of_several_rows_costs_less_than_as_many_units(
    relation: Relation, rows: int
) -> None:
    """ln(1 + g/alpha), by enumeration of how a unit spreads its rows over three levels."""
    add, worst = Add(Fraction(2)), Fraction(1)
    spreads = [c for c in itertools.product(range(rows + 1), repeat=3) if sum(c) <= rows]
    others = [(0, 0, 0)] if relation == "add_remove" else spreads
    for rest in ((0, 0, 0), (1, 0, 4), (0, 10**7, 0)):
        for gained, lost in itertools.product(spreads, others):
            one = [n + c for n, c in zip(rest, gained, strict=True)]
            two = [n + c for n, c in zip(rest, lost, strict=True)]
            worst = max(worst, exact_loss(add, one, two))

    price = add.loss(3, relation, rows)

    assert covers(price, worst)
    assert not covers(price * Fraction(9999, 10000), worst)
    assert price < rows * add.loss(3, relation)
    assert Add.within(Fraction(1), rows).alpha < Add.within(Fraction(1, rows)).alpha


def test_uneven_virtual_records_have_alpha_for_the_smallest_ratio() -> None:
    add = Add(Fraction(3, 4), (6, 2, 3))
    unit = add.scaled[1]

    virtual = [Fraction(w, unit) for w in add.weights(np.zeros((1, 3), dtype=np.int64))[0].tolist()]

    assert virtual[1] == Fraction(3, 4)
    assert [float(v) for v in virtual] == pytest.approx([2.25, 0.75, 1.125], rel=1e-6)
    assert min(virtual) >= add.alpha
    assert (add.weights(COUNTS) - add.weights(0 * COUNTS) == COUNTS * unit).all()
    assert add.loss(3, "add_remove") == Add(Fraction(3, 4)).loss(3, "add_remove")


@pytest.mark.parametrize(("alpha", "ratios"), [(1 << 50, (6, 2, 3)), (1 << 39, (1 << 33, 1, 1))])
def test_without_a_budget_draws_follow_the_ratios_and_cost_nothing(
    alpha: int, ratios: tuple[int, ...]
) -> None:
    add = Add(Fraction(alpha), ratios)

    assert add.weights(COUNTS).tolist() == [list(ratios)] * 3
    assert add.loss(3, "replace_one") == 0


@pytest.mark.parametrize("ratio", [0, -1, 1.5, 1 << 34])
def test_a_level_without_virtual_records_is_refused(ratio: float) -> None:
    with pytest.raises(ParameterError, match="Each level needs virtual records"):
        Add(Fraction(1), (1, ratio))  # type: ignore[arg-type]
