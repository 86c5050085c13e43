"""Risk metrics that count: every one against a loop over rows, on small tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.risk.attribution import attribution, cap, disco
from gibbous.evaluation.risk.diversity import diversity, group_sizes
from gibbous.evaluation.risk.groups import Cells, Tally, packed
from gibbous.evaluation.risk.intruder import mean_attack, mode_attack
from gibbous.evaluation.risk.linking import belief, largest
from gibbous.evaluation.risk.uniques import (
    replicated_share,
    right_match,
    stranger_share,
    unique_share,
)
from gibbous.evaluation.tables import Side, side, typed

SIZES = (3, 4, 2, 5)
NAMES = ("a", "b", "c", "d")
SCHEMA = Schema(
    tuple(
        Column(n, "ordinal" if n == "d" else "nominal", levels=tuple(range(s)))
        for n, s in zip(NAMES, SIZES, strict=True)
    )
)
KEYS, SENSITIVE = ("a", "b"), "d"


def made(values: np.ndarray, schema: Schema = SCHEMA) -> Side:
    codes = Codes(schema, np.asfortranarray(values.astype(schema.code_dtype())))
    blank = pl.DataFrame({c.name: [] for c in schema})
    return Side(codes, typed(blank, codes))


def drawn(rows: int, seed: int) -> Side:
    """Skewed columns of which the last depends on the first."""
    rng = np.random.default_rng(seed)
    values = np.stack(
        [np.minimum((rng.random(rows) ** 2 * s).astype(int), s - 1) for s in SIZES], 1
    )
    tied = rng.random(rows) < 0.5
    values[tied, 3] = values[tied, 0]
    return made(values)


def tuples(table: Side, columns: Sequence[str] = NAMES) -> list[tuple[int, ...]]:
    places = [table.schema.index(c) for c in columns]
    return [tuple(int(v) for v in row) for row in table.codes.values[:, places]]


def matches(release: Side, key: tuple[int, ...], keys: Sequence[str] = KEYS) -> list[int]:
    known = zip(tuples(release, keys), tuples(release, (SENSITIVE,)), strict=True)
    return [value for other, (value,) in known if other == key]


PAIRS = [(drawn(40, seed), drawn(30, seed + 100)) for seed in range(4)]


@pytest.mark.parametrize(("real", "release"), PAIRS)
def test_the_mode_intruder_agrees_with_a_loop(real: Side, release: Side) -> None:
    margin = Counter(v for (v,) in tuples(release, (SENSITIVE,)))

    def best(values: list[int]) -> int:
        count = Counter(values)
        return min(count, key=lambda v: (-count[v], -margin[v], v))

    everyone = [v for (v,) in tuples(release, (SENSITIVE,))]
    right = sum(
        best(matches(release, key) or everyone) == truth
        for key, (truth,) in zip(tuples(real, KEYS), tuples(real, (SENSITIVE,)), strict=True)
    )

    found = mode_attack(real, release, KEYS, SENSITIVE)

    assert found.value == pytest.approx(right / real.rows, abs=1e-12)
    rights = [r["value"] * r["records"] for r in found.detail if r["records"]]
    assert sum(rights) == pytest.approx(right)


@pytest.mark.parametrize(("real", "release"), PAIRS)
def test_the_mean_intruder_agrees_with_a_loop(real: Side, release: Side) -> None:
    everyone = [v for (v,) in tuples(release, (SENSITIVE,))]
    errors = [
        abs(np.mean(matches(release, key) or everyone) - truth)
        for key, (truth,) in zip(tuples(real, KEYS), tuples(real, (SENSITIVE,)), strict=True)
    ]

    found = mean_attack(real, release, KEYS, SENSITIVE)

    assert found.value == pytest.approx(np.mean(errors), abs=1e-12)
    assert found.detail[0]["value"] == pytest.approx(np.sqrt(np.mean(np.square(errors))), abs=1e-12)


@pytest.mark.parametrize(("real", "release"), PAIRS)
def test_attribution_agrees_with_a_loop(real: Side, release: Side) -> None:
    shares, rows, tied = [], [], []
    for key, (truth,) in zip(tuples(real, KEYS), tuples(real, (SENSITIVE,)), strict=True):
        values = matches(release, key)
        rows.append(len(values))
        shares.append(values.count(truth) / len(values) if values else math.nan)
        tied.append(len(set(values)) == 1)

    share, count, single = attribution(real, release, KEYS, SENSITIVE)

    np.testing.assert_allclose(share, shares, atol=1e-12)
    assert count.tolist() == rows
    assert single.tolist() == tied
    right = [t and s == 1 for s, t in zip(shares, tied, strict=True)]
    assert disco(real, release, KEYS, SENSITIVE).value == pytest.approx(np.mean(right))
    found = cap(real, release, KEYS, SENSITIVE)
    variants = {r["about"]: r["value"] for r in found.detail}
    assert found.value == pytest.approx(np.nan_to_num(shares).mean())
    assert variants["matched records only"] == pytest.approx(np.nanmean(shares))
    if any(tied):
        assert variants["targeted (TCAP)"] == pytest.approx(sum(right) / sum(tied))


@pytest.mark.parametrize(("real", "release"), PAIRS)
def test_uniqueness_agrees_with_a_loop(real: Side, release: Side) -> None:
    keys = ("a", "b", "d")
    mine, theirs = Counter(tuples(real, keys)), Counter(tuples(release, keys))
    outside = drawn(25, 9)

    assert unique_share(release, keys).value == sum(n == 1 for n in theirs.values()) / release.rows
    both = sum(n == 1 and theirs[key] == 1 for key, n in mine.items())
    assert replicated_share(real, release, keys).value == both / real.rows
    strange = sum(mine[key] == 0 and theirs[key] == 1 for key in tuples(outside, keys))
    assert stranger_share(outside, real, release, keys).value == strange / outside.rows


@pytest.mark.parametrize(("real", "release"), PAIRS)
def test_link_gain_is_both_sides_of_bayes_rule(real: Side, release: Side) -> None:
    before = belief(real, release, KEYS, SENSITIVE)
    after = belief(real, release, (*KEYS, "c"), SENSITIVE)

    rows = tuples(release)
    for (a, b, c, d), prior, posterior in zip(tuples(real), before, after, strict=True):
        x = [r for r in rows if r[:2] == (a, b)]
        xz = [r for r in x if r[2] == c]
        xy = [r for r in x if r[3] == d]
        if not xz:
            assert math.isnan(posterior)
            continue
        assert prior == pytest.approx(len(xy) / len(x))
        if xy:
            right = (sum(r[2] == c for r in xy) / len(xy)) / (len(xz) / len(x))
            assert posterior / prior == pytest.approx(right)
    known = ~np.isnan(after)
    gain = after[known].mean() / before[known].mean()
    assert largest(real, release, KEYS, SENSITIVE, ("c",)).value == pytest.approx(gain)


@pytest.mark.parametrize(("_real", "release"), PAIRS)
def test_k_and_l_agree_with_a_loop(_real: Side, release: Side) -> None:
    groups: dict[Any, list[int]] = {}
    for key, (value,) in zip(tuples(release, KEYS), tuples(release, (SENSITIVE,)), strict=True):
        groups.setdefault(key, []).append(value)

    def entropy(values: list[int]) -> float:
        shares = np.array(list(Counter(values).values())) / len(values)
        return float(-(shares * np.log(shares)).sum())

    sizes = [len(g) for g in groups.values()]
    small = {r["group of at most"]: r["share of rows"] for r in group_sizes(release, KEYS).detail}
    found = diversity(release, KEYS, SENSITIVE)
    rows = {r["of a group"]: r["value"] for r in found.detail}

    assert group_sizes(release, KEYS).value == min(sizes)
    assert small[3] == pytest.approx(sum(s for s in sizes if s <= 3) / release.rows)
    assert found.value == pytest.approx(math.exp(min(map(entropy, groups.values()))))
    assert rows["distinct values, least"] == min(len(set(g)) for g in groups.values())
    assert rows["distinct values, mean over rows"] == pytest.approx(
        sum(len(set(g)) * len(g) for g in groups.values()) / release.rows
    )
    assert rows["one value only, share of rows"] == pytest.approx(
        sum(len(g) for g in groups.values() if len(set(g)) == 1) / release.rows
    )


def test_uniform_groups_have_as_many_effective_values_as_levels() -> None:
    values = np.array([[0, 0, 0, d] for d in range(5)] * 2)

    found = diversity(made(values), KEYS, SENSITIVE)

    assert found.value == pytest.approx(5.0)


def test_keys_pack_without_a_table_of_all_combinations() -> None:
    # 20 columns of 100 levels: 1e40 combinations, which fit no word.
    schema = Schema(tuple(Column(f"c{i}", "nominal", levels=tuple(range(100))) for i in range(20)))
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 100, (200, 20))
    twice = np.concatenate([rows, rows[:50]])
    almost = rows.copy()
    almost[:, 19] = (almost[:, 19] + 1) % 100

    one, two, three = packed(
        [made(twice, schema), made(rows, schema), made(almost, schema)], schema.names
    )

    assert np.array_equal(one[:200], two)
    assert np.array_equal(one[200:], two[:50])
    assert len(np.unique(two)) == 200
    assert not np.isin(three, two).any()


def test_no_rows_on_one_side_is_answered() -> None:
    nothing = np.zeros(0, dtype=np.int64)

    assert Tally.of(nothing).at(np.array([3])).tolist() == [0]
    assert len(Cells.of(nothing, nothing, 4).modes()[0]) == 0


def test_no_common_key_falls_back_to_the_margin() -> None:
    real = made(np.array([[0, 0, 0, 2], [0, 1, 0, 1]]))
    release = made(np.array([[2, 3, 0, 2], [2, 3, 0, 2], [1, 3, 0, 4]]))

    assert mode_attack(real, release, KEYS, SENSITIVE).value == 0.5
    assert mean_attack(real, release, KEYS, SENSITIVE).value == pytest.approx((2 / 3 + 5 / 3) / 2)
    assert cap(real, release, KEYS, SENSITIVE).value == 0
    assert math.isnan(largest(real, release, KEYS, SENSITIVE, ("c",)).value)


def test_missing_numbers_are_left_out_of_the_mean() -> None:
    schema = Schema(
        (
            Column("k", "nominal", levels=("x", "y")),
            Column("v", "numeric", edges=(0, 10, 20), missing=True),
        )
    )
    real = side(pl.DataFrame({"k": ["x", "x", "y"], "v": [1.0, None, 4.0]}), schema)
    release = side(pl.DataFrame({"k": ["x", "x", "x"], "v": [3.0, 5.0, None]}), schema)

    found = mean_attack(real, release, ("k",), "v")

    assert found.value == pytest.approx((abs(4 - 1) + abs(4 - 4)) / 2)
    empty = side(
        pl.DataFrame({"k": ["x"], "v": [None]}, schema={"k": pl.String, "v": pl.Float64}), schema
    )
    assert math.isnan(mean_attack(empty, release, ("k",), "v").value)


def test_a_whole_population_leaves_no_doubt_about_a_match() -> None:
    assert right_match(7, 3, 1.0) == 1.0
    assert math.isnan(right_match(0, 3, 0.5))
    assert right_match(10, 5, 0.5) == pytest.approx(5 / (5 + 5))


@pytest.mark.statistical
def test_the_match_estimator_agrees_with_matching_in_simulated_samples() -> None:
    """The mean over 200 samples is within 2 % of the truth; a doubled pair term would be far off."""
    rng = np.random.default_rng(5)
    population = rng.negative_binomial(0.4, 0.1, 4000)  # people in each of 4,000 key cells
    fraction = 0.2
    alone, faces, single, double = 0, 0, 0, 0
    for _ in range(200):
        sample = rng.binomial(population, fraction)
        alone += int((sample == 1).sum())
        faces += int(population[sample == 1].sum())
        single, double = single + int((sample == 1).sum()), double + int((sample == 2).sum())

    found = right_match(single, double, fraction)

    assert found == pytest.approx(alone / faces, rel=0.02)
    assert right_match(single, 2 * double, fraction) < 0.9 * alone / faces


def test_keys_that_overflow_a_word_do_not_forget_their_first_column() -> None:
    # 12 columns of 64 levels are 72 bits: radix alone would push the first two out.
    schema = Schema(tuple(Column(f"c{i}", "nominal", levels=tuple(range(64))) for i in range(12)))
    rows = np.full((2, 12), 5)
    rows[1, 0] = 6

    (keys,) = packed([made(rows, schema)], schema.names)

    assert keys[0] != keys[1]
