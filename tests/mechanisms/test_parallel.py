"""parallel: random parts, the cost of one of them, rows in the right shares; what is not sound is refused."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gibbous as gb
from gibbous.contract.cases import secret
from gibbous.contract.residuals import residuals
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.params import as_json
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.tables import Dense, Tables
from gibbous.disintegrate import records
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.parallel import Parallel, mixed
from gibbous.mechanisms.per_set import PerSet
from gibbous.privacy.curator import Curator
from gibbous.sampling.sample import sample
from gibbous.structure.contexts import joint
from tests.mechanisms.linked_columns import SCHEMA, linked, tables


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "method",
    [gb.Laplace(epsilon=2), gb.NoisyPegs(), gb.Sba(), gb.Sbhg(epsilon=5), gb.Privbayes()],
    ids=lambda m: m.about.name,
)
def test_parts_cost_together_what_one_costs(method: Any, relation: Any) -> None:
    inside = replace(method, relation=relation)
    mechanism = Parallel(inside, parts=3)

    found = tables(mechanism, rows=400)

    assert len(found.parts) == 3
    assert mechanism.plan(SCHEMA, None).total == inside.plan(SCHEMA, None).total
    assert bool(found.shares) == (relation == "replace_one")


def test_each_record_is_in_one_part_and_the_noise_of_the_parts_adds_up() -> None:
    found = [tables(Parallel(gb.Laplace(epsilon=50), parts=4), rows=800) for _ in range(20)]

    totals = [[int(part.items[0].cells.values.sum()) for part in one.parts] for one in found]

    # Noise of scale .02 is 0; the parts are multinomial: sd of one is 12.2, 5 of them are 61.
    assert all(sum(one) == 800 for one in totals)
    assert max(abs(part - 200) for one in totals for part in one) < 75
    assert len({tuple(one) for one in totals}) > 1


def test_parts_are_drawn_independently_of_what_records_say() -> None:
    values = np.sort(linked(4_000), axis=0)  # alike records lie together
    engine = LocalEngine.from_codes(secret(SCHEMA, values))
    curator = Curator(engine, gb.Laplace().plan(SCHEMA, 1).total, SCHEMA, relation="add_remove")

    first, second = (view._engine for view in curator.split(2))
    shares = [one.tally((joint(SCHEMA),))[0].cells.values.ravel() for one in (first, second)]

    # Each cell is halved: chi-square with at most 12 df, level 1e-7.
    both = shares[0] + shares[1]
    used = both > 0
    assert ((shares[0] - shares[1])[used] ** 2 / both[used]).sum() < 59


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("sets", [1, 2])
def test_paid_rows_cost_the_share_of_the_largest_part(parts: int, sets: int) -> None:
    mechanism = Parallel(gb.Pegs(epsilon=1), parts=parts)

    plan = mechanism.plan(SCHEMA, 50, sets)
    drawn = release(mechanism, SCHEMA, linked(300), 50, sets=sets)

    assert plan.total.epsilon == -(-50 // parts) * sets
    assert plan.total.unit == "dataset"
    assert isinstance(drawn, Codes)
    assert drawn.rows == 50 * sets


def test_a_part_that_asks_for_more_than_its_rows_is_refused(monkeypatch: Any) -> None:
    monkeypatch.setattr(Parallel, "_sizes", lambda self, rows: [rows] * self.parts)
    mechanism = Parallel(gb.Pegs(epsilon=1), parts=2)
    plan = mechanism.plan(SCHEMA, 50)
    plan = replace(plan, total=replace(plan.total, epsilon=Fraction(25)))

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        release(mechanism, SCHEMA, linked(100), 50, plan)


def test_rows_of_parts_take_turns_within_each_set() -> None:
    drawn = [
        Codes(SCHEMA, np.array([[0, part, 0]] * (2 * size), dtype=np.uint8))
        for part, size in ((0, 3), (1, 2), (2, 2))
    ]
    for number, one in enumerate(drawn):
        one.values[one.rows // 2 :, 2] = 1  # of the second set
        assert one.rows == 2 * (3, 2, 2)[number]

    found = mixed(drawn, 2).values

    assert found[:, 1].tolist() == [0, 1, 2, 0, 1, 2, 0] * 2
    assert found[:, 2].tolist() == [0] * 7 + [1] * 7


def test_methods_without_a_claim_stay_without_one() -> None:
    none = Parallel(gb.Contingency(), parts=2).plan(SCHEMA, 10)
    diverse = Parallel(gb.DiversePegs(l=1.5), parts=2).plan(SCHEMA, 10)

    assert not none.total.is_dp
    assert diverse.total.kind == "l_diversity"
    assert diverse.total.l == Fraction(3, 2)


def test_persons_with_several_rows_are_refused_before_anything_is_spent() -> None:
    schema = replace(SCHEMA, unit=Unit("person", "who", 3))

    with pytest.raises(PrivacyRefused, match="several parts pays in each"):
        Parallel(gb.Laplace()).plan(schema, None)


def test_parts_of_sets_work_and_sets_of_parts_are_refused() -> None:
    found = tables(Parallel(PerSet(gb.Laplace(epsilon=2)), parts=2), sets=3)

    assert found.noisings == 3
    assert sample(found, 20, seed=1, set_index=2).rows == 20
    with pytest.raises(UsageError, match="Parallel\\(PerSet"):
        PerSet(Parallel())
    with pytest.raises(UsageError, match="around parallel"):
        Parallel(Parallel())


def test_parameters_survive_json() -> None:
    one = Parallel(PerSet(gb.NoisyPegs(parents=1), epsilon=3), parts=4)

    assert Parallel(**json.loads(json.dumps(as_json(one)))) == one
    assert one.epsilon == 3


def test_the_card_of_an_instance_fits_the_method_inside() -> None:
    assert Parallel.about.releases == "tables"
    assert Parallel(gb.Pegs()).about.releases == "rows"
    assert Parallel(gb.Pegs()).about.kind == "pure"
    assert Parallel(gb.Contingency()).about.kind == "none"


@pytest.mark.statistical
def test_the_error_from_noise_grows_as_the_root_of_the_parts() -> None:
    """Squared error of all cells over 40 fits: 4, its logarithm with a standard deviation of .13."""
    truth = np.bincount(linked(4_000) @ [6, 2, 1], minlength=12)
    error = {}
    for parts in (1, 4):
        found = [tables(Parallel(gb.Laplace(epsilon=0.5), parts=parts), 4_000) for _ in range(40)]
        sums = [np.sum([p.items[0].cells.values for p in one.parts], axis=0) for one in found]
        error[parts] = np.mean([((one.ravel() - truth) ** 2).mean() for one in sums])

    assert 2 < error[4] / error[1] < 8  # 5.4 of them; without noise of their own it is 1


@pytest.mark.statistical
def test_half_the_noise_is_seen_in_the_sum_over_parts() -> None:
    from gibbous.contract.saboteurs import saboteurs

    mechanism = Parallel(gb.Laplace(epsilon=1), parts=2)
    honest = residuals(Parallel, mechanism, fits=40)
    with saboteurs()[0].apply():  # type: ignore[attr-defined]
        halved = residuals(Parallel, mechanism, fits=40)

    assert honest is not None
    assert honest.holds
    assert halved is not None
    assert not halved.holds


def test_the_exact_loss_is_that_of_one_part_and_not_so_for_parts_by_the_order_of_rows() -> None:
    """Every partition that the code can draw is enumerated; outputs on a grid of two tables of two cells."""
    epsilon, before = 0.7, [0, 1, 0, 1]
    after = [1, *before]

    random = _loss(_law(records.parted, before, epsilon), _law(records.parted, after, epsilon))
    turns = _loss(_law(_in_turns, before, epsilon), _law(_in_turns, after, epsilon))

    # A record alone in its cell of one part: the loss of one table with that noise, and no more.
    assert 0.5 * epsilon < random <= epsilon * (1 + 1e-9)
    # In turns, 9 counts change: [2, 0], [0, 2] becomes [0, 3], [2, 0].
    assert turns == pytest.approx(9 * epsilon, rel=1e-9)


def test_a_table_of_parts_has_no_cells_of_its_own() -> None:
    found = tables(Parallel(gb.Laplace()))

    assert isinstance(found, Tables)
    assert found.items == ()
    assert all(isinstance(part.items[0].cells, Dense) for part in found.parts)
    assert "2 parts" in repr(found)


def _law(parted: Any, column: list[int], epsilon: float) -> np.ndarray:
    """P(noisy counts of two parts), each cell -6..9, over all draws of the partition."""
    schema = Schema((Column("y", "binary", levels=(0, 1)),))
    codes = secret(schema, np.array(column)[:, None])
    reach = np.arange(-6, 10)
    total = np.zeros((len(reach),) * 4)
    draws = list(itertools.product(range(2), repeat=len(column)))
    for draw in draws:
        parts = parted(codes, 2, lambda count, draw=draw: np.array(draw, dtype=np.uint64))
        counts = [int((one.values[:, 0] == level).sum()) for one in parts for level in (0, 1)]
        law = [np.exp(-epsilon * np.abs(reach - count)) * np.tanh(epsilon / 2) for count in counts]
        total += np.einsum("a,b,c,d->abcd", *law) / len(draws)
    return total


def _loss(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.abs(np.log(one / two)).max())


def _in_turns(codes: Codes, parts: int, words: Any) -> list[Codes]:
    return [codes.part(np.arange(codes.rows) % parts == part) for part in range(parts)]


@pytest.mark.parametrize("method", ["dp_prior", "dirichlet", "smoothed_histogram", "cdf"])
def test_fewer_rows_than_parts_are_refused_in_the_plan_where_a_part_must_draw_one(
    method: str,
) -> None:
    mechanism = Parallel(method, parts=5)

    with pytest.raises(ParameterError, match="5 parts"):
        mechanism.plan(SCHEMA, 3)

    assert mechanism.plan(SCHEMA, 5).rows == 5
    assert Parallel("pegs", parts=5).plan(SCHEMA, 3).rows == 3  # a part may draw none


def test_a_relation_is_refused_around_a_method_that_has_none() -> None:
    with pytest.raises(PrivacyRefused, match="relation"):
        Parallel("multiple_synthesis", relation="replace_one")

    assert Parallel("multiple_synthesis").relation == "add_remove"
