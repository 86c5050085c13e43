"""Columns that say nearly the same: where a fit begins, and what noise in contradiction does to it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from gibbous.sampling.loglinear import (
    Schedule,
    Target,
    fit,
    independent,
    laws,
    planted,
    start,
    step_tables,
)
from gibbous.sampling.loglinear.chains import margins
from tests.loglinear import made

SIZES, ROWS, SIGMA = (12, 12, 12, 12), 20_000, 40.0


@pytest.fixture(autouse=True)
def by_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is small enough to be listed."""
    monkeypatch.setattr(laws, "MOST_CELLS", 0)


def copies() -> tuple[np.ndarray, list[Target], list[Target]]:
    """Four copies of a column: exact pairs, and pairs with noise that contradicts itself.

    The noisy ones are made as a release makes them: counts, normal noise, no cell below 0; slack is
    half a standard deviation.
    """
    rng = np.random.default_rng(4)
    base = rng.dirichlet(np.ones(SIZES[0]) * 3)
    ones = [Target((j,), base) for j in range(4)]
    exact, noisy = list(ones), list(ones)
    for pair in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        both = np.diag(base)
        seen = np.maximum(both + rng.normal(0, SIGMA / ROWS, both.shape), 1e-12)
        seen = np.where(seen > SIGMA / ROWS, seen, 1e-6)
        exact.append(Target(pair, both))
        slack = np.full(both.shape, 0.5 * SIGMA / ROWS)
        noisy.append(Target(pair, seen / seen.sum(), slack=slack))
    return base, exact, noisy


def test_a_planted_model_meets_the_tables_of_its_tree_and_chains_are_drawn_from_it() -> None:
    base, exact, _ = copies()
    model = independent([base] * 4)
    chains = start(model, made.schema(SIZES), [base] * 4, 20_000, seed=1)

    model, chains = planted(model, chains, exact)

    law = made.law(model)
    assert np.abs(made.margin(law, (0, 3)) - np.diag(base)).max() < 1e-3
    state = chains.state
    assert (state == state[0]).all(), "copies are copies in every row"
    assert np.bincount(state[0], minlength=12) / 20_000 == pytest.approx(base, abs=0.015)


@pytest.mark.parametrize("count", [300, 40_000])
def test_as_many_chains_are_planted_as_are_asked_for(count: int) -> None:
    base, exact, _ = copies()
    model = independent([base] * 4)
    chains = start(model, made.schema(SIZES), [base] * 4, 20_000, seed=1)

    _, found = planted(model, chains, exact, count)

    assert found.count == count
    assert np.bincount(found.state[0], minlength=12) / count == pytest.approx(base, abs=0.1)


def far_after(targets: list[Target], fits: int) -> float:
    """Mean distance of all pairs from the truth, after a long fit from the tree on."""
    base, exact, _ = copies()
    model = independent([base] * 4)
    chains = start(model, made.schema(SIZES), [base] * 4, 10_000, seed=1)
    model, chains = planted(model, chains, targets)
    for _ in range(fits):
        model, chains = fit(
            model, chains, targets, Schedule(steps=10, sweeps=2, passes=2, gain=0.5)
        )
    pairs = [target.columns for target in exact if len(target.columns) == 2]
    counted = margins(chains, SIZES, pairs)
    return float(np.mean([np.abs(n / chains.count - np.diag(base)).sum() / 2 for n in counted]))


@pytest.mark.slow
def test_slack_keeps_noise_that_contradicts_itself_from_spoiling_a_long_fit() -> None:
    _, _, noisy = copies()
    bare = [replace(target, slack=None) for target in noisy]

    assert far_after(noisy, 6) < 0.1
    assert far_after(bare, 6) > 0.12, "met to the last digit, contradictions drive the model away"


LEVELS, MEMBERS = 30, 5


def in_universe() -> tuple[tuple[int, ...], list[Target]]:
    """Exact tables of all pairs of five columns that are 0 together, else 1 to 29 by a sixth column's law."""
    rng = np.random.default_rng(5)
    asked, group = rng.random(50_000) < 0.6, rng.integers(0, 3, 50_000)
    columns = []
    for _ in range(MEMBERS):
        law = rng.dirichlet(np.full(LEVELS - 1, 0.3), size=3).cumsum(axis=1)
        own = (rng.random(50_000)[:, None] > law[group]).sum(axis=1).clip(max=LEVELS - 2)
        columns.append(np.where(asked, 1 + own, 0))
    values, sizes = np.stack([*columns, group]), (*[LEVELS] * MEMBERS, 3)
    cliques = [(j,) for j in range(len(sizes))] + list(itertools.combinations(range(len(sizes)), 2))
    targets = []
    for clique in cliques:
        counts = np.full([sizes[j] for j in clique], 1e-3)
        np.add.at(counts, tuple(values[j] for j in clique), 1)
        targets.append(Target(clique, counts / counts.sum()))
    return sizes, targets


def gaps_of(sizes: tuple[int, ...], targets: list[Target], steps: int) -> list[float]:
    """Mean distance of the chains from all pairs, at the tree and after each step."""
    ones, pairs = [t.shares for t in targets[: len(sizes)]], targets[len(sizes) :]
    model = independent(ones)
    chains = start(model, made.schema(sizes), ones, 20_000, seed=1)
    model, chains = planted(model, chains, targets)
    found = []
    for step in range(steps + 1):
        counted = margins(chains, sizes, [target.columns for target in pairs])
        apart = [
            np.abs(n / chains.count - t.shares).sum() / 2
            for n, t in zip(counted, pairs, strict=True)
        ]
        found.append(float(np.mean(apart)))
        if step < steps:
            model, chains = fit(
                model, chains, targets, Schedule(steps=1, sweeps=2, passes=2, gain=0.5)
            )
    return found


@pytest.mark.slow
def test_many_columns_that_are_tied_by_one_fact_are_fitted_without_leaving_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, targets = in_universe()
    found = gaps_of(sizes, targets, 12)

    assert max(found) < 1.1 * found[0], "no step leads further away than the tree"
    assert found[-1] < 0.8 * found[0]
    monkeypatch.setattr(laws, "LARGEST", 16.0)
    monkeypatch.setattr(step_tables, "MOST", 24 * step_tables.UNIT)
    monkeypatch.setattr(step_tables, "FARTHEST", 24 * step_tables.UNIT)
    assert max(gaps_of(sizes, targets, 2)) > 2 * found[0], "the cuts that were: the model runs away"


def test_a_margin_within_its_slack_is_left_alone() -> None:
    base = np.full(12, 1 / 12)
    model = independent([base, base, base, base])
    chains = start(model, made.schema(SIZES), [base] * 4, 5_000, seed=1)
    even = np.full((12, 12), 1 / 144)
    wide = Target((0, 1), np.roll(even, 1), slack=np.full((12, 12), 1.0))

    model, _ = fit(model, chains, [wide], Schedule(steps=3, gain=1.0))

    theta = dict(zip(model.cliques, model.theta, strict=True))[0, 1]
    assert np.abs(theta).max() < 1e-12
