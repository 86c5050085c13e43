"""The laws of synthesizers of a mixed table: cells of categorical columns, two numeric columns in each.

Numbers are centered and scaled: in each cell both columns have mean 0 and variance 1 and the public
bounds -3 and 3, which changes nothing because every method moves with public bounds. The methods
simulate on constructed data; nothing here protects anybody.

Shapes: S sets, T repeats, K cells, 2 columns. n is public; neighbors replace one record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gibbous.studies.histograms import rounded, scott, shares
from gibbous.studies.seeded_draws import Draws, laplace, multinomial

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
REACH: Final = 3.0  # of the public bounds, in standard deviations
RANGE: Final = 2 * REACH
PRIOR: Final = 1 / 3  # virtual records of each cell
FLOOR: Final = 1e-4  # least variance of a sanitized covariance, public
PARTS: Final = 6  # statistics that share the budget: counts, two means, two variances, a covariance
MOST: Final = 12  # bins a column
_CHUNK: Final = 200  # repeats whose histograms are held at a time


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What is known of tables: of the records (S = 1) or of synthetic sets.

    Attributes:
        counts: rows of each cell, float64 (S, T, K).
        means: of each cell, NaN where it is empty, float64 (S, T, K, 2).
        pooled: covariance within cells: variances and covariance, float64 (S, T, 3).
    """

    counts: Floats
    means: Floats
    pooled: Floats

    @property
    def df(self) -> Floats:
        """Degrees of freedom of the pooled covariance: rows less cells that have rows."""
        return np.asarray(self.counts.sum(axis=-1) - (self.counts > 0).sum(axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The confidential records of all repeats.

    Attributes:
        cell: of each record, int64 (T, n).
        x: float64 (T, n, 2).
        summary: of them, with S = 1.
    """

    cell: Ints
    x: Floats
    summary: Summary

    @property
    def n(self) -> int:
        """Records of one repeat."""
        return int(self.cell.shape[1])


def records(draws: Draws, repeats: int, n: int, chances: Floats, correlation: float) -> Records:
    """Multinomial cells, bivariate normal numbers, clamped to the bounds."""
    counts = multinomial(draws.at(1), n, np.broadcast_to(chances, (repeats, chances.size)))
    sizes = counts.astype(np.int64).ravel()
    cell: Ints = np.repeat(np.tile(np.arange(chances.size), repeats), sizes).reshape(repeats, n)
    first, other = (draws.at(2, j).normal(repeats, n) for j in (0, 1))
    second = correlation * first + np.sqrt(1 - correlation**2) * other
    x = np.clip(np.stack([first, second], axis=-1), -REACH, REACH)
    one = summarized(cell, x, chances.size)
    return Records(cell, x, Summary(one.counts[None], one.means[None], one.pooled[None]))


def summarized(cell: Ints, x: Floats, cells: int) -> Summary:
    """Counts, means and pooled covariance of rows; without the axis of sets."""
    repeats = cell.shape[0]
    place = (cell + cells * np.arange(repeats)[:, None]).ravel()

    def summed(values: Floats) -> Floats:
        sums = np.bincount(place, values.ravel(), minlength=repeats * cells).astype(np.float64)
        return sums.reshape(repeats, cells)

    counts = np.bincount(place, minlength=repeats * cells).reshape(repeats, cells).astype(float)
    filled = np.maximum(counts, 1)
    means = np.stack([summed(x[..., j]) / filled for j in (0, 1)], axis=-1)
    df = counts.sum(axis=-1) - (counts > 0).sum(axis=-1)
    pooled = [
        ((x[..., i] * x[..., j]).sum(axis=-1) - (counts * means[..., i] * means[..., j]).sum(-1))
        / np.maximum(df, 1)
        for i, j in ((0, 0), (1, 1), (0, 1))
    ]
    return Summary(
        counts, np.where(counts[..., None] > 0, means, np.nan), np.stack(pooled, axis=-1)
    )


def multiple_synthesis(draws: Draws, held: Records, sets: int) -> Summary:
    """MS: every parameter from its posterior, then n rows, for each set; no noise."""
    known = held.summary
    counts, means, pooled = (
        np.broadcast_to(a, (sets, *a.shape[1:])) for a in (known.counts, known.means, known.pooled)
    )
    return _drawn(draws, counts, np.nan_to_num(means), pooled, held)


def modips(draws: Draws, held: Records, epsilon: float, sets: int, *, sound: bool) -> Summary:
    """modips, split and clipped; each of six statistics gets epsilon / (6 m) for each set.

    As printed, counts change by 1, a cell's mean by R / n_k and each entry of the pooled covariance
    by R^2 / (n - K). Sound: counts change by 2 in all, the sums of a column by R in all, and the
    covariance by 2 R^2 / (n - K), because a record may change its cell; means are noisy sums over
    noisy counts. Of the variances both agree.
    """
    known, scale = held.summary, PARTS * sets / epsilon
    counts = known.counts + scale * (2 if sound else 1) * draws.at(1).laplace(
        sets, *known.counts.shape[1:]
    )
    counts = np.clip(counts, 0, held.n)
    noise = scale * RANGE * draws.at(2).laplace(sets, *known.means.shape[1:])
    exact = np.nan_to_num(known.means)
    if sound:
        sums = exact * known.counts[..., None] + noise
        means = sums / np.maximum(counts, 1)[..., None]
    else:
        means = exact + noise / np.maximum(known.counts, 1)[..., None]
    reach = RANGE**2 / known.df[..., None] * np.array([1.0, 1.0, 2.0 if sound else 1.0])
    pooled = known.pooled + scale * reach * draws.at(3).laplace(sets, *known.pooled.shape[1:])
    return _drawn(draws, counts, np.clip(means, -REACH, REACH), _possible(pooled), held)


def _drawn(draws: Draws, counts: Floats, means: Floats, pooled: Floats, held: Records) -> Summary:
    """Parameters from the posterior given (noisy) statistics, and what n rows drawn from it show."""
    shape, df = counts.shape, held.summary.df
    weights = draws.at(11).gamma(PRIOR + counts, *shape)
    chances = weights / weights.sum(axis=-1, keepdims=True)
    root = _inverse_wishart(draws.at(12), pooled, np.broadcast_to(df, shape[:2]))
    size = np.maximum(counts, 1)[..., None]
    mu = means + _turned(root, draws.at(13).normal(*shape, 2)) / np.sqrt(size)
    drawn = multinomial(draws.at(14), held.n, chances)
    rows = np.maximum(drawn, 1)[..., None]
    shown = mu + _turned(root, draws.at(15).normal(*shape, 2)) / np.sqrt(rows)
    left = held.n - (drawn > 0).sum(axis=-1).astype(np.float64)
    spread = _lower(draws.at(16), left)
    covariance = _product(np.matmul(root, spread)) / left[..., None]
    return Summary(drawn, np.where(drawn[..., None] > 0, shown, np.nan), covariance)


def _inverse_wishart(draws: Draws, pooled: Floats, df: Floats) -> Floats:
    """A root C of Sigma = C C', Sigma inverse Wishart with df and scale df times pooled."""
    a = np.zeros((*pooled.shape[:-1], 2, 2))
    a[..., 0, 0] = np.sqrt(pooled[..., 0])
    a[..., 1, 0] = pooled[..., 2] / a[..., 0, 0]
    a[..., 1, 1] = np.sqrt(np.maximum(pooled[..., 1] - a[..., 1, 0] ** 2, 0))
    lower = _lower(draws, df)
    inverse = np.zeros_like(a)  # of the transpose of lower
    inverse[..., 0, 0], inverse[..., 1, 1] = 1 / lower[..., 0, 0], 1 / lower[..., 1, 1]
    inverse[..., 0, 1] = -lower[..., 1, 0] / (lower[..., 0, 0] * lower[..., 1, 1])
    return np.asarray(np.matmul(a, inverse) * np.sqrt(df)[..., None, None])


def _lower(draws: Draws, df: Floats) -> Floats:
    """The root L of a Wishart matrix L L' with df degrees of freedom (Bartlett)."""
    lower = np.zeros((*df.shape, 2, 2))
    lower[..., 0, 0] = np.sqrt(2 * draws.at(1).gamma(df / 2, *df.shape))
    lower[..., 1, 1] = np.sqrt(2 * draws.at(2).gamma((df - 1) / 2, *df.shape))
    lower[..., 1, 0] = draws.at(3).normal(*df.shape)
    return lower


def _product(root: Floats) -> Floats:
    squared = np.matmul(root, np.swapaxes(root, -1, -2))
    return np.stack([squared[..., 0, 0], squared[..., 1, 1], squared[..., 0, 1]], axis=-1)


def _turned(root: Floats, z: Floats) -> Floats:
    return np.asarray(np.matmul(root[..., None, :, :], z[..., None])[..., 0])


def _possible(pooled: Floats) -> Floats:
    """The nearest numbers that can be a covariance of bounded records: post-processing."""
    variances = np.clip(pooled[..., :2], FLOOR, RANGE**2 / 3)
    most = np.sqrt(variances.prod(axis=-1)) * (1 - 1e-6)
    return np.concatenate([variances, np.clip(pooled[..., 2], -most, most)[..., None]], axis=-1)


def histogram(
    draws: Draws, held: Records, epsilon: float, sets: int, *, sound: bool, drawn: bool = False
) -> Summary:
    """Sanitized cell counts, and in each cell a perturbed histogram of squares; half the budget each.

    As printed, each count changes by 1 and the bins follow Scott's rule with the records' own counts
    and spreads. Sound: replaced records change counts by 2 in all, and the bins are public.
    The rows of a cell are its share of n, rounded, or drawn; those of a square are drawn.
    """
    counts = held.summary.counts[0]
    repeats, cells = counts.shape
    n, scale = held.n, (2 if sound else 1) * 2 * sets / epsilon
    noisy = counts + scale * draws.at(1).laplace(sets, repeats, cells)
    p = shares(noisy, np.full((sets, repeats), cells))
    sizes = multinomial(draws.at(4), n, p).astype(np.int64) if drawn else rounded(p, n)
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
        sets_seen.append(_together(np.concatenate, parts))
    return _together(np.stack, sets_seen)


def _together(how: Any, parts: Sequence[Summary]) -> Summary:
    return Summary(*(how([getattr(s, n) for s in parts]) for n in ("counts", "means", "pooled")))


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
