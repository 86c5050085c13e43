"""modips as a method: cost before data, exact purchases, refusals that spend nothing, odd tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.cell_model import CellModel
from gibbous.core.errors import (
    GibbousError,
    ParameterError,
    PrivacyRefused,
    ResourceLimit,
    UsageError,
)
from gibbous.core.request import Output
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import NoiseInfo
from gibbous.mechanisms._modips_statistics import divided, moments, weights
from gibbous.mechanisms.modips import Modips
from gibbous.pipeline import sample_more
from gibbous.privacy import accountant
from gibbous.privacy.calibrate.gdp import mu_squared_for
from gibbous.privacy.ledger import Ledger
from gibbous.sampling.sample import sample
from gibbous.write.load import load
from tests.mechanisms.numeric_records import (
    AGE,
    AREA,
    COST,
    MIXED,
    SEX,
    curator,
    people,
    person,
    ran,
    secret,
)

NEARLY = 1 - Fraction(1, 10**8)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["optimal", "equal", "nonsplit"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_purchases_are_the_planned_parts_and_their_sum_is_the_claim(
    split: Any, relation: Any
) -> None:
    method = Modips(epsilon=0.7, split=split, relation=relation)
    _, held = ran(method, people(50))
    plan = method.plan(MIXED, None)

    assert plan.total.epsilon == Fraction(7, 10)
    assert len(held.spent) == len(plan.spends) == 6
    for paid, planned in zip(held.spent, plan.spends, strict=True):
        assert planned.claim.epsilon * NEARLY <= paid.epsilon <= planned.claim.epsilon
    assert Fraction(7, 10) * NEARLY < sum(c.epsilon for c in held.spent) <= Fraction(7, 10)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_gaussian_purchases_add_to_the_mu_of_the_claim(relation: Any) -> None:
    method = Modips(epsilon=1, delta=1e-6, noise="gaussian", relation=relation)
    squares = mu_squared_for(Fraction(1), Fraction(1, 10**6))

    _, held = ran(method, people(50))

    assert squares * NEARLY < sum(claim.mu_squared for claim in held.spent) <= squares
    assert accountant.within(method.plan(MIXED, None).total, held.spent)


def test_a_person_of_three_rows_gets_three_times_the_noise_and_pays_the_same() -> None:
    one, three = (Modips().plan(person(MIXED, most), None) for most in (1, 3))
    _, held = ran(Modips(), replace(people(50), schema=person(MIXED, 3)))

    assert one.total.epsilon == three.total.epsilon == 1
    assert sum(claim.epsilon for claim in held.spent) > NEARLY
    scale = [float(plan.spends[1].detail.split("scale ")[1].split()[0]) for plan in (one, three)]
    assert scale[1] == pytest.approx(3 * scale[0], rel=1e-5)


# Golden parts of a budget of 1: counts, sums of 2 columns, 3 second moments; s = 1, 1/2, 1/4.
GOLDEN = {
    ("laplace", "equal"): [1 / 6] * 6,
    ("laplace", "nonsplit"): [4 / 11, 2 / 11, 2 / 11, 1 / 11, 1 / 11, 1 / 11],
    ("laplace", "optimal"): [0.28982, 0.18257, 0.18257, 0.11501, 0.11501, 0.11501],
    ("gaussian", "nonsplit"): [16 / 27, 4 / 27, 4 / 27, 1 / 27, 1 / 27, 1 / 27],
    ("gaussian", "optimal"): [4 / 11, 2 / 11, 2 / 11, 1 / 11, 1 / 11, 1 / 11],
}


@pytest.mark.parametrize(("noise", "split"), GOLDEN)
def test_splits_have_their_golden_parts(noise: str, split: Any) -> None:
    found = divided(Fraction(1), weights(moments(MIXED, "pooled")), split, noise)

    assert [float(part) for part in found] == pytest.approx(GOLDEN[noise, split], abs=1e-5)
    assert NEARLY < sum(found) <= 1


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_optimal_split_has_the_least_sum_of_variances(noise: str) -> None:
    sensitivities = weights(moments(MIXED, "pooled"))

    def total(parts: Any) -> float:
        power = 2 if noise == "laplace" else 1
        return sum(
            float(s) ** 2 / float(p) ** power for s, p in zip(sensitivities, parts, strict=True)
        )

    best = list(divided(Fraction(1), sensitivities, "optimal", noise))
    for place in range(1, len(best)):
        for move in (Fraction(1, 100), Fraction(-1, 100)):
            other = list(best)
            other[0], other[place] = other[0] - move, other[place] + move
            assert total(other) > total(best)


def test_equal_shares_in_units_of_ranges_do_not_depend_on_the_units_of_a_column() -> None:
    cents = replace(COST, edges=(0.0, 10_000.0, 50_000.0), decimals=0)

    found = [
        [part.claim.epsilon for part in Modips().plan(Schema((SEX, one)), None).spends]
        for one in (COST, cents)
    ]

    assert found[0] == found[1]


def test_the_plan_names_the_columns_whose_numbers_it_sums() -> None:
    assert Modips().plan(MIXED, None).numbers == (2, 3)
    assert Modips().plan(Schema((SEX, AREA)), None).numbers == ()


def test_categories_alone_pay_all_for_counts() -> None:
    plan = Modips(epsilon=2).plan(Schema((SEX, AREA)), 100)

    assert [spend.claim.epsilon for spend in plan.spends] == [2]
    assert plan.cells == 6


def test_released_counts_have_the_codes_of_categories_and_whether_a_number_is_there() -> None:
    tables, _ = ran(Modips(), people(100))

    assert tables.items[0].context.columns == (0, 1, 3)
    assert tables.items[0].context.target_sizes == (2, 3, 2)
    assert tables.schema is MIXED
    assert tables.extra == ()


def test_released_sums_and_counts_make_the_model_and_nothing_else_does() -> None:
    """The model of a release is the fit of its published tables."""
    from gibbous.sampling.cells.cell_moments import refitted

    tables, _ = ran(Modips(covariance="cells"), people(300))
    again = refitted(tables).model

    assert isinstance(tables.model, CellModel)
    assert isinstance(again, CellModel)
    for name in ("counts", "means", "support", "covariances", "freedom"):
        assert np.array_equal(getattr(tables.model, name), getattr(again, name))


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("covariance", ["pooled", "cells"])
def test_an_empty_table_and_one_row_are_released(rows: int, covariance: Any) -> None:
    tables, held = ran(Modips(covariance=covariance), people(3).part(slice(0, rows)))

    drawn = sample(tables, 50, seed=1)

    assert drawn.rows == 50
    assert len(held.spent) == 6


@pytest.mark.parametrize(
    "schema",
    [Schema((AGE,)), Schema((COST,)), Schema((COST, replace(COST, name="b"))), Schema((SEX,))],
    ids=["a number", "a number or missing", "two numbers or missing", "a category"],
)
def test_schemas_without_a_categorical_or_a_numeric_column_work(schema: Schema) -> None:
    codes = np.zeros((40, len(schema)))
    numbers = {j: np.arange(40) + 7.0 for j, c in enumerate(schema) if c.binned}
    for noise in ("laplace", "gaussian"):
        tables, _ = ran(Modips(epsilon=5, noise=noise), secret(schema, codes, numbers))  # type: ignore[arg-type]

        drawn = sample(tables, 500, seed=2)

        assert (drawn.values.max(axis=0) < np.array(schema.sizes)).all()


def test_a_large_budget_gives_the_records_means_spreads_and_correlation() -> None:
    records = people(6000)
    tables, _ = ran(Modips(epsilon=100, draws="fitted"), records)

    drawn = sample(tables, 60_000, seed=4)

    def described(codes: Any) -> list[float]:
        there = codes.values[:, 3] != COST.missing_code
        age, cost = codes.number(2)[there], codes.number(3)[there]
        share = 1 - there.mean()
        return [age.mean(), age.std(), cost.mean(), cost.std(), np.corrcoef(age, cost)[0, 1], share]

    for found, wanted in zip(described(drawn), described(records), strict=True):
        assert found == pytest.approx(wanted, rel=0.03)


def test_G2_a_number_whose_own_cells_are_all_cells_has_a_pooled_covariance() -> None:
    """Found by the coupled audit: of three columns only this one has two cells, and the run fell over
    after the charge."""
    flat = Column("flat", "nominal", levels=("only",))
    schema = Schema((flat, COST, AGE))
    records = secret(schema, np.zeros((40, 3)), {1: np.full(40, 7.0), 2: np.full(40, 30.0)})

    drawn = sample(ran(Modips(), records)[0], 50, seed=1)

    assert drawn.rows == 50


@pytest.mark.parametrize("covariance", ["pooled", "cells"])
def test_F_the_smallest_epsilon_for_persons_who_are_replaced_ends_in_rows(
    covariance: Any,
) -> None:
    """Noise of scale 2^55: its variance was divided by zero, after the charge."""
    schema = person(Schema((SEX, replace(COST, decimals=None, edges=(0.0, 1e9)))), 3)
    method = Modips(epsilon=1e-6, relation="replace_one", covariance=covariance)
    records = secret(schema, np.zeros((40, 2)), {1: np.full(40, 7.0)})

    drawn = sample(ran(method, records)[0], 50, seed=1)

    assert drawn.rows == 50


@pytest.mark.parametrize("scale", [1e-3, 0.4, 1.0, 37.5, 2.0**30, 2.0**53, 2.0**61])
def test_F_the_variance_of_the_noise_holds_at_every_scale(scale: float) -> None:
    """Truth: 1 / (2 sinh^2(1 / 2b)) in 60 digits."""
    with mpmath.workdps(60):
        truth = float(1 / (2 * mpmath.sinh(1 / (2 * mpmath.mpf(scale))) ** 2))

    assert NoiseInfo("geometric", scale).variance == pytest.approx(truth, rel=1e-12, abs=1e-300)


def test_a_schema_with_too_many_cells_is_refused_before_anything_is_spent() -> None:
    wide = Column("code", "nominal", levels=tuple(range(3000)))
    schema = Schema((wide, replace(wide, name="b"), AGE))

    with pytest.raises(ResourceLimit, match="cells"):
        Modips().plan(schema, None)


def test_bad_parameters_name_the_parameter() -> None:
    for given, name in (
        ({"epsilon": -1}, "epsilon"),
        ({"split": "thirds"}, "split"),
        ({"covariance": "none"}, "covariance"),
        ({"prior": -0.5}, "prior"),
        ({"noise": "uniform"}, "noise"),
        ({"draws": "fixed"}, "draws"),
        ({"values": "cut"}, "values"),
    ):
        with pytest.raises(ParameterError, match=name):
            Modips(**given)  # type: ignore[arg-type]


def test_a_budget_that_is_a_hair_too_small_is_refused() -> None:
    method, records = Modips(), people(20)
    total = method.plan(MIXED, None).total
    less = replace(total, epsilon=total.epsilon * (1 - Fraction(1, 10**6)))
    held = curator(method, records, less)

    with pytest.raises(PrivacyRefused, match="planned"):
        method.run(held, None)


def _frame(rows: int) -> pl.DataFrame:
    records = people(rows)
    cost = np.where(records.values[:, 3] == COST.missing_code, np.nan, records.number(3))
    return pl.DataFrame(
        {
            "sex": [SEX.levels[c] for c in records.values[:, 0]],
            "area": [AREA.levels[c] for c in records.values[:, 1]],
            "age": records.number(2).astype(np.int64),
            "cost": pl.Series(cost).fill_nan(None),
        }
    )


def test_a_release_from_a_frame_has_numbers_with_their_decimals_and_charges_once(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "ledger"

    found = gb.synthesize(_frame(400), MIXED, Modips(epsilon=2), sets=2, seed=1, ledger=ledger)

    one, two = found.sets
    assert not one.equals(two)
    cost = one["cost"].drop_nulls().to_numpy()
    assert np.allclose(cost, np.round(cost, 1))
    assert 0 < one["cost"].null_count() < len(one)
    assert one["age"].dtype == pl.Int64
    assert len(one["age"].unique()) > 8  # numbers, not the few bins of the column
    assert found.claim.epsilon == 2
    charged = [entry.claim for entry in Ledger.open(ledger).entries() if entry.claim is not None]
    assert [claim.epsilon for claim in charged] == [2]


def test_values_outside_the_bounds_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    frame = _frame(30).with_columns(age=pl.lit(101))
    ledger = tmp_path / "ledger"

    with pytest.raises(GibbousError) as caught:
        gb.synthesize(frame, MIXED, Modips(epsilon=1), seed=1, ledger=ledger)

    assert "101" not in str(caught.value)
    assert not list(Ledger.open(ledger).entries())


def test_values_outside_the_bounds_of_a_clamped_column_count_as_the_bound(tmp_path: Path) -> None:
    schema = Schema((SEX, AREA, replace(AGE, clamp=True), COST))
    frame = _frame(2000).with_columns(age=pl.lit(5000))

    found = gb.synthesize(frame, schema, Modips(epsilon=50), seed=1, ledger=tmp_path / "ledger")

    assert found.sets[0]["age"].mean() > 97


@pytest.mark.parametrize("edges", [(), (5.0,), (9.0, 1.0)], ids=["absent", "one", "reversed"])
def test_bounds_that_are_no_bounds_never_become_a_schema(edges: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="bounds"):
        replace(AGE, edges=edges)


@pytest.mark.slow
def test_no_sets_are_refused_and_a_release_goes_to_disk_and_back(tmp_path: Path) -> None:
    ledger, out = tmp_path / "ledger", tmp_path / "release"
    with pytest.raises(UsageError):
        gb.synthesize(_frame(30), MIXED, Modips(epsilon=1), sets=0, ledger=ledger)

    made = gb.synthesize(_frame(200), MIXED, Modips(epsilon=1), seed=1, ledger=ledger, out=out)
    more = sample_more(load(out), Output(70, seed=5, out=tmp_path / "more.parquet"))

    assert pl.read_parquet(more).height == 70
    back = gb.load(out)
    assert made.tables is not None
    assert back.tables is not None
    drawn = [sample(one.tables, 30, seed=9).number(3) for one in (made, back)]  # type: ignore[arg-type]
    assert np.array_equal(drawn[0], drawn[1])
