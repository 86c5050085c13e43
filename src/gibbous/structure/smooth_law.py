"""A smooth law of noisy counts in a row: the logarithm of its density bends as little as the counts allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BENDS = tuple(10.0**power for power in range(5, -3, -1))
"""Prices of bending, from a law with none (a parabola: bell, fading, power law) to one free in each cell."""
FREE = 13.8  # price of the three numbers of a parabola, that no bending is charged for
CLEAR = 3.0  # standard deviations of the noise, from which on a value alone holds what was counted
FEWEST = 6  # cells of a smooth law
MOST = 64  # cells of a linear scale: narrower ones are added up; of a logarithm where there are twice as many
STEEP = (1.5, 2.5)
"""Where the last cells show nothing, the logarithm of a density falls at least so by that of the number (of
densities on the logarithm, and on numbers): the mean then hangs on what is shown."""
HARD = 50.0  # price of the square of a slope above that
SMALL = 0.3  # price of the mean logarithm of a number: with no evidence, numbers are small
CRUDE = 0.5  # of the rows, for one cell of a linear scale that holds several narrow ones
ROUNDED = 100.0  # by which evidence may exceed a fit: more is rounding, of widths far apart
STEPS, ENOUGH = 40, 1e-4  # of Newton's method; nats of the last one
LARGEST = 40.0  # of a logarithm


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """On which a law is smooth: `widths` of its cells; `cells`: how many narrow ones each is made of."""

    counts: np.ndarray
    widths: np.ndarray
    cells: np.ndarray
    sizes: np.ndarray
    logs: np.ndarray
    slopes: tuple[tuple[np.ndarray, float], ...]


def smooth_law(
    counts: np.ndarray,
    sigma: float,
    ends: np.ndarray,
    rows: tuple[float, float],
    *,
    alone: np.ndarray,
    first: float | None,
) -> tuple[np.ndarray, float]:
    """The smooth law with most evidence, on numbers or on their logarithm, and its gain.

    Args:
        counts: noisy, float64 (cells,).
        sigma: standard deviation of the noise of one count, > 0.
        ends: numbers where cells begin, and where the last one ends, float64 (cells + 1,).
        rows: how many there are, and the standard deviation of that.
        alone: cells of one value that may have rows of its own, bool (cells,): no neighbor says how many.
        first: number from which on a logarithm counts; None: there is none, as of dates.
    Returns:
        float64 (cells,), >= 0; and twice the logarithm of its evidence relative to no rows, in the units of
        `stretches`; (zeros, -inf) where it has none.
    Source:
        This project; [Eilers and Marx 1996] for penalized differences, [MacKay 1992] for the evidence.
    """
    found, best = np.zeros(len(counts)), -np.inf
    kept = alone & (counts > CLEAR * sigma)
    left = rows[0] - float(counts[kept].sum())
    error = float(np.hypot(rows[1], sigma * np.sqrt(kept.sum())))
    at = np.flatnonzero(~alone)
    if len(at) < FEWEST or left <= 2 * error:
        return found, best  # there may be no rows at all
    heaps = float(np.square(counts[kept]).sum()) / sigma**2 - CLEAR**2 * int(kept.sum())
    for linear in (True, False)[: 1 + (first is not None)]:
        scale = _scale(counts, sigma, ends, at, None if linear else first, dates=first is None)
        if len(scale.counts) < FEWEST or not np.isfinite(scale.widths).all():
            continue
        mass, gain = _best(scale, sigma, left, error)
        if (
            linear
            and first is not None
            and mass[scale.cells > 1].max(initial=0.0) > CRUDE * mass.sum()
        ):
            continue  # most rows are even in one cell, of which narrow ones on a logarithm say more
        parts = np.repeat(mass / scale.widths, scale.cells) * scale.sizes
        # Of what adding up narrow cells hides, even parts explain some, too.
        narrow = float(parts @ (2 * counts[at] - parts)) / sigma**2
        gain += narrow - float((mass * (2 * scale.counts - mass) / scale.cells).sum()) / sigma**2
        gain = min(gain, narrow + ROUNDED)
        if gain + heaps > best:
            found, best = np.where(kept, counts, 0.0), gain + heaps
            found[at] = parts
    return found, best


def _scale(
    counts: np.ndarray,
    sigma: float,
    ends: np.ndarray,
    at: np.ndarray,
    first: float | None,
    *,
    dates: bool,
) -> _Scale:
    """Cells of a linear scale, or of a logarithm that counts from `first` on."""
    far = max(float(np.abs(ends).max()), 1e-300)
    way = ends / far if first is None else np.sign(ends) * np.log1p(np.abs(ends) / first)
    sizes = np.maximum(np.diff(way), 1e-4 * np.diff(way).max())[at]
    starts, begun = [0], 0.0
    least = float(sizes.sum()) / MOST if first is None or len(at) > 2 * MOST else 0.0
    for cell, reached in enumerate(np.cumsum(sizes)[:-1].tolist(), start=1):
        if reached - begun >= least:
            starts.append(cell)
            begun = reached
    widths = np.add.reduceat(sizes, starts)
    middles = (ends[:-1] / far / 2 + ends[1:] / far / 2)[at]
    logs = np.log(np.maximum(np.abs(np.add.reduceat(middles * sizes, starts) / widths), 1e-9))
    cells = np.diff([*starts, len(at)])
    added = np.add.reduceat(counts[at], starts)
    slopes = []
    sides = ((-1, -2, slice(-3, None)),) * bool(ends[-2] > 0) + ((0, 1, slice(0, 3)),) * bool(
        ends[0] < 0
    )
    for edge, near, last in sides:
        outer = float(abs(ends[edge])) / far
        hidden = added[last].sum() < CLEAR * sigma * float(np.sqrt(cells[last].sum()))
        if dates or not hidden or len(widths) < FEWEST:
            continue
        slope, step = np.zeros(len(widths)), float(widths[edge] + widths[near]) / 2
        slope[[edge, near]] = np.array([1.0, -1.0]) * (1.0 if first is not None else outer) / step
        slopes.append((slope, STEEP[first is None]))
    return _Scale(added, widths, cells, sizes, logs, tuple(slopes))


def _best(scale: _Scale, sigma: float, rows: float, error: float) -> tuple[np.ndarray, float]:
    """The law at the price of bending with most evidence, and its gain."""
    middles = np.cumsum(scale.widths) - scale.widths / 2
    bends = np.eye(len(middles))
    for order in (1, 2, 3):
        apart = (middles[order:] - middles[:-order]) / order
        bends = np.diff(bends, axis=0) / apart[:, None]
    bends *= float(np.diff(middles).mean()) ** 3
    volume = float(np.linalg.slogdet(bends @ bends.T)[1]) / 2
    variance = sigma**2 * scale.cells
    even = scale.widths / scale.widths.mean()
    logs, best, most = np.full(len(even), np.log(rows / even.sum())), even, -np.inf
    for price in BENDS:
        logs, evidence = _newton(scale, variance, even, price * bends.T @ bends, rows, error, logs)
        evidence += volume + len(bends) * float(np.log(price)) / 2
        if evidence > most:
            best, most = even * np.exp(logs), evidence
    empty = float((np.square(scale.counts) / variance).sum()) / 2
    return best, 2 * (most + empty) - FREE


def _newton(
    scale: _Scale,
    variance: np.ndarray,
    even: np.ndarray,
    smooth: np.ndarray,
    rows: float,
    error: float,
    start: np.ndarray,
) -> tuple[np.ndarray, float]:
    """The likeliest logarithms at one price, and, but for a constant, their evidence by [Laplace 1774]."""

    def loss(logs: np.ndarray) -> float:
        mass = even * np.exp(logs)
        apart = float((np.square(scale.counts - mass) / variance).sum())
        apart += ((float(mass.sum()) - rows) / error) ** 2 + float(logs @ smooth @ logs)
        apart += HARD * sum(max(float(one @ logs) + most, 0.0) ** 2 for one, most in scale.slopes)
        return apart / 2 + SMALL * float(mass @ scale.logs) / float(mass.sum())

    def around(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mass = even * np.exp(logs)
        part = mass / mass.sum()
        away = (scale.counts - mass) / variance + (rows - float(mass.sum())) / error**2
        first = smooth @ logs - mass * away + SMALL * part * (scale.logs - float(part @ scale.logs))
        second = smooth + np.diag(mass**2 / variance) + np.outer(mass, mass) / error**2
        for one, most in scale.slopes:
            over = float(one @ logs) + most
            if over > 0:
                first, second = first + HARD * over * one, second + HARD * np.outer(one, one)
        return first, second

    logs, known, damped, unit = start, loss(start), 1e-6, np.eye(len(start))
    for _ in range(STEPS):
        first, second = around(logs)
        while damped < 1e12:
            step = np.linalg.solve(second + damped * unit, -first)  # positive definite
            new = np.clip(logs + np.clip(step, -2, 2), -LARGEST, LARGEST)
            if (then := loss(new)) <= known:
                break
            damped *= 10
        else:
            break
        gained, logs, known, damped = known - then, new, then, max(damped / 10, 1e-9)
        if gained < ENOUGH:
            break
    return logs, -known - float(np.linalg.slogdet(around(logs)[1] + 1e-8 * unit)[1]) / 2
