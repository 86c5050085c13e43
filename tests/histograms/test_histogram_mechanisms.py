"""The mechanisms end to end: plans, refusals, mixed tables, the private choice, audits and saboteurs."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError, ParameterError, PrivacyRefused, ResourceLimit
from gibbous.core.schema import Column, Schema
from gibbous.mechanisms.cdf import Cdf
from gibbous.mechanisms.dirichlet import Dirichlet
from gibbous.mechanisms.dp_prior import DpPrior
from gibbous.mechanisms.laplace import Laplace
from gibbous.mechanisms.perturbed_histogram import PerturbedHistogram
from gibbous.mechanisms.smoothed_histogram import SmoothedHistogram

DRAWN = (Dirichlet, DpPrior, SmoothedHistogram)
PAID = (*DRAWN, Cdf)
ALL = (*PAID, PerturbedHistogram, Laplace)
DAYS = tuple(float(datetime.date(2020, m, 1).toordinal()) for m in (1, 7, 12))
MIXED = Schema(
    (
        Column("income", "numeric", edges=(0.0, 40.0, 60.0, 120.0), decimals=2, missing=True),
        Column("age", "numeric", edges=(18.0, 40.0, 65.0, 90.0), integer=True, clamp=True),
        Column("sex", "binary", levels=("f", "m")),
        Column("seen", "date", edges=DAYS),
    )
)
SMALL = Schema(
    (Column("x", "binary", levels=(0, 1)), Column("y", "nominal", levels=("a", "b", "c")))
)


def frame(rows: int = 400) -> pl.DataFrame:
    """Records of every kind of column, with missing incomes and ages outside their bounds."""
    at = np.arange(rows)
    return pl.DataFrame(
        {
            "income": [None if i % 17 == 0 else round(30 + 40 * math.sin(i) ** 2, 2) for i in at],
            "age": [15 + (7 * i) % 80 for i in at],
            "sex": ["f" if i % 3 else "m" for i in at],
            "seen": [datetime.date(2020, 1 + i % 11, 1 + i % 28) for i in at],
        }
    )


# --- plans and refusals


@pytest.mark.parametrize("kind", PAID)
def test_the_file_costs_epsilon_for_any_number_of_rows_and_sets(kind: Any) -> None:
    totals = {
        kind(epsilon=0.1).plan(SMALL, rows, sets).total.epsilon
        for rows, sets in ((1, 1), (10, 1), (10, 7), (10**6, 2))
    }

    assert totals == {Fraction(1, 10)}


@pytest.mark.parametrize("kind", DRAWN)
def test_more_rows_need_a_stronger_prior(kind: Any) -> None:
    few, many = (kind(epsilon=1).plan(SMALL, rows).errors[0][1] for rows in (10, 10_000))

    assert many > few


def test_sets_divide_the_budget_of_dirichlet_and_are_more_rows_of_the_others() -> None:
    def prior(kind: Any, rows: int, sets: int) -> float:
        return dict(kind(epsilon=1).plan(SMALL, rows, sets).errors)["alpha, virtual records a cell"]

    assert prior(Dirichlet, 100, 10) == pytest.approx(100 / math.expm1(0.1), rel=1e-6)
    assert prior(DpPrior, 100, 10) == pytest.approx(prior(DpPrior, 1000, 1), rel=1e-12)
    assert prior(DpPrior, 100, 10) == pytest.approx(1 / math.expm1(1 / 1000), rel=1e-6)


def test_the_beta_binomial_synthesizer_is_the_case_of_two_levels() -> None:
    schema = Schema((Column("x", "binary", levels=(0, 1)),))

    plan = Dirichlet(epsilon=7).plan(schema, 20)

    assert dict(plan.errors)["alpha, virtual records a cell"] == pytest.approx(0.01825, abs=1e-5)


@pytest.mark.parametrize("kind", PAID)
@pytest.mark.parametrize("rows", [None, 0])
def test_a_number_of_rows_is_needed(kind: Any, rows: int | None) -> None:
    with pytest.raises(ParameterError, match="rows"):
        kind().plan(SMALL, rows)


def test_no_sets_are_refused_and_nothing_is_spent(tmp_path: Path) -> None:
    book = tmp_path / "ledger.db"
    for rows, sets in ((5, 0), (0, 1)):
        with pytest.raises(GibbousError):
            gb.synthesize(frame(9), MIXED, Dirichlet(epsilon=1), rows=rows, sets=sets, ledger=book)

    assert not book.exists() or not list(gb.Ledger.open(book).entries())


def test_more_rows_than_an_urn_holds_are_refused() -> None:
    with pytest.raises(ResourceLimit, match="rows"):
        Dirichlet().plan(SMALL, 1 << 32)


@pytest.mark.parametrize("kind", DRAWN)
def test_a_weaker_prior_than_planned_is_refused_before_counting(kind: Any) -> None:
    mechanism = kind(epsilon=1)
    plan = mechanism.plan(SMALL, 20)
    less = dataclasses.replace(
        plan, total=dataclasses.replace(plan.total, epsilon=Fraction("0.99"))
    )

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        release(mechanism, SMALL, np.zeros((5, 2), dtype=int), 20, less)


@pytest.mark.parametrize("kind", DRAWN)
def test_a_prior_that_drowns_the_records_is_said_in_the_plan(kind: Any) -> None:
    plan = kind(epsilon=0.01).plan(MIXED, 100)

    assert any("More than 99.9 %" in text or "more than 99.9 %" in text for text in plan.warnings)
    assert not any("100 %" in text for text in plan.warnings)
    assert not any("uniform over" in text for text in kind(epsilon=50).plan(SMALL, 2).warnings)


# --- mixed tables, from frame to frame


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_mixed_tables_come_back_within_their_public_bounds(
    kind: Any, relation: Any, tmp_path: Path
) -> None:
    found = gb.synthesize(
        frame(), MIXED, kind(epsilon=20, relation=relation), rows=120, ledger=tmp_path / "l.db"
    )

    drawn = pl.DataFrame(found.sets[0])
    assert drawn.columns == list(MIXED.names)
    assert drawn.height == 120
    assert drawn["income"].drop_nulls().is_between(0, 120).all()
    assert drawn["income"].drop_nulls().round(2).equals(drawn["income"].drop_nulls())
    assert drawn["age"].is_between(18, 90).all()
    assert drawn["age"].dtype.is_integer()
    assert set(drawn["sex"]) <= {"f", "m"}
    assert drawn["seen"].is_between(datetime.date(2020, 1, 1), datetime.date(2020, 12, 1)).all()
    assert found.claim.epsilon == 20
    assert found.claim.relation == relation


@pytest.mark.parametrize("kind", ALL)
def test_a_large_budget_keeps_the_margins_of_a_mixed_table(kind: Any, tmp_path: Path) -> None:
    found = gb.synthesize(
        frame(2000), MIXED, kind(epsilon=1e4), rows=2000, ledger=tmp_path / "l.db", understand=True
    )

    drawn = pl.DataFrame(found.sets[0])
    share = float((drawn["sex"] == "m").mean() or 0)
    young = float((drawn["age"] < 40).mean() or 0)
    # Rows of a Dirichlet posterior have twice the variance of a sample: .015 and .0075; neither they
    # nor the noise have a seed. Uniform codes would be 1/2 and 1/4;
    true = float((frame(2000)["age"] < 40).mean() or 0)
    assert share == pytest.approx(1 / 3, abs=0.085)
    assert young == pytest.approx(true, abs=0.085)
    assert drawn["income"].null_count() / 2000 == pytest.approx(1 / 17, abs=0.06)


def test_bins_that_were_chosen_by_a_rule_are_those_of_the_release(tmp_path: Path) -> None:
    one = PerturbedHistogram(epsilon=20, bins="scott", scale="paid", most=12)

    found = gb.synthesize(frame(2000), MIXED, one, ledger=tmp_path / "l.db", out=tmp_path / "out")

    again = gb.load(tmp_path / "out")
    assert found.schema["income"].bins > 3
    assert again.schema == found.schema
    assert again.schema["age"].source("bins") == "discovered"
    assert pl.DataFrame(found.sets[0])["age"].is_between(18, 90).all()


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Laplace, PerturbedHistogram])
def test_the_nearest_table_holds_less_phantom_mass_than_a_clipped_one(
    kind: Any, tmp_path: Path
) -> None:
    # 12 of 4,096 cells hold 2,000 records; clipped, empty cells get about half a count each: 2,000.
    # Seeds cannot reach the noise: the gap of .3 is over 20 standard deviations of either share.
    schema = Schema(tuple(Column(f"x{j}", "nominal", levels=tuple(range(8))) for j in range(4)))
    held = pl.DataFrame({f"x{j}": [(i % 12) // (1 + j) % 8 for i in range(2000)] for j in range(4)})
    true = set(held.rows())

    shares = []
    for fit in ("clip", "rake"):
        found = gb.synthesize(
            held, schema, kind(epsilon=1, fit=fit), rows=5000, ledger=tmp_path / f"{fit}.db"
        )
        drawn = pl.DataFrame(found.sets[0]).rows()
        shares.append(sum(row not in true for row in drawn) / len(drawn))

    assert shares[0] > 0.4
    assert shares[1] < shares[0] - 0.3


# --- sets and levels


@pytest.mark.statistical
def test_dirichlet_sets_differ_more_than_sets_of_one_fixed_law() -> None:
    # A fixed law has variance p q / m; Dirichlet probabilities add (m - 1) / (N + C alpha + 1) of it.
    schema = Schema((Column("x", "binary", levels=(0, 1)),))
    values = np.repeat([[0], [1]], 50, axis=0)
    sets, rows, runs = 3000, 20, 3
    between = {}
    for kind in (Dirichlet, DpPrior):
        drawn = [
            release(kind(epsilon=3.0 * sets), schema, values, rows, sets=sets) for _ in range(runs)
        ]
        ones = np.concatenate([one.values[:, 0] for one in drawn if isinstance(one, Codes)])
        shares = ones.reshape(runs * sets, rows).mean(axis=1)
        between[kind] = float(shares.var(ddof=1)) / (0.25 / rows)

    alpha = rows / math.expm1(3)
    wanted = 1 + (rows - 1) / (100 + 2 * alpha + 1)
    # The standard error of a variance of 9,000 sets is 1.5 % of it; nothing here has a seed.
    assert between[Dirichlet] == pytest.approx(wanted, rel=0.085)
    assert between[DpPrior] == pytest.approx(1, rel=0.085)
    assert wanted > 1.18


def test_every_pair_of_levels_can_be_drawn() -> None:
    drawn = release(DpPrior(epsilon=0.01), SMALL, np.zeros((3, 2), dtype=int), 600)

    assert isinstance(drawn, Codes)
    assert {tuple(r) for r in drawn.values.tolist()} == set(itertools.product(range(2), range(3)))
