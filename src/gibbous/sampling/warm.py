"""Warm: nothing in; every sampling kernel compiled and cached, by sampling small tables made here."""

from __future__ import annotations

import numpy as np

from gibbous.core.context import Context
from gibbous.core.protocols import Progress
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, Goal, NoiseInfo, Recipe, Table, Tables
from gibbous.sampling.exact_draws import draw_levels
from gibbous.sampling.loglinear import Schedule, Target, fit, independent, start
from gibbous.sampling.loglinear.margin_adjustment import close
from gibbous.sampling.sample import sample
from gibbous.structure.smoothing import denoised, rake

WIDTHS = (2, 257)  # 32-bit cells with 8-bit codes, and 64-bit cells with 16-bit codes


def compile_all(progress: Progress) -> None:
    """Run each kernel once for each type of code and of cell."""
    total = len(WIDTHS) + 1
    for done, width in enumerate(WIDTHS):
        progress("compile", done, total)
        sample(_tables(width), 3, seed=0)
    progress("compile", len(WIDTHS), total)
    sums = np.array([[1, 2]], dtype=np.uint64)
    draw_levels(sums, np.zeros(1 << 16, dtype=np.int64), lambda n: np.ones(n, dtype=np.uint64))
    _log_linear(41, 3)  # 8-bit codes
    _log_linear(300, 2)  # 16-bit codes
    progress("compile", total, total)


def _log_linear(size: int, columns: int) -> None:
    """Fit a model of too many cells to be listed to a pair, and close its rows to a column."""
    even = np.full(size, 1.0 / size)
    edges = tuple(float(i) for i in range(size + 1))
    schema = Schema(tuple(Column(f"c{j}", "numeric", edges=edges) for j in range(columns)))
    model, shares = independent([even] * columns), [even] * columns
    chains = start(model, schema, shares, 8, seed=0)
    pair = denoised(np.outer(even, even), 1.0, [np.outer(even, even)])
    target = Target((0, 1), rake(pair, shares[:2], 1))
    _, chains = fit(model, chains, [target], Schedule(steps=1, sweeps=1, passes=1))
    close(model, schema, chains.state, [Goal((0,), even)], seed=0)


def _tables(width: int) -> Tables:
    schema = Schema(
        (
            Column("a", "numeric", edges=tuple(float(i) for i in range(width + 1))),
            Column("b", "binary", levels=(0, 1)),
        )
    )
    noise = NoiseInfo("geometric", 1.0)
    items = []
    for target, parent in ((0, 1), (1, 0)):
        sizes = schema.sizes
        context = Context((target,), (parent,), (sizes[target],), (sizes[parent],))
        items.append(
            Table(context, Dense(np.ones((context.keys, context.levels), np.int64)), noise)
        )
    return Tables(schema, tuple(items), Recipe("gibbs", (0, 1)))
