"""Compiled kernels on small tables: raking one, and taking the noise out of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbous.core.kernel import kernel

Array = Any
U = np.uint64
SUMS = {"reassoc", "contract"}  # sums may be taken in another order, as numpy's are


@kernel(fastmath=SUMS)
def rake(cells: Array, sizes: Array, shares: Array, have: Array, passes: int) -> None:
    """Proportional fitting in place; twin: `smoothing.rake`.

    Args:
        cells: float64 (cells,), one axis a column, the last one fastest.
        sizes: int64 (axes,).
        shares: float64: one distribution an axis, one after the other.
        have: float64, as many as the largest of the sizes: room.
        passes: over all axes.
    """
    for _ in range(passes):
        first, inner = 0, len(cells)
        for axis in range(len(sizes)):
            size = sizes[axis]
            inner //= size
            outer = len(cells) // (size * inner)
            for v in range(size):
                have[v] = 0.0
            for o in range(outer):
                for v in range(size):
                    at, total = U((o * size + v) * inner), 0.0
                    for i in range(U(inner)):
                        total += cells[at + i]
                    have[v] += total
            for v in range(size):
                have[v] = shares[first + v] / have[v] if have[v] > 0.0 else 0.0
            for o in range(outer):
                for v in range(size):
                    at, factor = U((o * size + v) * inner), have[v]
                    for i in range(U(inner)):
                        cells[at + i] *= factor
            first += size


class Ratios(NamedTuple):
    """What is expected of the ratios of a table's cells to their bases.

    Attributes:
        atoms: ratios, float64 (atoms,).
        width: standard deviation of the ratios that an atom stands for, in shares of its own.
        before: the law that is expected, float64 (atoms,).
        expected: its weight, in cells.
        steps: of the fixed-point iteration.
    """

    atoms: Array
    width: float
    before: Array
    expected: float
    steps: int


@kernel(fastmath=SUMS)
def posterior(
    noisy: Array, base: Array, sigma: float, known: Ratios, means: Array, likely: Array, laws: Array
) -> float:
    """Posterior mean of each cell under the law of ratios that makes all cells likeliest.

    Twin: `posterior_means` of its tests.

    Args:
        noisy: counts, float64 (cells,).
        base: of each cell, what the ratios are of, > 0.
        sigma: standard deviation of the noise of a cell.
        means: float64 (cells,): room for the answer.
        likely, laws: float64 (cells, atoms) and (2, atoms): room.
    Returns:
        The logarithm of the likelihood.
    """
    ratios, width, before, expected, steps = known
    cells, atoms = len(noisy), len(ratios)
    likelihood = 0.0
    for i in range(cells):
        top = -np.inf
        for a in range(atoms):
            cell = base[i] * ratios[a]
            spread = cell * cell * width * width + sigma * sigma
            likely[i, a] = -0.5 * ((noisy[i] - cell) ** 2 / spread + np.log(spread))
            top = max(top, likely[i, a])
        for a in range(atoms):
            likely[i, a] = np.exp(likely[i, a] - top)
        likelihood += top
    law, summed = laws[0], laws[1]
    for a in range(atoms):
        law[a] = before[a]
    for _ in range(steps):
        for a in range(atoms):
            summed[a] = 0.0
        for i in range(cells):
            mixed = 0.0
            for a in range(atoms):
                mixed += likely[i, a] * law[a]
            inverse = 1.0 / mixed
            for a in range(atoms):
                summed[a] += likely[i, a] * inverse
        total = 0.0
        for a in range(atoms):
            law[a] = law[a] * summed[a] + expected * before[a]
            total += law[a]
        for a in range(atoms):
            law[a] /= total
    for i in range(cells):
        mixed, mean = 0.0, 0.0
        for a in range(atoms):
            cell = base[i] * ratios[a]
            between = cell * cell * width * width
            within = cell + between / (between + sigma * sigma) * (noisy[i] - cell)
            mixed += likely[i, a] * law[a]
            mean += likely[i, a] * law[a] * within
        means[i] = mean / mixed
        likelihood += np.log(mixed)
    return float(likelihood)
