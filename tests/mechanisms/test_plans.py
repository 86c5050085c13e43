"""Plans: golden totals, exact arithmetic, both relations, and the limits on budgets."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from gibbous.contract.saboteur_audits import relations
from gibbous.core.claim import Claim, approximate, pure
from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, PrivacyRefused, ResourceLimit, UsageError
from gibbous.core.params import as_json, build, describe
from gibbous.core.schema import Column, Impossible, Schema, Unit
from gibbous.mechanisms import limits, registry
from gibbous.mechanisms.block_pegs import BlockPegs
from gibbous.mechanisms.diverse_pegs import DiversePegs
from gibbous.mechanisms.exponential_pegs import ExponentialPegs
from gibbous.mechanisms.laplace import Laplace
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.mechanisms.pegs import Pegs
from gibbous.mechanisms.sba import Sba
from gibbous.mechanisms.sbhg import Sbhg
from gibbous.privacy import accountant
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.sampling.gibbs_rows import GibbsRows, ResetBlocks
from gibbous.structure.contexts import given_or_ring
from tests.frame.tree import mechanism_names

NAMES = tuple(mechanism_names())
NO_EPSILON = ("bootstrap", "contingency", "diverse_pegs", "imputation", "multiple_synthesis")


def schema_of(*sizes: int, unit: Unit | None = None) -> Schema:
    columns = tuple(
        Column(f"x{j}", "nominal", levels=tuple(range(size))) for j, size in enumerate(sizes)
    )
    return Schema(columns, unit=unit or Unit())


THIRTEEN = schema_of(*[25] * 13)
SMALL = schema_of(2, 3, 4)


def errors(mechanism: Any, schema: Schema, rows: int | None = 1000) -> dict[str, float]:
    return dict(mechanism.plan(schema, rows).errors)


# --- totals


def test_pegs_at_one_per_row_costs_the_number_of_rows() -> None:
    plan = Pegs(epsilon=1).plan(THIRTEEN, 1000)

    assert plan.claim.epsilon == 1
    assert plan.claim.unit == "row"
    assert plan.total.epsilon == 1000
    assert plan.headline() == "epsilon = 1 per row: 1000 rows cost 1000"


def test_f1_block_pegs_states_the_file_and_the_block_apart() -> None:
    plan = BlockPegs(epsilon=1, block=10).plan(THIRTEEN, 1000)

    assert (plan.claim.epsilon, plan.claim.unit) == (1, "block")
    assert plan.total.epsilon == 100
    assert "1000 rows cost 100" in plan.headline()


def test_a_last_short_block_is_a_whole_block() -> None:
    assert BlockPegs(epsilon=1, block=10).plan(SMALL, 11).total.epsilon == 2


@pytest.mark.parametrize("name", ["pegs", "block_pegs", "exponential_pegs"])
def test_sets_multiply_what_rows_cost(name: str) -> None:
    kind = registry.load(name)

    one, three = (kind(epsilon=0.1).plan(SMALL, 20, sets).total.epsilon for sets in (1, 3))

    assert three == 3 * one == Fraction(6 if name != "block_pegs" else Fraction(6, 10))


@pytest.mark.parametrize("name", ["laplace", "sba", "sbhg", "noisy_pegs"])
def test_tables_cost_the_same_for_any_rows_and_sets(name: str) -> None:
    one = registry.load(name)(epsilon=0.1)

    totals = {
        (plan.total.epsilon, plan.total.delta)
        for plan in (one.plan(SMALL, None), one.plan(SMALL, 10), one.plan(SMALL, 10**6, 50))
    }

    assert totals == {(Fraction(1, 10), Fraction(0) if name == "laplace" else Fraction(1, 10**6))}


def test_alpha_of_pegs_is_the_papers() -> None:
    assert errors(Pegs(epsilon=1), THIRTEEN)["alpha, virtual records a level"] == pytest.approx(
        1 / math.expm1(1 / 13), rel=1e-6
    )


def test_more_passes_need_more_virtual_records() -> None:
    # park2014 keeps alpha whatever the passes; 5 passes then cost 5 times as much.
    once, five = (
        errors(Pegs(epsilon=1, sweeps=s), THIRTEEN)["alpha, virtual records a level"]
        for s in (1, 5)
    )

    assert five == pytest.approx(1 / math.expm1(1 / 65), rel=1e-6)
    assert five > 4.9 * once


@pytest.mark.parametrize(("relation", "golden"), [("add_remove", 31.4), ("replace_one", 82.8)])
def test_the_file_by_zcdp_is_what_the_reference_says(relation: Any, golden: float) -> None:
    found = errors(Pegs(epsilon=1, relation=relation), THIRTEEN)

    assert found["epsilon of the whole file at delta 1e-6, composed by zCDP"] == pytest.approx(
        golden, abs=0.05
    )


def test_exponential_pegs_halves_its_tilt_under_replace_one() -> None:
    tilts = [
        errors(ExponentialPegs(epsilon=1, relation=r), THIRTEEN)["nats a draw"]
        for r in ("add_remove", "replace_one")
    ]

    assert tilts == pytest.approx([1 / 13, 1 / 26])


# --- what the draws cost is what the plan says


def ring_of(schema: Schema) -> Sequence[Context]:
    return given_or_ring(schema, (), 2)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("sweeps", [1, 3])
@pytest.mark.parametrize("most", [1, 4])
def test_the_price_of_the_draws_is_the_plan_and_nearly_all_of_it(
    relation: Any, sweeps: int, most: int
) -> None:
    unit = Unit("person", "id", most) if most > 1 else Unit()
    schema = schema_of(2, 3, 1, 7, unit=unit)
    for mechanism in (
        Pegs(epsilon=0.7, relation=relation, sweeps=sweeps),
        ExponentialPegs(epsilon=0.7, relation=relation, sweeps=sweeps),
    ):
        perturb = mechanism._add(schema) if isinstance(mechanism, Pegs) else mechanism._tilt(schema)
        price = GibbsRows(perturb, sweeps).cost(ring_of(schema), 30, relation, most)

        total = mechanism.plan(schema, 15, 2).total.epsilon

        assert price.epsilon <= total == 21
        assert price.epsilon > total * Fraction(999, 1000)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("most", [1, 3])
def test_the_price_of_blocks_is_the_plan_and_nearly_all_of_it(relation: Any, most: int) -> None:
    schema = schema_of(2, 3, 9, unit=Unit("person", "id", most) if most > 1 else Unit())
    mechanism = BlockPegs(epsilon=0.7, block=4, relation=relation)

    price = ResetBlocks(mechanism._add(schema), 4).cost(ring_of(schema), 10, relation, most)

    total = mechanism.plan(schema, 10).total.epsilon
    assert price.epsilon <= total == Fraction(21, 10)
    assert price.epsilon > total * Fraction(999, 1000)


def test_blocks_need_more_virtual_records_under_replace_one() -> None:
    one, two = (
        errors(BlockPegs(epsilon=1, relation=r), SMALL)["alpha, virtual records a level"]
        for r in ("add_remove", "replace_one")
    )
    loss = sum(math.log1p(1 / two) + math.log1p(1 / (c * two)) for c in (2, 3, 4))

    assert one == pytest.approx(1 / math.expm1(1 / 3), rel=1e-6)
    assert loss == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["laplace", "sba", "sbhg", "noisy_pegs"])
def test_the_listed_purchases_are_within_the_total(name: str, relation: Any) -> None:
    kind = registry.load(name)
    for epsilon in (0.01, 1, 30):
        plan = kind(epsilon=epsilon, relation=relation).plan(SMALL, None)

        assert accountant.within(plan.total, [spend.claim for spend in plan.spends])
        assert {spend.claim.relation for spend in plan.spends} == {relation}


def test_noisy_pegs_spends_all_of_the_gaussian_budget() -> None:
    for mechanism in (NoisyPegs(), NoisyPegs(parents=0), NoisyPegs(contexts={"x2": ["x0"]})):
        plan = mechanism.plan(SMALL, None)

        spent = sum((s.claim.mu_squared for s in plan.spends), Fraction(0))

        assert spent == plan.total.mu_squared == mu_squared_for(1, Fraction(1, 10**6))
        # The root of Phi(-1 / mu + mu / 2) - e Phi(-1 / mu - mu / 2) = 1e-6, by scipy: mu = .236704.
        assert float(spent) == pytest.approx(0.236704**2, rel=1e-5)


# --- noise: the reference's numbers


@pytest.mark.parametrize(
    ("relation", "law", "continuous"),
    [
        ("add_remove", "geometric", 204.9),
        ("replace_one", "geometric", 408.9),
        ("add_remove", "gaussian", 94.4),
        ("replace_one", "gaussian", 133.5),
    ],
)
def test_thresholds_of_sbhg_are_those_of_thirteen_tables(
    relation: Any, law: Any, continuous: float
) -> None:
    plan = Sbhg(choice=0, noise=law, relation=relation).plan(THIRTEEN, None)

    threshold = dict(plan.errors)["threshold, counts"]

    # Integer noise: the least whole threshold within the exact tail is near the continuous one.
    # Those of Gaussian noise stand for zCDP; its exact delta takes 4 to 7 % off.
    if law == "gaussian":
        assert 0.93 * continuous < threshold < 0.96 * continuous
    else:
        assert threshold == pytest.approx(continuous, abs=1.5)
    assert f"threshold {threshold:.0f} counts" in plan.spends[-1].detail


def test_sbhg_takes_the_lower_threshold_by_itself() -> None:
    thresholds = {
        law: dict(Sbhg(choice=0, noise=law).plan(THIRTEEN, None).errors)["threshold, counts"]
        for law in ("auto", "gaussian", "geometric")
    }

    assert thresholds["auto"] == thresholds["gaussian"] < thresholds["geometric"]
    two = Sbhg(choice=0).plan(schema_of(9, 9), None)
    assert "geometric" in two.spends[-1].detail


def test_f3_sbhg_divides_its_budget_by_the_tables() -> None:
    one, many = (
        dict(Sbhg(choice=0, noise="geometric").plan(schema_of(*[9] * p), None).errors)
        for p in (1, 13)
    )

    sd = "noise sd of one cell, counts"
    assert many[sd] == pytest.approx(13 * math.sqrt(2), rel=0.01)
    assert many[sd] > 12 * one[sd]
    published = Sbhg().plan(THIRTEEN, None).published
    assert "28.6" in published


def test_geometric_scale_of_laplace_doubles_under_replace_one() -> None:
    details = [
        Laplace(epsilon=0.5, relation=r).plan(SMALL, None).spends[0].detail
        for r in ("add_remove", "replace_one")
    ]

    assert details == ["geometric noise, scale 2 counts", "geometric noise, scale 4 counts"]


@pytest.mark.parametrize(("relation", "tight"), [("replace_one", 27.2), ("add_remove", 14.1)])
def test_the_threshold_of_sba_is_the_tight_one(relation: Any, tight: float) -> None:
    plan = Sba(relation=relation).plan(SMALL, None)

    assert dict(plan.errors)["threshold, counts"] == pytest.approx(tight, abs=1.5)
    assert "28.6" in plan.published


def test_sigma_of_noisy_pegs_follows_its_share_and_number_of_tables() -> None:
    plan = NoisyPegs(margins=0.25).plan(THIRTEEN, None)
    mu = 0.236704 * math.sqrt(0.25)

    sigma = math.sqrt(13) / mu  # 30.5: times 1 + 1 / (24 sigma^2) for whole numbers

    assert dict(plan.errors)["noise sd of one cell, counts"] == pytest.approx(sigma, rel=1e-3)


# --- monotone, exact, JSON


@pytest.mark.parametrize("name", [n for n in NAMES if n not in NO_EPSILON])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_more_epsilon_is_a_larger_claim_and_never_more_noise(name: str, relation: Any) -> None:
    kind = registry.load(name)
    if relation not in relations(kind):
        pytest.skip("the method is proven under the other relation alone")
    plans = [
        kind(epsilon=e, relation=relation).plan(SMALL, 50)
        for e in (1e-6, 0.01, 0.1, 1.0, 10.0, 100.0)
    ]

    assert all(a.total.epsilon < b.total.epsilon for a, b in zip(plans, plans[1:], strict=False))
    noise = "noise sd of one cell, counts"
    found = [dict(p.errors).get(noise) for p in plans]
    assert found[0] is None or sorted(found, reverse=True) == found  # type: ignore[type-var]


def test_e7_a_decimal_budget_is_read_as_it_is_written() -> None:
    for kind in (Laplace, Pegs, NoisyPegs, Sbhg):
        assert kind(epsilon=0.1).plan(SMALL, 7).claim.epsilon == Fraction(1, 10)


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_survives_json(name: str) -> None:
    plan = registry.load(name)().plan(SMALL, 40, 2)

    loaded = json.loads(json.dumps(plan.to_json()))

    assert Claim.from_json(loaded["total"]) == plan.total
    assert Claim.from_json(loaded["claim"]) == plan.claim
    assert loaded["params"] == json.loads(json.dumps(as_json(registry.load(name)())))
    assert loaded["mechanism"] == name
    assert loaded["memory_bytes"] > 0
    assert loaded["cells"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_planning_twice_gives_the_same_plan(name: str) -> None:
    one = registry.load(name)()

    assert one.plan(SMALL, 40) == one.plan(SMALL, 40)


# --- rows that must be known, and warnings


@pytest.mark.parametrize(
    "name", ["pegs", "block_pegs", "exponential_pegs", "diverse_pegs", "contingency"]
)
def test_methods_that_pay_by_the_row_need_the_number_of_rows(name: str) -> None:
    with pytest.raises(ParameterError, match="without a number of rows"):
        registry.load(name)().plan(SMALL, None)


def test_noise_that_dominates_is_announced() -> None:
    loud = NoisyPegs(epsilon=0.01).plan(THIRTEEN, 500)
    quiet = NoisyPegs(epsilon=1).plan(SMALL, 100_000)

    assert any("Noise dominates at 500 rows" in w for w in loud.warnings)
    assert not any("Noise dominates" in w for w in quiet.warnings)


def test_a_given_number_of_rows_is_announced_as_public_under_add_remove() -> None:
    def told(relation: Any, rows: int | None) -> bool:
        plan = NoisyPegs(relation=relation).plan(SMALL, rows)
        return any("without counting them" in w for w in plan.warnings)

    assert told("add_remove", 100)
    assert not told("add_remove", None)
    assert not told("replace_one", 100)


def test_a_large_delta_is_announced() -> None:
    assert any("1e-6" in w for w in NoisyPegs(delta=1e-4).plan(SMALL, None).warnings)
    assert not any("1e-6" in w for w in NoisyPegs(delta=1e-6).plan(SMALL, None).warnings)


def test_blocks_that_use_up_their_keys_are_announced() -> None:
    long = BlockPegs(block=500).plan(SMALL, 1000)

    assert any("most of its draws are uniform" in w for w in long.warnings)


def test_a_file_beyond_ten_nats_is_announced() -> None:
    assert any("excludes almost nothing" in w for w in Pegs(epsilon=1).plan(SMALL, 11).warnings)
    assert not any("excludes" in w for w in Pegs(epsilon=0.01).plan(SMALL, 11).warnings)


# --- memory and size


def test_laplace_refuses_a_joint_that_is_too_large_and_names_the_figure() -> None:
    with pytest.raises(ResourceLimit, match=r"1\.49e\+18 cells"):
        Laplace().plan(THIRTEEN, None)


def test_sba_takes_a_joint_of_any_size_up_to_126_bits() -> None:
    plan = Sba().plan(THIRTEEN, 10_000)

    assert plan.cells == 25**13
    assert plan.memory_bytes == 48 * 10_000


def test_contingency_refuses_a_joint_beyond_63_bits() -> None:
    with pytest.raises(ResourceLimit):
        registry.load("contingency")().plan(schema_of(*[1000] * 9), 5)


def test_dense_memory_grows_with_cells_and_not_with_rows() -> None:
    few, many = (Laplace().plan(SMALL, rows).memory_bytes for rows in (1, 10**9))

    assert few == many == 24 * 24


def test_a_public_prior_spreads_virtual_records_at_the_same_price() -> None:
    even, uneven = Pegs(epsilon=1), Pegs(epsilon=1, prior={"x1": [7, 1, 2]})

    ours, plain = uneven.plan(SMALL, 10), even.plan(SMALL, 10)

    assert ours.total == plain.total
    alpha = errors(even, SMALL, 10)["alpha, virtual records a level"]
    assert errors(uneven, SMALL, 10)["virtual records in a key of 'x1'"] == pytest.approx(
        10 * alpha
    )
    assert build(Pegs, {"prior": [["x1", [7, 1, 2]]]}) == Pegs(prior={"x1": [7, 1, 2]})


@pytest.mark.parametrize(
    "prior", [{"x1": [7, 0, 2]}, {"x1": [7, 0.5, 2]}, {"x1": 7}, "x1", [["x1", [1]], ["x1", [2]]]]
)
def test_a_prior_without_a_number_for_a_level_is_refused(prior: object) -> None:
    with pytest.raises(ParameterError, match="prior of Pegs has the wrong form"):
        Pegs(prior=prior)  # type: ignore[arg-type]


def test_a_prior_that_does_not_fit_the_schema_is_refused_at_the_plan() -> None:
    with pytest.raises(UsageError, match="2 numbers for column 'x1', which has 3 codes"):
        Pegs(prior={"x1": [7, 1]}).plan(SMALL, 10)
    with pytest.raises(UsageError, match="names column 'x9'"):
        Pegs(prior={"x9": [7, 1]}).plan(SMALL, 10)


# --- l-diversity


def test_q_star_is_printed_for_every_column_that_is_redrawn() -> None:
    found = errors(DiversePegs(l=2), schema_of(3, 10, 25, 1))

    assert list(found.values()) == pytest.approx([0.773, 0.865, 0.891], abs=1e-3)
    assert all("'x3'" not in name for name in found)


def test_the_stricter_criterion_prints_one_over_l() -> None:
    found = errors(DiversePegs(l=2, criterion="max_probability"), schema_of(3, 10))

    assert list(found.values()) == [0.5, 0.5]


def test_f10_l_diversity_is_no_differential_privacy() -> None:
    plan = DiversePegs(l=2).plan(SMALL, 10)

    assert not plan.total.is_dp
    assert plan.total.l == 2
    assert any("not differential privacy" in w for w in plan.warnings)
    with pytest.raises(PrivacyRefused, match="budget was given"):
        limits.check_dp(plan)
    with pytest.raises(UsageError, match="no parameter 'epsilon'"):
        build(DiversePegs, {"epsilon": 1.0})


def test_l_above_the_levels_of_a_column_is_refused_at_the_plan() -> None:
    with pytest.raises(ParameterError, match="l is 3"):
        DiversePegs(l=3).plan(schema_of(5, 2), 10)


def test_a_share_of_ln_c_gives_each_column_its_own_l_and_claims_the_least() -> None:
    plan = DiversePegs(share=0.5).plan(schema_of(9, 25, 1), 10)

    assert plan.total.l == 3
    assert errors(DiversePegs(share=0.5), schema_of(9, 25, 1)) == {
        **errors(DiversePegs(l=3), schema_of(9)),
        **dict(list(errors(DiversePegs(l=5), schema_of(25, 25)).items())[1:]),
    }
    assert DiversePegs(share=1).plan(schema_of(5, 2), 10).total.l == 2
    assert "0.5 of ln C" in plan.published


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01, math.nan])
def test_a_share_outside_its_range_or_beside_l_is_refused(share: float) -> None:
    with pytest.raises(ParameterError, match="> 0 and <= 1"):
        DiversePegs(share=share)
    with pytest.raises(ParameterError, match="Both l and share"):
        DiversePegs(l=2, share=0.5)


def test_l_of_one_is_announced_as_copying() -> None:
    assert any("copies of records" in w for w in DiversePegs(l=1).plan(SMALL, 5).warnings)


# --- parameters and limits


BAD = [0.0, -1.0, math.nan, math.inf, "1", None, True, 1e-320, 1e-13, 1e5, 1e9]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in NO_EPSILON])
@pytest.mark.parametrize("value", BAD, ids=repr)
def test_e1_e2_e3_e4_an_impossible_epsilon_is_refused(name: str, value: Any) -> None:
    if value is None and name in ("paid_bins", "parallel", "per_set"):
        pytest.skip("None is a method inside without a budget")
    with pytest.raises(ParameterError, match="epsilon"):
        registry.load(name)(epsilon=value)


@pytest.mark.parametrize("value", [1e-9, 2e-7, 100.5, 5e3])
@pytest.mark.parametrize("name", ["pegs", "laplace", "noisy_pegs", "sbhg", "block_pegs"])
def test_e4_an_epsilon_outside_the_limits_needs_understanding(name: str, value: float) -> None:
    plan = registry.load(name)(epsilon=value).plan(SMALL, 10)

    with pytest.raises(PrivacyRefused, match="understand=True"):
        limits.check_budget(plan, 10)
    limits.check_budget(plan, 10, understand=True)


def test_e4_the_limits_themselves_are_allowed() -> None:
    for value in (1e-6, 100.0):
        limits.check_budget(NoisyPegs(epsilon=value).plan(SMALL, 10), 10)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-6, 2.0, math.nan])
def test_e5_e6_an_impossible_delta_is_refused(value: float) -> None:
    for kind in (NoisyPegs, Sbhg, Sba):
        with pytest.raises(ParameterError, match="delta"):
            kind(delta=value)


def test_e6_a_delta_above_one_over_rows_is_refused_unless_understood() -> None:
    plan = NoisyPegs(delta=0.01).plan(SMALL, 101)

    limits.check_budget(plan, 100)
    with pytest.raises(PrivacyRefused, match="above 1 / 101 rows"):
        limits.check_budget(plan, 101)
    limits.check_budget(plan, 101, understand=True)


@pytest.mark.parametrize("rows", [None, 0])
def test_F_a_delta_above_a_thousandth_is_refused_where_rows_are_unknown(rows: int | None) -> None:
    limits.check_budget(NoisyPegs(delta=0.001).plan(SMALL, rows), rows)
    plan = NoisyPegs(delta=0.00101).plan(SMALL, rows)

    with pytest.raises(PrivacyRefused, match="above 1e-3") as refused:
        limits.check_budget(plan, rows)

    assert refused.value.allowed
    assert "understand=True" in refused.value.fix
    limits.check_budget(plan, rows, understand=True)


def test_limits_do_not_concern_methods_without_a_claim() -> None:
    limits.check_budget(DiversePegs().plan(SMALL, 10), 10)


def test_a_claim_of_differential_privacy_passes_the_question() -> None:
    limits.check_dp(NoisyPegs().plan(SMALL, 10))


def test_e13_a_person_with_several_rows_is_covered_by_more_noise() -> None:
    person = schema_of(2, 3, 4, unit=Unit("person", "id", 5))
    for kind in (Laplace, NoisyPegs, Sbhg):
        row, many = (kind().plan(s, None) for s in (SMALL, person))

        ratio = (
            dict(many.errors)["noise sd of one cell, counts"]
            / dict(row.errors)["noise sd of one cell, counts"]
        )
        assert many.total == row.total
        assert ratio > 4.9 * (0.6 if kind is Sbhg else 1)


@pytest.mark.parametrize("name", NAMES)
def test_contexts_are_public_names_only(name: str) -> None:
    """F7: nothing ranks context columns on the records without paying."""
    kind = registry.load(name)
    for info in describe(kind):
        assert info.name not in ("mutual_information", "rank")
    if "contexts" in {p.name for p in describe(kind)}:
        for bad in ("x0", 3, ["x0"], {"x0": "x1"}, [("x0", 4)]):
            with pytest.raises(ParameterError, match="contexts"):
                kind(contexts=bad)
        assert kind(contexts={"x1": ["x0"]}) == kind(contexts=(("x1", ("x0",)),))


def test_f12_no_method_takes_seeds_from_records() -> None:
    for name in NAMES:
        known = {p.name for p in describe(registry.load(name))}
        assert not known & {"seeds", "seed_rows", "start", "initial"}


def test_structural_zeros_do_not_change_what_is_paid() -> None:
    masked = replace(SMALL, impossible=(Impossible((("x0", (1,)), ("x1", (2,)))),))

    for kind in (NoisyPegs, Sbhg, Pegs):
        assert kind().plan(masked, 10).total == kind().plan(SMALL, 10).total


def test_claims_name_a_proof_page() -> None:
    for name in NAMES:
        plan = registry.load(name)().plan(SMALL, 10)
        if plan.total.is_dp or plan.total.kind == "l_diversity":
            assert plan.total.source.startswith("docs/proofs/")


def test_spends_hold_the_claim_kinds_of_their_composition() -> None:
    assert {s.claim.kind for s in NoisyPegs().plan(SMALL, None).spends} == {"gdp"}
    kinds = [s.claim.kind for s in Sbhg().plan(SMALL, None).spends]
    assert kinds == ["pure", "pure", "approximate"]
    total = Sbhg(epsilon=2).plan(SMALL, None)
    added = sum((s.claim.epsilon for s in total.spends), Fraction(0))
    assert added == 2
    assert total.total == approximate(Fraction(2), Fraction(1, 10**6), source=total.total.source)
    assert pure(Fraction(1)).kind == "pure"


def test_diverse_pegs_refuses_structural_zeros_in_its_plan() -> None:
    from gibbous.core.errors import PrivacyRefused
    from gibbous.core.schema import Column, Impossible, Schema
    from gibbous.mechanisms.diverse_pegs import DiversePegs

    columns = tuple(Column(n, "nominal", levels=("a", "b", "c")) for n in "xy")
    schema = Schema(columns, impossible=(Impossible((("x", (0,)), ("y", (1,)))),))

    with pytest.raises(PrivacyRefused, match="impossible"):
        DiversePegs(l=1.5).plan(schema, 10)


def test_the_memory_of_sbhg_covers_the_pairs_of_its_largest_choice() -> None:
    """One column of 3000 levels is counted with each of the others at once: 24 bytes a cell."""
    wide = schema_of(3000, *[200] * 10)

    chosen, public = Sbhg().plan(wide, None), Sbhg(choice=0).plan(wide, None)

    assert chosen.memory_bytes - public.memory_bytes >= 24 * 3000 * 2000
