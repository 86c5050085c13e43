"""multiple_synthesis: the posterior predictive law of exact statistics, without any claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbous as gb
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.schema import Column, Schema
from gibbous.encode.encode import encode
from gibbous.mechanisms.multiple_synthesis import MultipleSynthesis
from tests.mechanisms.linked_columns import MIXED, SCHEMA, linked, people

COIN = Schema((Column("y", "binary", levels=("no", "yes")),))


def drawn(rows: int, sets: int, records: int = 2_000, **given: Any) -> Any:
    return gb.synthesize(
        people(records),
        MIXED,
        MultipleSynthesis(**given),
        rows=rows,
        sets=sets,
        seed=1,
        ledger=gb.Ledger.ephemeral(),
    )


def test_it_makes_no_claim_and_says_so() -> None:
    plan = MultipleSynthesis().plan(MIXED, 10, 2)

    assert not plan.total.is_dp
    assert plan.numbers == (1, 2)
    assert "no guarantee" in plan.warnings[0]


@pytest.mark.statistical
def test_counts_of_sets_follow_the_beta_binomial_law() -> None:
    """12 of 30 records say yes, prior 1 + 1: sets of 20 rows; chi-square at level 1e-5."""
    values = np.repeat([[1], [0]], [12, 18], axis=0)
    sets, rows = 800, 20

    found = release(MultipleSynthesis(prior=2.0), COIN, values, rows, sets=sets)

    assert isinstance(found, Codes)
    counts = found.values.reshape(sets, rows).sum(axis=1)
    law = stats.betabinom(rows, 13, 19).pmf(np.arange(rows + 1))
    often = law * sets >= 5
    seen = np.bincount(counts, minlength=rows + 1)
    observed = np.append(seen[often], seen[~often].sum())
    expected = np.append(law[often], law[~often].sum()) * sets
    assert stats.chisquare(observed, expected).pvalue > 1e-5
    # Rows of the fitted law, without a posterior, have too small a variance: the test is not blind.
    # The ratio is 1.58, known within 5 %: 1.2 is 4.8 standard errors away.
    assert counts.var() > 1.2 * stats.binom(rows, 0.4).var()


@pytest.mark.statistical
def test_numbers_keep_means_spreads_and_their_relation_within_cells() -> None:
    real, synthetic = people(2_000), drawn(4_000, 1).sets[0]

    for sex in ("f", "m"):
        one, two = (f.filter(f["sex"] == sex).drop_nulls() for f in (real, synthetic))
        # The standard error of a mean of about 900 heights of sd 7 is .25; both tables err.
        assert abs(one["height"].mean() - two["height"].mean()) < 1.5
        assert abs(one["height"].std() - two["height"].std()) < 0.8
        r = [np.corrcoef(f["height"], f["weight"])[0, 1] for f in (one, two)]
        assert abs(r[0] - r[1]) < 0.12
    share = synthetic["weight"].null_count() / 4_000
    assert abs(share - 0.1) < 0.06  # 6 standard errors of posterior and rows


def test_values_lie_in_the_schema_at_its_precision() -> None:
    found = drawn(500, 2)

    for frame in found.sets:
        codes = encode(frame, MIXED)
        assert codes.rows == 500
        assert (frame["height"] * 10 - (frame["height"] * 10).round(0)).abs().max() < 1e-6


@pytest.mark.statistical
def test_sets_have_parameters_of_their_own() -> None:
    """B exceeds W by the posterior's share: with N = 50 n, B is V0 and hardly any W."""
    found = drawn(5_000, 20, records=100)
    means = np.array([frame["height"].mean() for frame in found.sets])
    variance = float(people(100)["height"].var())

    # B estimates (1/100 + 1/5000) sigma^2 with 19 df: outside with probability 3e-7. Sets of one law
    # would have 1/50 of it.
    assert 1 / 10 < means.var(ddof=1) / (variance * (1 / 100 + 1 / 5_000)) < 4


def test_inference_takes_it_as_posterior_draws_of_each_set() -> None:
    found = gb.infer.Analysis(drawn(500, 3), records=500)

    assert found.facts.draws == "posterior"
    assert found.facts.sanitized == "per_set"
    assert not any("Binning" in words for words in found.facts.biases)


@pytest.mark.parametrize("covariance", ["pooled", "cells"])
@pytest.mark.parametrize("records", [0, 1, 3])
def test_hardly_any_records_are_an_ordinary_table(records: int, covariance: Any) -> None:
    found = drawn(6, 2, records=records, covariance=covariance)

    assert [len(frame) for frame in found.sets] == [6, 6]


def test_categories_alone_need_no_numbers() -> None:
    found = release(MultipleSynthesis(), SCHEMA, linked(3_000), 3_000)

    assert isinstance(found, Codes)
    assert found.numbers == ()
    one, two = (np.bincount(v @ [6, 2, 1], minlength=12) for v in (linked(3_000), found.values))
    # .027 on average with a standard deviation of .007: posterior shares, then 3,000 rows.
    assert np.abs(one - two).sum() / 6_000 < 0.08


def test_what_cannot_be_drawn_is_refused_before_the_records_are_read() -> None:
    wide = Schema(tuple(Column(f"x{j}", "nominal", levels=tuple(range(30))) for j in range(6)))

    with pytest.raises(ResourceLimit, match="cells"):
        MultipleSynthesis().plan(wide, 10)
    with pytest.raises(ParameterError, match="without a number of rows"):
        MultipleSynthesis().plan(MIXED, None)
    with pytest.raises(ParameterError, match="prior"):
        MultipleSynthesis(prior=-1)
