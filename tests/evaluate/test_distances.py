"""Marginal and conditional distances and U(X, Z), against Python's own dictionaries and closed forms."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.measure import Options
from gibbous.evaluation.tables import Side, Subject, subject
from gibbous.evaluation.utility import distances
from gibbous.evaluation.utility.margin_scores import GROUPS, Scored, chosen, groups_of, interval

SIZES = (3, 1, 12, 5)


@pytest.mark.parametrize("seed", range(3))
def test_marginal_distance_is_hellinger_of_each_column(seed: int) -> None:
    made = _subject(seed, 700, 400)

    found = distances.marginal(made.real.codes, [made.sets[0].codes])[0].values

    for j, value in enumerate(found):
        a = Counter(made.real.codes.by_column[j].tolist())
        b = Counter(made.sets[0].codes.by_column[j].tolist())
        assert value == pytest.approx(_hellinger(a, b), abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_conditional_distance_weighs_groups_by_their_real_share(seed: int) -> None:
    made = _subject(seed, 300, 60)  # few synthetic rows: some levels are lacking
    real, other = made.real.codes.values, made.sets[0].codes.values

    found = _square(distances.conditional(made.real.codes, [made.sets[0].codes])[0])

    for i, j in itertools.permutations(range(len(SIZES)), 2):
        truth = 0.0
        for level in set(real[:, i].tolist()):
            a = Counter(real[real[:, i] == level, j].tolist())
            b = Counter(other[other[:, i] == level, j].tolist())
            truth += a.total() / len(real) * (_hellinger(a, b) if b else 1.0)
        assert found[i, j] == pytest.approx(truth, abs=1e-7)


def test_equal_tables_have_no_distance_and_disjoint_ones_one() -> None:
    schema = _schema((4, 3))
    zeros, ones = (Codes(schema, np.full((9, 2), v, dtype=np.uint8)) for v in (0, 1))

    for measure in (distances.marginal, distances.conditional):
        same, apart = measure(zeros, [zeros, ones])
        assert (same.values == 0).all()
        assert (apart.values == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_u_is_the_sum_over_combinations_that_occur(seed: int) -> None:
    made = _subject(seed, 500, 350)
    x = Counter(map(tuple, made.real.codes.values.tolist()))
    z = Counter(map(tuple, made.sets[0].codes.values.tolist()))

    fit = distances.whole(made.real, made.sets)[0][0]

    expected = {cell: count * 350 / 500 for cell, count in x.items()}
    truth = math.fsum((e - z[cell]) ** 2 / e for cell, e in expected.items())
    assert fit.value == pytest.approx(truth, rel=1e-12)
    assert fit.cells == len(x)
    assert fit.outside == pytest.approx(sum(c for cell, c in z.items() if cell not in x) / 350)
    assert fit.single == sum(1 for count in x.values() if count == 1) / 500


def test_u_of_a_pair_is_that_of_a_table_of_two_columns() -> None:
    made = _subject(4, 500, 350)
    x = Counter(map(tuple, made.real.codes.values[:, [0, 2]].tolist()))
    z = Counter(map(tuple, made.sets[0].codes.values[:, [0, 2]].tolist()))

    found = dict(distances.pairs(made.real.codes, made.sets[0].codes))[0, 2]

    truth = math.fsum((c * 0.7 - z[cell]) ** 2 / (c * 0.7) for cell, c in x.items())
    assert found.value == pytest.approx(truth, rel=1e-12)


def test_u_of_a_copy_is_zero_and_of_strangers_the_number_of_rows() -> None:
    schema = _schema((4, 3))
    rows = np.array([[0, 0], [0, 0], [1, 2]], dtype=np.uint8)
    real = _side(schema, rows)

    (copy, _), (strangers, _) = distances.whole(real, [real, _side(schema, rows * 0 + 2)])

    assert (copy.value, copy.outside) == (0.0, 0.0)
    assert (strangers.value, strangers.outside) == (pytest.approx(3.0), 1.0)


def test_u_of_rows_wider_than_126_bits_is_found() -> None:
    rng = np.random.default_rng(0)
    schema = _schema((200,) * 20)  # 200^20 = 2^153 combinations
    real = _side(schema, rng.integers(0, 200, (50, 20)).astype(np.uint8))

    fit = distances.whole(real, [real.take(np.arange(25))])[0][0]

    assert (fit.cells, fit.outside) == (50, 0.0)
    assert fit.value == pytest.approx(25 * 0.5**2 / 0.5 + 25 * 0.5)


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [500, 2000])
def test_u_of_rows_drawn_from_the_real_shares_has_mean_k_minus_one(rows: int) -> None:
    """Exact for any number of rows. Mean of 600 draws within 4 spreads (6e-5)."""
    rng = np.random.default_rng(3)
    real = np.minimum(rng.geometric(0.2, 1000), 40)
    counts = np.unique(real, return_counts=True)[1]

    found = np.array(
        [
            distances.Fit.of(counts, rng.multinomial(rows, counts / 1000), rows).value
            for _ in range(600)
        ]
    )

    spread = found.std(ddof=1) / math.sqrt(600)
    assert abs(found.mean() - (len(counts) - 1)) < 4 * spread
    assert spread < 0.05 * len(counts)  # so that 20 % more would be seen


@pytest.mark.statistical
def test_single_records_say_how_many_new_ones_fall_outside() -> None:
    """Good-Turing: the mean over 60 tables of singles less new records outside is 0 (4 spreads)."""
    rng = np.random.default_rng(6)
    law = rng.dirichlet(np.full(400, 0.3))
    gaps = []
    for _ in range(60):
        real, new = rng.choice(400, 500, p=law), rng.choice(400, 5000, p=law)
        cells, counts = np.unique(real, return_counts=True)
        drawn = np.array([(new == c).sum() for c in cells])
        fit = distances.Fit.of(counts, drawn, 5000)
        gaps.append(fit.single - fit.outside)

    assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / math.sqrt(60)
    assert np.std(gaps, ddof=1) < 0.03


def test_findings_have_references_ideals_and_detail() -> None:
    made = _subject(7, 600, 400, sets=2)

    found = {f.name: f for f in distances.findings(made)}

    assert list(found) == [m.name for m in distances.METRICS]
    for finding in found.values():
        assert [name for name, _ in finding.null] == ["bootstrap", "independent"]
        assert len(finding.sets) == 2
        assert finding.value == pytest.approx(np.mean(finding.sets))
    u, outside = found["u_distance"], found["outside_support"]
    assert u.ideal == u.detail[0]["expected"] == u.detail[0]["cells"] - 1
    assert dict(outside.null)["bootstrap"] == 0  # resampled records are records
    marginal = found["marginal_distance"]
    assert marginal.sets[0] == pytest.approx(np.mean([row["distance"] for row in marginal.detail]))
    conditional = found["conditional_distance"]
    assert len(conditional.detail) == len(SIZES) * (len(SIZES) - 1)
    assert conditional.sets[0] == pytest.approx(
        np.mean([row["distance"] for row in conditional.detail])
    )


def test_conditioning_on_chosen_columns_is_named_and_averaged_over_them() -> None:
    made = _subject(7, 600, 400)

    one = {f.name: f for f in distances.findings(made, Options(given=("c2",)))}[
        "conditional_distance"
    ]

    assert one.subject == ("c2",)
    assert {row["given"] for row in one.detail} == {"c2"}
    truth = _square(distances.conditional(made.real.codes, [made.sets[0].codes])[0])[2]
    assert one.value == pytest.approx(np.nanmean(truth))


def test_one_column_has_no_conditional_distance() -> None:
    frame = pl.DataFrame({"c0": ["v0", "v1", "v1"]})

    found = [f.name for f in distances.findings(subject(frame, frame, _schema((2,))))]

    assert found == ["marginal_distance", "u_distance", "outside_support"]


@pytest.mark.parametrize("name", ["marginal", "conditional", "whole"])
def test_jackknife_leaves_out_each_group_of_rows(name: str) -> None:
    made = _subject(3, 500, 130)
    real, other = made.real, made.sets[0]
    group = groups_of(130, GROUPS, 9)
    parts = [other.take(np.flatnonzero(group != g)) for g in range(GROUPS)]

    if name == "whole":
        left = distances.whole(real, [other], seed=9, intervals=1)[0][1]
        truth = [fit for fit, _ in distances.whole(real, parts)]

        assert left == truth
        return
    measure = getattr(distances, name)
    deleted = measure(real.codes, [other.codes], seed=9, intervals=1)[0].deleted
    each = [one.values for one in measure(real.codes, [part.codes for part in parts])]
    np.testing.assert_allclose(deleted, np.stack(each, axis=-1), atol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "least"), [("marginal", 0.93), ("conditional", 0.93), ("outside", 0.93), ("u", 0.88)]
)
def test_intervals_cover_the_mean_over_further_draws(name: str, least: float) -> None:
    """95 % intervals cover in 93 to 97 % of 300 draws (the binomial spread is 1.3 %); those of 0.7 and
    1.5 times their width do not.

    U has a long tail from rare combinations: its intervals cover in about 91 %.
    """
    value, low, high = np.array([draw[name] for draw in _draws()]).T

    def covered(width: float) -> float:
        mean = value.mean()
        inside = (value - width * (value - low) <= mean) & (mean <= value + width * (high - value))
        return float(np.mean(inside))

    assert least < covered(1) < 0.97
    assert covered(0.7) < least
    assert covered(1.5) > 0.97


@functools.cache
def _draws() -> list[dict[str, tuple[float, float, float]]]:
    """Values with their intervals, for draws of synthetic rows from one law."""
    rng = np.random.default_rng(12)
    schema = _schema((4, 5, 3))
    law = rng.dirichlet(np.full(60, 0.5))
    drawn = law * np.exp(rng.standard_normal(60))
    cell = np.stack(np.unravel_index(np.arange(60), (4, 5, 3)), axis=1).astype(np.uint8)

    def side(rows: int, shares: np.ndarray) -> Side:
        codes = Codes(schema, cell[rng.choice(60, rows, p=shares)])
        return Side(codes, pl.DataFrame())

    def bounded(value: float, left: Sequence[float], high: float) -> tuple[float, float, float]:
        return value, *interval(value, np.array(left), 0.0, high)

    real, out = side(400, law), []
    for draw in range(300):
        one = side(500, drawn / drawn.sum())
        found = {}
        for name in ("marginal", "conditional"):
            measure = getattr(distances, name)
            score = measure(real.codes, [one.codes], seed=draw, intervals=1)[0]
            found[name] = (score.mean, *score.interval())
        fit, left = distances.whole(real, [one], seed=draw, intervals=1)[0]
        found["u"] = bounded(fit.value, [f.value for f in left], math.inf)
        found["outside"] = bounded(fit.outside, [f.outside for f in left], 1.0)
        out.append(found)
    return out


def _square(one: Scored) -> np.ndarray:
    """At [i, j] the distance of column j given column i; NaN where i = j."""
    out = np.full((len(SIZES), len(SIZES)), np.nan)
    for (i, j), (forth, back) in zip(chosen(len(SIZES), 2, 0), one.values, strict=True):
        out[i, j], out[j, i] = forth, back
    return out


def _hellinger(a: Counter[int], b: Counter[int]) -> float:
    alike = math.fsum(math.sqrt(a[v] / a.total() * b[v] / b.total()) for v in a)
    return math.sqrt(max(0.0, 1 - alike))


def _schema(sizes: tuple[int, ...]) -> Schema:
    return Schema(
        tuple(
            Column(f"c{j}", "nominal", levels=tuple(f"v{i}" for i in range(size)))
            for j, size in enumerate(sizes)
        )
    )


def _frame(schema: Schema, codes: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({c.name: [c.levels[v] for v in codes[:, j]] for j, c in enumerate(schema)})


def _side(schema: Schema, codes: np.ndarray) -> Side:
    return subject(_frame(schema, codes), _frame(schema, codes), schema).real


def _subject(seed: int, real: int, rows: int, sets: int = 1) -> Subject:
    rng = np.random.default_rng(seed)
    schema = _schema(SIZES)

    def frame(count: int) -> pl.DataFrame:
        columns = [
            np.minimum(rng.geometric(min(0.9, 2 / size), count) - 1, size - 1) for size in SIZES
        ]
        return _frame(schema, np.stack(columns).T)

    return subject(frame(real), [frame(rows) for _ in range(sets)], schema)
