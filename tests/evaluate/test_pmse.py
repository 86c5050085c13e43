"""Propensity scores: closed forms, the law of the null by simulation, planted differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.schema import Column, Schema
from gibbous.evaluation.tables import Subject, side, subject
from gibbous.evaluation.utility import pmse
from gibbous.evaluation.utility.model_rows import estimable, propensity_design

SCHEMA = Schema(
    (
        Column("age", "numeric", edges=(0, 25, 50, 75, 100), missing=True),
        Column("grade", "ordinal", levels=("low", "mid", "high")),
        Column("town", "nominal", levels=tuple("abcdefghijkl"), missing=True),
        Column("sex", "binary", levels=("f", "m")),
    )
)


def test_error_of_scores_is_their_mean_squared_distance_from_the_share() -> None:
    assert pmse.pmse_of(np.array([0.5, 0.5, 0.5]), 0.5) == 0
    assert pmse.pmse_of(np.array([0.1, 0.6, 0.2]), 0.3) == pytest.approx((0.04 + 0.09 + 0.01) / 3)


def test_logistic_on_one_binary_column_is_the_share_in_each_cell() -> None:
    # 30 of 50 real and 10 of 40 synthetic rows are ones: the model is saturated.
    ones = np.concatenate([np.arange(50) < 30, np.arange(40) < 10]).astype(float)
    c = 40 / 90
    truth = (40 * (10 / 40 - c) ** 2 + 50 * (30 / 50 - c) ** 2) / 90

    found = pmse.by_logistic((ones - ones.mean())[:, None], 50)

    assert found.pmse == pytest.approx(truth, rel=1e-4)
    assert found.terms == 1
    assert found.null == pytest.approx(c * (1 - c) ** 2 / 90)


def test_tree_on_one_binary_column_is_the_share_in_each_cell() -> None:
    ones = np.concatenate([np.arange(500) < 300, np.arange(400) < 100]).astype(float)
    c = 4 / 9
    truth = (400 * (1 / 4 - c) ** 2 + 500 * (3 / 5 - c) ** 2) / 900

    found, leaves = pmse.by_tree(ones[:, None], 500, 0)

    assert leaves == 2
    assert found == pytest.approx(truth)


def test_null_is_that_of_the_paper_and_twice_it_for_new_records_of_equal_size() -> None:
    mean, spread = pmse.expected(10, 300, 300)

    assert mean == pytest.approx(10 / (8 * 600))
    assert spread == pytest.approx(math.sqrt(20) / (8 * 600))
    assert pmse.expected(10, 300, 300, seen=0.0)[0] == pytest.approx(2 * mean)
    assert pmse.expected(10, 200, 600)[0] == pytest.approx(10 * 0.75 * 0.25**2 / 800)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(
    ("population", "real", "synthetic"),
    [
        pytest.param(1000, 1000, 1000, id="all records"),
        pytest.param(800, 800, 1600, id="more synthetic rows"),
        pytest.param(2000, 1000, 1500, id="half of the records"),
        pytest.param(None, 1000, 1000, id="new records"),
    ],
)
def test_null_has_the_stated_mean_and_spread(
    population: int | None, real: int, synthetic: int
) -> None:
    """300 ratios of 24 terms: mean 1 (standard error .017) within .07, which a null of .9 or 1.1
    times its size leaves; spread sqrt(2/24) = .289 (error .012) within .05."""
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(300):
        records = rng.standard_normal((population or real, 24))
        used = records[:real]
        if population:
            rows = records[rng.integers(population, size=synthetic)]
        else:
            rows = rng.standard_normal((synthetic, 24))
        matrix = np.concatenate([used, rows])
        seen = real / population if population else 0.0
        ratios.append(pmse.by_logistic(matrix - matrix.mean(axis=0), real, seen=seen).ratio)

    assert np.mean(ratios) == pytest.approx(1, abs=0.07)
    assert not 0.93 < 0.9 * np.mean(ratios) < 1.07
    assert not 0.93 < 1.1 * np.mean(ratios) < 1.07
    assert np.std(ratios) == pytest.approx(math.sqrt(2 / 24), abs=0.05)


def test_a_copy_of_the_records_scores_zero_and_independent_columns_far_above_one() -> None:
    real = _people(3000, 1)
    found = {f.name: f for f in pmse.findings(_subject(real, real))}

    assert list(found) == ["pmse", "pmse_ratio", "pmse_tree", "pmse_tree_ratio"]
    assert found["pmse"].value == pytest.approx(0, abs=1e-12)
    assert found["pmse_tree"].value == pytest.approx(0, abs=1e-12)
    for name in ("pmse_ratio", "pmse_tree_ratio"):
        null = dict(found[name].null)
        assert 0.4 < null["bootstrap"] < 1.8
        assert null["independent"] > 5
        assert found[name].ideal == 1


@pytest.mark.slow
def test_a_resample_scores_about_one_whatever_its_size() -> None:
    real = _people(4000, 2)
    for rows in (1000, 4000, 9000):
        drawn = real[np.random.default_rng(rows).integers(4000, size=rows)]

        found = {f.name: f.value for f in pmse.findings(_subject(real, drawn))}

        assert 0.4 < found["pmse_ratio"] < 1.8
        assert 0.5 < found["pmse_tree_ratio"] < 1.7


def test_the_tree_sees_what_the_logistic_model_cannot() -> None:
    # Synthetic sex depends on whether the age is odd: no group, line or product follows that.
    rng = np.random.default_rng(3)
    age = rng.integers(0, 100, size=8000).astype(float)
    sex = np.where(rng.random(8000) < 0.5, "f", "m")
    told = np.where(((age // 5) % 2 == 0) == (rng.random(8000) < 0.95), "f", "m")
    real, synthetic = _frame(age=age, sex=sex), _frame(age=age, sex=told)

    found = {f.name: f.value for f in pmse.findings(_subject(real, synthetic))}

    assert found["pmse_tree_ratio"] > 5 * found["pmse_ratio"]


def test_a_column_that_tells_the_tables_apart_by_itself_is_named() -> None:
    """Half of the records are 0; their bin is spread evenly in the synthetic rows."""
    rng = np.random.default_rng(6)
    sex = np.where(rng.random(2000) < 0.5, "f", "m")
    spread = rng.uniform(0, 25, 2000)
    real = _frame(age=np.where(rng.random(2000) < 0.9, 0.0, spread), sex=sex)
    synthetic = _frame(age=spread, sex=sex)

    found = {f.name: f for f in pmse.findings(_subject(real, synthetic))}

    assert "By column age alone" in found["pmse_tree"].note
    assert "alone" not in pmse.findings(_subject(real, real))[2].note


def test_a_sample_of_rows_is_said_and_leaves_the_null_right() -> None:
    real = _people(6000, 4)
    drawn = real[np.random.default_rng(1).integers(6000, size=6000)]

    ratio = pmse.findings(_subject(real, drawn), rows=2000)[1]

    assert "2000 rows a side" in ratio.note
    assert 0.4 < ratio.value < 1.8


def test_several_sets_have_a_value_and_a_row_of_the_detail_each() -> None:
    real = _people(500, 5)

    found = pmse.findings(_subject(real, [real, _people(400, 6)], holdout=_people(300, 7)))[0]

    assert len(found.sets) == 2
    assert found.value == pytest.approx(np.mean(found.sets))
    assert [row["table"] for row in found.detail] == [
        "set 1", "set 2", "bootstrap", "holdout", "independent",
    ]  # fmt: skip
    assert found.sets == pmse.findings(_subject(real, [real, _people(400, 6)]))[0].sets


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_tiny_and_constant_tables_have_findings(rows: int) -> None:
    same = _frame(age=np.full(rows, 40.0), sex=np.full(rows, "f"))
    other = _frame(age=np.full(rows, np.nan), sex=np.full(rows, "m"))

    for real, synthetic in [(same, same), (same, other), (other, same)]:
        found = pmse.findings(_subject(real, synthetic))

        assert all(0 <= f.value <= 0.25 for f in found if not f.name.endswith("ratio"))
    assert math.isnan(pmse.findings(_subject(same, same))[1].value)


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_follow_from_earlier_ones_are_left_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    free = rng.standard_normal((50, 6))
    matrix = np.column_stack([free[:, 0], np.zeros(50), free @ rng.integers(-2, 3, (6, 12))])
    ranks = [np.linalg.matrix_rank(matrix[:, : j + 1]) for j in range(matrix.shape[1])]
    brute = np.diff([0, *ranks]) > 0

    assert estimable(matrix).tolist() == brute.tolist()


def test_the_propensity_design_is_centered_bounded_and_of_full_rank() -> None:
    tables = [side(_people(400, s), SCHEMA) for s in (8, 9)]

    full = propensity_design(tables, seed=0)
    small = propensity_design(tables, seed=0, terms=12)

    assert full.shape[0] == 800
    assert np.linalg.matrix_rank(full) == full.shape[1] > 20
    assert np.allclose(full.mean(axis=0), 0, atol=1e-12)
    assert small.shape[1] <= 12


def _people(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(50, 20, rows), 0, 100)
    age[rng.random(rows) < 0.05] = np.nan
    place = np.nan_to_num(age, nan=0.0) / 10 + rng.normal(0, 1, rows)
    town = np.array([*SCHEMA["town"].levels, None])[np.clip(place, 0, 12).astype(int)]
    sex = np.where(rng.random(rows) < np.nan_to_num(age, nan=50.0) / 100, "f", "m")
    grade = np.where(sex == "f", rng.integers(0, 3, rows), rng.integers(0, 2, rows))
    return _frame(age=age, sex=sex, town=town, grade=np.array(["low", "mid", "high"])[grade])


def _frame(**columns: Any) -> pl.DataFrame:
    rows = len(next(iter(columns.values())))
    full = {"age": np.full(rows, 1.0), "grade": ["low"] * rows, "town": ["a"] * rows} | columns
    frame = pl.DataFrame({k: list(v) for k, v in full.items()})
    return frame.with_columns(pl.col("age").fill_nan(None)).select(SCHEMA.names)


def _subject(real: pl.DataFrame, synthetic: Any, **options: Any) -> Subject:
    return subject(real, synthetic, SCHEMA, seed=3, **options)
