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
from gibbous.structure.smooth_law import smooth_law
from gibbous.structure.stretches import stretches, whole_rows

CELLS = 2**16  # of one column, cut finer
PARTS = (32, 64, 64, 4096)
"""Of one narrow bin, in each look after the first: few first. The noise of a sum of so many parts grows with
their square root, so many hide the shape that a few show; frequent values stand out of the last ones."""
CUT = CELLS // 16  # narrow bins of one column at most, those with most rows: at least 16 parts each
VALUES = 256  # whole numbers in so short a range are even in their number
FILLED = 6.0  # standard deviations of the noise from which on a narrow bin is cut finer
DECADES = 10_000  # widths of the first narrow bins, where numbers have decimals and no bound is far above 1
ROUNDS = 3  # of dividing a bin's rows between stretches that stand out and the rest
ALONE = 10  # times the rows beside it, from which on a step stands alone
SLOPES = 8  # parts of a bin, in which its density rises or falls as that of its neighbors
NARROW = 1e-5  # of its numbers, for a step that is taken for one of them
_LARGEST = 17  # places of a float
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


def most_values(column: Column, narrow: tuple[float, ...]) -> float:
    """How many values a narrow bin holds at most: a public fact."""
    return float(_values(column, narrow).max())


def finer_edges(
    column: Column, narrow: tuple[float, ...], counts: np.ndarray, sigma: float, parts: int
) -> tuple[float, ...]:
    """Edges of the same narrow bins, of which those that clearly hold rows are cut into equal parts.

    So many parts, or single values where these are fewer. Counts are noisy, float64 (narrow bins,) or
    one more at the end, which is not cut.
    """
    values = _values(column, narrow)
    filled = np.flatnonzero((counts[: len(values)] > FILLED * sigma) & (values > 1))
    if not len(filled):
        return narrow
    filled = np.sort(filled[np.argsort(-counts[filled], kind="stable")[:CUT]])
    most = min(parts, CELLS // len(filled))
    unit, edges = unit_of(column), set(narrow)
    for place in filled.tolist():
        low, high = float(narrow[place]), float(narrow[place + 1])
        if unit:
            first = exact(low)
            held = round((exact(high) - first) / unit)
            into = min(held, most)
            cuts = (float(first + unit * (part * held // into)) for part in range(1, into))
        else:
            cuts = iter(np.linspace(low, high, most + 1)[1:-1].tolist())
        edges |= {cut for cut in cuts if low < cut < high}
    return tuple(sorted(edges))


Looks = Sequence[tuple[tuple[float, ...], np.ndarray, float]]
"""Each cuts the cells that those before have shown: edges; noisy counts of the bins between and, at the end,
of the upper bound alone; standard deviation of the noise of one, of the first two the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The law of one column, found from noisy counts.

    Attributes:
        edges: increasing, (steps,): the last step is the upper bound alone.
        counts: rows of each step, the noise taken out, float64 (steps,), >= 0.
        looks: what was counted.
    """

    edges: tuple[float, ...]
    counts: np.ndarray
    looks: Looks


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


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What looks have shown of one column: cells in a row, the last of which is the upper bound alone.

    Attributes:
        edges: increasing, (cells,).
        mass: rows of each, the noise taken out, float64 (cells,), >= 0.
        ends: places of cells that begin a step, whatever the masses beside them.
    """

    edges: tuple[float, ...]
    mass: np.ndarray
    ends: np.ndarray


def next_edges(column: Column, looks: Looks) -> tuple[float, ...]:
    """Where the next look cuts: clear cells finer."""
    edges, counts, sigma = looks[-1]
    return finer_edges(column, edges, counts, sigma, PARTS[len(looks) - 1])


def _cells(column: Column, looks: Looks, rows: tuple[float, float] | None) -> Cells:
    """The law of a column as far as looks show it."""
    edges, counts, sigma = looks[0]
    if len(looks) > 1:
        starts = np.searchsorted(np.array(looks[1][0]), np.array(edges))
        sizes = np.diff(starts, append=len(looks[1][1]))
        again = np.add.reduceat(looks[1][1], starts)
        counts = (counts + again / sizes) / (1 + 1 / sizes)
    other = None if rows is None else _smooth(column, edges, counts, sigma, rows)
    mass = stretches(counts, sigma, measure_of(column, edges), rows=rows, other=other)
    mass = whole_rows(mass)
    shown = Cells(edges, mass, np.arange(len(edges)))
    for place, (fine, parts, noise) in enumerate(looks[1:]):
        shown = _cut(shown, fine, parts, noise, first=not place)
    return shown


def _smooth(
    column: Column,
    edges: tuple[float, ...],
    counts: np.ndarray,
    sigma: float,
    rows: tuple[float, float],
) -> tuple[np.ndarray, float]:
    """The smooth law of narrow bins, and its gain. Bins of a bound or 0 alone are no part of it."""
    values, ends = _values(column, edges), np.array(counted_edges(column, edges), dtype=np.float64)
    alone = np.zeros(len(counts), dtype=bool)
    if column.kind != "date" and values.max() > 1:
        alone[:-1] = (values == 1) & np.isin(ends[:-2], (0.0, ends[0]))
        alone[-2:] |= np.append(values[-1] == 1, True)
    first = None if column.kind == "date" else first_of(column, float(ends[0]), float(ends[-2]))
    return smooth_law(counts, sigma, ends, rows, alone=alone, first=first)


def rises_of(edges: Sequence[float], mass: np.ndarray) -> np.ndarray:
    """By which part of its mean the density of a cell rises from its middle to its end, -1 to 1.

    The slope is that of the cells on both sides, or twice that of the flatter one, and none at a peak.

    Source:
        [van Leer 1977], the monotonized central difference.
    """
    ends = np.array(edges, dtype=np.float64)
    ends /= np.abs(ends).max()
    widths = np.maximum(np.diff(ends, append=ends[-1]), 1e-12)  # of single floats
    found = np.zeros(len(ends))
    if len(ends) < 4:
        return found
    density, middle = mass[:-1] / widths[:-1], ends[:-1] + widths[:-1] / 2
    apart = np.maximum(np.diff(middle), 1e-13)
    steps = np.diff(density) / apart
    left, right = steps[:-1], steps[1:]
    both = (density[2:] - density[:-2]) / (apart[:-1] + apart[1:])
    least = np.minimum(abs(both), 2 * np.minimum(abs(left), abs(right)))
    slope = np.where(left * right > 0, np.sign(both) * least, 0.0)
    mean = density[1:-1]
    rise = slope * widths[1:-2] / 2 / np.maximum(mean, 1e-300)
    found[1:-2] = np.where(mean > 0, np.clip(rise, -1.0, 1.0), 0.0)
    return found


def _cut(
    before: Cells, fine: tuple[float, ...], parts: np.ndarray, sigma: float, *, first: bool
) -> Cells:
    """What a look shows of cells that it cuts: each keeps its rows.

    The first cut shows their shape, on few parts: stretches of those, or what their neighbors say. Later ones
    show frequent values; rows that no part shows are spread evenly.
    """
    starts = np.searchsorted(np.array(fine), np.array(before.edges))
    ends = np.append(starts[1:], len(parts))
    cut, inside = np.flatnonzero(ends - starts > 1), np.repeat(before.mass, ends - starts)
    rises = rises_of(before.edges, before.mass) if first else None
    for place in cut.tolist():
        held, mass = slice(starts[place], ends[place]), float(before.mass[place])
        if rises is None:
            inside[held] = inside_of(parts[held], mass, sigma, len(parts))
        else:
            inside[held] = _shape(parts[held], mass, sigma, float(rises[place]))
    marks = np.union1d(starts[before.ends], np.concatenate((starts[cut], ends[cut])))
    return Cells(fine, inside, marks[marks < len(parts)])


def _shape(parts: np.ndarray, mass: float, sigma: float, rise: float) -> np.ndarray:
    """Rows of a bin over its parts: the best stretches, or a straight line as `rises_of` it says."""
    steps = min(SLOPES, len(parts))
    at = (2 * (np.arange(len(parts)) * steps // len(parts)) + 1) / steps - 1
    line = np.maximum(1 + rise * at, _THIN)
    found = stretches(parts, sigma, line, rows=(mass, sigma))
    found = found if found.any() else line
    shares: np.ndarray = found * (max(mass, 0.0) / found.sum())
    return shares


def finer_steps(column: Column, looks: Looks, rows: tuple[float, float] | None = None) -> Steps:
    """The law on narrow bins, and within those that were cut finer on even stretches of their parts.

    What the first two looks counted is averaged by its variance.

    Args:
        rows: that have a number, and the standard deviation of that; None: the sum of the counts.
    """
    shown = _cells(column, looks, rows)
    marks = np.union1d(shown.ends, np.flatnonzero(np.diff(shown.mass, prepend=np.nan) != 0))
    lows = [shown.edges[mark] for mark in marks.tolist()]
    found = np.add.reduceat(shown.mass, marks)
    steps: dict[float, float] = {}
    for place, (low, held) in enumerate(zip(lows, found.tolist(), strict=True)):
        single = None if unit_of(column) else _single(lows, found, place, looks[-1][2])
        if single is None:
            steps[low] = held
        else:
            steps |= {low: 0.0} | {single: held}
            if (above := math.nextafter(single, math.inf)) < lows[place + 1]:
                steps[above] = 0.0
    return Steps(tuple(steps), np.array(list(steps.values())), looks)


def _single(ends: Sequence[float], counts: np.ndarray, place: int, sigma: float) -> float | None:
    """The shortest number of a step that stands out alone and is narrow; of other steps None.

    A table of numbers of any precision has its heaps at short ones: 1, 0.5, 0.1442925.
    """
    beside = counts[max(place - 1, 0) : place + 2].sum() - counts[place]
    if place + 1 == len(ends) or counts[place] < max(FILLED * sigma, ALONE * beside):
        return None
    low, high = ends[place : place + 2]
    if high - low > NARROW * min(abs(low), abs(high)):
        return None
    for places in range(-_LARGEST, _LARGEST + 1):
        unit = Fraction(10) ** -places
        number = float(math.ceil(exact(low) / unit) * unit)
        if low <= number < high:
            return number
    return None


def inside_of(parts: np.ndarray, mass: float, sigma: float, among: int) -> np.ndarray:
    """Rows of one narrow bin over its parts: stretches that clearly stand out, the rest evenly.

    Of noisy parts, float64 (parts,), `among` so many of all bins, and the rows of the bin; gives
    float64 (parts,), >= 0, sum `mass`.
    """
    even = np.full(len(parts), mass / len(parts))
    if len(parts) == 1 or mass <= 0:
        return even
    price, level, found = PRICE + 2 * math.log(among), float(even[0]), even
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
        sizes = np.diff(np.sign(ends) * np.log1p(np.abs(ends) / first_of(column, low, high)))
    return np.asarray(np.maximum(sizes, _THIN * sizes.max()))


def first_of(column: Column, low: float, high: float) -> float:
    """The distance from 0 from which on a logarithm counts: that of the nearer bound, or about 1.

    Between bounds on both sides of 0 it is 1 for whole numbers; for others no more than 1 / DECADES of the
    farther bound, and no less than their last decimal.
    """
    near, far = max(low, -high, 0.0), max(high, -low)
    size = near or 1.0
    if not near and not column.integer:
        size = max(float(unit_of(column)), min(1.0, far / DECADES))
    return max(size, far * 1e-300, math.ulp(0.0))  # the least by which `far` can be divided


def _values(column: Column, narrow: tuple[float, ...]) -> np.ndarray:
    """How many values each narrow bin holds: many, where there is no unit and it is not a single one."""
    unit, ends = unit_of(column), np.array([float(edge) for edge in narrow])
    if unit:
        return np.rint(np.diff(ends) / float(unit))
    return np.where(np.nextafter(ends[:-1], np.inf) < ends[1:], np.inf, 1.0)
