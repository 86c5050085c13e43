"""The public integer grid of a numeric column: what sums and moments of confidential numbers are taken over.

Sums of whole numbers have exact sensitivities and take integer noise; sums of floats have neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.exact import exact
from gibbous.core.schema import Column

MOST = 1 << 16  # so that squares of 1e9 records stay within 63 bits
FINE = 1 << 17  # steps over the bounds of a column without declared precision


@dataclass(frozen=True, slots=True)
class Grid:
    """A value x stands for the whole number k = round((x - center) / step), -half <= k <= half.

    Attributes:
        low, high: the public bounds.
        step: the declared precision of the column, or a multiple of it; > 0.
        center: a multiple of the precision near the middle of the bounds.
        half: largest |k|, 1..65536.
    """

    low: Fraction
    high: Fraction
    step: Fraction
    center: Fraction
    half: int


def grid_of(column: Column) -> Grid:
    """The grid of a numeric or date column, from its public description; UsageError without bounds."""
    if not column.binned:
        raise UsageError(
            "NOTNUMERIC",
            f"Column {column.name!r} is {column.kind}: it has no bounds.",
            "Sums are taken of numeric and date columns, over their public bounds.",
            "Declare kind = 'numeric' with bounds, or leave the column among the categories.",
        )
    low, high = exact(column.edges[0]), exact(column.edges[-1])
    unit = _precision(column, high - low)
    step = unit * max(1, math.ceil((high - low) / (2 * (MOST - 1) * unit)))
    center = unit * round((low + high) / 2 / unit)
    half = math.ceil(max(high - center, center - low) / step)
    return Grid(low, high, step, center, max(1, half))


def to_grid(values: np.ndarray, grid: Grid) -> np.ndarray:
    """Whole numbers of the grid, int64 (rows,), of float64 (rows,) without NaN, clipped to the bounds."""
    inside = np.clip(values, float(grid.low), float(grid.high))
    steps = np.rint((inside - float(grid.center)) / float(grid.step))
    numbers: np.ndarray = np.clip(steps, -grid.half, grid.half).astype(np.int64)
    return numbers


def from_grid(numbers: np.ndarray, grid: Grid) -> np.ndarray:
    """Values that numbers of the grid (or means of them) stand for: float64."""
    values: np.ndarray = np.asarray(numbers, dtype=np.float64) * float(grid.step) + float(
        grid.center
    )
    return values


def _precision(column: Column, width: Fraction) -> Fraction:
    if column.integer or column.kind == "date":
        return Fraction(1)
    if column.decimals is not None:
        return Fraction(1, 10**column.decimals)
    return width / FINE if width else Fraction(1)
