"""Counts redrawn until they are within their bounds: the law, its real price, and what the paper charges.

Statistical tests have a level of 1e-6 each.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from gibbous.contract.audit import lower_bound
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.tables import Dense
from gibbous.mechanisms import _modips_statistics
from gibbous.mechanisms._modips_statistics import Truncated, truncated_for
from gibbous.mechanisms.modips import Modips
from gibbous.privacy.calibrate.dirichlet import truncated_geometric_epsilon
from gibbous.privacy.noise import Geometric
from tests.mechanisms.numeric_records import AGE, SEX, Schema, ran, secret

DRAWS = 12_000


def law(count: int, scale: float, most: int = 400) -> np.ndarray:
    """P(y | count) for y = 0..most, by summing the weights; 400 stands for no upper bound."""
    places = np.arange(most + 1)
    weights = np.exp(-np.abs(places - count) / scale)
    return np.asarray(weights / weights.sum())


def enumerated_loss(scale: float, most: int = 6) -> float:
    """Largest |log ratio| of two counts that differ by one, over all outcomes."""
    laws = [law(count, scale) for count in range(most)]
    pairs = zip(laws, laws[1:], strict=False)
    return max(float(np.abs(np.log(a[:100] / b[:100])).max()) for a, b in pairs)


def tables_apart(records: int, relation: Relation) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Ordered pairs of neighboring tables of three cells, one of each with so many records."""
    ones = [t for t in itertools.product(range(records + 1), repeat=3) if sum(t) == records]
    found = []
    for one in ones:
        for up in range(3):
            two = list(one)
            two[up] += 1
            if relation == "add_remove":
                found += [(one, tuple(two)), (tuple(two), one)]
                continue
            for down in {0, 1, 2} - {up}:
                other = list(two)
                other[down] -= 1
                found += [(one, tuple(other))] if other[down] >= 0 else []
    return found


def loss_of_tables(scale: float, most: int | None, records: int, relation: Relation) -> float:
    """Largest log ratio of two neighbors' laws: cells are independent, and the worst outcomes add up."""
    top = 400 if most is None else most
    laws = [law(min(count, top), scale, top) for count in range(records + 2)]
    worst = {
        (a, b): float(np.log(laws[a][: records + 8] / laws[b][: records + 8]).max())
        for a in range(records + 2)
        for b in range(records + 2)
        if abs(a - b) <= 1
    }
    pairs = tables_apart(records, relation)
    return max(sum(worst[a, b] for a, b in zip(*pair, strict=True)) for pair in pairs)


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

    replaced = one.cost(1, "add_remove", 1).epsilon + 1 / one.base.scale
    assert float(one.cost(1, "replace_one", 1).epsilon) == pytest.approx(float(replaced), abs=1e-15)
    assert one.cost(1, "add_remove", 3).epsilon == 3 * one.cost(1, "add_remove", 1).epsilon
    assert truncated_for(1.0, "replace_one", 3).cost(1, "replace_one", 3).epsilon <= 1


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("most", [None, 1, 2, 7])
def test_the_price_is_the_largest_loss_of_neighboring_tables(
    epsilon: float, relation: Relation, most: int | None
) -> None:
    """Every pair of neighbors among tables of as many records as the bound says, and no pair is dearer."""
    noise = truncated_for(epsilon, relation, 1, most)
    records = 12 if most is None else most

    loss = loss_of_tables(float(noise.base.scale), most, records, relation)

    price = float(noise.cost(1, relation, 1).epsilon)
    # Without an upper bound a full cell's normalizer tends to 1 only as its count grows.
    far = math.exp(-13 / float(noise.base.scale)) if most is None else 0.0
    assert price * (1 - 1e-9) - far <= loss <= price * (1 + 1e-9)
    assert epsilon * (1 - 1e-8) < price <= epsilon


def test_counts_above_a_bound_that_is_too_low_are_cut_and_show_no_more() -> None:
    noise = truncated_for(1.0, "replace_one", 1, 3)

    assert loss_of_tables(float(noise.base.scale), 3, 9, "replace_one") <= 1 + 1e-9
    assert (noise.add(Dense(np.full((1, 50), 9))).values <= 3).all()


