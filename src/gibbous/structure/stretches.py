"""Noisy counts in a row in, the best guess that is even, fading or empty on stretches, out."""

from __future__ import annotations

import math

import numpy as np

PRICE = 7.0  # of one stretch with rows, beside 2 ln(cells): 4.1 standard deviations for 128 cells
LEFT = 2.5  # standard deviations from which on rows that no stretch shows are spread evenly
EMPTY = 1.5  # of one without
BLOCK = 320  # cells that are divided together: work and memory grow with its square
RATES = tuple(0.02 * 2.0**step for step in range(8))  # of fading, a cell
FORMS = ((1, 0.0), *((power, rate) for power in (1, 2) for rate in RATES))
"""How rows fade from cell to cell, exp(-(rate x cells)^power): not at all, like an exponential law, like half
of a bell."""


def stretches(
    counts: np.ndarray,
    sigma: float,
    measure: np.ndarray | None = None,
    price: float | None = None,
    rows: tuple[float, float] | None = None,
) -> np.ndarray:
    """The least squares guess under a price for each stretch: empty, even, or fading to one side.

    A stretch begins and ends anywhere. One that fades goes on where counts are below the noise, so a
    sparse tail keeps about the mass that it has instead of being cut where the noise hides it. Rows
    that no stretch shows, where there clearly are some, are spread evenly: else all rows would go
    where the noise happens to be largest, once it is above the counts. For the same reason all rows are
    even where that fits as well as any stretches at their price.

    Args:
        counts: noisy, float64 (cells,), at least one.
        sigma: standard deviation of the noise of one count, > 0.
        measure: what an even stretch is even in, > 0, float64 (cells,); None: each cell alike.
        price: of one stretch with rows, in squared standard deviations; None takes what noise alone
            seldom reaches in so many cells.
        rows: how many rows there are, and the standard deviation of that; None: their sum.
    Returns:
        float64 (cells,), >= 0.
    Source:
        This project; [Donoho 1997] for the best division under a price, [James and Stein 1961] for the
        rows that are left.
    """
    price = PRICE + 2 * math.log(len(counts)) if price is None else price
    weight = np.ones(len(counts)) if measure is None else measure
    starts = range(0, len(counts), BLOCK)
    found = [_divided(counts[a : a + BLOCK], weight[a : a + BLOCK], sigma, price) for a in starts]
    shown, gain = np.concatenate([one for one, _ in found]), sum(gain for _, gain in found)
    total, error = rows or (float(counts.sum()), sigma * math.sqrt(len(counts)))
    even: np.ndarray = max(total, 0.0) * weight / weight.sum()
    if float(even @ (2 * counts - even)) / sigma**2 >= gain:
        return even  # nothing stands out of it clearly enough
    left = total - float(shown.sum())
    cells, least = int(np.count_nonzero(shown)), LEFT
    if left > float(shown.sum() - shown.max()):
        # One cell is all that is shown, and a law that fades from it would get the others.
        cells, least = 1, 1.0
    noise = math.hypot(error, sigma * math.sqrt(cells))
    kept = max(0.0, 1 - (noise / left) ** 2) if left > least * noise else 0.0
    spread: np.ndarray = shown + kept * left * weight / weight.sum()
    return spread


def _divided(
    counts: np.ndarray, weight: np.ndarray, sigma: float, price: float
) -> tuple[np.ndarray, float]:
    """The best division of one block, and what it gains on an empty one, at its price."""
    cells = len(counts)
    gains, which = _gains(counts, weight)
    gains = gains / sigma**2 - price
    best, start = np.zeros(cells + 1), np.zeros(cells + 1, dtype=np.int64)
    for end in range(1, cells + 1):
        totals = best[:end] + np.maximum(gains[:end, end - 1], -EMPTY)
        start[end] = int(np.argmax(totals))
        best[end] = totals[start[end]]
    found, end = np.zeros(cells), cells
    while end:
        first = int(start[end])
        if gains[first, end - 1] > -EMPTY:
            form = weight[first:end] * _form(int(which[first, end - 1]), end - first)
            found[first:end] = form * (form @ counts[first:end] / (form @ form))
        end = first
    return found, float(best[cells])


def _gains(counts: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much each stretch lowers the sum of squares, [first, last], and with which form."""
    cells = len(counts)
    best, which = np.full((cells, cells), -np.inf), np.zeros((cells, cells), dtype=np.int64)
    ahead = np.maximum(np.arange(cells) - np.arange(cells)[:, None], 0)
    for place in range(len(FORMS)):
        faded = np.triu(_fading(place, ahead))
        for turned in (False, True)[: 1 + (place > 0)]:
            own, mass = (counts[::-1], weight[::-1]) if turned else (counts, weight)
            inner = np.cumsum(faded * (own * mass), axis=1)
            size = np.maximum(np.cumsum(np.square(faded * mass), axis=1), 1e-300)
            gain = np.where(inner > 0, inner * inner / size, -np.inf)
            gain = gain[::-1, ::-1].T if turned else gain
            better = gain > best
            best[better], which[better] = gain[better], -place if turned else place
    return best, which


def _form(which: int, cells: int) -> np.ndarray:
    """Falling from the first cell for numbers above 0, and from the last one for those below."""
    faded = _fading(abs(which), np.arange(cells))
    return faded[::-1] if which < 0 else faded


def _fading(place: int, ahead: np.ndarray) -> np.ndarray:
    """What is left of the rows so many cells ahead, 1 at the first."""
    power, rate = FORMS[place]
    return np.asarray(np.exp(-((rate * ahead) ** power)))
