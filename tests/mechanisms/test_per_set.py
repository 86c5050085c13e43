"""per_set: the budget is divided exactly, one set is the plain method, and faults in the division show."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gibbous as gb
from gibbous.contract.coupled import uncovered
from gibbous.contract.runs import release
from gibbous.core.claim import Claim
from gibbous.core.errors import (
    GibbousError,
    ParameterError,
    PrivacyRefused,
    ResourceLimit,
    UsageError,
)
from gibbous.core.exact import exact
from gibbous.core.params import as_json
from gibbous.core.schema import Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import per_set
from gibbous.mechanisms._budget import in_account
from gibbous.mechanisms.parallel import Parallel
from gibbous.mechanisms.per_set import PerSet, divided
from gibbous.privacy.calibrate.gdp import delta_of, mu_squared_for
from gibbous.privacy.curator import Curator
from gibbous.sampling.sample import sample
from tests.mechanisms.linked_columns import MIXED, SCHEMA, frame, linked, tables

GIVEN = {"x1": ["x0"], "x2": ["x1"]}


def paid(mechanism: Any, sets: int) -> tuple[Claim, ...]:
    """What a run pays, purchase by purchase."""
    plan = mechanism.plan(SCHEMA, None, sets)
    engine = LocalEngine.from_codes(gb.contract.cases.secret(SCHEMA, linked(500)))
    curator = Curator(engine, plan.total, SCHEMA, relation=mechanism.relation)
    mechanism.run(curator, None, sets)
    return curator.spent


@pytest.mark.parametrize("sets", [2, 3, 5, 7, 50])
def test_pure_shares_add_up_to_epsilon_to_the_last_fraction(sets: int) -> None:
    mechanism = PerSet(gb.Laplace(epsilon=1))

    bought = paid(mechanism, sets)

    assert len(bought) == sets
    # The noise of a share is rounded up, so it may cost a little less than the share.
    assert 1 - Fraction(sets, 10**9) < sum(claim.epsilon for claim in bought) <= 1
    plan = mechanism.plan(SCHEMA, None, sets)
    assert sum(spend.claim.epsilon for spend in plan.spends) == 1
    assert plan.total.epsilon == 1


@pytest.mark.parametrize("whole", ["1", "0.1", "3.7", "1e-6", "100", "0.30000000000000004"])
@pytest.mark.parametrize("sets", [2, 3, 7, 49])
def test_shares_are_floats_that_stand_for_their_decimals(whole: str, sets: int) -> None:
    found = divided(Fraction(whole), sets)
    total = sum((exact(one) for one in found), Fraction(0))

    assert Fraction(whole) * (1 - Fraction(1, 10**14)) < total <= Fraction(whole)
    if len(whole) < 6:
        assert total == Fraction(whole)
    assert max(found) < min(found) * (1 + 1e-9)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_gaussian_methods_give_each_set_a_share_of_mu_squared(relation: Any) -> None:
    mechanism = PerSet(gb.NoisyPegs(epsilon=1, delta=1e-6, contexts=GIVEN, relation=relation))
    whole = mu_squared_for(1, Fraction(1, 10**6))

    bought = paid(mechanism, 4)

    squares = sum(claim.mu_squared for claim in bought)
    assert all(claim.kind == "gdp" for claim in bought)
    assert whole * (1 - Fraction(1, 10**6)) < squares <= whole
    assert delta_of(squares, 1) <= Fraction(1, 10**6)


def test_splitting_gaussian_noise_is_free_for_an_average_and_geometric_noise_costs_m() -> None:
    sets = 5
    ratio = {}
    for name, method in (
        ("gaussian", gb.NoisyPegs(contexts=GIVEN)),
        ("geometric", gb.Laplace(epsilon=1)),
    ):
        once, each = tables(method), tables(PerSet(method), sets=sets)
        one = [t for t in once.published() if t.context.columns == once.items[0].context.columns]
        many = [t for t in each.published() if t.context.columns == once.items[0].context.columns]
        averaged = sum(t.noise.variance for t in many) / len(many) ** 2
        ratio[name] = averaged / one[0].noise.variance

    assert ratio["gaussian"] == pytest.approx(1.0, rel=1e-3)
    # The variance of geometric noise is 2 b^2 - 1/6 or so: m b instead of b.
    assert ratio["geometric"] == pytest.approx(sets, rel=0.1)


def test_one_set_is_the_plain_method() -> None:
    plain, wrapped = gb.Laplace(epsilon=2), PerSet(gb.Laplace(epsilon=2))

    one, two = plain.plan(SCHEMA, 100, 1), wrapped.plan(SCHEMA, 100, 1)
    found = tables(wrapped)

    assert one.total == two.total
    assert one.spends == two.spends
    assert found.copies == ()
    assert found.items[0].noise == tables(plain).items[0].noise


def test_every_set_has_noise_of_its_own_and_is_drawn_from_it() -> None:
    found = tables(PerSet(gb.Laplace(epsilon=1)), sets=3)

    cells = [found.of_set(index).items[0].cells.values for index in range(3)]

    assert not (cells[0] == cells[1]).all()
    assert not (cells[1] == cells[2]).all()
    drawn = sample(found, 500, seed=3, set_index=2).values
    assert (drawn == sample(found.of_set(2), 500, seed=3, set_index=2).values).all()


@pytest.mark.parametrize(
    "method",
    [
        gb.Laplace(),
        gb.NoisyPegs(),
        gb.Sba(),
        gb.Sbhg(epsilon=5),
        gb.Privbayes(),
        pytest.param(gb.AdaptiveGibbs(), marks=pytest.mark.slow, id="adaptive_gibbs"),
    ],
    ids=lambda m: m.about.name,
)
def test_every_method_with_tables_runs_within_its_plan(method: Any) -> None:
    mechanism = PerSet(method)

    found = tables(mechanism, rows=300, sets=2)

    with in_account("gaussian"):  # one table of geometric noise would not be divided as well
        alone = method.plan(SCHEMA, None, 1).total
    assert found.noisings == 2
    assert mechanism.plan(SCHEMA, None, 2).total == alone


def test_parameters_survive_json_and_come_back_equal() -> None:
    one = PerSet(gb.NoisyPegs(epsilon=2, parents=1, contexts=GIVEN))

    values = json.loads(json.dumps(as_json(one)))

    assert PerSet(**values) == one
    assert PerSet("noisy_pegs", epsilon=2, options={"parents": 1, "contexts": GIVEN}) == one
    assert one.delta == 1e-6


def test_a_budget_given_here_goes_before_that_of_the_method() -> None:
    one = PerSet(gb.NoisyPegs(epsilon=2, relation="replace_one"), epsilon=0.5)

    total = one.plan(SCHEMA, None, 3).total

    assert total.epsilon == Fraction(1, 2)
    assert total.relation == "replace_one"


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: PerSet(gb.Pegs()), ParameterError, "as it is"),
        (lambda: PerSet("no_such"), UsageError, "no method"),
        (lambda: PerSet(PerSet()), UsageError, "around per_set"),
        (lambda: PerSet("laplace", options={"colour": 1}), UsageError, "no parameter"),
        (lambda: PerSet("laplace", options=3), ParameterError, "wrong form"),
        (lambda: PerSet("laplace", delta=0.1), PrivacyRefused, "no delta"),
        (lambda: PerSet("laplace", epsilon=-1), GibbousError, "between 1e-12"),
        (lambda: PerSet(7), ParameterError, "a registered name"),
        (lambda: PerSet(gb.Laplace), ParameterError, "a registered name"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        make()

    assert caught.value.fix


def test_a_method_that_nobody_registered_is_refused() -> None:
    class Other:
        about = replace(gb.Laplace.about, name="other")

    with pytest.raises(UsageError, match="not registered"):
        PerSet(Other())  # type: ignore[arg-type]


def test_a_delta_that_nobody_gave_and_nothing_uses_is_not_warned_of() -> None:
    for method, said in ((gb.Modips(), False), (gb.Modips(delta=1e-7), True)):
        plan = PerSet(method).plan(MIXED, None, 5)

        assert any("delta" in text for text in plan.warnings) is said
        assert plan.total.delta == 0


def test_more_sets_than_can_be_kept_are_refused_before_anything_is_spent() -> None:
    ledger = gb.Ledger.ephemeral()

    with pytest.raises(ResourceLimit, match="at most 200"):
        gb.synthesize(frame(50), SCHEMA, PerSet(gb.Laplace()), rows=5, sets=201, ledger=ledger)

    assert ledger.entries() == ()


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["laplace", "noisy_pegs"])
def test_the_noise_of_all_sets_together_covers_real_neighbors(name: str, relation: Any) -> None:
    assert uncovered(PerSet(name, relation=relation), relation, sets=3) == ""


def test_a_budget_that_is_not_divided_is_seen_by_the_audit_of_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The saboteur: every set gets the whole budget, and the curator looks away."""
    monkeypatch.setattr(per_set, "divided", lambda whole, sets: [float(whole)] * sets)
    monkeypatch.setattr("gibbous.privacy.curator.Purse.pay", lambda self, price: True)

    assert "more than the reserved budget" in uncovered(PerSet("laplace"), "add_remove", sets=3)


