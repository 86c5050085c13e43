"""The two methods: golden plans, refusals before anything is read or paid, and rows of real runs."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure, ParameterError, PrivacyRefused, ResourceLimit
from gibbous.core.schema import Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.evaluation.inference.release_facts import facts_of
from gibbous.mechanisms.imputation import Imputation
from gibbous.mechanisms.perturbed_imputation import PerturbedImputation
from gibbous.privacy.curator import Curator
from gibbous.sampling.imputation import imputed_rows
from gibbous.sampling.imputation.imputed_rows import redraw
from gibbous.sampling.imputation.records import Records
from gibbous.sampling.imputation.regression import Conditional, Fit, conditionals, marginal
from tests.imputation.made import LINKED, linked, records_from, repeated, schema_of

BOTH = (Imputation, PerturbedImputation)


class Watched(LocalEngine):
    """Counts how often records are counted."""

    asked = 0

    def tally(self, *args: Any, **rest: Any) -> Any:
        self.asked += 1
        return super().tally(*args, **rest)


def watched(values: np.ndarray, schema: Schema) -> Watched:
    codes = np.asfortranarray(values.astype(np.uint8).reshape(-1, len(schema)))
    engine = Watched.from_codes(Codes(schema, codes, secret=True))
    assert isinstance(engine, Watched)
    return engine


def fit(mechanism: Any, values: np.ndarray, rows: int, sets: int = 1) -> Codes:
    schema = schema_of(LINKED)
    total = mechanism.plan(schema, rows, sets).total
    curator = Curator(watched(values, schema), total, schema, relation=total.relation)
    found = mechanism.run(curator, rows, sets)
    assert isinstance(found, Codes)
    return found


def pairs(values: np.ndarray, i: int, j: int) -> np.ndarray:
    table = np.zeros((LINKED[i], LINKED[j]))
    np.add.at(table, (values[:, i].astype(int), values[:, j].astype(int)), 1)
    return table / table.sum()


def test_alpha_and_the_weight_of_the_regression_are_those_of_the_reference() -> None:
    """13 columns, epsilon 1 a row: alpha 12.506; C = 25: weight 0.3 %."""
    plan = PerturbedImputation(epsilon=1).plan(schema_of((25,) * 13), 1000)

    alpha, weight, composed = (value for _, value in plan.errors)
    assert alpha == pytest.approx(12.506, abs=5e-4)
    assert weight == pytest.approx(0.0032, abs=5e-5)
    assert composed == pytest.approx(82.8, abs=0.1)  # the replace-one figure of 1,000 PeGS rows
    assert plan.total.epsilon == 1000
    assert plan.headline() == "epsilon = 1 per row: 1000 rows cost 1000"


def test_passes_share_the_budget_and_relation_and_unit_change_nothing() -> None:
    schema, person = (
        schema_of(LINKED),
        Schema(schema_of(LINKED).columns, unit=Unit("person", "who", 9)),
    )

    def alpha(mechanism: PerturbedImputation, of: Schema = schema) -> float:
        return mechanism.plan(of, 10).errors[0][1]

    once = alpha(PerturbedImputation())
    assert once == pytest.approx(1 / np.expm1(1 / 3), rel=1e-7)
    assert alpha(PerturbedImputation(sweeps=4)) == pytest.approx(1 / np.expm1(1 / 12), rel=1e-7)
    assert alpha(PerturbedImputation(relation="replace_one")) == once
    assert alpha(PerturbedImputation(), person) == once


def test_imputation_states_that_it_has_no_guarantee() -> None:
    plan = Imputation().plan(schema_of(LINKED), 10)

    assert plan.total.kind == "none"
    assert "no guarantee" in plan.warnings[0]


@pytest.mark.parametrize("kind", BOTH)
def test_what_cannot_be_fitted_is_refused_by_the_plan(kind: Any, monkeypatch: Any) -> None:
    with pytest.raises(ParameterError, match="number of rows"):
        kind().plan(schema_of(LINKED), None)
    with pytest.raises(ResourceLimit, match="3000 levels"):
        kind().plan(schema_of((2, 3000)), 5)
    with pytest.raises(ResourceLimit, match="cross table"):
        kind().plan(schema_of((100,) * 40), 5)
    for bad in ({"folds": 1}, {"mix": 1.5}, {"choice": "best"}, {"sweeps": 0}):
        with pytest.raises(ParameterError):
            kind(**bad)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineFailure, match="sklearn"):
        kind().plan(schema_of(LINKED), 5)


def test_a_smaller_budget_is_refused_unread() -> None:
    mechanism, schema = PerturbedImputation(), schema_of(LINKED)
    total = mechanism.plan(schema, 5).total
    engine = watched(linked(20), schema)
    less = Curator(
        engine, replace(total, epsilon=total.epsilon * 9 / 10), schema, relation="add_remove"
    )

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        mechanism.run(less, 5)

    assert engine.asked == 0
    assert less.spent == ()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("records", [0, 1, 70])
def test_rows_of_all_sets_come_whatever_the_number_of_records(kind: Any, records: int) -> None:
    rows = fit(kind(), linked(records), 4, 3)

    assert rows.values.shape == (12, 3)
    assert not rows.secret
    assert (rows.values < np.array(LINKED)).all()


@pytest.mark.statistical
def test_imputation_keeps_pairs_and_a_small_budget_keeps_nothing() -> None:
    """20,000 rows: sampling noise of a pair of 12 cells is about .01; pairs of the law are not exact."""
    values = linked(1500)

    close, far = fit(Imputation(), values, 20_000), fit(PerturbedImputation(), values, 20_000)

    for i, j in ((0, 1), (1, 2), (0, 2)):
        own = pairs(values, i, j)
        assert np.abs(pairs(close.values, i, j) - own).sum() / 2 < 0.05
        assert np.abs(pairs(far.values, i, j) - own).sum() / 2 > 0.15


@pytest.mark.slow
def test_posterior_draws_fit_each_set_to_records_drawn_anew(monkeypatch: Any) -> None:
    """One fit of its own a set, each to as many records, none of which is new; without it one fit for all."""
    seen: list[Records] = []

    def spied(records: Records, how: Fit) -> tuple[Conditional, ...]:
        seen.append(records)
        return conditionals(records, how)

    monkeypatch.setattr(imputed_rows, "conditionals", spied)
    rows = fit(Imputation(draws="posterior"), linked(200), 30, 3)
    own = records_from(linked(200), LINKED)
    known = {tuple(row) for row in own.codes.T.tolist()}

    assert rows.values.shape == (90, 3)
    assert [one.total for one in seen] == [200] * 3
    assert all({tuple(row) for row in one.codes.T.tolist()} <= known for one in seen)
    assert len({tuple(one.margin(1).tolist()) for one in seen}) > 1  # equal in all with chance 1e-7
    seen.clear()
    fit(Imputation(), linked(200), 30, 3)
    assert [one.margin(1).tolist() for one in seen] == [own.margin(1).tolist()]


@pytest.mark.parametrize("draws", ["fitted", "posterior"])
def test_parameters_vary_between_sets_as_much_as_between_samples(draws: Any) -> None:
    """One column of 60 in 100: a set's share varies by W = p q / n from its rows, and by V0 = W more if
    its parameters are drawn. 400 sets of 100 rows: a variance within 3.9 standard errors (1e-4)."""
    values = np.repeat([[0], [1]], [40, 60], axis=0)
    words = repeated(4)
    records = records_from(values, (2,))
    drawn = [records.resampled(words) if draws == "posterior" else records for _ in range(400)]
    shares = []
    for one in drawn:
        # a column alone is drawn from its own margin, whatever the penalty
        state = imputed_rows.uniform_rows(schema_of((2,)), 100, words)
        redraw(marginal(0, one.margin(0)), state, (), words, None)
        shares.append(state[0].mean())

    ratio = np.var(shares, ddof=1) / (0.6 * 0.4 / 100)
    assert ratio == pytest.approx(2.0 if draws == "posterior" else 1.0, rel=3.9 * (2 / 399) ** 0.5)


@pytest.mark.slow
def test_a_loaded_release_knows_that_parameters_were_drawn() -> None:
    schema = schema_of((2, 2))
    frame = pl.DataFrame({name: [0, 1, 1, 0] * 20 for name in schema.names})

    def facts(draws: Any) -> Any:
        release = gb.synthesize(
            frame, schema, Imputation(draws=draws), rows=40, sets=3, understand=True,
            ledger=gb.Ledger.ephemeral(), accept_inferred=True,
        )  # fmt: skip
        return facts_of(release, 80.0).draws

    assert (facts("fitted"), facts("posterior")) == ("fitted", "posterior")
