"""Noisy counts in a row in, the best guess that is even, fading or empty on stretches, out."""

from __future__ import annotations

import math

import numpy as np

PRICE = 7.0  # of one stretch with rows, beside 2 ln(cells): 4.1 standard deviations for 128 cells
EMPTY = 1.5  # of one without
BLOCK = 320  # cells that are divided together: work and memory grow with its square
NEAR = 0.1  # standard deviations of the noise, from which on a cell is shown
FAR = 1.5  # the power of their distance by which rows that no stretch shows get fewer
RATES = tuple(0.02 * 2.0**step for step in range(8))  # of fading, a cell
FORMS = ((1, 0.0), *((power, rate) for power in (1, 2) for rate in RATES))
"""How rows fade from cell to cell, exp(-(rate x cells)^power): not at all, like an exponential law, like half
of a bell."""
HEAVY = ((0, 2.5), (0, 4.0))
"""Further forms of cells that are alike: 1 / cells^rate, counted from the lower end of the block. They hold
many rows where none is seen, so they must gain as much as another stretch would cost."""


def stretches(
    counts: np.ndarray,
    sigma: float,
    measure: np.ndarray | None = None,
    price: float | None = None,
    rows: tuple[float, float] | None = None,
    other: tuple[np.ndarray, float] | None = None,
) -> np.ndarray:
    """The least squares guess under a price for each stretch: empty, even, or fading to one side.

    A stretch begins and ends anywhere. One that fades goes on where counts are below the noise, so a
    sparse tail keeps about the mass that it has instead of being cut where the noise hides it. Rows
    that no stretch shows are spread, as far as they are more than noise: most of them near cells that are
    shown. Where stretches show more rows than there are, each gives back by how uncertain it is. All rows are
    even where that fits as well as any stretches at their price: else all would go where the noise happens to
    be largest, once it is above the counts.

    Args:
        counts: noisy, float64 (cells,), at least one.
        sigma: standard deviation of the noise of one count, > 0.
        measure: what an even stretch is even in, > 0, float64 (cells,); None: each cell alike.
        price: of one stretch with rows, in squared standard deviations; None takes what noise alone
            seldom reaches in so many cells.
        rows: how many rows there are, and the standard deviation of that; None: their sum.
        other: another guess, and its gain: taken where it gains more than the best stretches.
    Returns:
        float64 (cells,), >= 0.
    Source:
        This project; [Donoho 1997] for the best division under a price, [James and Stein 1961] for the
        rows that are left.
    """
    price = PRICE + 2 * math.log(len(counts)) if price is None else price
    weight = np.ones(len(counts)) if measure is None else measure
    pieces, gain = list[np.ndarray](), 0.0
    for first in range(0, len(counts), BLOCK):
        held = slice(first, first + BLOCK)
        found, more = _divided(counts[held], weight[held], sigma, price)
        pieces, gain = pieces + found, gain + more
    total, error = rows or (float(counts.sum()), sigma * math.sqrt(len(counts)))
    even: np.ndarray = max(total, 0.0) * weight / weight.sum()
    if float(even @ (2 * counts - even)) / sigma**2 >= gain:
        return even  # nothing stands out of it clearly enough
    if other is not None and other[1] > gain:
        return other[0]
    pieces = _without_islands(pieces, sigma, 2 * PRICE + 2 * math.log(len(counts)))
    shown = np.concatenate(pieces)
    left = total - float(shown.sum())
    # The rows of a stretch are known as well as those of so many single cells.
    cells = [float(one.sum()) ** 2 / max(float(one @ one), 1e-300) for one in pieces]
    noise = math.hypot(error, sigma * math.sqrt(sum(cells)))
    if left < 0 and rows is not None:
        return np.concatenate(_fewer(pieces, cells, left * (sigma / noise) ** 2))
    kept = max(0.0, 1 - (noise / left) ** 2) if left > 0 else 0.0
    # Where one cell is about all that is shown, it says nothing of the others.
    far = FAR if left <= float(shown.sum() - shown.max()) else 0.0
    near = weight / (1 + _distances(shown > NEAR * sigma)) ** far
    spread: np.ndarray = shown + kept * left * near / near.sum()
    return spread


def whole_rows(mass: np.ndarray) -> np.ndarray:
    """The same rows, none in cells at the ends that hold less than one together: a mean would hang on it."""
    few = np.minimum(np.cumsum(mass), np.cumsum(mass[::-1])[::-1]) < 1
    kept = np.where(few, 0.0, mass)
    return kept * (mass.sum() / kept.sum()) if kept.any() else mass


