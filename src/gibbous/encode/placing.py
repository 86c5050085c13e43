"""Bins -> numbers and days within them, evenly or as the law within the bins says."""

from __future__ import annotations

import math

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.schema import Column
from gibbous.core.stream import stream_key, words_at

STREAM = 0x646563  # "dec": keeps these streams apart from those that drew the codes
_STEP = 1  # the streams that choose a step of a bin
_GRID = 2**53


def placed(
    column: Column, codes: np.ndarray, rows: np.ndarray, stream: tuple[int, ...]
) -> np.ndarray:
    """A number or day (a proleptic ordinal) within the bin of each row; of the missing, any.

    `rows` are their numbers, uint64; `stream` names the words that they are drawn with.
    """
    from gibbous.encode.bins import check_bounds

    check_bounds(column)
    draw = words_at(stream_key(*stream), rows)
    edges = column.edges
    if column.within is not None:
        codes = stepped(column, codes, words_at(stream_key(*stream, _STEP), rows))
        edges = column.within.edges
    place = np.where(codes == len(edges) - 1, 0, codes) if column.missing else codes
    if column.integer or column.kind == "date":
        return _whole(edges, place, draw)
    if column.decimals is None:
        return _real(edges, place, draw)
    return _rounded(edges, column.decimals, place, draw)


def stepped(column: Column, codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A step of its bin for each row, in proportion to the weights; evenly drawn from, it is the law within.

    Codes of steps, and their number where a value is missing; draw: uint64 (rows,).
    """
    assert column.within is not None
    steps = column.within.edges
    starts = np.searchsorted(np.array(steps[:-1]), np.array(column.edges[:-1]))
    running = np.concatenate([[0.0], np.cumsum(np.array(column.within.weights, dtype=np.float64))])
    ends = np.append(starts[1:], len(steps) - 1)
    inside = codes < column.bins
    own = np.where(inside, codes, 0)
    low, high = running[starts][own], running[ends][own]
    share = (draw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    place = np.searchsorted(running, low + share * (high - low), side="right") - 1
    place = np.clip(place, starts[own], ends[own] - 1)
    return np.where(inside, place, len(steps) - 1)


def _whole(edges: tuple[float, ...], codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A whole number of the bin: [a, b), the last bin [a, b]."""
    low = np.array([int(e) for e in edges[:-1]], dtype=np.int64)
    stop = [int(e) for e in edges[1:-1]] + [int(edges[-1]) + 1]
    width = [b - int(a) for a, b in zip(edges[:-1], stop, strict=True)]
    return _offset(low, width, codes, draw)


def _offset(low: np.ndarray, width: list[int], codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    # A word modulo a width: the bias is below width / 2^64. A width of 2^64 is the word itself.
    step = np.array([w if w < 2**64 else 0 for w in width], dtype=np.uint64)[codes]
    full = step == 0
    offset = np.where(full, draw, draw % np.where(full, np.uint64(1), step))
    values: np.ndarray = (low[codes].view(np.uint64) + offset).view(np.int64)
    return values


def _real(edges: tuple[float, ...], codes: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A number of the bin, which stays in it whatever the rounding."""
    ends = np.array([float(e) for e in edges])
    top = np.append(np.nextafter(ends[1:-1], -np.inf), ends[-1])
    share = (draw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    low, high = ends[codes], ends[codes + 1]
    values: np.ndarray = np.clip(low * (1.0 - share) + high * share, low, top[codes])
    return values


def _rounded(
    edges: tuple[float, ...], decimals: int, codes: np.ndarray, draw: np.ndarray
) -> np.ndarray:
    """A number of the bin with at most `decimals` places; a bin that has none keeps all its places."""
    unit = 10**decimals
    scaled = [exact(e) * unit for e in edges]
    low = [math.ceil(e) for e in scaled[:-1]]
    stop = [math.ceil(e) for e in scaled[1:-1]] + [math.floor(scaled[-1]) + 1]
    fits = np.array([a < b and max(abs(a), abs(b)) < _GRID for a, b in zip(low, stop, strict=True)])
    if not fits.any():
        return _real(edges, codes, draw)
    first = np.array([a if ok else 0 for a, ok in zip(low, fits, strict=True)], dtype=np.int64)
    width = [b - a if ok else 1 for a, b, ok in zip(low, stop, fits, strict=True)]
    values = _offset(first, width, codes, draw) / unit
    return values if fits.all() else np.where(fits[codes], values, _real(edges, codes, draw))
