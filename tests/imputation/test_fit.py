"""Regressions against statsmodels and against the conditions of an optimum; degenerate tables."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from gibbous.sampling.imputation import regression as fitting
from gibbous.sampling.imputation.imputed_rows import scores
from gibbous.sampling.imputation.records import Records, design
from gibbous.sampling.imputation.regression import (
    STRENGTHS,
    Conditional,
    Fit,
    conditional,
    conditionals,
    regressed,
)
from tests.imputation.made import LINKED, linked, records_from

pytestmark = pytest.mark.filterwarnings("ignore:The max_iter was reached")
FINE = Fit(tolerance=1e-6, passes=600)


def laws(model: Conditional, codes: np.ndarray) -> np.ndarray:
    """Probabilities (rows, levels) at codes (columns, rows)."""
    odds = np.exp(scores(model, codes))
    return odds / odds.sum(axis=1, keepdims=True)


def slack(records: Records, model: Conditional, fit: Fit) -> float:
    """How far coefficients are from an optimum: the largest violation of its conditions, in records.

    With G the gradient of the loss, b a coefficient and c the strength: -c G = mix sign(b) +
    (1 - mix) b where b is not 0, and |c G| <= mix where it is.
    """
    x = design(records, tuple(model.others)).toarray()
    held = np.eye(records.sizes[model.target])[records.codes[model.target]]
    off = (laws(model, records.codes) - held) * records.counts[:, None]
    push = model.strength * (x.T @ off)
    b = model.table
    moved = np.abs(push + fit.mix * np.sign(b) + (1 - fit.mix) * b)
    still = np.maximum(np.abs(push) - fit.mix, 0)
    free = np.abs(off.sum(axis=0))  # intercepts carry no penalty
    return float(max(np.where(b != 0, moved, still).max(), free.max()))


@pytest.mark.slow
def test_a_regression_with_hardly_a_penalty_is_that_of_statsmodels() -> None:
    from statsmodels.api import MNLogit, add_constant

    values = linked(300)
    records = records_from(values, LINKED)
    dummies = np.column_stack([values[:, 0] == 1, values[:, 0] == 2, values[:, 2] == 1]).astype(
        float
    )
    theirs = MNLogit(values[:, 1], add_constant(dummies)).fit(disp=0).predict()

    ours = laws(regressed(records, 1, 100.0, FINE), values.T)

    assert np.abs(ours - theirs).max() < 3e-3


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_coefficients_satisfy_the_conditions_of_an_elastic_net_optimum(mix: float) -> None:
    fit = Fit(mix=mix, tolerance=1e-8, passes=3000)
    records = records_from(linked(500), LINKED)

    model = regressed(records, 1, 0.2, fit)

    assert slack(records, model, fit) < 1e-3
    assert (model.table == 0).any() == (mix > 0)
    heavier = Conditional(
        model.target, model.others, model.starts, model.table, model.base, model.strength * 1.1
    )
    assert slack(records, heavier, fit) > 1e-2  # the check sees another penalty


def test_records_that_share_lines_give_the_same_regression(monkeypatch: Any) -> None:
    records = records_from(linked(500), LINKED)
    each = regressed(records, 1, 0.3, FINE)

    monkeypatch.setattr(fitting, "LISTED", 60)
    shared = regressed(records, 1, 0.3, FINE)

    assert np.abs(laws(each, records.codes) - laws(shared, records.codes)).max() < 4e-3


@pytest.mark.parametrize("most", [7, 100, 10**6])
def test_listed_lines_stand_for_every_record_and_none_weighs_more_than_one(most: int) -> None:
    records = records_from(linked(300), LINKED)

    lines, weights, unit = records.listed(most)

    stood = np.bincount(lines, weights * unit, minlength=len(records.counts))
    assert stood == pytest.approx(records.counts)
    assert weights.max() <= 1
    assert len(lines) <= min(most, 300) + len(records.counts)


def test_a_weak_penalty_is_chosen_for_strong_links_and_a_strong_one_for_none() -> None:
    strong = records_from(linked(2000), LINKED)
    noise = np.random.default_rng(1).integers(0, 3, (400, 3))

    for_links = conditional(strong, 1, Fit()).strength
    for_noise = conditional(records_from(noise, (3, 3, 3)), 1, Fit()).strength

    assert for_noise <= STRENGTHS[1] < for_links


def test_the_one_se_rule_never_penalizes_less() -> None:
    records = records_from(linked(800), LINKED)

    least, within = (conditional(records, 1, Fit(choice=c)).strength for c in ("min", "1se"))

    assert within <= least
    losses = [np.array([1.0, 1.2]), np.array([0.9, 1.15]), np.array([1.0, 1.3])]
    assert fitting._chosen(losses, "min") == STRENGTHS[1]
    assert fitting._chosen(losses, "1se") == STRENGTHS[0]


def test_levels_without_a_record_have_probability_zero_and_separated_ones_are_finite() -> None:
    rng = np.random.default_rng(4)
    first = rng.integers(0, 3, 400)
    values = np.stack([first, np.where(first == 2, 3, rng.integers(0, 2, 400))], axis=1)
    records = records_from(values, (4, 5))  # code 3 of x0, 2 and 4 of x1 never occur

    model = conditional(records, 1, Fit())

    law = laws(model, np.array([[0, 2, 3], [0, 0, 0]]))
    assert np.isneginf(model.base[[2, 4]]).all()
    assert np.isfinite(model.table).all()
    assert (law[:, [2, 4]] == 0).all()
    assert law[1, 3] > 0.9
    assert law[2].sum() == pytest.approx(1)  # a level never seen beside it is an ordinary case


def test_tables_that_cannot_be_regressed_are_margins_constants_or_uniform() -> None:
    few = conditionals(records_from(np.array([[0, 1], [0, 0], [1, 1]]), (2, 3)), Fit())
    one = conditionals(records_from(np.array([[1, 2]]), (2, 3)), Fit())
    none = conditionals(records_from(np.zeros((0, 2), dtype=int), (2, 3)), Fit())
    alone = conditionals(records_from(np.arange(90).reshape(-1, 1) % 3, (3,)), Fit())
    flat = np.stack([np.zeros(80, int), np.arange(80) % 2, np.ones(80, int)], axis=1)
    constant = conditionals(records_from(flat, (1, 2, 4)), Fit())

    assert np.exp(few[1].base) == pytest.approx([1 / 3, 2 / 3, 0])
    assert np.exp(one[1].base) == pytest.approx([0, 0, 1])
    assert np.exp(none[1].base) == pytest.approx([1, 1, 1])
    assert np.exp(alone[0].base) == pytest.approx([1 / 3] * 3)
    assert [model.target for model in constant] == [1, 2]  # one level: not drawn
    assert np.exp(constant[1].base) == pytest.approx([0, 1, 0, 0])


def test_the_same_records_give_the_same_regressions_and_a_global_generator_is_left_alone() -> None:
    records = records_from(linked(300), LINKED)
    np.random.seed(5)
    before = np.random.get_state()[1].copy()

    one, two = (conditional(records, 0, Fit()).table for _ in range(2))

    assert (one == two).all()
    assert (np.random.get_state()[1] == before).all()


def test_what_was_fitted_is_neither_printed_nor_pickled() -> None:
    records = records_from(linked(60), LINKED)
    model = conditionals(records, Fit())[0]

    assert repr(records) == "<Records, secret>"
    assert repr(model) == "<Conditional, secret>"
    for one in (records, model):
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(one)
