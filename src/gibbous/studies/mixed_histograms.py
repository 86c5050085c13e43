"""Perturbed histograms of a mixed table: squares in every cell, rows drawn one by one, vectorized.

It simulates on constructed data, in the units and shapes of `mixed_laws`; nothing here protects
anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gibbous.studies.histograms import scott, shares
from gibbous.studies.mixed_laws import RANGE, REACH, Floats, Ints, Records, Summary, summarized
from gibbous.studies.seeded_draws import Draws, laplace

MOST: Final = 12  # bins a column
_CHUNK: Final = 200  # repeats whose histograms are held at a time


def histogram(draws: Draws, held: Records, epsilon: float, sets: int, *, sound: bool) -> Summary:
    """Sanitized cell counts, and in each cell a perturbed histogram of squares; half the budget each.

    As printed, each count changes by 1 and the bins follow Scott's rule with the records' own counts
    and spreads. Sound: replaced records change counts by 2 in all, and the bins are public.
    """
    counts = held.summary.counts[0]
    repeats, cells = counts.shape
    n, scale = held.n, (2 if sound else 1) * 2 * sets / epsilon
    noisy = counts + scale * draws.at(1).laplace(sets, repeats, cells)
    sizes = _whole(shares(noisy, np.full((sets, repeats), cells)), n)
    bins = np.full((repeats, cells, 2), public_bins(n, cells)) if sound else scott_bins(held)
    most = int(bins.max())
    sets_seen = []
    for one in range(sets):
        parts = []
        for start in range(0, repeats, _CHUNK):
            some = slice(start, start + _CHUNK)
            table = _binned(held.cell[some], held.x[some], bins[some], most)
            noise = draws.at(2, one).uniform(*table.shape, start=start)
            p = _squares(table + scale * laplace(noise), bins[some])
            cell, x = _rows(draws.at(3, one), p, sizes[one, some], bins[some], start)
            parts.append(summarized(cell, x, cells))
        sets_seen.append(_joined(parts))
    return Summary(
        np.stack([s.counts for s in sets_seen]),
        np.stack([s.means for s in sets_seen]),
        np.stack([s.pooled for s in sets_seen]),
    )


def scott_bins(held: Records) -> Ints:
    """Bins a column of Scott's rule from each cell's own count and spread: int64 (T, K, 2)."""
    counts = held.summary.counts[0]
    repeats, cells = counts.shape
    place = (held.cell + cells * np.arange(repeats)[:, None]).ravel()
    spread = []
    for j in (0, 1):
        squares = np.bincount(place, held.x[..., j].ravel() ** 2, minlength=repeats * cells)
        mean = np.nan_to_num(held.summary.means[0, ..., j])
        centered = squares.reshape(repeats, cells) - counts * mean**2
        spread.append(np.sqrt(np.maximum(centered, 0) / np.maximum(counts - 1, 1)))
    wide = np.where(counts[..., None] > 1, np.stack(spread, axis=-1), RANGE)
    return np.minimum(scott(wide, np.maximum(counts, 1)[..., None], RANGE), MOST)


def public_bins(n: int, cells: int) -> int:
    """Bins a column from what is public: n / K rows a cell, a sixth of the range as the spread."""
    return int(scott(np.array([RANGE / 6]), n / cells, RANGE)[0])


def _whole(chances: Floats, n: int) -> Ints:
    """n rows over cells in proportion, as whole numbers that sum to n; nothing is drawn."""
    ends = np.floor(np.cumsum(chances, axis=-1) * n + 0.5).astype(np.int64)
    ends[..., -1] = n
    return np.diff(ends, axis=-1, prepend=0)


def _binned(cell: Ints, x: Floats, bins: Ints, most: int) -> Floats:
    """Records in each square of each cell: float64 (repeats, K, most * most)."""
    repeats, cells = bins.shape[:2]
    row = np.arange(repeats)[:, None]
    own = bins[row, cell]
    place = np.minimum(((x + REACH) / RANGE * own).astype(np.int64), own - 1)
    flat = ((row * cells + cell) * most + place[..., 0]) * most + place[..., 1]
    counts = np.bincount(flat.ravel(), minlength=repeats * cells * most * most)
    return counts.reshape(repeats, cells, most * most).astype(np.float64)


def _squares(counts: Floats, bins: Ints) -> Floats:
    """Probabilities of the squares of each cell; those beyond its own bins have none."""
    most = round(counts.shape[-1] ** 0.5)
    inside = [np.arange(most) < bins[..., j, None] for j in (0, 1)]
    both = (inside[0][..., :, None] & inside[1][..., None, :]).reshape(counts.shape)
    kept = np.where(both, np.maximum(counts, 0), 0.0)
    whole = kept.sum(axis=-1, keepdims=True)
    even = both / both.sum(axis=-1, keepdims=True)
    return np.where(whole > 0, kept / np.where(whole > 0, whole, 1.0), even)


def _rows(draws: Draws, p: Floats, sizes: Ints, bins: Ints, start: int) -> tuple[Ints, Floats]:
    """Rows of synthetic sets: the cell of each, int64 (T, n), and numbers, float64 (T, n, 2)."""
    repeats, cells, squares = p.shape
    most, n = round(squares**0.5), int(sizes[0].sum())
    cell = np.repeat(np.tile(np.arange(cells), repeats), sizes.ravel()).reshape(repeats, n)
    owner = np.arange(repeats)[:, None] * cells + cell
    ends = np.cumsum(p, axis=-1).reshape(-1, squares)
    ends /= ends[:, -1:]
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    at = np.searchsorted(flat, owner + draws.at(1).uniform(repeats, n, start=start), side="right")
    square = np.clip(at - owner * squares, 0, squares - 1)
    own = bins[np.arange(repeats)[:, None], cell]
    place = np.stack([square // most, square % most], axis=-1)
    place = np.minimum(place, own - 1)  # a uniform word within rounding of 1
    inside = draws.at(2).uniform(repeats, n, 2, start=start)
    return cell, -REACH + (place + inside) * RANGE / own


def _joined(parts: Sequence[Summary]) -> Summary:
    return Summary(
        np.concatenate([s.counts for s in parts]),
        np.concatenate([s.means for s in parts]),
        np.concatenate([s.pooled for s in parts]),
    )
