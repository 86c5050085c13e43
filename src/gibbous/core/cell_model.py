"""CellModel: a categorical table with a normal law of the numeric columns within each of its cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from gibbous.core.tables import Table

Draws = Literal["posterior", "fitted"]
Values = Literal["matched", "clipped"]


@dataclass(frozen=True, slots=True, eq=False)
class NoisySum:
    """Noisy sums of one moment, as released. Public.

    Attributes:
        factors: positions of one or two numeric columns (the same one twice for squares).
        table: its context and, in every cell, the sum of products of grid numbers, with noise.
    """

    factors: tuple[int, ...]
    table: Table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellModel:
    """Cells with a probability each, and a multivariate normal law of the numbers in a cell. Public.

    A cell is a combination of the codes of all columns, the last column fastest. A numeric column
    takes part with code 0 for a number and, where it may be missing, code 1.

    Attributes:
        sizes: codes of each column of the schema in the cells: all of a categorical column; 1, or 2
            with missing, of a numeric one.
        numbers: positions of the numeric columns, increasing.
        counts: float64 (cells,), >= 0: records in each cell, as far as is known.
        prior: virtual records of the whole table, the same share in each cell; >= 0.
        means: float64 (cells, numeric columns), in the units of the columns.
        support: float64 (cells,), > 0: records that the means of a cell rest on.
        covariances: float64 (cells, numeric columns, numeric columns), or (1, ...) for one matrix
            that all cells share; symmetric and positive definite.
        freedom: float64 (cells,) or (1,), as `covariances`: degrees of freedom of each matrix.
        draws: "posterior": every set has parameters of its own, drawn from their posterior law given
            these numbers; "fitted": every set has these.
        values: numbers of a cell are normal and then clipped to the bounds. "matched": the clipped
            values have the mean and the variances of the parameters; "clipped": the law before the
            clipping has, so that means move inward and spreads shrink.
        sums: the noisy sums that means and covariances were computed from; () where there were none.
    """

    sizes: tuple[int, ...]
    numbers: tuple[int, ...]
    counts: np.ndarray
    prior: float
    means: np.ndarray
    support: np.ndarray
    covariances: np.ndarray
    freedom: np.ndarray
    draws: Draws = "posterior"
    values: Values = "matched"
    sums: tuple[NoisySum, ...] = ()

    def __post_init__(self) -> None:
        cells, width = math.prod(self.sizes), len(self.numbers)
        matrices = len(self.covariances)
        if self.counts.shape != (cells,) or self.support.shape != (cells,):
            raise ValueError("a cell has a count and a support")
        if self.means.shape != (cells, width):
            raise ValueError("a cell has a mean of each numeric column")
        if self.covariances.shape != (matrices, width, width) or matrices not in (1, cells):
            raise ValueError("there is one covariance matrix, or one a cell")
        if self.freedom.shape != (matrices,):
            raise ValueError("each covariance matrix has its degrees of freedom")
        if list(self.numbers) != sorted(set(self.numbers)):
            raise ValueError("the numeric columns increase")

    def __repr__(self) -> str:
        return (
            f"<CellModel of {self.cells} cells, {len(self.numbers)} numeric columns, {self.draws}>"
        )

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.sizes)
