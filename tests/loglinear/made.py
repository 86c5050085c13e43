"""Small log-linear models made by hand, and what they mean by brute force."""

from __future__ import annotations

import itertools

import numpy as np

from gibbous.core.schema import Column, Impossible, Schema
from gibbous.core.tables import Goal, LogLinear, Recipe, Tables


def schema(sizes: tuple[int, ...], *rules: dict[int, tuple[int, ...]]) -> Schema:
    """Columns c0, c1, ... with the given numbers of levels; rules are impossible combinations."""
    columns = tuple(
        Column(f"c{j}", "nominal", levels=tuple(range(size))) for j, size in enumerate(sizes)
    )
    found = tuple(
        Impossible(tuple((f"c{j}", codes) for j, codes in sorted(rule.items()))) for rule in rules
    )
    return Schema(columns, impossible=found)


def model(
    sizes: tuple[int, ...],
    cliques: tuple[tuple[int, ...], ...],
    seed: int = 0,
    spread: float = 0.8,
    **more: object,
) -> LogLinear:
    """Normal thetas."""
    rng = np.random.default_rng(seed)
    theta = tuple(rng.normal(0.0, spread, size=[sizes[j] for j in c]) for c in cliques)
    return LogLinear(sizes, cliques, theta, **more)  # type: ignore[arg-type]


def law(found: LogLinear, barred: Schema | None = None) -> np.ndarray:
    """Probability of every row, one at a time; the definition itself."""
    shares = np.zeros(found.sizes)
    for row in itertools.product(*(range(size) for size in found.sizes)):
        total = sum(
            theta[tuple(row[j] for j in clique)]
            for clique, theta in zip(found.cliques, found.theta, strict=True)
        )
        shares[row] = 0.0 if barred and _impossible(barred, row) else np.exp(total)
    return shares / shares.sum()


def _impossible(given: Schema, row: tuple[int, ...]) -> bool:
    return any(
        all(row[given.index(name)] in codes for name, codes in rule.where)
        for rule in given.impossible
    )


def margin(shares: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    """Sum over the other columns."""
    return shares.sum(axis=tuple(a for a in range(shares.ndim) if a not in columns))


def maximum_entropy(
    start: np.ndarray, targets: list[tuple[tuple[int, ...], np.ndarray]], passes: int = 500
) -> np.ndarray:
    """Iterative proportional fitting on the whole table, to convergence."""
    shares = start / start.sum()
    for _ in range(passes):
        for columns, wanted in targets:
            now = margin(shares, columns)
            shape = [n if a in columns else 1 for a, n in enumerate(shares.shape)]
            ratio = np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
            shares = shares * ratio.reshape(shape)
    return shares


def goals(shares: np.ndarray, *cliques: tuple[int, ...]) -> tuple[Goal, ...]:
    """Exact margins of a law as goals."""
    return tuple(Goal(c, margin(shares, c)) for c in cliques)


def tables(given: Schema, found: LogLinear, sweeps: int = 5) -> Tables:
    """A release with nothing but a model."""
    return Tables(given, (), Recipe("loglinear", (), sweeps=sweeps), (), found)


def counts(state: np.ndarray, sizes: tuple[int, ...], columns: tuple[int, ...]) -> np.ndarray:
    """Counts of a clique, row by row."""
    found = np.zeros([sizes[j] for j in columns], dtype=np.int64)
    for row in state.T:
        found[tuple(int(row[j]) for j in columns)] += 1
    return found


def deviance(seen: np.ndarray, shares: np.ndarray) -> tuple[float, int]:
    """Pearson's statistic of counts against a law, and its degrees of freedom; cells below 5 pooled."""
    expected = shares.ravel() * seen.sum()
    small = expected < 5
    both = [
        (np.append(a[~small], a[small].sum()) if small.any() else a)
        for a in (seen.ravel().astype(float), expected)
    ]
    held = both[1] > 0
    assert not both[0][~held].any()
    value = float(((both[0] - both[1])[held] ** 2 / both[1][held]).sum())
    return value, int(held.sum()) - 1


def unlikely(seen: np.ndarray, shares: np.ndarray, z: float = 4.0) -> bool:
    """Whether counts differ from a law by more than z standard deviations of Pearson's statistic.

    At z = 4 a right law is called unlikely at level 3e-5.
    """
    value, freedom = deviance(seen, shares)
    # Wilson and Hilferty: the cube root of a chi-squared is nearly normal.
    part = 2.0 / (9.0 * freedom)
    return ((value / freedom) ** (1 / 3) - (1 - part)) / np.sqrt(part) > z
