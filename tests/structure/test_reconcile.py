"""Fitting noisy tables: against brute force, closed forms and the margins that must be met."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbous.core.context import Context, Hashed
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.structure.reconcile import fitted_margins, reconcile
from gibbous.structure.smoothing import rake, simplex

SCHEMA = Schema(
    (Column("a", "nominal", levels=(0, 1, 2)), Column("b", "nominal", levels=tuple(range(4))))
)


def table(values: np.ndarray, target: int, parents: tuple[int, ...], sigma: float = 5.0) -> Table:
    sizes = SCHEMA.sizes
    context = Context((target,), parents, (sizes[target],), tuple(sizes[c] for c in parents))
    return Table(
        context, Dense(values.reshape(context.keys, context.levels)), NoiseInfo("gaussian", sigma)
    )


def release(pair: np.ndarray, kappa: float = 1.0) -> Tables:
    ones = (
        table(pair.sum(1), 0, ()),
        table(pair.sum(0), 1, ()),
    )
    return Tables(
        SCHEMA,
        (ones[0], table(pair, 1, (0,))),
        Recipe("ancestral", (0, 1), kappa=kappa, fit="rake"),
        (ones[1],),
    )


@pytest.mark.slow
@given(
    values=st.lists(st.floats(-50, 50), min_size=1, max_size=12),
    total=st.floats(0.5, 200),
)
@settings(max_examples=150, deadline=None)
def test_the_simplex_projection_meets_the_conditions_of_the_optimum(
    values: list[float], total: float
) -> None:
    given_values = np.array(values)

    near = simplex(given_values, total)

    # Karush-Kuhn-Tucker: feasible, one constant on the support, nothing above it off the support.
    assert np.all(near >= 0)
    assert near.sum() == pytest.approx(total, rel=1e-9)
    moved = (given_values - near)[near > 0]
    assert np.ptp(moved) < 1e-9 * (1 + abs(moved).max())
    assert np.all(given_values[near == 0] <= moved.mean() + 1e-6)


def test_the_simplex_projection_is_the_nearest_of_many_feasible_points() -> None:
    rng = np.random.default_rng(3)
    values = np.array([5.0, -3.0, 2.0, 0.1])
    near = simplex(values, 4.0)

    others = 4.0 * rng.dirichlet(np.ones(4) * 0.5, size=20_000)

    assert np.all(((others - values) ** 2).sum(1) >= ((near - values) ** 2).sum() - 1e-12)


def test_raking_a_two_by_two_table_keeps_its_odds_ratio_and_meets_both_margins() -> None:
    values = np.array([[8.0, 2.0], [3.0, 7.0]])
    wanted = [np.array([0.3, 0.7]), np.array([0.6, 0.4])]

    fitted = rake(values, wanted, passes=200)

    odds = fitted[0, 0] * fitted[1, 1] / (fitted[0, 1] * fitted[1, 0])
    assert fitted.sum(1) == pytest.approx(wanted[0], abs=1e-12)
    assert fitted.sum(0) == pytest.approx(wanted[1], abs=1e-12)
    assert odds == pytest.approx(56 / 6, rel=1e-9)


def test_raking_an_independent_table_gives_the_product() -> None:
    wanted = [np.array([0.25, 0.75]), np.array([0.1, 0.2, 0.7])]

    assert rake(np.ones((2, 3)), wanted) == pytest.approx(np.outer(*wanted))


@pytest.mark.parametrize("shape", [(1,), (6,), (3, 8), (5, 1, 4), (2, 3, 4, 5)])
def test_compiled_raking_equals_its_numpy_twin_in_any_layout(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    values = rng.random(shape[::-1]).T  # axes not in the order of memory
    wanted = [rng.dirichlet(np.ones(size)) for size in shape]
    wanted[-1][0] = 0.0 if shape[-1] > 1 else 1.0
    kept = values.copy()

    fast, plain = (rake(values, wanted, 7, compiled=c) for c in (True, False))

    assert fast == pytest.approx(plain, rel=1e-12, abs=1e-300)
    assert (values == kept).all()


def test_margins_are_combined_by_inverse_variance() -> None:
    precise = table(np.array([100, 200, 300]), 0, (), sigma=1.0)
    coarse = table(np.array([300, 200, 100]), 0, (), sigma=3.0)

    shares = fitted_margins(SCHEMA.sizes, (precise, coarse))

    expected = np.array([0.9 * 100 + 0.1 * 300, 200, 0.9 * 300 + 0.1 * 100])
    assert shares[0] == pytest.approx(expected / expected.sum())
    assert shares[1] == pytest.approx(np.full(4, 0.25))


def test_tables_of_seen_cells_do_not_enter_the_margins() -> None:
    context = Context((0,), (), (3,), (), support="seen")
    words = np.array([0], dtype=np.uint64)
    seen = Table(context, Sparse(words, words, np.array([50])), NoiseInfo("gaussian", 1.0, 10))

    assert fitted_margins(SCHEMA.sizes, (seen,))[0] == pytest.approx(np.full(3, 1 / 3))


def test_an_exact_table_is_left_as_it_is() -> None:
    pair = np.array([[40, 10, 30, 20], [5, 50, 25, 20], [100, 100, 50, 50]])

    fitted = reconcile(release(pair, kappa=1e-9)).items[1].cells.values

    assert fitted / fitted.sum() == pytest.approx(pair / pair.sum(), abs=2e-5)


def test_fitted_tables_are_whole_non_negative_and_meet_the_common_margins() -> None:
    rng = np.random.default_rng(8)
    pair = rng.integers(-20, 60, size=(3, 4))
    tables = release(pair)

    fitted = reconcile(tables)

    shares = fitted_margins(SCHEMA.sizes, tables.items + tables.extra)
    for item in fitted.items:
        assert item.cells.values.dtype == np.int64
        assert np.all(item.cells.values >= 0)
    one, two = (item.cells.values.astype(float) for item in fitted.items)
    assert one[0] / one.sum() == pytest.approx(shares[0], abs=1e-9)
    assert two.sum(0) / two.sum() == pytest.approx(shares[1], abs=1e-6)
    assert two.sum(1) / two.sum() == pytest.approx(shares[0], abs=1e-3)


def test_a_fitted_release_is_read_as_it_is() -> None:
    recipe = reconcile(release(np.ones((3, 4), dtype=np.int64))).recipe

    assert (recipe.fit, recipe.kappa, recipe.floor) == ("clip", 0.0, 0)


def test_noise_alone_is_fitted_to_something_drawable() -> None:
    rng = np.random.default_rng(1)
    for scale in (0, 1, 1000):
        pair = np.rint(rng.normal(0, scale, size=(3, 4))).astype(np.int64)

        fitted = reconcile(release(pair))

        assert all(item.cells.values.sum() > 0 for item in fitted.items)


def test_a_hashed_table_is_fitted_to_its_target_only() -> None:
    context = Context((1,), (0,), (4,), (3,), Hashed(2))
    hashed = Table(
        context, Dense(np.array([[5, 5, 0, 0], [0, 0, 5, 9]])), NoiseInfo("gaussian", 1.0)
    )
    ones = table(np.array([8, 8, 8]), 0, ()), table(np.array([1, 2, 3, 18]), 1, (), sigma=0.01)
    tables = Tables(SCHEMA, (ones[0], hashed), Recipe("ancestral", (0, 1), fit="rake"), (ones[1],))

    fitted = reconcile(tables).items[1].cells.values

    shares = fitted_margins(SCHEMA.sizes, tables.items + tables.extra)
    assert fitted.shape == (2, 4)
    assert fitted.sum(0) / fitted.sum() == pytest.approx(shares[1], abs=1e-6)


def test_reconciling_halves_the_distance_of_clipping_on_a_sparse_table() -> None:
    rng = np.random.default_rng(5)
    schema = Schema(tuple(Column(n, "nominal", levels=tuple(range(12))) for n in "ab"))
    truth = rng.multinomial(3000, rng.dirichlet(np.ones(144) * 0.05)).reshape(12, 12)
    clipped, fitted = [], []
    for _ in range(30):
        noisy = [
            truth + np.rint(rng.normal(0, 30, size=(12, 12))),
            truth.sum(1) + np.rint(rng.normal(0, 40, size=12)),
            truth.sum(0) + np.rint(rng.normal(0, 40, size=12)),
        ]
        pair, a, b = (n.astype(np.int64) for n in noisy)
        contexts = (
            Context((1,), (0,), (12,), (12,)),
            Context((0,), (), (12,), ()),
            Context((1,), (), (12,), ()),
        )
        items = tuple(
            Table(c, Dense(v.reshape(c.keys, 12)), NoiseInfo("gaussian", sigma))
            for c, v, sigma in zip(contexts, (pair, a, b), (30.0, 40.0, 40.0), strict=True)
        )
        recipe = Recipe("ancestral", (0, 1), kappa=1.0, fit="rake")
        fit = reconcile(Tables(schema, (items[1], items[0]), recipe, (items[2],))).items[1]
        cut, found = np.maximum(pair, 0), fit.cells.values
        clipped.append(np.abs(cut / cut.sum() - truth / truth.sum()).sum())
        fitted.append(np.abs(found / found.sum() - truth / truth.sum()).sum())

    assert np.mean(fitted) < 0.5 * np.mean(clipped)
