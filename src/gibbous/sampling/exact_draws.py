"""Exact draws from integer weights with uniform 64-bit words: no rounding, no modulo bias."""

from __future__ import annotations

import numpy as np

from gibbous.core.protocols import Words64

_COMPILED_FROM = 1 << 16  # below this many comparisons, numpy is as fast as a compiled call


def bounded(totals: np.ndarray, words: Words64) -> np.ndarray:
    """Uniform whole numbers below each total, by rejection.

    Args:
        totals: uint64 (draws,), each from 1 to 2**63.
    Returns:
        uint64 (draws,).

    A word below 2**64 mod total is thrown away; the words that are left are a whole number of
    runs of length total, so the remainder is exactly uniform.
    """
    taken = words(len(totals))
    rejected = taken < (np.uint64(0) - totals) % totals
    found: np.ndarray = taken % totals
    if rejected.any():
        pending = np.flatnonzero(rejected)
        found[pending] = bounded(totals[pending], words)
    return found


def draw_levels(cumulative: np.ndarray, slots: np.ndarray, words: Words64) -> np.ndarray:
    """One exact draw from the weights of each slot.

    Args:
        cumulative: uint64 (slots, levels): running sums of integer weights; the last one is > 0.
        slots: int64 (draws,).
    Returns:
        int64 (draws,): level v with probability weight[v] / total, exactly.
    """
    if cumulative.shape[1] == 1:
        return np.zeros(len(slots), dtype=np.int64)
    points = bounded(cumulative[slots, -1], words)
    if len(slots) * cumulative.shape[1] < _COMPILED_FROM:
        return search(cumulative, slots, points)
    from gibbous.sampling.alias_kernels import search_rows

    levels = np.empty(len(slots), dtype=np.int64)
    search_rows(cumulative, slots, points, levels)
    return levels


def search(cumulative: np.ndarray, slots: np.ndarray, points: np.ndarray) -> np.ndarray:
    """First level whose running sum exceeds the point; the twin of `alias_kernels.search_rows`."""
    level: np.ndarray = (cumulative[slots] <= points[:, None]).sum(axis=1)
    return level


def accumulate(weights: np.ndarray) -> np.ndarray:
    """Running sums of integer weights, or of probabilities read as multiples of 2**-52.

    Args:
        weights: uint64 integer weights, or float64 probabilities, (slots, levels).
    Returns:
        uint64 (slots, levels); a slot whose weights are all 0 is uniform.
    """
    whole = weights
    if weights.dtype != np.uint64:
        whole = np.rint(weights * 2.0**52).astype(np.uint64)
    empty: np.ndarray = np.logical_not(whole.any(axis=1))
    if empty.any():
        whole = np.where(empty[:, None], np.uint64(1), whole)
    return np.cumsum(whole, axis=1, dtype=np.uint64)


def uniform_levels(size: int, count: int, words: Words64) -> np.ndarray:
    """Exactly uniform codes below `size`, int64 (count,)."""
    if size == 1:
        return np.zeros(count, dtype=np.int64)
    return bounded(np.full(count, size, dtype=np.uint64), words).astype(np.int64)
