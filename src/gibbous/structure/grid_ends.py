"""Public grids of magnitudes, and where rows begin and end by noisy counts on them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import numpy as np

SURE = 5.0  # standard deviations above which a stretch of the grid is not empty
SOME = 4.0  # the same of the one that stands out most, where none is sure
NEXT = 3.0  # the same of a stretch that begins where the cells that stand out end
FAR = 100.0  # by so much such a stretch may grow
NEAR = 1.5  # by so much all may grow for what noise could be, too
LOW = 1.5  # standard deviations from which on that is done, where less than RARE of the rows is not more
RARE = 0.005  # share of the rows that may be lost
MUCH = 0.1  # the same where noise is louder: bounds that are wider than need be cost less then

YEARS = range(1850, 2151)  # where they begin; days of others are moved to the nearest of these
_USUAL_YEARS = (1900, 2100)  # whole numbers are often years
_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # below 100, where ages and ranges of levels end
_COARSER = (1, 2, 5)  # up to 10,000
_COARSEST = (1, 3)  # beyond
_LARGEST = 15  # powers of ten: whole numbers below it are exact


def grids_of_days() -> tuple[list[float], list[float]]:
    """Edges of years, and of decades."""
    years = [float(datetime.date(year, 1, 1).toordinal()) for year in YEARS]
    return years, years[::10]


def grids_of_numbers(places: int) -> tuple[list[float], list[float]]:
    """Edges of a fine grid, and of powers of ten among them; 0 places: of whole numbers."""

    def edge(step: float, ten: int) -> float:
        return float(f"{step}e{ten}")

    def signed(above: set[float]) -> list[float]:
        return sorted({-edge for edge in above} | {0.0} | above)

    lowest = 1 - places if places else 0  # edges have no more places
    tens = {edge(1, ten) for ten in range(lowest, _LARGEST + 1)}
    fine = tens | {edge(step, ten) for ten in range(lowest, 2) for step in _STEPS}
    fine |= {edge(step, ten) for ten in range(2, 4) for step in _COARSER}
    fine |= {edge(step, ten) for ten in range(4, _LARGEST) for step in _COARSEST}
    if not places:
        fine = {float(math.ceil(edge)) for edge in fine} | {*map(float, _USUAL_YEARS)}
    return signed(fine), signed(tens)


def ends_of(
    counts: np.ndarray, decades: np.ndarray, sigma: float, grids: Sequence[np.ndarray], rows: float
) -> tuple[float, float, float, int] | None:
    """Between which edges of a grid of magnitudes rows lie, as far as noise can tell.

    Powers of ten first: what is spread over many cells shows there. Within them the cells of the fine
    grid, where those show the rows of the first and the last power; all of that power otherwise.

    Args:
        counts, decades: noisy, float64 (cells,), on the fine grid and on that of the powers of ten.
        sigma: standard deviation of one count.
        grids: edges of the two grids, increasing; those of the second are among those of the first.
        rows: noisy number of cells that are on the grid.
    Returns:
        Two edges, the rows between the powers of ten that hold them, and how many these are; None where
        nothing stands out from noise.
    """
    edges, tens = grids
    found = stretch(decades, sigma, tens, rows)
    if found is None:
        return None
    first, last = _wider(decades, sigma, tens, *found, rows)
    within = float(decades[first : last + 1].sum()), last + 1 - first
    start, stop = np.searchsorted(edges, (tens[first], tens[last + 1]))
    inner, cuts = counts[start:stop], edges[start : stop + 1]
    fine = stretch(inner, sigma, cuts, rows)
    if fine is None:
        return float(cuts[0]), float(cuts[-1]), *within

    def lacks(of: int, inside: slice, grown: float) -> bool:
        """Whether rows of a power of ten are beside the fine cells of it that were found."""
        own, near = inner[inside], grown <= NEAR * float(cuts[high + 1] - cuts[low])
        noise = sigma * math.sqrt(1 + len(own))
        least = _least(noise, rows) if near else NEXT * noise
        return float(decades[of] - own.sum()) > min(least, MUCH * rows)

    low, high = fine
    of_first, of_last = (int(np.searchsorted(cuts, edge)) for edge in (tens[first + 1], tens[last]))
    down = lacks(first, slice(low, of_first), float(cuts[high + 1] - cuts[0]))
    up = lacks(last, slice(of_last, high + 1), float(cuts[-1] - cuts[low]))
    low, high = 0 if down else low, len(inner) - 1 if up else high
    return float(cuts[low]), float(cuts[high + 1]), *within


def _wider(
    counts: np.ndarray, sigma: float, edges: np.ndarray, low: int, high: int, rows: float
) -> tuple[int, int]:
    """Powers of ten beside those that stand out, or clear ones, as long as MUCH of the rows is elsewhere.

    Numbers on both sides of 0 have many powers without rows between them.
    """
    ends = np.maximum(abs(edges[:-1]), abs(edges[1:]))
    while rows - counts[low : high + 1].sum() > MUCH * rows:
        near = ends <= FAR * max(1.0, ends[low], ends[high])
        least = np.where(near, NEXT * sigma, np.inf)
        least[max(low - 1, 0) : high + 2] = sigma
        least[low : high + 1] = np.inf
        at = int(np.argmax(np.where(counts > least, counts, -np.inf)))
        if counts[at] <= least[at]:
            break
        low, high = min(low, at), max(high, at)
    return low, high


def stretch(
    counts: np.ndarray, sigma: float, edges: np.ndarray, rows: float = math.inf
) -> tuple[int, int] | None:
    """The first and the last cell of the grid that are not empty, as far as noise can tell.

    Stretches of 1 to 16 cells are looked at, and of those with rows the largest cell is taken;
    from the outermost ones on, what follows beside them; without any, the stretch that stands out most.

    Args:
        counts: noisy, float64 (cells,).
        sigma: standard deviation of one count.
        edges: of the cells, increasing, float64 (cells + 1,).
        rows: noisy number of cells that are on the grid.
    Returns:
        Positions of two cells; None where no stretch stands out from noise.
    """
    full, best = np.zeros(len(counts), dtype=bool), (SOME, 0, -1)
    for width in (1, 2, 4, 8, 16):
        if width > len(counts):
            break
        clear = np.convolve(counts, np.ones(width), mode="valid") / (sigma * math.sqrt(width))
        for start in np.flatnonzero(clear > SURE).tolist():
            full[start + int(np.argmax(counts[start : start + width]))] = True
        first = int(np.argmax(clear))
        best = max(best, (float(clear[first]), first, first + width - 1))
    if not full.any():
        if best[-1] < 0:
            return None
        full[best[1] : best[2] + 1] = True
    low, high = (int(place) for place in np.flatnonzero(full)[[0, -1]])
    back, least = len(counts) - 1, _least(sigma, rows)
    for grown in (0.0, NEAR):  # what stands out first: its length says what is near
        begin, end = float(edges[low]), float(edges[high + 1])
        # Down to `begin` less so much, and never by so little to another sign.
        down, up = grown * (end - begin) - end, grown * (end - begin) + begin
        down, up = min(down, 0.0) if begin >= 0 else down, min(up, 0.0) if end <= 0 else up
        low = back - _outward(counts[::-1], back - low, sigma, -edges[::-1], least, down)
        high = _outward(counts, high, sigma, edges, least, up)
    return low, high


def _least(sigma: float, rows: float) -> float:
    """Noisy rows that are believed where it costs little if they are none."""
    return max(LOW * sigma, min(NEXT * sigma, RARE * rows))


def _outward(
    counts: np.ndarray, last: int, sigma: float, edges: np.ndarray, least: float, near: float
) -> int:
    """The last cell of stretches beside each other that hold rows: a tail that thins out is believed.

    A stretch does not go beyond FAR times the size at which it begins: what is there by noise alone
    would move a mean by powers of ten.

    Args:
        least: noisy rows of a cell below `near`; of others it is NEXT standard deviations.
    """
    for width in (1, 2, 3, 5, 8, 16):
        beyond = counts[last + 1 : last + 1 + width]
        if len(beyond) < width:
            break
        end = float(edges[last + 1 + width])
        if abs(end) > FAR * max(1.0, abs(edges[last + 1])):
            break
        if beyond.sum() > (least if end <= near else NEXT * sigma) * math.sqrt(width):
            found = last + 1 + int(np.argmax(beyond))
            return _outward(counts, found, sigma, edges, least, near)
    return last
