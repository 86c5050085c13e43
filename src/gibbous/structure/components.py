"""Interaction components: noisy tables over any columns in, each table combined with all others out.

A table is the sum of its interaction components: for each subset of its columns, sum the other
columns out and center every axis. Components of one table carry independent noise when the cells
do, so equal components of different tables are averaged by inverse variance, and added up again.
Linear and exact for Gaussian noise; overlapping tables agree afterwards.

Source:
    [Xiao, He, Ding, Kifer 2023] (ResidualPlanner) for the split; inverse-variance means are Gauss's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """What is known of one interaction.

    Attributes:
        total: sum over tables of precision x component, float64, an axis a column.
        precision: sum of 1 / (variance of a cell x cells summed out), > 0.
    """

    total: np.ndarray
    precision: float


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """All measurements so far. Public.

    Attributes:
        found: component of each subset of columns that some table holds; () is the total.
    """

    found: Mapping[Columns, Component] = field(default_factory=dict)

    def holds(self, columns: Columns) -> bool:
        """Whether a table over these columns can be put together."""
        return columns in self.found

    def total(self) -> float:
        """Number of records, by the noisy totals; may be negative."""
        own = self.found[()]
        return float(own.total) / own.precision

    def table(self, columns: Columns) -> tuple[np.ndarray, float]:
        """The combined table over columns that were measured together.

        Args:
            columns: positions, increasing.
        Returns:
            float64 counts, an axis a column, possibly negative; standard deviation of a cell, in
            counts (root mean square over cells).
        Raises:
            KeyError: no table held them together.
        """
        shape = self.found[columns].total.shape
        counts, variance = np.zeros(shape), 0.0
        for subset in subsets(range(len(columns))):
            own = self.found[tuple(columns[a] for a in subset)]
            spread = math.prod(shape[a] for a in range(len(shape)) if a not in subset)
            place = tuple(slice(None) if a in subset else None for a in range(len(shape)))
            counts = counts + (own.total / own.precision)[place] / spread
            freedom = math.prod((shape[a] - 1) / shape[a] for a in subset)
            variance += freedom / own.precision / spread**2
        return counts, math.sqrt(variance)


def added(before: Components, tables: Iterable[tuple[Columns, np.ndarray, float]]) -> Components:
    """The same measurements and further ones.

    Args:
        tables: (columns, noisy counts with an axis a column, variance of one cell's noise > 0).
    """
    found = dict(before.found)
    for columns, counts, variance in tables:
        for subset in subsets(range(len(columns))):
            out = tuple(a for a in range(counts.ndim) if a not in subset)
            part = centered(counts.sum(axis=out))
            precision = 1.0 / (variance * math.prod(counts.shape[a] for a in out))
            key = tuple(columns[a] for a in subset)
            own = found.get(key, Component(np.zeros(part.shape), 0.0))
            found[key] = Component(own.total + precision * part, own.precision + precision)
    return Components(found)


def centered(values: np.ndarray) -> np.ndarray:
    """Values with mean 0 along every axis."""
    part: np.ndarray = np.asarray(values, dtype=np.float64)
    for axis in range(part.ndim):
        part = part - part.mean(axis=axis, keepdims=True)
    return part


def subsets(items: Sequence[int]) -> list[Columns]:
    """All subsets, the empty one first, each in the given order."""
    return [
        chosen for size in range(len(items) + 1) for chosen in itertools.combinations(items, size)
    ]
