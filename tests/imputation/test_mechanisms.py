"""The two methods: golden plans, refusals before anything is read or paid, and rows of real runs."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure, ParameterError, PrivacyRefused, ResourceLimit
from gibbous.core.schema import Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.imputation import Imputation
from gibbous.mechanisms.perturbed_imputation import PerturbedImputation
from gibbous.privacy.curator import Curator
from tests.imputation.made import LINKED, linked, schema_of

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
