"""Noise-free sums give the records' own means and covariances; odd tables give usable models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gibbous.core.cell_model import CellModel, NoisySum
from gibbous.core.codes import Codes
from gibbous.core.recode import recoded
from gibbous.core.schema import Column, Schema
from gibbous.core.stream import stream_key
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Table, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.evaluation.inference.noise_replicates import noise as fresh_noise
from gibbous.mechanisms._modips_statistics import coarsening, moments
from gibbous.sampling.cells.cell_index import cell_context
from gibbous.sampling.cells.cell_moments import LEAST_VARIANCE, fitted, refitted
from tests.mechanisms.numeric_records import AGE, AREA, COST, MIXED, SEX, people, secret

EXACT = NoiseInfo("gaussian", 1e-9)


def exact_tables(
    records: Codes, covariance: Any, info: NoiseInfo = EXACT
) -> tuple[Table, list[NoisySum]]:
    """Counts and sums without noise, said to have the noise `info`."""
    schema = records.schema
    engine = LocalEngine.from_codes(recoded(records, coarsening(schema)))
    wanted = moments(schema, covariance)
    context = cell_context(schema)
    counts = Table(context, engine.tally([context])[0].cells, info)
    found = [
        NoisySum(one.factors, Table(one.context, secret_sums.cells, info))
        for one, secret_sums in zip(wanted, engine.sums(wanted), strict=True)
    ]
    engine.close()
    return counts, found


def exact_model(records: Codes, covariance: Any = "pooled") -> CellModel:
    counts, sums = exact_tables(records, covariance)
    return fitted(records.schema, counts, sums, prior=0.0, draws="fitted")


def groups(records: Codes) -> list[np.ndarray]:
    """Rows of the cells of MIXED, in cell order: sex, area, cost missing."""
    gone = records.values[:, 3] == COST.missing_code
    cell = (records.values[:, 0].astype(int) * 3 + records.values[:, 1]) * 2 + gone
    return [np.flatnonzero(cell == one) for one in range(12)]


def test_counts_and_means_are_those_of_the_records() -> None:
    records = people(3000)

    model = exact_model(records)

    for cell, rows in enumerate(groups(records)):
        assert model.counts[cell] == len(rows)
        assert model.means[cell, 0] == pytest.approx(records.number(2)[rows].mean(), abs=1e-9)
        if cell % 2 == 0:
            assert model.means[cell, 1] == pytest.approx(records.number(3)[rows].mean(), abs=1e-9)


def test_a_covariance_a_cell_is_that_of_its_records() -> None:
    records = people(3000)

    model = exact_model(records, "cells")

    for cell, rows in enumerate(groups(records)):
        if cell % 2 == 0:
            truth = np.cov(records.number(2)[rows], records.number(3)[rows])
            np.testing.assert_allclose(model.covariances[cell], truth, rtol=1e-4)
            assert model.freedom[cell] == len(rows) - 1


def test_the_pooled_covariance_is_that_within_cells() -> None:
    """Each pair over the records that have both numbers, divisor n less the cells that have them."""
    records = people(3000)

    model = exact_model(records)

    kept = [rows for cell, rows in enumerate(groups(records)) if cell % 2 == 0]
    both = np.stack([records.number(2), records.number(3)])
    apart = np.concatenate(
        [both[:, rows] - both[:, rows].mean(axis=1)[:, None] for rows in kept], 1
    )
    truth = apart @ apart.T / (apart.shape[1] - len(kept))
    assert model.covariances[0, 0, 1] == pytest.approx(truth[0, 1], rel=1e-2)
    assert model.covariances[0, 1, 1] == pytest.approx(truth[1, 1], rel=1e-3)
    assert model.freedom[0] == apart.shape[1] - len(kept)


@pytest.mark.statistical
@pytest.mark.parametrize("covariance", ["pooled", "cells"])
def test_noise_of_sums_does_not_shift_variances_on_average(covariance: str) -> None:
    """300 noises; without the correction of squared sums the mean is 10 standard errors away."""
    schema, each, sigma = Schema((SEX, AGE)), 300, 1300.0
    age = np.concatenate([np.linspace(20, 80, each).round()] * 2)
    codes = np.zeros((2 * each, 2))
    codes[each:, 0] = 1
    counts, sums = exact_tables(secret(schema, codes, {1: age}), covariance)
    truth = fitted(schema, counts, sums, prior=0.0, draws="fitted").covariances[0, 0, 0]
    found = []
    for replicate in range(300):
        values = sums[0].table.cells.values
        info = NoiseInfo("gaussian", sigma)
        extra = fresh_noise(info, values.size, stream_key(5, replicate)).reshape(values.shape)
        first = NoisySum((1,), replace(sums[0].table, cells=Dense(values + extra), noise=info))
        model = fitted(schema, counts, [first, *sums[1:]], prior=0.0, draws="fitted")
        found.append(model.covariances[0, 0, 0])

    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 4.5 * error
    assert sigma**2 / each / each > 9 * error


def test_a_cell_without_records_has_a_mean_inside_the_bounds_and_a_definite_covariance() -> None:
    records = people(400)
    records = records.part(records.values[:, 1] != 2)

    for covariance in ("pooled", "cells"):
        model = exact_model(records, covariance)

        assert model.counts[4] == 0
        assert (model.means >= [0, 0]).all()
        assert (model.means <= [100, 500]).all()
        assert (np.linalg.eigvalsh(model.covariances) > 0).all()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_no_record_one_record_and_two_records_give_a_model(rows: int) -> None:
    for covariance in ("pooled", "cells"):
        model = exact_model(people(5).part(slice(0, rows)), covariance)

        assert model.counts.sum() == rows
        assert np.isfinite(model.means).all()
        assert (np.linalg.eigvalsh(model.covariances) > 0).all()
        assert (model.freedom > 1).all()


def test_equal_columns_give_a_correlation_near_1_and_a_definite_matrix() -> None:
    schema = Schema((SEX, AGE, replace(AGE, name="again")))
    age = np.arange(200) % 90 + 2.0
    records = secret(schema, np.zeros((200, 3)), {1: age, 2: age})

    model = exact_model(records)

    spread = model.covariances[0]
    assert 0.999 < spread[0, 1] / spread[0, 0] < 1
    assert (np.linalg.eigvalsh(spread) > 0).all()


def test_a_constant_column_keeps_its_value_and_the_least_variance() -> None:
    records = secret(Schema((SEX, AGE)), np.zeros((200, 2)), {1: np.full(200, 37.0)})

    model = exact_model(records)

    assert model.means[0, 0] == 37
    assert model.covariances[0, 0, 0] == pytest.approx(LEAST_VARIANCE)


def test_equal_bounds_are_one_value() -> None:
    column = Column("same", "numeric", edges=(5, 5), integer=True)
    records = secret(Schema((SEX, column)), np.zeros((20, 2)), {1: np.full(20, 5.0)})

    assert exact_model(records).means.tolist() == [[5.0], [5.0]]


def test_numbers_alone_are_one_cell() -> None:
    records = secret(Schema((AGE,)), np.zeros((300, 1)), {0: np.arange(300) % 100})

    model = exact_model(records, "cells")

    assert model.counts.tolist() == [300]
    assert model.means[0, 0] == pytest.approx(np.mean(np.arange(300) % 100))
    assert model.covariances[0, 0, 0] == pytest.approx(np.var(np.arange(300) % 100, ddof=1))


def test_categories_alone_have_no_numbers() -> None:
    model = exact_model(secret(Schema((SEX, AREA)), [[0, 1]] * 7))

    assert model.counts.tolist() == [0, 7, 0, 0, 0, 0]
    assert model.means.shape == (6, 0)


def test_cells_drowned_in_noise_share_one_mean() -> None:
    """Noise of 40 half ranges: cells below 80 records have the mean of all of them together."""
    records = people(2000)
    counts, sums = exact_tables(records, "pooled")
    loud = [
        NoisySum(one.factors, replace(one.table, noise=NoiseInfo("gaussian", 40.0 * half)))
        if len(one.factors) == 1
        else one
        for one, half in zip(sums, (50, 2500, 1, 1, 1), strict=True)
    ]

    model = fitted(MIXED, counts, loud, prior=0.0, draws="fitted")

    thin = model.counts < 80
    assert 1 < thin.sum() < 11
    assert len(np.unique(model.means[thin, 0])) == 1
    assert len(np.unique(model.means[~thin, 0])) == (~thin).sum()
    assert model.support[thin].max() == pytest.approx(model.counts[thin].sum())


def test_fitting_again_gives_the_same_model() -> None:
    counts, sums = exact_tables(people(500), "cells")
    model = fitted(MIXED, counts, sums, prior=0.5, draws="posterior")
    tables = Tables(MIXED, (counts,), Recipe("cells", ()), model=model)

    again = refitted(tables).model

    assert isinstance(again, CellModel)
    assert np.array_equal(again.covariances, model.covariances)
    assert again.draws == "posterior"
