"""Bins: the rules, their public inputs, what is refused, and what a paid scale costs and finds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.errors import ParameterError, PrivacyRefused, ResourceLimit, UsageError
from gibbous.core.number_grid import grid_of, to_grid
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.perturbed_histogram import PerturbedHistogram
from gibbous.mechanisms.smoothed_histogram import SmoothedHistogram
from gibbous.privacy.curator import Curator
from gibbous.structure.bin_counts import (
    equal_edges,
    freedman_diaconis,
    quantile_edges,
    scott,
    spread_from_sums,
    sturges,
)
from gibbous.write.release_digest import digest_of
from tests.blinded import blinded
from tests.histograms import exact_laws

INCOME = Column("income", "numeric", edges=(0.0, 50.0, 120.0), decimals=1, missing=True)
SEX = Column("sex", "binary", levels=("f", "m"))
AGE = Column("age", "numeric", edges=(18.0, 65.0, 90.0), integer=True)
MIXED = Schema((INCOME, SEX, AGE))


def curator(
    mechanism: Any, schema: Schema, numbers: dict[int, np.ndarray], rows: int | None
) -> Curator:
    """A curator over made records; codes follow from the numbers, and half of them are 'm'."""
    size = len(next(iter(numbers.values())))
    values = np.zeros((len(schema), size), dtype=schema.code_dtype())
    for j, column in enumerate(schema):
        if column.binned:
            values[j] = np.searchsorted(column.edges[1:-1], numbers[j], side="right")
        else:
            values[j] = np.arange(size) % column.size
    codes = Codes(schema, values.T, secret=True, numbers=tuple(numbers.items()))
    total = mechanism.plan(schema, rows).total
    engine = LocalEngine.from_codes(codes)
    return Curator(engine, total, schema, relation=mechanism.relation)


def made(size: int, seed: int = 1) -> dict[int, np.ndarray]:
    """Incomes with mean 60 and standard deviation 10, ages with 50 and 12."""
    normal = np.sqrt(-2 * np.log1p(-_uniform(size, seed))) * np.cos(
        2 * np.pi * _uniform(size, seed + 9)
    )
    return {
        0: np.clip(60 + 10 * normal, 0, 120),
        2: np.clip(np.rint(50 + 12 * normal[::-1]), 18, 90),
    }


def _uniform(size: int, seed: int) -> np.ndarray:
    return (exact_laws.seeded(seed)(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53


# --- rules


def test_scotts_rule_gives_the_papers_numbers_of_bins() -> None:
    assert [scott(7.0, 1.0, n, 100) for n in (40, 100, 1000)] == [7, 10, 21]


@pytest.mark.parametrize(
    ("rows", "bins"), [(1, 1), (2, 2), (100, 8), (128, 8), (129, 9), (1000, 11)]
)
def test_sturges_rule_counts_doublings(rows: int, bins: int) -> None:
    assert sturges(rows, 100) == bins


def test_freedman_and_diaconis_use_quartiles() -> None:
    assert freedman_diaconis(8.0, 1.0, 1000, 100) == 40
    assert freedman_diaconis(8.0, 2.0, 1000, 100) == 20


def test_more_dimensions_take_wider_bins() -> None:
    assert [scott(34.9, 1.0, 4096, 10**6, d) for d in (1, 2, 4)] == [160, 80, 40]


@pytest.mark.parametrize("spread", [0.0, 1e-300, 1e300])
def test_any_spread_gives_a_number_of_bins_within_its_limits(spread: float) -> None:
    assert scott(1.0, spread, 100, 64) in (1, 64)


@pytest.mark.parametrize("bins", [1, 3, 7, 500])
@pytest.mark.parametrize("column", [INCOME, AGE, Column("d", "date", edges=(737000.0, 737003.0))])
def test_equal_edges_keep_the_bounds_and_increase(column: Column, bins: int) -> None:
    edges = equal_edges(column, bins)

    assert (edges[0], edges[-1]) == (column.edges[0], column.edges[-1])
    assert all(a < b for a, b in zip(edges, edges[1:], strict=False))
    assert len(edges) - 1 <= bins
    if column is INCOME:
        assert len(edges) - 1 == bins
        assert np.ptp(np.diff(edges)) < 1e-9
    else:
        assert all(e == int(e) for e in edges)


def test_the_spread_from_exact_sums_is_the_standard_deviation() -> None:
    grid = grid_of(INCOME)
    numbers = to_grid(made(4000)[0], grid)

    found = spread_from_sums(4000, numbers.sum(), (numbers**2).sum(), grid)

    assert found == pytest.approx(made(4000)[0].round(1).std(), abs=0.01)


def test_quantiles_of_exact_counts_are_those_of_the_records_to_a_narrow_bin() -> None:
    numbers = made(4000)[0]
    grid = np.linspace(0.0, 120.0, 257)

    edges = quantile_edges(tuple(grid), np.histogram(numbers, grid)[0], 8)

    wanted = np.quantile(numbers, np.arange(1, 8) / 8)
    assert len(edges) == 9
    assert np.abs(np.array(edges[1:-1]) - wanted).max() <= 120 / 256


@pytest.mark.parametrize(
    ("counts", "bins", "edges"),
    [
        ([1, 1, 1, 1], 2, (0, 2, 4)),
        ([0, 9, 0, 0], 4, (0, 1, 2, 4)),  # quantiles within one narrow bin are its ends
        ([-5, 30, -20, 25], 2, (0, 2, 4)),  # sums that fall
        ([-1, -2, -3, -4], 2, (0, 4)),
        ([0, 0, 0, 0], 3, (0, 4)),
        ([7, 7, 7, 7], 1, (0, 4)),
    ],
)
def test_noisy_counts_give_cut_points_that_increase(
    counts: list[int], bins: int, edges: tuple[int, ...]
) -> None:
    assert quantile_edges((0, 1, 2, 3, 4), np.array(counts), bins) == edges


@pytest.mark.parametrize("sums", [(-50, 3.0, -1e9), (0, 0, 0), (5, 1e12, 1e30), (1e9, -1e9, 0.0)])
def test_sums_that_noise_ruined_still_give_a_spread(sums: tuple[float, float, float]) -> None:
    found = spread_from_sums(*sums, grid_of(INCOME))

    assert 0.1 <= found <= 60


# --- public rules


@pytest.mark.parametrize("kind", [PerturbedHistogram, SmoothedHistogram])
@pytest.mark.parametrize("rule", ["scott", "freedman_diaconis"])
def test_a_spread_is_never_read_off_the_records(kind: Any, rule: str) -> None:
    one = kind(bins=rule, spreads={"age": 12})

    with pytest.raises(PrivacyRefused, match="income") as caught:
        one.plan(MIXED, 100)

    assert "without noise" in caught.value.allowed
    assert "--set 'spreads={income = ...}'" in caught.value.fix


def test_all_columns_without_a_spread_are_named_at_once() -> None:
    with pytest.raises(PrivacyRefused, match="'income', 'age'"):
        PerturbedHistogram(bins="scott").plan(MIXED, 100)


@pytest.mark.parametrize("kind", [PerturbedHistogram, SmoothedHistogram])
def test_quantiles_that_are_not_paid_for_are_refused(kind: Any) -> None:
    with pytest.raises(PrivacyRefused, match="without paying") as caught:
        kind(bins="quantiles", records=100).plan(MIXED, 100)

    assert "perturbed_histogram with scale='paid'" in caught.value.fix


def test_the_raw_rule_publishes_what_one_record_changes() -> None:
    # Nineteen records at one place and one at the far end, or next to them.
    far, near = np.array([1.0] * 19 + [9.0]), np.array([1.0] * 19 + [1.5])

    bins = [scott(10.0, float(x.std(ddof=1)), 20, 1000) for x in (far, near)]

    assert bins == [5, 70]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"bins": "sturges"}, "records"),
        ({"bins": "scott", "spreads": {"incme": 3}, "records": 9}, "incme"),
    ],
)
def test_incomplete_rules_are_answered(given: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        PerturbedHistogram(**given).plan(MIXED, None)


@pytest.mark.parametrize(
    "spreads", [{"a": 0}, {"a": -1}, {"a": "x"}, [("a",)], 5, {"a": float("nan")}]
)
def test_malformed_spreads_are_refused(spreads: Any) -> None:
    with pytest.raises(ParameterError, match="spreads"):
        PerturbedHistogram(spreads=spreads)


@pytest.mark.parametrize("edges", [(9.0, 1.0), (), (1.0,), (0.0, float("inf"))])
def test_a_numeric_column_needs_bounds_in_order(edges: Any) -> None:
    with pytest.raises(UsageError, match="'x'"):
        Column("x", "numeric", edges=edges)


def test_public_bins_are_in_the_plan_and_in_the_release() -> None:
    one = PerturbedHistogram(
        epsilon=5, bins="scott", spreads={"income": 10, "age": 12}, records=1000
    )
    plan = one.plan(MIXED, 1000)
    desk = curator(one, MIXED, made(1000), 1000)

    found = one.run(desk, 1000)

    # 120 / (3.49 * 10) * 1000^(1/4) and 72 / (3.49 * 12) * 1000^(1/4)
    assert found.schema.sizes == (20 + 1, 2, 10)
    assert plan.numbers == (0, 2)
    assert plan.cells == found.schema.cells
    assert found.schema["income"].source("bins") == "declared"
    assert [p.epsilon for p in desk.spent] == [pytest.approx(5, rel=1e-8)]
    assert found.items[0].cells.values.sum() == pytest.approx(1000, abs=60)


def test_bins_of_the_schema_stay_as_they_are() -> None:
    one = PerturbedHistogram(scale="paid")

    plan = one.plan(MIXED, None)

    assert plan.numbers == ()
    assert len(plan.spends) == 1
    assert plan.cells == MIXED.cells


def test_a_histogram_that_may_become_too_large_is_refused_before_it_is_paid() -> None:
    wide = Schema(tuple(Column(f"x{j}", "numeric", edges=(0.0, 1.0)) for j in range(5)))

    with pytest.raises(ResourceLimit, match="cells"):
        PerturbedHistogram(bins="scott", scale="paid", most=64).plan(wide, None)


# --- a paid scale


@pytest.mark.parametrize("rule", ["scott", "quantiles"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_paid_scale_and_its_histogram_cost_epsilon_together(relation: Any, rule: Any) -> None:
    one = PerturbedHistogram(epsilon=1, bins=rule, scale="paid", relation=relation, most=16)
    desk = curator(one, MIXED, made(3000), 3000)
    plan = one.plan(MIXED, 3000)

    found = one.run(desk, 3000)

    spent = sum((p.epsilon for p in desk.spent), Fraction(0))
    assert spent <= 1
    assert spent > Fraction(999, 1000)
    assert [float(s.claim.epsilon) for s in plan.spends] == pytest.approx([0.1, 0.9])
    assert found.schema["income"].source("bins") == "discovered"
    assert found.schema["income"].missing
    assert not found.schema.inferred()


def test_paid_quantiles_hold_about_as_many_records_each() -> None:
    one = PerturbedHistogram(epsilon=100, bins="quantiles", scale="paid", most=8)
    desk = curator(one, MIXED, made(5000), None)

    found = one.run(desk, None)

    # Noise of scale .2 on narrow bins of up to 80 incomes or 170 ages, rows 5,000 / 8 = 625.
    counts = found.items[0].cells.values.reshape(found.schema.sizes)
    assert np.abs(counts.sum(axis=(1, 2))[:-1] - 625).max() < 120
    assert np.abs(counts.sum(axis=(0, 1)) - 625).max() < 200


@pytest.mark.parametrize("rule", ["sturges", "scott", "quantiles"])
def test_records_reach_paid_bins_only_through_noise(rule: Any) -> None:
    one = PerturbedHistogram(epsilon=5, bins=rule, scale="paid", most=16)

    def blind(seed: int) -> str:
        desk = curator(one, MIXED, made(300, seed), None)
        with blinded():
            return digest_of(one.run(desk, None))

    assert blind(1) == blind(40)


def test_sturges_rule_pays_for_n_alone() -> None:
    one = PerturbedHistogram(epsilon=1, bins="sturges", scale="paid")
    desk = curator(one, MIXED, made(3000), None)

    found = one.run(desk, None)

    assert [float(p.epsilon) for p in desk.spent] == pytest.approx([0.1, 0.9])
    assert found.schema["income"].bins == 13  # 1 + log2(3000) is 12.6; the noise is tens of records


@pytest.mark.parametrize(("records", "bins"), [(None, 13), (20, 6)])
def test_a_paid_number_of_records_is_used_however_few_rows_are_drawn(
    records: int | None, bins: int
) -> None:
    one = PerturbedHistogram(epsilon=100, bins="sturges", scale="paid", records=records)

    found = one.run(curator(one, MIXED, made(3000), 20), 20)

    assert found.schema["income"].bins == bins  # 1 + log2(3000) is 12.6, 1 + log2(20) is 5.3


def test_a_paid_scale_finds_what_the_true_spread_would_give() -> None:
    one = PerturbedHistogram(epsilon=100, bins="freedman_diaconis", scale="paid", scale_share=0.5)
    numbers = made(5000)
    desk = curator(one, MIXED, numbers, 5000)

    found = one.run(desk, None)

    for j in (0, 2):
        column = MIXED.columns[j]
        width, iqr = column.edges[-1] - column.edges[0], 1.349 * numbers[j].std()
        wanted = freedman_diaconis(width, iqr, 5000, 64, 2)
        bins = found.schema.columns[j].bins
        assert abs(bins - min(wanted, bins if column.integer else 64)) <= 1


def test_values_lie_in_the_new_bins() -> None:
    one = PerturbedHistogram(epsilon=1000, bins="sturges", records=1000)
    numbers = made(1000)

    found = one.run(curator(one, MIXED, numbers, 1000), 1000)

    assert isinstance(found, Tables)
    counts = found.items[0].cells.values.reshape(found.schema.sizes).sum(axis=(1, 2))[:-1]
    exact = np.histogram(numbers[0], found.schema["income"].edges)[0]
    assert np.abs(counts - exact).max() <= 3


def test_a_smoothed_histogram_with_new_bins_draws_them() -> None:
    one = SmoothedHistogram(epsilon=10, bins="sturges", most=4)
    desk = curator(one, MIXED, made(200), 200)

    found = one.run(desk, 200)

    assert found.schema.sizes == (5, 2, 4)
    assert found.values.shape == (200, 3)
    assert [float(p.epsilon) for p in desk.spent] == [pytest.approx(10)]
