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
from gibbous.structure.smoothing import denoised

Grid = Literal["equal", "log", "schema"]

DECADES = 10_000  # widths of the first narrow bins, where a logarithm needs a scale and has none
DIGITS = 6  # of a cut point on a logarithmic grid: these are read by people
CLEARLY = 3.0  # standard deviations of the noise by which two halves of a stretch differ
UNITS = 10**7  # weights of all steps of a column together, about


def narrow_edges(column: Column, grid: Grid, bins: int) -> tuple[float, ...]:
    """Edges of the narrow bins of a column: public, from its bounds alone.

    Args:
        column: numeric or date.
        grid: "equal" widths; "log": widths that grow in equal ratios from the lower bound (where that
            is not above 0, of the distance to it: from 1 for whole numbers and dates, else from
            1/10,000 of the range); "schema": the declared bins.
        bins: >= 1; whole numbers have at most one bin for each step between their bounds.
    """
    if grid == "schema":
        return column.edges
    if grid == "equal":
        edges = equal_edges(column, bins)
        return (edges[0], *_on_places(column, edges[1:-1]), edges[-1])
    low, high = float(column.edges[0]), float(column.edges[-1])
    whole = column.integer or column.kind == "date"
    unit = low if low > 0 and column.kind != "date" else 1.0 if whole else (high - low) / DECADES
    cuts = low + unit * np.expm1(np.log1p((high - low) / unit) * np.arange(1, bins) / bins)
    if whole:
        inner = [float(round(cut)) for cut in cuts]
    else:
        inner = [float(f"{cut:.{DIGITS}g}") for cut in cuts]
    kept = np.unique([cut for cut in inner if low < cut < high]).tolist()
    return (column.edges[0], *_on_places(column, kept), column.edges[-1])


def _on_places(column: Column, cuts: Sequence[float]) -> tuple[float, ...]:
    """Cut points with the declared decimals, so that every narrow bin holds a number with no more of them."""
    if column.decimals is None:
        return tuple(cuts)
    unit = 10**column.decimals
    first = math.ceil(exact(column.edges[0]) * unit)
    places = sorted({round(exact(cut) * unit) for cut in cuts})
    kept = (float(Fraction(place, unit)) for place in places if place > first)
    return tuple(cut for cut in kept if cut < column.edges[-1])


def narrow_shares(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Shares of narrow bins with the noise taken out: neighbors are alike until counts say otherwise.

    Args:
        counts, sigma: as for `merged_edges`.
    Returns:
        float64 (narrow bins,), > 0, sum 1.
    """
    rows = max(1.0, float(counts.sum()))
    even = np.full(len(counts), rows / len(counts))
    cells = denoised(counts, sigma, [halved(counts, sigma, rows), even])
    shares: np.ndarray = cells / cells.sum()
    return shares


def halved(counts: np.ndarray, sigma: float, rows: float) -> np.ndarray:
    """Rows divided over narrow bins by halves: evenly, unless two halves differ clearly.

    Args:
        rows: to be divided, > 0.
    Returns:
        float64 (narrow bins,), >= 0, sum `rows`: a smooth guess that keeps jumps and long flat tails.
    """
    out = np.zeros(len(counts))
    open_ = [(0, len(counts), rows)]
    while open_:
        first, last, mass = open_.pop()
        if last - first == 1 or mass <= 0:
            out[first:last] = mass / (last - first)
            continue
        middle = (first + last) // 2
        share = (middle - first) / (last - first)
        low, high = float(counts[first:middle].sum()), float(counts[middle:last].sum())
        # Of the difference from an even division, under noise alone.
        spread = sigma * math.sqrt((last - first) * share * (1 - share))
        if abs(low - share * (low + high)) >= CLEARLY * spread:
            low, high = max(low, 0.0), max(high, 0.0)
            share = low / (low + high) if low + high > 0 else share
        open_ += [(first, middle, mass * share), (middle, last, mass * (1 - share))]
    return out


def widest_edges(column: Column, narrow: tuple[float, ...], bins: int) -> Edges:
    """As many bins as merging may leave, for a plan: their places do not matter."""
    most = max(1, min(bins, len(narrow) - 1))
    return Edges((*narrow[:most], column.edges[-1]), "discovered")


def merged_edges(
    narrow: tuple[float, ...], counts: np.ndarray, sigma: float, bins: int, *, within: bool
) -> Edges:
    """Bins of about equal noisy mass, and the law inside of them: functions of noisy counts alone.

    Args:
        narrow: edges of the narrow bins.
        counts: noisy number of records in each, float64 (narrow bins,).
        sigma: standard deviation of the noise of one count, > 0.
        bins: wanted, >= 1; fewer where quantiles fall into one narrow bin.
        within: whether output numbers follow the narrow bins; evenly spread otherwise.
    Returns:
        Bins marked as discovered.
    """
    edges = quantile_edges(narrow, counts, bins)
    if not within or len(narrow) == len(edges):
        return Edges(edges, "discovered")
    shares = narrow_shares(counts, sigma)
    weights = np.maximum(np.rint(shares * UNITS), 1.0).astype(np.int64)
    return Edges(edges, "discovered", Within(narrow, tuple(weights.tolist())))
