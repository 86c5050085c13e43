"""Small tables for tests: schemas, counts by brute force, noisy tables, seeded words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Key, Radix, keys_of, levels_of
from gibbous.core.schema import Column, Impossible, Schema
from gibbous.core.tables import Cells, Counts, Dense, NoiseInfo, Sparse, Table
from gibbous.sampling.sample import Source, _run, prepared

NOISE = NoiseInfo("gaussian", 2.0)


def schema_of(sizes: Sequence[int], impossible: tuple[Impossible, ...] = ()) -> Schema:
    """Nominal columns c0, c1, ..."""
    columns = tuple(
        Column(f"c{j}", "nominal", levels=tuple(f"v{i}" for i in range(size)))
        for j, size in enumerate(sizes)
    )
    return Schema(columns, impossible=impossible)


def context_of(
    sizes: Sequence[int],
    targets: Sequence[int],
    parents: Sequence[int],
    key: Key = Radix(),  # noqa: B008
    support: str = "dense",
) -> Context:
    """A context over columns of these sizes."""
    return Context(
        tuple(targets),
        tuple(parents),
        tuple(sizes[j] for j in targets),
        tuple(sizes[j] for j in parents),
        key,
        "seen" if support == "seen" else "dense",
    )


def cells_of(context: Context, rows: np.ndarray) -> Cells:
    """Exact counts by a loop over records."""
    found: dict[tuple[int, int], int] = {}
    codes = np.asarray(rows, dtype=np.int64)
    if len(codes):
        keys, levels = keys_of(context, codes), levels_of(context, codes)
        for cell in zip(keys.tolist(), levels.tolist(), strict=True):
            found[cell] = found.get(cell, 0) + 1
    if context.support == "dense":
        dense = np.zeros((context.keys, context.levels), dtype=np.int64)
        for (key, level), count in found.items():
            dense[key, level] = count
        return Dense(dense)
    cells = sorted(found)
    return Sparse(
        np.array([c[0] for c in cells], dtype=np.uint64),
        np.array([c[1] for c in cells], dtype=np.uint64),
        np.array([found[c] for c in cells], dtype=np.int64),
    )


def counts_of(context: Context, rows: np.ndarray) -> Counts:
    """Secret counts."""
    return Counts(context, cells_of(context, rows))


def conditionals_of(
    rows: np.ndarray, sizes: Sequence[int], support: str = "dense"
) -> tuple[Counts, ...]:
    """Every column given all others."""
    everyone = range(len(sizes))
    return tuple(
        counts_of(context_of(sizes, [j], [k for k in everyone if k != j], support=support), rows)
        for j in everyone
    )


def noisy(context: Context, rows: np.ndarray, seed: int, threshold: int = 1) -> Table:
    """A table with rounded Gaussian noise (dense) or without its small cells (seen)."""
    cells = cells_of(context, rows)
    if isinstance(cells, Dense):
        noise = np.random.default_rng(seed).normal(0, NOISE.scale, cells.values.shape)
        return Table(context, Dense(cells.values + np.rint(noise).astype(np.int64)), NOISE)
    keep = cells.values > threshold
    return Table(
        context,
        Sparse(cells.keys[keep], cells.levels[keep], cells.values[keep]),
        NoiseInfo("gaussian", 2.0, threshold),
    )


def words_of(seed: int) -> Callable[[int], np.ndarray]:
    """Seeded 64-bit words: tests only."""
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(0, 1 << 64, count, dtype=np.uint64)


def rows_like(sizes: Sequence[int], count: int, seed: int) -> np.ndarray:
    """Rows with dependent columns: each is mostly a function of the one before."""
    generator = np.random.default_rng(seed)
    rows = np.zeros((count, len(sizes)), dtype=np.int64)
    for j, size in enumerate(sizes):
        fresh = np.minimum(generator.geometric(0.4, count) - 1, size - 1)
        follow = (rows[:, j - 1] + j) % size if j else fresh
        rows[:, j] = np.where(generator.random(count) < 0.7, follow, fresh)
    return rows


def sample_reference(
    tables: Source, rows: int, *, seed: int, set_index: int = 0, start: int = 0
) -> Codes:
    """What `sample` must equal, by the numpy twins alone."""
    found = prepared(tables, set_index)
    return _run(found, seed, set_index, compiled=False).rows(start, rows, 1)
