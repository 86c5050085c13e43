"""Counts redrawn until they are not negative: the law, its real price, and the price the paper charges.

Statistical tests have a level of 1e-6 each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gibbous.contract.audit import lower_bound
from gibbous.contract.saboteurs import patched
from gibbous.core.errors import ParameterError
from gibbous.core.tables import Dense
from gibbous.mechanisms import _modips_statistics
from gibbous.mechanisms._modips_statistics import Truncated, truncated_for
from gibbous.mechanisms.modips import Modips
from gibbous.privacy.calibrate.dirichlet import truncated_geometric_epsilon
from gibbous.privacy.noise import Geometric
from tests.mechanisms.numeric_records import AGE, SEX, Schema, ran, secret

DRAWS = 12_000


def law(count: int, scale: float, most: int = 400) -> np.ndarray:
    """P(y | count) for y = 0..most, by summing the weights."""
    places = np.arange(most + 1)
    weights = np.exp(-np.abs(places - count) / scale)
    return np.asarray(weights / weights.sum())


def enumerated_loss(scale: float, most: int = 6) -> float:
    """Largest |log ratio| of two counts that differ by one, over all outcomes."""
    laws = [law(count, scale) for count in range(most)]
    pairs = zip(laws, laws[1:], strict=False)
    return max(float(np.abs(np.log(a[:100] / b[:100])).max()) for a, b in pairs)


def seen(noise: Truncated) -> float:
    """Lower bound, at 1e-6, of the loss that zeros and ones show through the running code."""
    zeros = [noise.add(Dense(np.full((1, DRAWS), count))).values for count in (0, 1)]
    hits = [int((values == 0).sum()) for values in zeros]
    return lower_bound(hits[0], hits[1], DRAWS, 0.0, 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_price_is_the_enumerated_loss_of_the_law(epsilon: float) -> None:
    noise = truncated_for(epsilon, "add_remove", 1)

    loss = enumerated_loss(float(noise.base.scale))

    price = float(noise.cost(1, "add_remove", 1).epsilon)
    assert loss == pytest.approx(price, rel=1e-9)
    assert epsilon * (1 - 1e-8) < price <= epsilon


def test_the_usual_scale_costs_1_21_for_counts_and_1_49_for_sums_of_many_steps() -> None:
    """s7.5: ln(2 e - 1) = 1.4901 in the limit of fine grids; ln(e + 1 - 1/e) for counts."""
    counts = enumerated_loss(1.0)
    fine = float(truncated_geometric_epsilon(10_000, 10_000))

    assert counts == pytest.approx(math.log(math.e + 1 - 1 / math.e), abs=1e-12)
    assert round(counts, 3) == 1.209
    assert fine == pytest.approx(math.log(2 * math.e - 1), abs=1e-4)
    assert round(fine, 2) == 1.49


def test_the_scale_of_counts_is_one_over_the_inverse_sinh() -> None:
    found = float(truncated_for(1.0, "add_remove", 1).base.scale)

    assert found == pytest.approx(1 / math.asinh((math.e - 1) / 2), rel=1e-9)


def test_a_replaced_record_and_a_person_of_three_rows_pay_for_each_cell() -> None:
    one = truncated_for(1.0, "add_remove", 1)

    assert one.cost(1, "replace_one", 1).epsilon == 2 * one.cost(1, "add_remove", 1).epsilon
    assert one.cost(1, "add_remove", 3).epsilon == 3 * one.cost(1, "add_remove", 1).epsilon
    assert truncated_for(1.0, "replace_one", 3).cost(1, "replace_one", 3).epsilon <= 1


@pytest.mark.statistical
def test_drawn_counts_follow_the_stated_law() -> None:
    """Chi-square at 1e-6 for the counts 0 and 2; the law of a scale 15 % larger is refused."""
    from scipy import stats

    noise = truncated_for(1.0, "add_remove", 1)
    scale = float(noise.base.scale)
    for count in (0, 2):
        drawn = np.bincount(
            noise.add(Dense(np.full((1, DRAWS), count))).values.ravel(), minlength=12
        )
        for factor, holds in ((1.0, True), (1.15, False)):
            expected = law(count, scale * factor)[:12] * DRAWS
            observed = np.append(drawn[:12], DRAWS - drawn[:12].sum())
            found = stats.chisquare(observed, np.append(expected, DRAWS - expected.sum()))
            assert (found.pvalue > 1e-6) == holds


@pytest.mark.statistical
def test_the_audit_passes_the_corrected_scale_and_catches_the_usual_one() -> None:
    assert seen(truncated_for(1.0, "add_remove", 1)) <= 1.0
    assert seen(Truncated(Geometric(Fraction(1)))) > 1.0


def test_an_unpaid_normalizer_is_seen_by_the_enumerated_loss() -> None:
    def unpaid(scale: Fraction, sensitivity: int) -> Fraction:
        return sensitivity / Fraction(scale)

    with (
        patched(_modips_statistics, "truncated_geometric_epsilon", value=unpaid),
        patched(_modips_statistics, "truncated_geometric_scale", value=unpaid),
    ):
        noise = truncated_for(1.0, "add_remove", 1)
        claimed = float(noise.cost(1, "add_remove", 1).epsilon)

    assert claimed == 1.0
    assert enumerated_loss(float(noise.base.scale)) > 1.2


def test_a_truncated_release_has_no_negative_count_and_costs_what_was_planned() -> None:
    schema = Schema((SEX,))
    tables, held = ran(Modips(epsilon=0.5, outside="truncate"), secret(schema, [[0]] * 30))

    values = tables.items[0].cells.values

    assert (values >= 0).all()
    assert Fraction(1, 2) * (1 - Fraction(1, 10**8)) < held.spent[0].epsilon <= Fraction(1, 2)


def test_truncation_is_refused_where_it_is_not_proven() -> None:
    with pytest.raises(ParameterError, match="Truncated counts are proven"):
        Modips(outside="truncate", noise="gaussian")
    with pytest.raises(ParameterError, match="numeric columns"):
        Modips(outside="truncate").plan(Schema((SEX, AGE)), 100)
