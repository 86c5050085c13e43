"""Narrow bins that hold clearly some rows, cut finer: single values with many rows stand out there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.schema import Column
from gibbous.structure.dyadic import PRICE, dyadic
from gibbous.structure.stretches import stretches

CELLS = 2**16  # of one column, cut finer
PARTS = 4096  # of one narrow bin
VALUES = 256  # whole numbers in so short a range are even in their number
FILLED = 6.0  # standard deviations of the noise from which on a narrow bin is cut finer
DECADES = 10_000  # widths of the first narrow bins, where a logarithm needs a scale and has none
ROUNDS = 3  # of dividing a bin's rows between stretches that stand out and the rest
_THIN = 1e-4  # of the largest measure: that of a single value between wider bins


def unit_of(column: Column) -> Fraction:
    """The distance of two neighboring values of a column; 0 for numbers of any precision."""
    if column.integer or column.kind == "date":
        return Fraction(1)
    return Fraction(0) if column.decimals is None else Fraction(1, 10**column.decimals)


def just_above(column: Column, value: float) -> float:
    """The next value of the column after one, as a float: at least the next float."""
    return max(float(exact(value) + unit_of(column)), math.nextafter(value, math.inf))


def just_below(column: Column, value: float) -> float:
    """The value of the column before one, as a float."""
    return min(float(exact(value) - unit_of(column)), math.nextafter(value, -math.inf))


def counted_edges(column: Column, narrow: tuple[float, ...]) -> tuple[float, ...]:
    """Edges for counting: the upper bound, which closes the last bin, gets a bin of its own."""
    return (*narrow, just_above(column, float(narrow[-1])))


def divisible(column: Column, narrow: tuple[float, ...]) -> bool:
    """Whether some narrow bin holds several values: a public fact."""
    return bool(_values(column, narrow).max() > 1)


def finer_edges(
    column: Column, narrow: tuple[float, ...], counts: np.ndarray, sigma: float
) -> tuple[float, ...]:
    """Edges of the same narrow bins, of which those that clearly hold rows are cut into equal parts.

    Parts are single values where these are few enough. Counts are noisy, float64 (narrow bins,) or
    one more at the end, which is not cut.
    """
    values = _values(column, narrow)
    filled = np.flatnonzero((counts[: len(values)] > FILLED * sigma) & (values > 1))
    if not len(filled):
        return narrow
    most = max(2, min(PARTS, CELLS // len(filled)))
    unit, edges = unit_of(column), set(narrow)
    for place in filled.tolist():
        low, high = exact(narrow[place]), exact(narrow[place + 1])
        if unit:
            held = round((high - low) / unit)
            parts = min(held, most)
            cuts = (float(low + unit * (part * held // parts)) for part in range(1, parts))
        else:
            cuts = iter(np.linspace(float(low), float(high), most + 1)[1:-1].tolist())
        edges |= {cut for cut in cuts if low < cut < high}
    return tuple(sorted(edges))


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The law of one column, found from noisy counts.

    Attributes:
        edges: increasing, (steps,): the last step is the upper bound alone.
        counts: rows of each step, the noise taken out, float64 (steps,), >= 0.
    """

    edges: tuple[float, ...]
    counts: np.ndarray


def steps_of(
    column: Column,
    narrow: tuple[float, ...],
    counts: np.ndarray,
    sigma: float,
    rows: tuple[float, float] | None = None,
) -> Steps:
    """The law on narrow bins alone.

    Args:
        narrow: edges.
        counts: noisy, of the bins between and, at the end, of the upper bound alone.
        sigma: standard deviation of the noise of one count.
        rows: that have a number, and the standard deviation of that; None: the sum of the counts.
    """
    return Steps(narrow, stretches(counts, sigma, measure_of(column, narrow), rows=rows))


