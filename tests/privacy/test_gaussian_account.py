"""The account of Gaussian DP: how mu adds up, what converts into it, and the wrong sums that are caught."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import norm

import gibbous as gb
from gibbous.contract.auditor.attacks import Effort, by_canaries
from gibbous.contract.auditor.findings import Evidence
from gibbous.contract.auditor.gaussian import by_mu
from gibbous.contract.auditor.setups import schema_of, with_canaries
from gibbous.contract.coupled import uncovered
from gibbous.contract.runs import release
from gibbous.contract.saboteurs import patched, saboteurs
from gibbous.core.claim import Claim, approximate, gdp, l_diverse, pure, zcdp
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.schema import Column, Schema, Unit
from gibbous.mechanisms.modips import Modips
from gibbous.mechanisms.per_set import PerSet
from gibbous.mechanisms.privbayes import Privbayes
from gibbous.privacy import accountant, noise
from gibbous.privacy.calibrate.gdp import delta_of, epsilon_of, mu_squared_for, square_of_choice
from gibbous.privacy.noise import Gaussian
from gibbous.privacy.purse import Purse
from gibbous.privacy.risk import risk_of
from gibbous.write.certificate import claim_of

MILLIONTH = Fraction(1, 10**6)
WHOLE = mu_squared_for(Fraction(1), MILLIONTH)
BUDGET = approximate(Fraction(1), MILLIONTH, mu_squared=WHOLE)


def wide(columns: int, levels: int = 4) -> Schema:
    names = tuple(f"l{i}" for i in range(levels))
    return Schema(
        tuple(Column(f"c{j}", "nominal", levels=names) for j in range(columns)), unit=Unit()
    )


# -- the algebra ---------------------------------------------------------------------------------


def test_squares_of_mu_add_up_exactly_to_the_whole_and_no_further() -> None:
    third = gdp(WHOLE / 3)

    assert third.then(third).mu_squared == third.times(2).mu_squared == 2 * WHOLE / 3
    assert accountant.within(BUDGET, [third] * 3)
    assert not accountant.within(BUDGET, [third] * 3 + [gdp(Fraction(1, 10**30))])
    assert accountant.within(gdp(WHOLE), [third] * 3)


def test_mu_says_its_exact_epsilon_and_delta_which_scipy_says_too() -> None:
    said = accountant.as_approximate(gdp(WHOLE), MILLIONTH)
    mu = math.sqrt(WHOLE)

    delta = norm.cdf(-1 / mu + mu / 2) - math.e * norm.cdf(-1 / mu - mu / 2)

    assert delta == pytest.approx(1e-6, rel=1e-6)
    assert float(said.epsilon) == pytest.approx(1, rel=1e-9)
    assert said.mu_squared == WHOLE


def test_mu_implies_rho_and_rho_implies_no_mu() -> None:
    assert accountant.as_zcdp(gdp(WHOLE)).rho == WHOLE / 2
    assert accountant.within(zcdp(WHOLE / 2), [gdp(WHOLE)])
    assert not accountant.within(BUDGET, [zcdp(Fraction(1, 10**9))])
    for budget in (gdp(Fraction(1)), pure(Fraction(1))):
        with pytest.raises(PrivacyRefused, match="kind"):
            accountant.within(budget, [zcdp(Fraction(1, 10**9))])
    with pytest.raises(PrivacyRefused, match="counted as gdp"):
        accountant.as_gdp(approximate(Fraction(1), MILLIONTH))
    assert accountant.within(zcdp(1 + WHOLE / 2), [gdp(WHOLE), zcdp(Fraction(1))])


def test_one_account_is_kept_whatever_another_would_allow() -> None:
    """A budget in rho takes no more because a mu would, and one in mu no more because a rho would."""
    in_rho = approximate(Fraction(1), MILLIONTH)

    assert not accountant.within(
        in_rho, [gdp(WHOLE)]
    )  # more than rho allows, exactly what mu allows
    assert accountant.within(in_rho, [gdp(WHOLE * Fraction(8, 10))])
    assert accountant.within(in_rho, [pure(Fraction(1))])
    assert not accountant.within(
        BUDGET, [pure(Fraction(1))]
    )  # as a sum it would fit; in mu it is 1.25


def test_a_delta_beside_mu_needs_room_of_its_own() -> None:
    with_room = approximate(Fraction(1), 2 * MILLIONTH, mu_squared=WHOLE)
    beside = gdp(WHOLE / 2, delta=MILLIONTH / 2)

    assert not accountant.within(BUDGET, [beside])
    assert accountant.within(with_room, [beside, beside])
    assert not accountant.within(with_room, [beside, beside, gdp(Fraction(0), delta=MILLIONTH)])
    with pytest.raises(PrivacyRefused):
        accountant.as_zcdp(beside)


def test_totals_that_say_nothing_of_mu_take_it_from_their_sum() -> None:
    plain = approximate(Fraction(1), MILLIONTH)

    assert BUDGET.then(BUDGET).mu_squared == 2 * WHOLE
    assert BUDGET.then(plain).mu_squared == 0
    assert plain.then(BUDGET).mu_squared == 0


def test_groups_grow_mu_by_their_size() -> None:
    three = accountant.for_group(BUDGET, 3, [gdp(WHOLE / 2), gdp(WHOLE / 2)])

    assert three.mu_squared == 9 * WHOLE
    assert three.epsilon == epsilon_of(9 * WHOLE, MILLIONTH)
    assert three.delta == MILLIONTH
    assert accountant.for_group(gdp(WHOLE), 3).mu_squared == 9 * WHOLE


def test_a_claim_with_a_mu_outlives_json_and_one_without_reads_as_before() -> None:
    old = approximate(Fraction(1), MILLIONTH).to_json()

    assert Claim.from_json(BUDGET.to_json()) == BUDGET
    assert Claim.from_json(gdp(WHOLE, delta=MILLIONTH).to_json()) == gdp(WHOLE, delta=MILLIONTH)
    assert "mu_squared" not in old
    assert Claim.from_json(old).mu_squared == 0
    assert "mu = 0.2367" in gdp(WHOLE).words()


def test_a_certificate_whose_mu_does_not_give_its_epsilon_and_delta_is_refused() -> None:
    honest, forged = BUDGET, approximate(Fraction(1), MILLIONTH, mu_squared=WHOLE * 2)

    assert claim_of({"total": honest.to_json()}, "total") == honest
    with pytest.raises(ValueError, match="do not follow"):
        claim_of({"total": forged.to_json()}, "total")


# -- membership tests ----------------------------------------------------------------------------


@pytest.mark.parametrize("false_alarms", [0.001, 0.01, 0.3])
def test_true_alarms_are_those_of_the_best_test(false_alarms: float) -> None:
    """By mu: the shifted normal law; by epsilon: randomized response, which attains its bound."""
    by_mu = norm.cdf(norm.ppf(false_alarms) + math.sqrt(WHOLE))
    e = math.e

    assert accountant.true_alarms(BUDGET, false_alarms) == pytest.approx(by_mu, rel=1e-9)
    assert accountant.true_alarms(gdp(WHOLE), false_alarms) == pytest.approx(by_mu, rel=1e-9)
    assert accountant.true_alarms(pure(Fraction(1)), false_alarms) == pytest.approx(
        min(e * false_alarms, 1 - (1 - false_alarms) / e), rel=1e-9
    )
    with pytest.raises(PrivacyRefused):
        accountant.true_alarms(l_diverse(Fraction(2)), false_alarms)


def test_a_risk_is_turned_into_the_mu_and_epsilon_that_allow_no_more() -> None:
    plan = gb.plan(wide(8), risk="tpr@1%=3%")
    facts = dict(plan.errors)

    assert facts["true alarms of a membership test at 1 % false ones, at most"] <= 0.03 * (1 + 1e-9)
    assert facts["mu of Gaussian differential privacy"] == pytest.approx(
        norm.ppf(0.03) - norm.ppf(0.01), rel=1e-6
    )
    assert risk_of("TPR@0.01 = 0.03") == risk_of("tpr@1%=3%")
    assert float(gb.plan(wide(3), "laplace", risk="tpr@1%=3%").total.epsilon) == pytest.approx(
        math.log(3), rel=1e-9
    )
    with pytest.raises(PrivacyRefused, match=r"true alarms at 1 % false ones"):
        gb.plan(wide(8), "sbhg", risk="tpr@1%=3%")  # thresholds have a delta, not a mu
    for bad in ("tpr@3%=1%", "tpr@1%=100%", "fpr@1%=3%", "tpr@1%=nan%"):
        with pytest.raises(ParameterError, match="risk"):
            gb.plan(wide(8), risk=bad)


# -- what plans buy ------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-9)])
def test_noise_is_never_less_than_continuous_noise_of_the_same_budget(
    relation: Any, most: int, epsilon: float, delta: float
) -> None:
    """Independent: scipy's normal law for all tables together, at most 1 % apart where sigma > 3."""
    unit = Unit("person", "id", most) if most > 1 else Unit()
    schema = Schema(wide(12).columns, unit=unit)
    method = gb.NoisyPegs(epsilon=epsilon, delta=delta, relation=relation, parents=0)

    plan = method.plan(schema, None)
    sigma = dict(plan.errors)["noise sd of one cell, counts"]

    steps = 1 if relation == "add_remove" else 2
    mu = math.sqrt(12 * steps) * most / sigma
    found = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert plan.total.mu_squared > 0
    assert found <= delta
    if sigma > 3:
        assert mu > 0.99 * math.sqrt(plan.total.mu_squared)


