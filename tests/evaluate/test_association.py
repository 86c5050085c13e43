"""Associations from cells of pair tables, against formulas on the raw rows and against scipy."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from gibbous.core.finding import Finding
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.tables import Subject, subject
from gibbous.evaluation.utility import association
from gibbous.evaluation.utility.margin_scores import GROUPS, chosen, groups_of

LEVELS = ("a", "b", "c", "d")
SCHEMA = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("ward", "nominal", levels=LEVELS, missing=True),
        Column("grade", "ordinal", levels=(1, 2, 3, 4, 5)),
        Column("age", "numeric", edges=(0, 20, 40, 60, 100), missing=True),
        Column("place", "nominal", levels=LEVELS),
        Column("pay", "numeric", edges=(0, 10, 100, 1000)),
        Column("day", "date", edges=(737000, 737100, 737200)),
    )
)


def test_each_pair_has_the_statistic_of_its_kinds() -> None:
    kinds = {
        (SCHEMA.names[i], SCHEMA.names[j]): association.statistic(
            SCHEMA.columns[i], SCHEMA.columns[j]
        )
        for i, j in chosen(len(SCHEMA), 2, 0)
    }

    assert kinds["sex", "ward"] == kinds["ward", "place"] == "Cramer's V"
    assert kinds["sex", "grade"] == kinds["grade", "age"] == "rank correlation"
    assert kinds["ward", "grade"] == kinds["age", "place"] == "correlation ratio"


@pytest.mark.parametrize("seed", range(3))
def test_associations_are_those_of_the_raw_rows(seed: int) -> None:
    made = _subject(seed, 400)
    codes = made.real.codes

    found = association.associations([codes])[0].values

    for value, (i, j) in zip(found, chosen(len(SCHEMA), 2, 0), strict=True):
        assert value == pytest.approx(_truth(codes.by_column[i], codes.by_column[j], i, j))


def test_perfect_association_is_one_whatever_the_statistic() -> None:
    codes, counts = np.arange(4), np.full(4, 25.0)

    assert association.cramer(codes, codes, counts) == pytest.approx(1)
    assert association.rank_correlation(codes, codes, counts) == pytest.approx(1)
    assert association.rank_correlation(codes, codes[::-1], counts) == pytest.approx(-1)
    assert association.correlation_ratio(codes, codes, counts) == pytest.approx(1)


def test_a_constant_column_or_no_rows_have_association_zero() -> None:
    zeros, codes, counts = np.zeros(4, dtype=int), np.arange(4), np.full(4, 25.0)
    none = np.array([], dtype=int)

    for measure in (
        association.cramer,
        association.rank_correlation,
        association.correlation_ratio,
    ):
        assert measure(zeros, codes, counts) == 0
        assert measure(codes, zeros, counts) == 0
        assert measure(none, none, none.astype(float)) == 0


@pytest.mark.statistical
def test_bias_corrections_take_away_what_independent_columns_score() -> None:
    """200 tables of 300 rows of independent columns with 10 x 10 levels.

    Without correction V^2 has mean 81 / 300 / 9 = 0.03, the square of the ratio 9 / 299 = 0.03. The
    unclipped corrected squares have mean 0; clipped at 0 they stay under a third of the former.
    """
    rng = np.random.default_rng(2)
    squares = []
    for _ in range(200):
        table = np.bincount(rng.integers(0, 100, 300), minlength=100).astype(float)
        cell = np.flatnonzero(table)
        i, j = np.divmod(cell, 10)
        squares.append(
            (
                association.cramer(i, j, table[cell]) ** 2,
                association.correlation_ratio(i, j, table[cell]) ** 2,
            )
        )

    assert (np.mean(squares, axis=0) < 0.01).all()
    assert (np.mean(squares, axis=0) > 0.001).all()


def test_correlations_are_those_of_numpy_on_complete_pairs() -> None:
    made = _subject(5, 300)
    numbers = made.real.numbers[:, [3, 5, 6]]

    found = association.correlations(made.real, [3, 5, 6]).values

    for value, (i, j) in zip(found, [(0, 1), (0, 2), (1, 2)], strict=True):
        pair = numbers[:, [i, j]]
        pair = pair[~np.isnan(pair).any(axis=1)]
        assert value == pytest.approx(np.corrcoef(pair.T)[0, 1], abs=1e-12)
    assert np.isnan(numbers).any()


def test_jackknife_leaves_out_each_group_of_rows() -> None:
    side = _subject(5, 300).real
    group = groups_of(300, GROUPS, 4)
    parts = [side.take(np.flatnonzero(group != g)) for g in range(GROUPS)]

    pairs = association.associations([side.codes], seed=4, intervals=1)[0].deleted
    numbers = association.correlations(side, [3, 5, 6], seed=4, jackknife=True).deleted

    each = [association.associations([part.codes])[0].values for part in parts]
    np.testing.assert_allclose(pairs, np.stack(each, axis=-1), atol=1e-12)
    beside = [association.correlations(part, [3, 5, 6]).values for part in parts]
    np.testing.assert_allclose(numbers, np.stack(beside, axis=-1), atol=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_cover_the_mean_over_further_draws() -> None:
    """95 % intervals cover in 93 to 97 % of 200 draws (the binomial spread is 1.5 %); those of 0.7 and
    1.5 times their width do not."""
    made = _subject(0, 500)
    found: dict[str, list[Finding]] = {"association": [], "correlation": []}
    for draw in range(1, 201):
        one = replace(made, sets=_subject(draw, 300, shift=0.7).sets, seed=draw)
        for finding in association.findings(one):
            found[finding.name].append(finding)

    for mine in found.values():
        value = np.array([f.value for f in mine])
        low, high = np.array([f.interval for f in mine if f.interval]).T
        assert len(low) == 200

        def covered(
            width: float, value: np.ndarray = value, low: np.ndarray = low, high: np.ndarray = high
        ) -> float:
            mean = value.mean()
            down, up = value - width * (value - low), value + width * (high - value)
            return float(np.mean((down <= mean) & (mean <= up)))

        assert 0.93 < covered(1) < 0.97
        assert covered(0.7) < 0.93
        assert covered(1.5) > 0.97


def test_findings_compare_each_pair() -> None:
    made = _subject(1, 500, sets=2)

    found = {f.name: f for f in association.findings(made)}

    both = found["association"], found["correlation"]
    assert [len(f.detail) for f in both] == [21, 3]
    for finding in both:
        apart = [abs(row["real"] - row["synthetic"]) for row in finding.detail]
        assert finding.sets[0] == pytest.approx(np.mean(apart))
        assert finding.value == pytest.approx(np.mean(finding.sets))
        assert dict(finding.null).keys() == {"bootstrap", "independent"}
        assert dict(finding.null)["bootstrap"] < dict(finding.null)["independent"]
    assert {row["statistic"] for row in both[0].detail} == {
        "rank correlation",
        "correlation ratio",
        "Cramer's V",
    }


def test_too_few_columns_are_not_defined_and_say_why() -> None:
    frame = pl.DataFrame({"sex": ["f", "m"]})
    made = subject(frame, frame, Schema((SCHEMA["sex"],)))

    found = association.findings(made)

    assert all(math.isnan(f.value) and f.note.startswith("Not defined") for f in found)
    assert "numeric" in found[1].note


def _truth(x: np.ndarray, y: np.ndarray, i: int, j: int) -> float:
    a, b = SCHEMA.columns[i], SCHEMA.columns[j]
    kind = association.statistic(a, b)
    if kind == "Cramer's V":
        return _bergsma(x, y)
    keep = np.ones(len(x), dtype=bool)
    for column, codes in ((a, x), (b, y)):
        if column.kind != "nominal":
            keep &= codes < column.bins
    x, y = x[keep], y[keep]
    if kind == "rank correlation":
        return float(stats.spearmanr(x, y).statistic)
    groups, ordered = (x, y) if a.kind == "nominal" else (y, x)
    return _kelley(groups, stats.rankdata(ordered))


def _bergsma(x: np.ndarray, y: np.ndarray) -> float:
    table = np.array([[np.sum((x == u) & (y == v)) for v in np.unique(y)] for u in np.unique(x)])
    n, (r, c) = table.sum(), table.shape
    phi2 = stats.chi2_contingency(table, correction=False).statistic / n
    phi2 = max(0, phi2 - (r - 1) * (c - 1) / (n - 1))
    return math.sqrt(phi2 / min(r - (r - 1) ** 2 / (n - 1) - 1, c - (c - 1) ** 2 / (n - 1) - 1))


def _kelley(groups: np.ndarray, ranks: np.ndarray) -> float:
    parts = [ranks[groups == g] for g in np.unique(groups)]
    within = sum(float(((part - part.mean()) ** 2).sum()) for part in parts) / (
        len(ranks) - len(parts)
    )
    return math.sqrt(max(0.0, 1 - within / float(ranks.var(ddof=1))))


def _subject(seed: int, rows: int, sets: int = 1, shift: float = 1.0) -> Subject:
    rng = np.random.default_rng(seed)

    def frame() -> pl.DataFrame:
        hidden = shift * rng.normal(size=rows)
        grade = np.clip(np.round(hidden + rng.normal(size=rows) + 3), 1, 5).astype(int)
        ward = np.clip((hidden * 1.5 + rng.normal(size=rows) + 2).astype(int), 0, 4)
        age = np.clip(40 + 20 * hidden + 5 * rng.normal(size=rows), 0, 99.9)
        days = rng.integers(0, 200, rows) // np.maximum(grade, 1)
        start = datetime.date.fromordinal(737000)
        return pl.DataFrame(
            {
                "sex": np.where(hidden + rng.normal(size=rows) > 0, "m", "f"),
                "ward": [None if w == 4 else LEVELS[w] for w in ward],
                "grade": grade,
                "age": [None if u < 0.1 else a for u, a in zip(rng.random(rows), age, strict=True)],
                "place": np.array(LEVELS)[(ward + rng.integers(0, 2, rows)) % 4],
                "pay": np.clip(np.exp(3 + hidden), 0, 1000),
                "day": [start + datetime.timedelta(days=int(d)) for d in days],
            }
        )

    return subject(frame(), [frame() for _ in range(sets)], SCHEMA)
