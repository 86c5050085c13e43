"""The public grid of distribution functions of one column: every candidate, and what it stands for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

MOST_STEPS = 1024  # finer steps than a sample of a thousand records could tell apart


@dataclass(frozen=True, slots=True)
class CdfGrid:
    """All distribution functions over a few groups of codes with values in multiples of 1 / steps.

    Nothing here depends on records: the codes of a column are cut into groups of neighbors, as equal
    as they come, and a candidate is a non-decreasing run of whole numbers 0..steps.

    Attributes:
        size: codes of the column.
        groups: K, 1..size.
        steps: L, values are multiples of 1 / L.
    """

    size: int
    groups: int
    steps: int

    @property
    def candidates(self) -> int:
        """How many there are: C(K - 1 + L, L)."""
        return math.comb(self.groups - 1 + self.steps, self.steps)

    def ends(self) -> np.ndarray:
        """End (exclusive) of each group in codes, int64 (groups,)."""
        return np.arange(1, self.groups + 1) * self.size // self.groups

    def functions(self) -> np.ndarray:
        """Values of every candidate at the end of each group, in units of 1 / L, int64 (candidates, K)."""
        runs = itertools.combinations_with_replacement(range(self.steps + 1), self.groups - 1)
        count = self.candidates
        flat = np.fromiter(itertools.chain.from_iterable(runs), np.int64, count * (self.groups - 1))
        inner = flat.reshape(count, self.groups - 1)
        return np.concatenate([inner, np.full((count, 1), self.steps)], axis=1)

    def weights(self, function: np.ndarray) -> np.ndarray:
        """Whole weights of the codes under one candidate, uniform within a group; uint64 (size,)."""
        sizes = np.diff(self.ends(), prepend=0)
        shared = math.lcm(*sizes.tolist())
        each = np.diff(function, prepend=0) * (shared // sizes)
        weights: np.ndarray = np.repeat(each, sizes).astype(np.uint64)
        return weights


def cdf_grid(size: int, groups: int, most: int) -> CdfGrid:
    """The finest grid with at most `most` candidates.

    Args:
        size: codes of the column.
        groups: largest number of groups; fewer where even two steps would be too many candidates.
        most: largest number of candidates, >= 2.
    """
    used = min(size, groups)
    while used > 2 and math.comb(used + 1, 2) > most:
        used -= 1
    steps = 1
    while steps < MOST_STEPS and math.comb(used + steps, steps + 1) <= most:
        steps += 1
    return CdfGrid(size, used, steps)


def distances(grid: CdfGrid, functions: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Kolmogorov-Smirnov distance of each candidate from the records, in counts.

    max over groups of |records up to its end - N F|. One record that comes, goes or changes moves it by
    at most 1.

    Args:
        functions: of the grid.
        counts: n[code], int64 (size,); secret.
    Returns:
        float64 (candidates,).
    """
    below = np.cumsum(counts)[grid.ends() - 1]
    apart = np.abs(below * grid.steps - below[-1] * functions).max(axis=1)
    counts_apart: np.ndarray = apart / grid.steps
    return counts_apart