def test_choices_that_cost_too_much_leave_a_plan_in_rho() -> None:
    """In mu a choice costs pi / 2 of its price in rho: 30 % of choices are cheaper in rho, 5 % are not."""
    few, many = (
        Privbayes(noise="gaussian", choice=share).plan(wide(8), None) for share in (0.05, 0.3)
    )

    assert few.total.mu_squared > 0
    assert {spend.claim.kind for spend in few.spends} == {"gdp"}
    assert many.total.mu_squared == 0
    assert {spend.claim.kind for spend in many.spends} == {"zcdp"}


def test_the_choices_of_both_accounts_are_equally_good() -> None:
    split, other = (gb.NoisyPegs()._split(wide(8), kind) for kind in ("gdp", "zcdp"))

    assert float(split.pick_epsilon) == pytest.approx(float(other.pick_epsilon), rel=1e-3)
    assert split.budget.pick_price(split.pick_epsilon) * split.picks <= split.choice
    assert split.tables_noise().info().scale < other.tables_noise().info().scale
    assert split.ones_noise.info().scale < other.ones_noise.info().scale


@pytest.mark.slow
def test_combinators_whose_runs_and_whole_take_other_accounts_are_added_up_in_one() -> None:
    """Few tables and a large epsilon: the whole is cheaper in rho, a fifth of it in mu."""
    for epsilon in (8.0, 20.0, 40.0, 90.0):
        for mechanism in (
            PerSet(gb.NoisyPegs(epsilon=epsilon)),
            gb.PaidBins(gb.NoisyPegs(epsilon=epsilon), share=0.5),
        ):
            columns = (*wide(2).columns, Column("x", "numeric", edges=(0.0, 1.0, 2.0)))
            plan = mechanism.plan(Schema(columns, unit=Unit()), None, 5)

            kinds = {spend.claim.kind for spend in plan.spends}
            assert kinds == ({"gdp"} if plan.total.mu_squared else {"zcdp"})
            assert accountant.within(plan.total, [spend.claim for spend in plan.spends])