def test_a_person_of_two_rows_costs_at_most_the_price() -> None:
    """All pairs of tables of six records, of which two may move: paths of two replacements."""
    noise, most = truncated_for(1.0, "replace_one", 2, 6), 6
    laws = [np.log(law(count, float(noise.base.scale), most)) for count in range(most + 1)]
    ones = [t for t in itertools.product(range(most + 1), repeat=3) if sum(t) == most]
    losses = [
        sum(float((laws[a] - laws[b]).max()) for a, b in zip(one, two, strict=True))
        for one in ones
        for two in ones
        if sum(abs(a - b) for a, b in zip(one, two, strict=True)) <= 4
    ]

    assert 0.9 < max(losses) <= 1


@pytest.mark.parametrize("most", [7, 40])
def test_the_price_of_one_bound_does_not_pay_for_two(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The saboteur: counts drawn again at both ends, at the price of those that are not negative."""
    monkeypatch.setattr(_modips_statistics, "_ends", lambda relation, most: (1, 1))
    noise = truncated_for(1.0, "replace_one", 1, most)

    loss = loss_of_tables(float(noise.base.scale), most, most, "replace_one")

    assert noise.cost(1, "replace_one", 1).epsilon <= 1
    assert loss > 1.15


@pytest.mark.statistical
@pytest.mark.parametrize("most", [None, 9])
def test_drawn_counts_follow_the_stated_law(most: int | None) -> None:
    """Chi-square at 1e-6 for counts at and off a bound; the law of a scale 15 % larger is refused."""
    from scipy import stats

    noise = truncated_for(1.0, "add_remove", 1, most)
    scale = float(noise.base.scale)
    for count in (0, 2, 9):
        drawn = noise.add(Dense(np.full((1, DRAWS), count))).values.ravel()
        observed = np.bincount(np.minimum(drawn, 9), minlength=10)
        for factor, holds in ((1.0, True), (1.15, False)):
            expected = law(count, scale * factor, most or 400)
            expected = np.append(expected[:9], expected[9:].sum()) * DRAWS
            assert (stats.chisquare(observed, expected).pvalue > 1e-6) == holds
        assert most is None or drawn.max() == most


@pytest.mark.statistical
def test_the_audit_passes_the_corrected_scale_and_catches_the_usual_one() -> None:
    assert seen(truncated_for(1.0, "add_remove", 1)) <= 1.0
    assert seen(Truncated(Geometric(Fraction(1)))) > 1.0


def test_an_unpaid_normalizer_is_seen_by_the_enumerated_loss() -> None:
    def unpaid(scale: Fraction, sensitivity: int, *_: object) -> Fraction:
        return sensitivity / Fraction(scale)

    with (
        patched(_modips_statistics, "truncated_geometric_epsilon", value=unpaid),
        patched(_modips_statistics, "truncated_geometric_scale", value=unpaid),
    ):
        noise = truncated_for(1.0, "add_remove", 1)
        claimed = float(noise.cost(1, "add_remove", 1).epsilon)

    assert claimed == 1.0
    assert enumerated_loss(float(noise.base.scale)) > 1.2


@pytest.mark.parametrize("records", [None, 30])
def test_a_truncated_release_is_within_its_bounds_and_costs_what_was_planned(
    records: int | None,
) -> None:
    schema = Schema((SEX,))
    method = Modips(epsilon=0.5, outside="truncate", records=records)
    tables, held = ran(method, secret(schema, [[0]] * 30))

    values = tables.items[0].cells.values

    assert (values >= 0).all()
    assert records is None or (values <= records).all()
    assert Fraction(1, 2) * (1 - Fraction(1, 10**8)) < held.spent[0].epsilon <= Fraction(1, 2)


def test_a_bound_far_below_the_noise_is_refused_before_it_is_drawn_against() -> None:
    """At epsilon = 1e-9 one of a thousand million draws would lie within 0 and 1."""
    with pytest.raises(ResourceLimit):
        Modips(epsilon=1e-9, outside="truncate", records=1).plan(Schema((SEX,)), 1)


def test_truncation_is_refused_where_it_is_not_proven() -> None:
    with pytest.raises(ParameterError, match="Truncated counts are proven"):
        Modips(outside="truncate", noise="gaussian")
    with pytest.raises(ParameterError, match="drawn again have an upper bound"):
        Modips(records=100)
    with pytest.raises(ParameterError, match="numeric columns"):
        Modips(outside="truncate").plan(Schema((SEX, AGE)), 100)
