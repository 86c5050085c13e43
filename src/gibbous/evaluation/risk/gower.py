"""Gower's distance between rows of mixed columns: nearest rows and kernel densities, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.core.schema import Column
from gibbous.evaluation.tables import Side

_MISSING, _OTHER = np.float32(1e3), np.float32(-1e3)  # farther than any position in [0, 1]
DIGITS = 5  # distances closer than this are ties: sums of fractions in float32


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Points:
    """Rows as the distance sees them.

    Attributes:
        marks: codes, those of the ordered columns last, unsigned (columns, rows).
        places: positions of ordered columns in [0, 1] of the declared range, float32 (ordered
            columns, rows); missing and the catch-all level lie far outside, on opposite sides.
    """

    marks: np.ndarray
    places: np.ndarray

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.marks.shape[1])

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.marks)

    def take(self, rows: np.ndarray) -> Points:
        """These rows."""
        return Points(
            np.ascontiguousarray(self.marks[:, rows]), np.ascontiguousarray(self.places[:, rows])
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Near:
    """What a scan found for each query.

    Attributes:
        distance: to the nearest row, in [0, 1], float64 (queries,).
        where: the first such row, int64 (queries,).
        density: log of the mean weight of the rows, float64 (queries,).
    """

    distance: np.ndarray
    where: np.ndarray
    density: np.ndarray


def points(side: Side) -> Points:
    """The rows of a table as points.

    A distance is the mean over the columns of: 0 or 1 for nominal and binary columns; the difference
    over the declared range for numbers and days; the difference of ranks over their range for
    ordinal columns; 1 between missing (or the catch-all level) and anything else.

    Source:
        Gower (1971); ranks as in Podani (1999).
    """
    schema, codes = side.schema, side.codes.by_column
    numbers = side.numbers.T
    nominal = [j for j, column in enumerate(schema) if not column.ordered]
    ordered = [j for j, column in enumerate(schema) if column.ordered]
    marks = np.ascontiguousarray(codes[nominal + ordered])
    places = np.empty((len(ordered), side.rows), dtype=np.float32)
    for k, j in enumerate(ordered):
        places[k] = _placed(schema.columns[j], codes[j], numbers[j])
    return Points(marks, places)


def _placed(column: Column, codes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    low, high = (column.edges[0], column.edges[-1]) if column.binned else (0, column.bins - 1)
    place = ((numbers - low) / max(high - low, 1e-300)).astype(np.float32)
    place[np.isnan(place)] = _MISSING
    if column.other_code is not None:
        place[codes == column.other_code] = _OTHER
    return place


def near(queries: Points, pool: Points, *, odds: float = 100.0) -> Near:
    """The nearest of all rows of the pool for each query, and the density of the pool there.

    Args:
        queries, pool: rows to look for, and among; the pool has at least one.
        odds: a row whose codes differ in one column more weighs this many times less; > 1.
    Returns:
        Exact results: every pair is compared.
    Source:
        The density is the kernel of Aitchison and Aitken (1976) on codes, up to a constant.
    """
    from gibbous.evaluation.risk.gower_kernel import scan

    size = queries.rows
    nearest = np.empty(size, dtype=np.float32)
    where, density = np.empty(size, dtype=np.int64), np.empty(size)
    scan(queries.marks, queries.places, pool.marks, pool.places, odds, nearest, where, density)
    return Near(
        np.round(nearest.astype(np.float64) / queries.columns, DIGITS),
        where,
        np.log(np.maximum(density, 1e-300)) - np.log(pool.rows),
    )