def rows_of(
    cells: Mapping[int, np.ndarray], bins: Mapping[int, int], sigma: float
) -> dict[int, tuple[float, float]]:
    """How many rows have a number in each column, and the standard deviation of that.

    All rows are in every column, so the mean of the columns' sums, by their variances, says how many there
    are; those without a number are taken off.

    Args:
        cells: noisy counts by column, of bins and after them of what is no number, float64 (cells,).
        bins: how many cells are bins.
        sigma: standard deviation of the noise of one count.
    """
    known = sum(1 / len(one) for one in cells.values())
    rows = sum(float(one.mean()) for one in cells.values()) / known
    gone = {j: one[bins[j] :] for j, one in cells.items()}
    return {
        j: (rows - float(own.sum()), sigma * math.sqrt(1 / known + len(own)))
        for j, own in gone.items()
    }


def finer_steps(
    column: Column,
    narrow: tuple[float, ...],
    counts: np.ndarray,
    fine: tuple[float, ...],
    parts: np.ndarray,
    sigma: float,
    rows: tuple[float, float] | None = None,
) -> Steps:
    """The law on narrow bins, and within those that were cut finer on even stretches of their parts.

    What was counted twice is averaged by its variance. A narrow bin keeps its rows: those that no
    part shows clearly are spread over the rest of it.

    Args:
        column, narrow, counts, sigma, rows: as for `steps_of`.
        fine: edges; those of `narrow` are among them.
        parts: noisy, of the finer bins, with the same noise.
    """
    starts = np.searchsorted(np.array(fine), np.array(narrow))
    ends = np.append(starts[1:], len(parts))
    sizes = ends - starts
    twice = (counts + np.add.reduceat(parts, starts) / sizes) / (1 + 1 / sizes)
    whole = stretches(twice, sigma, measure_of(column, narrow), rows=rows)
    edges, found = list[float](), list[np.ndarray]()
    for start, end, mass in zip(starts.tolist(), ends.tolist(), whole.tolist(), strict=True):
        inside = inside_of(parts[start:end], mass, sigma)
        marks = np.flatnonzero(np.diff(inside, prepend=np.nan) != 0)
        edges += [fine[start + mark] for mark in marks.tolist()]
        found.append(np.add.reduceat(inside, marks))
    return Steps(tuple(edges), np.concatenate(found))


def inside_of(parts: np.ndarray, mass: float, sigma: float) -> np.ndarray:
    """Rows of one narrow bin over its parts: stretches that clearly stand out, the rest evenly.

    Of noisy parts, float64 (parts,), and the rows of the bin; gives float64 (parts,), >= 0, sum `mass`.
    """
    even = np.full(len(parts), mass / len(parts))
    if len(parts) == 1 or mass <= 0:
        return even
    price, level, found = PRICE + 2 * math.log(CELLS), float(even[0]), even
    for _ in range(ROUNDS):
        above = dyadic(parts - level, sigma, price)
        clear = above > 0
        found = np.where(clear, above + level, 0.0)
        if not clear.any():
            return even
        if clear.all() or found.sum() >= mass:
            break
        level = (mass - float(found.sum())) / int((~clear).sum())
        found[~clear] = level
    shares: np.ndarray = found * (mass / found.sum())
    return shares


def measure_of(column: Column, narrow: Sequence[float]) -> np.ndarray:
    """What smooth columns are about even in, float64 (bins,), > 0: steps of a logarithm, or widths of few.

    The last of the edges is the upper bound, which is a bin of its own.
    """
    low, high = float(narrow[0]), float(narrow[-1])
    ends = np.array([*narrow, just_above(column, high)], dtype=np.float64)
    if column.kind == "date" or (unit_of(column) == 1 and high - low <= VALUES):
        sizes = np.diff(ends)
    else:
        size = max(high, -low) / DECADES if low <= 0 <= high else min(abs(low), abs(high))
        first = 1.0 if column.integer else size
        sizes = np.diff(np.sign(ends) * np.log1p(np.abs(ends) / first))
    return np.asarray(np.maximum(sizes, _THIN * sizes.max()))


def _values(column: Column, narrow: tuple[float, ...]) -> np.ndarray:
    """How many values each narrow bin holds: many, where there is no unit and it is not a single one."""
    unit, ends = unit_of(column), np.array([float(edge) for edge in narrow])
    if unit:
        return np.rint(np.diff(ends) / float(unit))
    return np.where(np.nextafter(ends[:-1], np.inf) < ends[1:], np.inf, 1.0)