def _without_islands(pieces: list[np.ndarray], sigma: float, least: float) -> list[np.ndarray]:
    """The same, but islands are empty: those that gain less than `least` and have no rows beside them.

    Beside is on the side of the clearest stretch. In one column of 70 noise reaches the price of a stretch
    somewhere, and a false one at the far end of the bounds doubles a mean.
    """
    gains = [float(one @ one) / sigma**2 for one in pieces]
    clearest, found = int(np.argmax(gains)), list(pieces)
    for way in (range(clearest + 1, len(pieces)), range(clearest - 1, -1, -1)):
        for place in way:
            beside = found[place - way.step][-1 if way.step > 0 else 0]
            if beside < NEAR * sigma and gains[place] < least:
                found[place] = np.zeros(len(pieces[place]))
    return found


def _fewer(pieces: list[np.ndarray], cells: list[float], each: float) -> list[np.ndarray]:
    """The same with fewer rows: of a stretch `each` (negative) for every cell that it is known as well as."""
    known = zip(pieces, cells, strict=True)
    return [one * max(0.0, 1 + each * own / max(float(one.sum()), 1e-300)) for one, own in known]


def _distances(shown: np.ndarray) -> np.ndarray:
    """Cells between each cell and the nearest that is shown; 0 where none is."""
    places, at = np.arange(len(shown)), np.flatnonzero(shown)
    if not len(at):
        return np.zeros(len(shown))
    after = np.searchsorted(at, places)
    above, below = at[np.minimum(after, len(at) - 1)], at[np.maximum(after - 1, 0)]
    return np.asarray(np.minimum(abs(places - above), abs(places - below)))


def _divided(
    counts: np.ndarray, weight: np.ndarray, sigma: float, price: float
) -> tuple[list[np.ndarray], float]:
    """The best division of one block, and what it gains on an empty one, at its price."""
    cells = len(counts)
    gains, which = _gains(counts, weight, PRICE * sigma**2)
    gains = gains / sigma**2 - price
    best, start = np.zeros(cells + 1), np.zeros(cells + 1, dtype=np.int64)
    for end in range(1, cells + 1):
        totals = best[:end] + np.maximum(gains[:end, end - 1], -EMPTY)
        start[end] = int(np.argmax(totals))
        best[end] = totals[start[end]]
    found, end = list[np.ndarray](), cells
    while end:
        first = int(start[end])
        piece = np.zeros(end - first)
        if gains[first, end - 1] > -EMPTY:
            form = weight[first:end] * _form(int(which[first, end - 1]), first, end - first)
            piece = form * (form @ counts[first:end] / (form @ form))
        found.append(piece)
        end = first
    return found[::-1], float(best[cells])


def _gains(counts: np.ndarray, weight: np.ndarray, heavier: float) -> tuple[np.ndarray, np.ndarray]:
    """By how much each stretch lowers the sum of squares, [first, last], and with which form.

    `heavier`: what a form of HEAVY costs more than others.
    """
    cells = len(counts)
    best, which = np.full((cells, cells), -np.inf), np.zeros((cells, cells), dtype=np.int64)
    first = np.arange(cells)[:, None]
    ahead = np.maximum(np.arange(cells) - first, 0)
    usual, alike = len(FORMS), not np.ptp(weight)
    for place in range(usual + alike * len(HEAVY)):
        faded = np.triu(_fading(place, first, ahead))
        for turned in (False, True)[: 1 + (0 < place < usual)]:
            own, mass = (counts[::-1], weight[::-1]) if turned else (counts, weight)
            inner = np.cumsum(faded * (own * mass), axis=1)
            size = np.maximum(np.cumsum(np.square(faded * mass), axis=1), 1e-300)
            cost = heavier if place >= usual else 0.0
            gain = np.where(inner > 0, inner * inner / size - cost, -np.inf)
            gain = gain[::-1, ::-1].T if turned else gain
            better = gain > best
            best[better], which[better] = gain[better], -place if turned else place
    return best, which


def _form(which: int, first: int, cells: int) -> np.ndarray:
    """Falling from the first cell for numbers above 0, and from the last one for those below."""
    faded = _fading(abs(which), np.array(first), np.arange(cells))
    return faded[::-1] if which < 0 else faded


def _fading(place: int, first: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """What is left of the rows so many cells ahead of the first, 1 there."""
    power, rate = (*FORMS, *HEAVY)[place]
    if not power:
        return np.asarray(((first + 1) / (first + 1 + ahead)) ** rate)
    return np.asarray(np.exp(-((rate * ahead) ** power)))
