"""Rows without a guarantee: the joint counts themselves, and the Bayesian bootstrap of each margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbous.core.claim import Claim, Relation, no_claim
from gibbous.core.codes import Codes
from gibbous.core.context import Context, radix_digits
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense
from gibbous.sampling.exact_draws import bounded
from gibbous.sampling.log_linear_cells import expected_cells
from gibbous.sampling.structural_zeros import possible, uniform_rows


@dataclass(frozen=True, slots=True)
class JointRows:
    """Rows drawn with replacement from the counts of each context's cells, columns jointly.

    Guarantee:
        None: every row drawn from the joint table is a record; a model of it was fitted without noise.
    Source:
        [park2014, s2.1 and table 1] (contingency table, by direct counting or a log-linear model).

    Attributes:
        order: columns of the largest interactions of a log-linear model; 0 for the counts themselves.
    """

    order: int = 0

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """No guarantee."""
        return no_claim(unit="dataset", relation=relation, source="park2014, table 1")

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows from contexts without parents and common targets; other columns are uniform."""
        state = uniform_rows(schema, rows, words)
        for one in counts:
            levels, values = _cells(one)
            if len(values) == 0 or rows == 0:
                continue
            if self.order:
                levels, values = expected_cells(one.context, levels, values, schema, self.order)
            sums = np.cumsum(values.astype(np.uint64), dtype=np.uint64)
            points = bounded(np.full(rows, sums[-1], dtype=np.uint64), words)
            cell = np.searchsorted(sums, points, side="right")
            _decode(one.context, levels[cell], state)
        return Codes(schema, state.T)


@dataclass(frozen=True, slots=True)
class BootstrapRows:
    """Each margin by the Bayesian bootstrap: weights ~ Dirichlet(counts) for each set, then rows.

    Guarantee:
        None: a level of one record may appear.
    Source:
        [park2014, table 1]; Rubin (1981), the Bayesian bootstrap.

    Attributes:
        sets: the rows are this many sets of equal size; each has weights of its own.
    """

    sets: int = 1

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """No guarantee."""
        return no_claim(unit="dataset", relation=relation, source="park2014, table 1")

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows, set after set; impossible rows are drawn again."""
        state = uniform_rows(schema, rows, words)
        margins = [(one.context, *_cells(one)) for one in counts]
        cuts = [rows * i // self.sets for i in range(self.sets + 1)]
        for first, last in zip(cuts, cuts[1:], strict=False):
            weights = [np.cumsum(gammas(values, words)) for _, _, values in margins]
            part = state[:, first:last]
            _draw_apart(margins, weights, part, words)

            def again(
                _: int, bad: np.ndarray, weights: Any = weights, part: Any = part
            ) -> np.ndarray:
                fresh: np.ndarray = part[:, bad]
                _draw_apart(margins, weights, fresh, words)
                return fresh

            possible(schema, part, again)
        return Codes(schema, state.T)


def _draw_apart(
    margins: Sequence[tuple[Context, np.ndarray, np.ndarray]],
    weights: Sequence[np.ndarray],
    state: np.ndarray,
    words: Words64,
) -> None:
    """Draw every column of state (columns, rows) from the weights of its own margin, in place."""
    for (context, levels, _), sums in zip(margins, weights, strict=True):
        if len(sums):  # a margin without records stays uniform
            points = _uniforms(words(state.shape[1])) * sums[-1]
            cell = np.minimum(np.searchsorted(sums, points, side="right"), len(sums) - 1)
            _decode(context, levels[cell], state)


def gammas(shapes: np.ndarray, words: Words64) -> np.ndarray:
    """Gamma variates of whole shapes >= 1 and scale 1, by squeeze and rejection.

    Args:
        shapes: (draws,) whole numbers >= 1: a level's Bayesian bootstrap weight is the sum of that
            many unit exponentials.
    Returns:
        float64 (draws,).
    Source:
        Marsaglia and Tsang (2000), with normals by Box and Muller.
    """
    d = shapes.astype(np.float64) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    out = np.empty(len(d))
    pending = np.arange(len(d))
    while len(pending):
        u, v, w = (_uniforms(words(len(pending))) for _ in range(3))
        normal = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
        cube = (1.0 + c[pending] * normal) ** 3
        safe = np.where(cube > 0, cube, 1.0)
        limit = 0.5 * normal**2 + d[pending] * (1.0 - cube + np.log(safe))
        done = (cube > 0) & (np.log(w) < limit)
        out[pending[done]] = d[pending[done]] * cube[done]
        pending = pending[~done]
    return out


def _uniforms(words: np.ndarray) -> np.ndarray:
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _cells(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Levels and counts of the cells with records of a context without parents."""
    if counts.context.parents:
        raise ValueError("contexts have no parents here")
    cells = counts.cells
    if isinstance(cells, Dense):
        held = np.flatnonzero(cells.values[0] > 0)
        return held.astype(np.uint64), cells.values[0][held]
    held = np.flatnonzero(cells.values > 0)
    return cells.levels[held], cells.values[held]


def _decode(context: Context, levels: np.ndarray, state: np.ndarray) -> None:
    """Write the target columns of mixed-radix levels into state (columns, rows)."""
    for column, codes in zip(
        context.targets, radix_digits(levels, context.target_sizes), strict=True
    ):
        state[column] = codes