# -- wrong sums are caught -----------------------------------------------------------------------


def test_a_mu_that_is_counted_once_for_several_tables_is_caught() -> None:
    method, honest = gb.NoisyPegs(parents=0), Gaussian.cost

    def once(self: Gaussian, tables: int, relation: Any, max_rows: int) -> Claim:
        return honest(self, 1, relation, max_rows)

    one_table = patched(noise, "l2_squared", value=lambda tables, relation, rows: rows * rows)
    with one_table, patched(Gaussian, "cost", value=once):
        told = uncovered(method, "add_remove")

    assert "together" in told or "differ by more" in told
    assert not uncovered(method, "add_remove")


def test_rho_that_is_read_as_mu_is_caught_by_randomized_response() -> None:
    """Randomized response with epsilon has rho = epsilon tanh(epsilon / 2). Read as mu^2 = 2 rho it would
    have fewer true alarms than it has; the mu that is charged for it has exactly as many."""
    epsilon = Fraction(1)
    false_alarms = 1 / (1 + math.e)
    true = math.e / (1 + math.e)

    wrong = gdp(2 * accountant.as_zcdp(pure(epsilon)).rho)
    right = accountant.as_gdp(pure(epsilon))

    assert accountant.true_alarms(wrong, false_alarms) < 0.98 * true
    assert accountant.true_alarms(right, false_alarms) == pytest.approx(true, rel=1e-9)
    assert right.mu_squared == square_of_choice(2)


