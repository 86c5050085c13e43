"""The public grid of distribution functions of one column, and how fine a budget lets it be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MOST_GROUPS = 64
MOST_STEPS = 1024  # with 64 groups, functions are counted within the range of a float64


@dataclass(frozen=True, slots=True)
class CdfGrid:
    """All distribution functions over a few groups of codes with values in multiples of 1 / steps.

    Nothing here depends on records: the codes of a column are cut into groups of neighbors, as equal
    as they come, and a function is a non-decreasing run of whole numbers 0..steps that ends at steps.

    Attributes:
        size: codes of the column.
        groups: K, 1..size, at most 64.
        steps: L, values are multiples of 1 / L; at most 1,024.
    """

    size: int
    groups: int
    steps: int

    @property
    def log_functions(self) -> float:
        """Logarithm of how many there are, C(K - 1 + L, L)."""
        k, steps = self.groups - 1, self.steps
        return math.lgamma(k + steps + 1) - math.lgamma(k + 1) - math.lgamma(steps + 1)

    def ends(self) -> np.ndarray:
        """End (exclusive) of each group in codes, int64 (groups,)."""
        return np.arange(1, self.groups + 1) * self.size // self.groups

    def weights(self, function: np.ndarray) -> np.ndarray:
        """Whole weights of the codes under one function, uniform within a group; uint64 (size,)."""
        sizes = np.diff(self.ends(), prepend=0)
        shared = math.lcm(*sizes.tolist())
        each = np.diff(function, prepend=0) * (shared // sizes)
        weights: np.ndarray = np.repeat(each, sizes).astype(np.uint64)
        return weights


def cdf_grid(size: int, signal: float, groups: int = MOST_GROUPS) -> CdfGrid:
    """As fine a grid as the noise of the choice is worth, of at most so many groups.

    A function of K groups is off by about 2 K / signal for the noise and 1 / K for what it does not
    tell apart; its steps are half the noise. The signal is epsilon times a public number of records,
    over the rows of one unit.
    """
    most = min(size, groups, MOST_GROUPS)
    used = max(min(2, most), min(most, round(math.sqrt(max(signal, 0.0)))))
    steps = max(4, min(MOST_STEPS, round(signal / used)))
    return CdfGrid(size, used, steps)
