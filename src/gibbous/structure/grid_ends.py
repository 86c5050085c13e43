"""Noisy counts on a grid of magnitudes in, where its rows begin and end out."""

from __future__ import annotations

import math

import numpy as np

SURE = 5.0  # standard deviations above which a stretch of the grid is not empty
NEXT = 3.0  # the same of a stretch that begins where the cells that stand out end
FAR = 100.0  # by so much such a stretch may grow


def ends_of(counts: np.ndarray, sigma: float, sizes: np.ndarray) -> tuple[int, int]:
    """The first and the last cell of the grid that are not empty, as far as noise can tell.

    Stretches of 1 to 16 cells are looked at, and of those with rows the largest cell is taken;
    from the outermost ones on, what follows beside them; without any, the stretch that stands out most.

    Args:
        counts: noisy, float64 (cells,).
        sigma: standard deviation of one count.
        sizes: of the edges of the cells, without a sign, float64 (cells + 1,).
    Returns:
        Positions of two cells.
    """
    full, best = np.zeros(len(counts), dtype=bool), (-math.inf, 0, len(counts) - 1)
    for width in (1, 2, 4, 8, 16):
        clear = np.convolve(counts, np.ones(width), mode="valid") / (sigma * math.sqrt(width))
        for start in np.flatnonzero(clear > SURE).tolist():
            full[start + int(np.argmax(counts[start : start + width]))] = True
        first = int(np.argmax(clear))
        best = max(best, (float(clear[first]), first, first + width - 1))
    if not full.any():
        return best[1:]
    first, last = (int(place) for place in np.flatnonzero(full)[[0, -1]])
    back = len(counts) - 1
    low = back - _outward(counts[::-1], back - first, sigma, sizes[::-1])
    return low, _outward(counts, last, sigma, sizes)


def _outward(counts: np.ndarray, last: int, sigma: float, sizes: np.ndarray) -> int:
    """The last cell of stretches beside each other that hold rows: a tail that thins out is believed.

    A stretch does not go beyond FAR times the size at which it begins: what is there by noise alone
    would move a mean by powers of ten.
    """
    for width in (1, 2, 3, 5, 8, 16):
        beyond = counts[last + 1 : last + 1 + width]
        if len(beyond) < width or sizes[last + 1 + width] > FAR * max(1.0, sizes[last + 1]):
            break
        if beyond.sum() > NEXT * sigma * math.sqrt(width):
            return _outward(counts, last + 1 + int(np.argmax(beyond)), sigma, sizes)
    return last
