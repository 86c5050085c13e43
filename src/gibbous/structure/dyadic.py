"""Noisy counts in a row in, the best guess that is even on stretches, or nothing there, out."""

from __future__ import annotations

import math

import numpy as np

NOTHING, EVEN, HALVES = 0, 1, 2
PRICE = 4.0  # of one even stretch, beside 2 ln(cells): 3.7 standard deviations for 128 cells


def dyadic(counts: np.ndarray, sigma: float, price: float | None = None) -> np.ndarray:
    """The least squares guess under a price for each stretch: nothing, even, or two halves of the same kind.

    Empty stretches become exactly nothing, however long, and a cell that many are in stays alone.

    Args:
        counts: noisy, float64 (cells,), at least one.
        sigma: standard deviation of the noise of one count, > 0.
        price: of one even stretch, in squared standard deviations; one of nothing is free. None
            takes what noise alone seldom reaches in so many cells.
    Returns:
        float64 (cells,), >= 0.
    Source:
        [Donoho 1997] for the best division into dyadic stretches.
    """
    price = PRICE + 2 * math.log(len(counts)) if price is None else price
    size = 1 << max(0, len(counts) - 1).bit_length()
    first, cells = np.zeros(size), np.zeros(size)
    first[: len(counts)], cells[: len(counts)] = counts, 1.0
    sums, sizes, squares = [first], [cells], first * first
    choices, best = list[np.ndarray](), np.zeros(0)
    while True:
        total, held = sums[-1], np.maximum(sizes[-1], 1.0)
        fits = np.where(total > 0, (squares - total * total / held) / sigma**2 + price, np.inf)
        costs = [squares / sigma**2, fits]
        if choices:
            costs.append(best.reshape(-1, 2).sum(axis=1))
        choices.append(np.argmin(costs, axis=0))
        best = np.min(costs, axis=0)
        if len(total) == 1:
            break
        sums.append(total.reshape(-1, 2).sum(axis=1))
        sizes.append(sizes[-1].reshape(-1, 2).sum(axis=1))
        squares = squares.reshape(-1, 2).sum(axis=1)
    found, open_ = np.zeros(1), np.ones(1, dtype=bool)
    for level in range(len(sums) - 1, -1, -1):
        chosen = choices[level]
        even = open_ & (chosen == EVEN)
        found = np.where(even, sums[level] / np.maximum(sizes[level], 1.0), found)
        open_ = open_ & (chosen == HALVES)
        if level:
            found, open_ = np.repeat(found, 2), np.repeat(open_, 2)
    values: np.ndarray = found[: len(counts)]
    return values
