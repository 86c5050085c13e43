"""Shares read off released tables: sums by brute force, variances by simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gibbous.core.context import Context, Hashed
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Sparse, Table, Tables
from gibbous.evaluation.inference.noise_replicates import redrawn
from gibbous.evaluation.inference.released_tables import margin, names, shares

SIZES = (2, 3, 4)
SCHEMA = Schema(
    tuple(
        Column(f"c{j}", "nominal", levels=tuple(f"{j}{v}" for v in range(size)))
        for j, size in enumerate(SIZES)
    )
)


def table(
    parents: tuple[int, ...], targets: tuple[int, ...], cube: np.ndarray, scale: float
) -> Table:
    """Counts of `cube` (c0, c1, c2), summed over what the table does not have."""
    columns = parents + targets
    summed = cube.sum(axis=tuple(j for j in range(3) if j not in columns))
    kept = sorted(columns)
    ordered = summed.transpose([kept.index(c) for c in columns])
    context = Context(
        targets, parents, tuple(SIZES[c] for c in targets), tuple(SIZES[c] for c in parents)
    )
    return Table(
        context,
        Dense(ordered.reshape(context.keys, context.levels).astype(np.int64)),
        NoiseInfo("geometric", scale),
    )


def tables(*items: Table) -> Tables:
    return Tables(SCHEMA, items, Recipe("ancestral", tuple(range(len(items)))))


CUBE = np.arange(24).reshape(SIZES)


@pytest.mark.parametrize("columns", [(0,), (2,), (1, 2), (2, 1), (2, 0), (0, 1, 2), (2, 0, 1)])
def test_a_margin_is_the_sum_over_the_other_columns(columns: tuple[int, ...]) -> None:
    found = margin(tables(table((2, 0), (1,), CUBE, 1.0)), columns)

    brute = np.zeros([SIZES[c] for c in columns])
    for cell in np.ndindex(*SIZES):
        brute[tuple(cell[c] for c in columns)] += CUBE[cell]
    assert found is not None
    assert found.counts.tolist() == brute.reshape(-1).tolist()


def test_the_noise_of_a_margin_is_that_of_the_cells_it_sums() -> None:
    released = table((2, 0), (1,), CUBE, 3.0)

    found = margin(tables(released), (1,))

    assert found is not None
    assert found.variance == pytest.approx(8 * released.noise.variance)


def test_several_tables_are_combined_by_inverse_variance() -> None:
    wide, narrow = table((0, 2), (1,), CUBE, 3.0), table((), (1,), CUBE + 1, 2.0)
    found = margin(tables(wide, narrow), (1,))
    a, b = 8 * wide.noise.variance, narrow.noise.variance
    one = CUBE.sum(axis=(0, 2))

    assert found is not None
    assert found.variance == pytest.approx(1 / (1 / a + 1 / b))
    assert found.counts == pytest.approx((one / a + (one + 8) / b) * found.variance)
    assert found.tables == 2


def test_hashed_keys_and_thresholded_tables_hold_no_margin() -> None:
    whole = table((0,), (1,), CUBE, 1.0)
    hashed = replace(whole, context=replace(whole.context, key=Hashed(2)))
    empty = np.zeros(0, dtype=np.uint64)
    seen = replace(whole, cells=Sparse(empty, empty, np.zeros(0, dtype=np.int64)))

    assert margin(tables(hashed), (0, 1)) is None
    assert margin(tables(seen), (1,)) is None
    assert margin(tables(whole), (2,)) is None


def test_shares_sum_to_one_and_have_the_variance_of_simulated_noise() -> None:
    """2,000 redrawn tables: a variance is known within 10 % (three standard errors)."""
    counts = (CUBE + 40) * 3
    released = tables(table((0,), (1,), counts, 9.0))
    found = margin(released, (0, 1))
    assert found is not None

    share, sampling, noise = shares(found, records=500)
    simulated = []
    for replicate in range(2_000):
        again = margin(redrawn(released, 1, replicate), (0, 1))
        assert again is not None
        simulated.append(again.counts / again.counts.sum())

    assert share.sum() == pytest.approx(1)
    assert sampling == pytest.approx(share * (1 - share) / 500)
    assert np.var(simulated, axis=0) / noise.variance == pytest.approx(np.ones(6), rel=0.13)


def test_names_go_with_the_counts() -> None:
    found = names(SCHEMA, (2, 0))

    assert found[0] == {"c2": "20", "c0": "00"}
    assert found[1] == {"c2": "20", "c0": "01"}
    assert len(found) == 8
