"""LASSO paths: soft thresholds, a second library call on plain rows, designs that lack levels."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.errors import UsageError
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.measure import Options
from gibbous.evaluation.tables import Subject, side, subject
from gibbous.evaluation.utility import lasso
from gibbous.evaluation.utility.lasso import Moments, moments_of, path
from gibbous.evaluation.utility.model_rows import dummies

SCHEMA = Schema(
    (
        Column("amount", "numeric", edges=(0, 50, 200), missing=True),
        Column("days", "numeric", edges=(0, 10, 40), missing=True),
        Column("drug", "nominal", levels=tuple("abcdefgh")),
        Column("since", "date", edges=(733000, 733100, 733400)),
        Column("ill", "binary", levels=("no", "yes")),
        Column("stage", "ordinal", levels=("I", "II", "III"), missing=True),
    )
)


def test_on_an_orthogonal_design_the_path_is_a_soft_threshold() -> None:
    cross = np.array([1.0, -0.6, 0.3, 0.0])
    penalties = np.array([1.2, 0.5, 0.31, 0.1, 0.01])
    truth = np.sign(cross) * np.maximum(np.abs(cross) - penalties[:, None], 0)

    found = path(Moments(np.eye(4), cross, np.zeros(4), 0.0), penalties)

    assert found == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("extra", [0, 3])
def test_the_path_from_moments_is_the_path_from_rows(extra: int) -> None:
    """Also where columns follow from others: then the fitted values are the same, not the terms."""
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(extra)
    x = rng.standard_normal((150, 6)) @ rng.standard_normal((6, 6)) / 3 + 5
    x = np.column_stack([x, x[:, :extra]])
    y = x[:, 0] - 2 * x[:, 3] + rng.standard_normal(150)
    penalties = np.geomspace(1, 0.01, 8)
    centered = x - x.mean(axis=0)
    _, truth, _ = linear.lasso_path(
        centered, y - y.mean(), alphas=penalties, tol=1e-12, max_iter=100_000
    )

    found = path(moments_of(x, y), penalties)

    assert found @ centered.T == pytest.approx(truth.T @ centered.T, abs=2e-3)
    if not extra:
        assert found == pytest.approx(truth.T, abs=2e-3)


def test_moments_are_those_of_centered_rows() -> None:
    table = side(_claims(300, 1), SCHEMA)
    matrix, _ = dummies(table, ("days", "drug", "since", "stage"))
    y = table.numbers[:, SCHEMA.index("ill")]
    dense = matrix.toarray()
    centered = dense - dense.mean(axis=0)

    found = moments_of(matrix, y)

    assert found.gram == pytest.approx(centered.T @ centered / 300, abs=1e-12)
    assert found.cross == pytest.approx(centered.T @ (y - y.mean()) / 300, abs=1e-12)
    assert found.target == pytest.approx(y.mean())


def test_terms_follow_from_the_schema_and_not_from_the_rows() -> None:
    real = _claims(200, 2)
    few = real.filter(pl.col("drug") == "b", pl.col("stage") == "I")

    whole, terms = dummies(side(real, SCHEMA), ("drug", "since", "days", "stage"))
    part, same = dummies(side(few, SCHEMA), ("drug", "since", "days", "stage"))

    assert terms == same == (
        *(f"drug={level}" for level in "bcdefgh"),
        "since", "days", "days=(missing)", "stage=II", "stage=III", "stage=(missing)",
    )  # fmt: skip
    assert part.shape == (len(few), len(terms))
    assert part.toarray()[:, :7].tolist() == [[1.0, 0, 0, 0, 0, 0, 0]] * len(few)
    day = real["since"][0].toordinal()
    assert whole.toarray()[0, 7] == pytest.approx((day - 733000) / 400)
    gone = real["days"].is_null().to_numpy()
    assert whole.toarray()[gone, 8] == pytest.approx(0.5)
    assert whole.toarray()[:, 9].tolist() == gone.astype(float).tolist()


def test_synthetic_rows_equal_to_the_records_have_their_path_and_their_error() -> None:
    real, test = _claims(1200, 3), _claims(500, 4)

    far, error = lasso.findings(_subject(real, real, holdout=test), Options(targets=("amount",)))

    assert far.name == "lasso_path"
    assert error.name == "lasso_mse"
    assert far.value == pytest.approx(0, abs=1e-9)
    assert dict(far.null)["real"] == 0
    assert dict(far.null)["bootstrap"] < 0.3
    assert dict(far.null)["independent"] > 0.9
    assert error.value == pytest.approx(dict(error.null)["real"])
    assert error.value < dict(error.null)["independent"] / 2
    assert "holdout" in error.note


def test_the_error_is_that_of_predictions_on_test_records() -> None:
    # At the least penalty of many the model is least squares: compare with numpy. The synthetic rows
    # have another mean and another scale than the real ones.
    real, test = _claims(800, 5), _claims(300, 6)
    synthetic = _claims(700, 7).with_columns(pl.col("days") / 2 + 9, pl.col("amount") * 0.7 + 20)
    names = [n for n in SCHEMA.names if n != "amount"]

    error = lasso.findings(_subject(real, synthetic, holdout=test), Options(targets=("amount",)))[1]

    last, first = error.detail[-1], error.detail[0]
    for table, name in ((real, "real"), (synthetic, "synthetic")):
        drawn = [side(t.filter(pl.col("amount").is_not_null()), SCHEMA) for t in (table, test)]
        x, x_test = (
            np.column_stack([np.ones(t.rows), dummies(t, names)[0].toarray()]) for t in drawn
        )
        y, y_test = (t.numbers[:, 0] for t in drawn)
        predicted = x_test @ np.linalg.lstsq(x, y, rcond=None)[0]
        assert last[name] == pytest.approx(np.mean((y_test - predicted) ** 2), rel=0.02)
    real_mean = real["amount"].mean()
    assert first["real"] == pytest.approx(np.mean((y_test - real_mean) ** 2), rel=1e-6)
    assert dict(error.null)["real"] == pytest.approx(min(row["real"] for row in error.detail))
    best = min(error.detail, key=lambda row: row["real"])
    assert error.value == pytest.approx(best["synthetic"])


def test_the_detail_has_a_row_for_each_penalty_and_term() -> None:
    real = _claims(500, 7)

    far = lasso.findings(
        _subject(real, [real, _claims(400, 8)]), Options(targets=("amount",)), penalties=9
    )[0]

    pairs = [(row["penalty"], row["term"]) for row in far.detail]
    assert len(pairs) == len(set(pairs)) == 9 * lasso.SHOWN
    assert {"days", "drug=c"} <= {term for _, term in pairs}
    assert far.note.startswith("Optimistic")
    assert len(far.sets) == 2
    strongest = max(penalty for penalty, _ in pairs)
    assert all(
        row["real"] == pytest.approx(0, abs=1e-9)
        for row in far.detail
        if row["penalty"] == strongest
    )


def test_the_unit_of_the_target_changes_errors_by_its_square_and_paths_not_at_all() -> None:
    real, other = _claims(400, 9), _claims(400, 10)
    half = [t.with_columns(pl.col("amount") / 2) for t in (real, other)]

    whole = lasso.findings(_subject(real, other), Options(targets=("amount",)))
    small = lasso.findings(_subject(*half), Options(targets=("amount",)))

    assert small[0].value == pytest.approx(whole[0].value, rel=1e-6)
    assert small[1].value == pytest.approx(whole[1].value / 4, rel=1e-6)


@pytest.mark.parametrize("target", ["ill", "stage", "since", "amount"])
def test_every_target_but_a_nominal_one_has_values(target: str) -> None:
    real = _claims(300, 11)

    found = lasso.findings(_subject(real, _claims(200, 12)), Options(targets=(target, "drug")))

    assert [f.subject for f in found] == [(target,), (target,), ("drug",), ("drug",)]
    assert all(math.isfinite(f.value) for f in found[:2])
    assert all(math.isnan(f.value) for f in found[2:])
    assert "more than two levels" in found[2].note


def test_targets_without_a_law_are_not_defined() -> None:
    real = _claims(100, 13)
    constant = real.with_columns(amount=pl.lit(3.0))
    gone = real.with_columns(amount=pl.lit(None, dtype=pl.Float64))

    for table in (constant, gone):
        for found in lasso.findings(_subject(table, real), Options(targets=("amount",))):
            assert math.isnan(found.value)
            assert "Not defined" in found.note
    untaught = lasso.findings(_subject(real, gone), Options(targets=("amount",)))
    assert untaught[0].value == pytest.approx(1)


def test_a_target_that_does_not_exist_is_refused_and_too_many_levels_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = _claims(30, 14)
    with pytest.raises(UsageError, match="'money'"):
        lasso.findings(_subject(real, real), Options(targets=("money",)))

    monkeypatch.setattr(lasso, "TERMS", 5)

    for found in lasso.findings(_subject(real, real), Options(targets=("amount",))):
        assert math.isnan(found.value)
        assert "the other columns have 11 terms" in found.note


@pytest.mark.shared
@pytest.mark.slow
def test_days_of_stay_in_the_claims_are_found_as_in_the_paper(shared_data: Path) -> None:
    """Fig. 5: the class of days is the term that stays under a strong penalty; 821 terms."""
    listed = json.loads((shared_data / "claims7.schema.json").read_text())["columns"]
    columns = []
    for one in listed:
        if one["kind"] == "numeric":
            low, high = one["public_bounds"]
            columns.append(Column(one["name"], "numeric", edges=(low, high), integer=True))
        else:
            columns.append(Column(one["name"], one["kind"], levels=tuple(one["levels"])))
    frame = pl.read_parquet(shared_data / "claims7.parquet")
    drawn = frame[np.random.default_rng(1).integers(len(frame), size=len(frame))]

    far, error = lasso.findings(
        subject(frame, drawn, Schema(tuple(columns)), seed=1), Options(targets=("days_n",))
    )

    penalties = sorted({row["penalty"] for row in far.detail}, reverse=True)
    left = [
        row["term"] for row in far.detail if row["penalty"] == penalties[2] and row["real"] != 0
    ]
    assert left == ["days=8+"]
    assert far.value < 0.5 < dict(far.null)["independent"]
    assert error.value < dict(error.null)["independent"] / 2


def _claims(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    days = rng.gamma(2, 4, rows).clip(0, 40)
    drug = rng.integers(0, 8, rows)
    stage = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    ill = rng.random(rows) < days / 40
    amount = 20 + 3 * days + 15 * (drug == 2) - 10 * (drug == 5) + 6 * ill + rng.normal(0, 5, rows)
    first = datetime.date.fromordinal(733000)
    frame = pl.DataFrame(
        {
            "amount": amount.clip(0, 200),
            "days": days,
            "drug": np.array(list("abcdefgh"))[drug],
            "since": [first + datetime.timedelta(int(d)) for d in rng.integers(0, 400, rows)],
            "ill": np.where(ill, "yes", "no"),
            "stage": [["I", "II", "III", None][i] for i in stage],
        }
    )
    return frame.with_columns(
        pl.when(pl.Series(rng.random(rows) < 0.05)).then(None).otherwise(name).alias(name)
        for name in ("amount", "days")
    )


def _subject(real: pl.DataFrame, synthetic: Any, **options: Any) -> Subject:
    return subject(real, synthetic, SCHEMA, seed=3, **options)