def test_a_budget_that_is_not_divided_is_refused_by_the_curator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(per_set, "divided", lambda whole, sets: [float(whole)] * sets)

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        tables(PerSet(gb.Laplace()), sets=2)


def test_persons_with_several_rows_pay_for_all_of_them_in_every_set() -> None:
    schema = replace(SCHEMA, unit=Unit("person", "who", 4))
    alone, crowd = (PerSet(gb.Laplace()).plan(s, None, 3) for s in (SCHEMA, schema))

    scale = [float(p.spends[0].detail.split("scale ")[1].split()[0]) for p in (alone, crowd)]

    assert scale[1] == pytest.approx(4 * scale[0])


def test_no_records_and_no_rows_are_ordinary() -> None:
    found = release(PerSet(gb.Laplace()), SCHEMA, np.zeros((0, 3), dtype=np.int64), None, sets=3)

    assert sample(found, 0, seed=1).rows == 0  # type: ignore[arg-type]
    assert sample(found, 4, seed=1, set_index=2).rows == 4  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [PerSet, Parallel], ids=["per_set", "parallel"])
def test_bins_that_each_run_would_buy_for_itself_are_refused_before_anything_is_spent(
    kind: Any,
) -> None:
    with pytest.raises(PrivacyRefused, match="other ones for each"):
        kind("perturbed_histogram", options={"scale": "paid"})


@pytest.mark.parametrize(
    ("method", "sanitized"), [("cdf", "once"), ("dp_prior", "per_set"), ("dirichlet", "per_set")]
)
def test_paid_rows_of_one_choice_share_their_noise(method: str, sanitized: str) -> None:
    from gibbous.evaluation.inference.release_facts import _sanitized

    assert _sanitized(None, method) == sanitized
