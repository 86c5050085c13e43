"""contingency by a log-linear model: against closed forms and statsmodels, and rows of the running method."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.schema import Column, Impossible, Schema
from gibbous.mechanisms.contingency import Contingency
from gibbous.sampling.log_linear_cells import PARTS, expected_cells, fitted_table
from tests.mechanisms.test_plans import schema_of
from tests.mechanisms.test_runs import SIZES, fit, linked

COUNTS = np.random.default_rng(2).integers(1, 30, (3, 2, 4)).astype(float)


def test_order_1_is_the_product_of_margins_and_the_highest_the_table_itself() -> None:
    margins = [COUNTS.sum(axis=tuple(set(range(3)) - {axis})) for axis in range(3)]
    product = np.einsum("i,j,k->ijk", *margins) / COUNTS.sum() ** 2

    assert fitted_table(COUNTS, 1, np.ones(COUNTS.shape)) == pytest.approx(product)
    assert fitted_table(COUNTS, 3, np.ones(COUNTS.shape)) == pytest.approx(COUNTS)
    assert fitted_table(COUNTS, 9, np.ones(COUNTS.shape)) == pytest.approx(COUNTS)


def test_order_2_has_all_pairs_and_no_interaction_of_three() -> None:
    """Of a 2 x 2 x 2 table: pairs as counted, and a ratio of odds ratios of 1 (Bartlett 1935)."""
    counts = COUNTS[:2, :, :2]
    found = fitted_table(counts, 2, np.ones(counts.shape))
    odds = [f[0, 0] * f[1, 1] / f[0, 1] / f[1, 0] for f in found]

    for axis in range(3):
        assert found.sum(axis=axis) == pytest.approx(counts.sum(axis=axis), rel=1e-5)
    assert odds[0] == pytest.approx(odds[1], rel=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_expected_cells_are_those_of_a_poisson_regression(order: int) -> None:
    models = pytest.importorskip("statsmodels.api")
    codes = np.array(list(itertools.product(*map(range, COUNTS.shape))))
    ones = [np.eye(size)[codes[:, axis]][:, 1:] for axis, size in enumerate(COUNTS.shape)]
    terms = [np.ones((len(codes), 1)), *ones]
    for a, b in itertools.combinations(ones, 2) if order == 2 else ():
        terms.append((a[:, :, None] * b[:, None, :]).reshape(len(codes), -1))
    regression = models.GLM(COUNTS.ravel(), np.hstack(terms), family=models.families.Poisson())

    found = fitted_table(COUNTS, order, np.ones(COUNTS.shape)).ravel()

    assert found == pytest.approx(regression.fit().mu, rel=1e-4)


def test_impossible_cells_stay_empty_and_others_are_filled() -> None:
    schema = Schema(
        tuple(Column(name, "binary", levels=("no", "yes")) for name in "ab"),
        impossible=(Impossible((("a", (1,)), ("b", (1,)))),),
    )
    context = Context((0, 1), (), (2, 2), ())
    cells, parts = expected_cells(context, np.array([0, 1]), np.array([3, 1]), schema, 1)

    assert 3 not in cells.tolist()
    assert parts.sum() == pytest.approx(PARTS, rel=1e-12)
    assert parts[:2] / PARTS == pytest.approx([0.75, 0.25])  # nobody has a = yes


def test_rows_of_a_model_need_not_be_records() -> None:
    values = np.repeat(np.array([[0, 0, 0, 0, 0], [2, 3, 1, 4, 0]]), 10, axis=0)
    apart = fit(Contingency(order=1), values, 400).values
    pairs = fit(Contingency(order=2), values, 400).values

    # Of independent columns 2 in 16 rows are records; two records fit their pairs exactly.
    assert len({tuple(row) for row in apart.tolist()}) > 2
    assert {tuple(row) for row in pairs.tolist()} == {tuple(row) for row in values.tolist()}


def test_rows_follow_the_fitted_table() -> None:
    """20,000 rows; chi-square over cells with 5 expected, at 1e-6."""
    from scipy.stats import chi2

    values = linked(300)
    table = np.zeros(SIZES)
    np.add.at(table, tuple(values.T), 1)
    expected = fitted_table(table, 2, np.ones(SIZES)) / len(values) * 20_000
    drawn = np.zeros(SIZES)
    np.add.at(drawn, tuple(fit(Contingency(order=2), values, 20_000).values.astype(int).T), 1)
    often = expected >= 5

    score = ((drawn - expected)[often] ** 2 / expected[often]).sum()
    assert score < chi2.isf(1e-6, often.sum())


def test_what_cannot_be_fitted_is_refused_by_the_plan() -> None:
    with pytest.raises(ParameterError):
        Contingency(order=-1)
    with pytest.raises(ResourceLimit, match="log-linear model"):
        Contingency(order=2).plan(schema_of(*[100] * 4), 5)
    assert "model is fitted" in Contingency(order=2).plan(schema_of(3, 2), 5).warnings[0]
