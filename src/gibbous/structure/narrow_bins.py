"""Narrow public bins of a numeric column, and what noisy counts of them say about wider ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.recode import Edges
from gibbous.core.schema import Column, Within
from gibbous.structure.bin_counts import equal_edges, quantile_edges
from gibbous.structure.fine_bins import first_of, just_above, just_below, measure_of
from gibbous.structure.stretches import stretches

Grid = Literal["auto", "equal", "log", "schema"]

DIGITS = 6  # of a cut point on a logarithmic grid: these are read by people
CLEARLY = 3.0  # standard deviations of the noise by which two halves of a stretch differ
UNITS = 10**7  # weights of all steps of a column together, about
SINGLE, EQUAL, DECADE = 1 / 8, 1 / 16, 1 / 50
"""Of the wanted number of narrow bins, where they are cut finer afterwards: single values at most, equal
bins, and bins in equal ratios for each power of ten."""
TAIL, FEW = 0.4, 8
"""A bin is cut that holds so much of the distances of all rows from the middle one, and so many times its
part of the rows: a mean hangs on it."""
FIRST = 20  # halvings of the weights of steps of which nothing is known
LEAST = 4  # bins, of which one may be a single value that many rows have


def narrow_edges(column: Column, grid: Grid, bins: int) -> tuple[float, ...]:
    """Edges of the narrow bins of a column: public, from its bounds alone.

    Args:
        column: numeric or date.
        grid: "equal" widths; "log": widths that grow in equal ratios from the lower bound (where that
            is not above 0, of the distance to it, from about 1 on: `first_of`); "auto": a bin for each
            whole number or day where there are few, else few bins that are to be cut finer: equal ones,
            and for numbers also log ones on both sides of 0, with bins of the lower bound alone and of
            0 alone; "schema": the declared bins.
        bins: >= 1; whole numbers have at most one bin for each step between their bounds.
    """
    if grid == "auto":
        return _auto_edges(column, bins)
    if grid == "schema":
        return column.edges
    if grid == "equal":
        edges = equal_edges(column, bins)
        return (edges[0], *_on_places(column, edges[1:-1], edges[0], edges[-1]), edges[-1])
    low, high = float(column.edges[0]), float(column.edges[-1])
    first = 1.0 if column.kind == "date" else first_of(column, max(low, 0.0), high - min(low, 0.0))
    return (column.edges[0], *_log_cuts(column, low, high, bins, first), column.edges[-1])


def _log_cuts(column: Column, low: float, high: float, bins: int, unit: float) -> tuple[float, ...]:
    """Cut points whose distances from `low` grow in equal ratios from `unit` up to `high`, both left out."""
    cuts = low + unit * np.expm1(np.log1p((high - low) / unit) * np.arange(1, bins) / bins)
    if column.integer or column.kind == "date":
        inner = [float(round(cut)) for cut in cuts]
    else:
        inner = [float(f"{cut:.{DIGITS}g}") for cut in cuts]
    kept = np.unique([cut for cut in inner if low < cut < high]).tolist()
    return _on_places(column, kept, low, high)


def _auto_edges(column: Column, bins: int) -> tuple[float, ...]:
    low, high = float(column.edges[0]), float(column.edges[-1])
    if (column.integer or column.kind == "date") and high - low <= SINGLE * bins:
        return narrow_edges(column, "equal", bins)
    equal = narrow_edges(column, "equal", max(1, round(EQUAL * bins)))
    if column.kind == "date":
        return equal
    cuts = {*equal, just_below(column, high)}
    for value in (low, 0.0):
        cuts |= {value, just_above(column, value)}
    # Distances from 0, or from the bound next to it.
    first = first_of(column, low, high)
    for sign, near, far in ((-1.0, max(-high, 0.0), -low), (1.0, max(low, 0.0), high)):
        if far > near:
            parts = max(1, round(DECADE * bins * math.log10(1 + (far - near) / first)))
            cuts |= {sign * cut for cut in _log_cuts(column, near, far, parts, first)}
    return (column.edges[0], *sorted(cut for cut in cuts if low < cut < high), column.edges[-1])


def _on_places(column: Column, cuts: Sequence[float], low: float, high: float) -> tuple[float, ...]:
    """Cut points with the declared decimals, so that every bin holds a number with no more of them."""
    if column.decimals is None:
        return tuple(cuts)
    unit = 10**column.decimals
    first = math.ceil(exact(low) * unit)
    places = sorted({round(exact(cut) * unit) for cut in cuts})
    kept = (float(Fraction(place, unit)) for place in places if place > first)
    return tuple(cut for cut in kept if cut < high)


def widest_edges(column: Column, narrow: tuple[float, ...], bins: int) -> Edges:
    """As many bins as merging may leave, for a plan: their places do not matter."""
    most = max(1, min(bins, len(narrow) - 1))
    return Edges((*narrow[:most], column.edges[-1]), "discovered")


def merged_edges(
    narrow: tuple[float, ...],
    counts: np.ndarray,
    sigma: float,
    bins: int,
    *,
    within: bool,
) -> Edges:
    """Bins of about equal mass, and the law inside of them: functions of noisy counts alone.

    A narrow bin that alone has the mass of a bin becomes one, up to a quarter of all; the stretches
    between such bins are cut into bins of about equal mass. A bin on which much of the mean hangs is cut, and
    there are fewer others, where its parts clearly hold rows.

    Args:
        narrow: edges of the narrow bins.
        counts: records in each, the noise taken out, float64 (narrow bins,), >= 0; one more at the end is
            that of the upper bound alone.
        sigma: standard deviation of the noise of one count, > 0.
        bins: wanted, >= 1; fewer where quantiles fall into one narrow bin.
        within: whether output numbers follow the narrow bins; evenly spread otherwise.
    Returns:
        Bins marked as discovered.
    """
    capped = len(counts) == len(narrow)
    joined = np.append(counts[:-2], counts[-2:].sum()) if capped else counts
    edges = _cut(narrow, joined, sigma, bins, within=within)
    for wanted in range(bins, bins - bins // LEAST - 1, -1):
        few = _cut(narrow, joined, sigma, wanted, within=within)
        tailed = _tails(narrow, joined, sigma, few)
        if len(tailed) <= bins + 1:
            edges = tailed
            break
    if not within:
        return Edges(edges, "discovered")
    steps = (*narrow, narrow[-1]) if capped else narrow
    rows = max(1.0, float(counts.sum()))
    noise = float(f"{UNITS * sigma / rows:.6g}")
    return Edges(edges, "discovered", Within(steps, _weights(edges, steps, counts / rows), noise))


def _tails(
    narrow: Sequence[float], counts: np.ndarray, sigma: float, edges: tuple[float, ...]
) -> tuple[float, ...]:
    """The same bins, of which those of few large numbers are cut where their parts clearly hold rows."""
    ends, held = np.array(narrow, dtype=np.float64), np.maximum(counts, 0.0)
    numbers = (ends[:-1] / 4 + ends[1:] / 4) / np.abs(ends).max()
    middle = numbers[np.searchsorted(np.cumsum(held), held.sum() / 2)]
    far = held * np.abs(numbers - middle)
    far /= max(float(far.sum()), 1e-300)
    starts = np.searchsorted(ends, np.array(edges, dtype=np.float64)).tolist()
    cuts = set(edges)
    for first, last in zip(starts, starts[1:], strict=False):
        share, before = float(far[first:last].sum()), first
        many = share <= FEW * float(held[first:last].sum()) / max(float(held.sum()), 1e-300)
        parts = 1 if many else 1 + int(share / TAIL)
        for edge in quantile_edges(narrow[first : last + 1], far[first:last], parts)[1:-1]:
            place = int(np.searchsorted(ends, edge))
            if min(held[before:place].sum(), held[place:last].sum()) >= CLEARLY * sigma:
                cuts.add(edge)
                before = place
    return tuple(sorted(cuts))


def redrawn_weights(column: Column, normal: np.ndarray) -> tuple[int, ...]:
    """Weights of a paid law within bins that the same records might have got with other noise.

    `normal`: standard normal numbers, one a step.
    """
    assert column.within is not None
    noisy = np.array(column.within.weights, dtype=np.float64) + column.within.noise * normal
    steps = measure_of(column, column.within.edges)[: len(noisy)]
    rows = float(sum(column.within.weights)), 0.0
    found = stretches(noisy, column.within.noise, steps, rows=rows)
    return _weights(column.edges, column.within.edges, found / max(1.0, found.sum()))


def _weights(edges: Sequence[float], steps: Sequence[float], shares: np.ndarray) -> tuple[int, ...]:
    """Whole weights; in a bin that would have none half as many from step to step away from 0.

    The noise of the method inside may give such a bin some rows, and it is as wide as the bounds.
    """
    weights = np.rint(shares * UNITS).astype(np.int64)
    starts = np.searchsorted(np.array(steps[:-1]), np.array(edges[:-1]))
    for first, last in zip(starts, [*starts[1:], len(weights)], strict=True):
        if not weights[first:last].any():
            away = np.abs(np.array(steps[first:last], dtype=np.float64)).argsort().argsort()
            weights[first:last] = 2 ** np.maximum(FIRST - away, 0)
    found: list[int] = weights.tolist()
    return tuple(found)


def _cut(
    edges: Sequence[float], counts: np.ndarray, sigma: float, bins: int, *, within: bool
) -> tuple[float, ...]:
    """Cut points of merged bins; `within`: a law inside of them says where there are none."""
    rows = max(1.0, float(counts.sum()))
    clear = np.flatnonzero(counts >= max(rows / bins, CLEARLY * sigma))
    alone: list[int] = clear.tolist() if bins >= LEAST else []
    heavy = sorted(alone, key=lambda place: -counts[place])[: bins // LEAST]
    ends = sorted({0, len(counts), *heavy, *(place + 1 for place in heavy)})
    free = [(a, b) for a, b in zip(ends, ends[1:], strict=False) if a not in set(heavy)]
    mass = np.array([max(float(counts[a:b].sum()), 0.0) for a, b in free])
    left = bins - len(heavy) - len(free)
    cuts = {edges[end] for end in ends}
    for (a, b), own in zip(free, mass, strict=True):
        beside = [end for end, by in ((a, a - 1), (b, b)) if by in heavy and edges[by] != 0]
        if within and own <= 0 and beside:
            # Its rows would be noise, far away; but beside 0, where a tail may hide.
            cuts.discard(edges[beside[0]])
            continue
        more = int(left * (own / mass.sum()) + 1e-9) if own > 0 else 0
        # Of no more rows than a quarter of an even share each, a table of several columns says nothing.
        most = max(1, int(LEAST * bins * own / rows))
        cuts |= {*quantile_edges(edges[a : b + 1], counts[a:b], min(1 + more, most))}
    return tuple(sorted(cuts))