def test_mus_that_are_added_in_the_wrong_way_are_caught_by_the_exact_law() -> None:
    """Two releases of mu have sqrt(2) mu: the largest of both is too little, their sum too much."""
    one = gdp(WHOLE)
    exact = delta_of(2 * WHOLE, Fraction(1))  # of a shift by mu in two normal numbers

    both = one.then(one)

    assert delta_of(both.mu_squared, Fraction(1)) == exact
    assert delta_of(max(one.mu_squared, one.mu_squared), Fraction(1)) < exact
    assert delta_of((2 * one.mu) ** 2, Fraction(1)) > exact


def test_a_purse_refuses_the_first_purchase_beyond_its_mu_and_forgets_it() -> None:
    purse = Purse(BUDGET)

    paid = [purse.pay(gdp(WHOLE * Fraction(2, 5))) for _ in range(3)]

    assert paid == [True, True, False]
    assert not purse.pay(zcdp(Fraction(1, 10**9)))
    assert purse.pay(gdp(WHOLE / 5))
    assert not purse.pay(gdp(Fraction(1, 10**20)))


# -- the running code ----------------------------------------------------------------------------

LEVEL = 1e-6  # of one bound of mu
METHODS = [
    (gb.NoisyPegs(epsilon=6.0, parents=0), 3),
    (Privbayes(epsilon=6.0, noise="gaussian", parents=0), 3),
    (Modips(epsilon=3.0, noise="gaussian"), 1),
    (gb.PerSet(gb.NoisyPegs(epsilon=6.0, parents=0)), 3),
]
BUDGETS = [
    (kind(epsilon=e, **more), 1)
    for kind, more in (
        (gb.AdaptiveGibbs, {"cells": 100}),
        (gb.NoisyPegs, {}),
    )  # Gaussian noise, both
    for e in (1.0, 3.0, 5.0)
]


def shown(mechanism: Any, columns: int, runs: int, levels: int) -> Evidence:
    """What the audit says of mu, from canaries in `columns` columns."""
    setup = with_canaries("canaries", schema_of(columns, levels), mechanism.relation)
    effort = Effort(seconds=0.0, runs=runs)
    told, seen, _ = by_canaries(mechanism, setup, release, effort=effort, level=LEVEL, seed=5)
    found = by_mu([(told, seen)], mechanism.plan(setup.schema, None).total)
    assert found is not None
    return found


def halved() -> Any:
    (one,) = (s for s in saboteurs() if s.name == "half the noise")
    return one.apply()


@pytest.mark.slow
def test_half_the_noise_of_counts_is_refuted_by_mu_in_seconds() -> None:
    """mu 2 where 1 is claimed: the chance of a right guess is .84 where .69 is allowed, in 100 runs."""
    mechanism = gb.NoisyPegs(epsilon=5.0, parents=0)

    sound = shown(mechanism, 1, 100, 256)
    with halved():
        broken = shown(mechanism, 1, 100, 256)

    assert sound.holds
    assert broken.violated


@pytest.mark.statistical
@pytest.mark.parametrize(("mechanism", "columns"), METHODS, ids=lambda v: type(v).__name__)
def test_the_mu_of_canaries_is_within_the_claim_and_half_the_noise_is_not(
    mechanism: Any, columns: int
) -> None:
    """False alarm 1e-6 a run; the audit says which noise it catches, and half of it is less."""
    sound = shown(mechanism, columns, 120, 256)
    with halved():
        broken = shown(mechanism, columns, 120, 256)

    assert sound.holds
    assert sound.caught is not None
    assert 0.5 < sound.caught < 1
    assert broken.violated


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "columns"), BUDGETS, ids=lambda v: f"{type(v).__name__}{getattr(v, 'epsilon', v)}"
)
def test_the_mu_of_canaries_is_within_the_claim_at_three_budgets(
    mechanism: Any, columns: int
) -> None:
    """500 runs of 512 canaries, some 10 CPU seconds a build: half the noise is caught at each budget."""
    sound = shown(mechanism, columns, 500, 512)
    with halved():
        broken = shown(mechanism, columns, 500, 512)

    assert sound.holds
    assert sound.caught is not None
    assert sound.caught > 0.5
    assert broken.violated
