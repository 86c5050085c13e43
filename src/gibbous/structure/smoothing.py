"""Smoothing: noisy counts and their noise in; non-negative shares that the noise is taken out of, out.

Post-processing of public numbers alone. Where a cell's noise swamps its count, the best guess is
not the noisy count clipped at 0, but what cells like it turn out to be.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from gibbous.structure import table_kernels
from gibbous.structure.reconcile import simplex
from gibbous.structure.table_kernels import Ratios

GRID = 40  # ratios a reference is multiplied by
STEPS = 40  # of the fixed-point iteration
SMALLEST, LARGEST = 0.02, 1000.0
TINY = 1e-9
EXPECTED = 3.0  # cells' worth of the law of ratios that is expected before a table is seen
NOTHING, BELOW, ABOVE = 0.2, 1.2, 0.6  # its share at 0; how slowly it falls in log ratio from 1


def denoised(
    counts: np.ndarray, sigma: float, references: Sequence[np.ndarray], *, compiled: bool = True
) -> np.ndarray:
    """Posterior means of the cells of one table: nonparametric empirical Bayes.

    The true cell is reference x ratio. The law of the ratio over the cells of the table is
    estimated by maximum likelihood from the table itself and a few cells' worth of a law that is the
    same for all tables, and the mean of each cell given its noisy count is returned. Of several
    references the one that makes the counts likeliest is taken.

    Args:
        counts: noisy, any shape.
        sigma: standard deviation of one cell's noise, in counts, > 0.
        references: expected counts of the same shape from something known before, >= 0: for
            example independent columns, or the model before the table was measured.
        compiled: False takes the numpy twin.
    Returns:
        float64 of the same shape, > 0.
    Source:
        [Kiefer and Wolfowitz 1956] for the estimate of the law, [Robbins 1956] for using it.
    """
    noisy = np.ascontiguousarray(counts, dtype=np.float64).ravel()
    best, means = -np.inf, noisy
    for reference in references:
        base = np.maximum(reference.ravel(), 1e-3)
        likelihood, found = _likeliest(noisy, sigma, base, compiled=compiled)
        if likelihood > best:
            best, means = likelihood, found
    out: np.ndarray = np.maximum(means, TINY).reshape(counts.shape)
    return out


def _likeliest(
    noisy: np.ndarray, sigma: float, base: np.ndarray, *, compiled: bool
) -> tuple[float, np.ndarray]:
    """Log-likelihood at the estimated law of ratios, and the posterior mean of each cell."""
    seen = np.where(base > 0.1 * sigma, noisy / base, 0.0)
    atoms, width, before = _atoms(max(20.0, min(LARGEST, 1.1 * float(seen.max()))))
    known = table_kernels.Ratios(atoms, width, before, EXPECTED, STEPS)
    means, likely = np.empty_like(noisy), np.empty((len(noisy), len(atoms)))
    law = table_kernels.posterior if compiled else posterior_means
    laws = np.empty((2, len(atoms)))
    return float(law(noisy, base, float(sigma), known, means, likely, laws)), means


def posterior_means(
    noisy: np.ndarray,
    base: np.ndarray,
    sigma: float,
    known: Ratios,
    means: np.ndarray,
    *_room: np.ndarray,
) -> float:
    """Twin of `table_kernels.posterior`."""
    ratios, width, before, expected, steps = known
    cells = base[:, None] * ratios
    between = cells * width
    spread = between**2 + sigma**2
    logs = -0.5 * ((noisy[:, None] - cells) ** 2 / spread + np.log(spread))
    shift = logs.max(axis=1, keepdims=True)
    likely = np.exp(logs - shift)
    law = before
    for _ in range(steps):
        law = law * (likely.T @ (1.0 / (likely @ law))) + expected * before
        law = law / law.sum()
    mixed = likely @ law
    within = cells + between**2 / spread * (noisy[:, None] - cells)
    means[:] = (likely * within) @ law / mixed
    return float(np.log(mixed).sum() + shift.sum())


@functools.lru_cache(maxsize=64)
def _atoms(top: float) -> tuple[np.ndarray, float, np.ndarray]:
    """Ratios up to `top`, their width, and the law expected of them: shared by tables, not to be written."""
    ratios = np.concatenate([[0.0], np.geomspace(SMALLEST, top, GRID)])
    before = _expected(ratios)
    # An atom stands for all ratios up to halfway to the next: without its width, cells that are known
    # better than the grid is fine would be moved onto the grid.
    return ratios, math.log(top / SMALLEST) / (GRID - 1) / math.sqrt(12.0), before


def _expected(ratios: np.ndarray) -> np.ndarray:
    """Law of ratios before a table is seen: a table of few cells says little about its own."""
    away = np.log(ratios[1:])
    falling = np.exp(np.where(away < 0.0, away / BELOW, -away / ABOVE))
    return np.concatenate([[NOTHING], (1.0 - NOTHING) * falling / falling.sum()])


def one_way(counts: np.ndarray, sigma: float, total: float, *, ordered: bool) -> np.ndarray:
    """Shares of one column: smoothed along ordered levels where the noise asks for it, then projected.

    Args:
        counts: noisy, float64 (levels,).
        sigma: standard deviation of one cell's noise, in counts.
        total: noisy number of records, > 0.
        ordered: whether neighboring levels are alike.
    Returns:
        float64 (levels,), >= 0, sum 1.
    """
    smooth = smoothed(counts, sigma) if ordered else counts
    near = simplex(smooth, total)
    shares: np.ndarray = near / near.sum()
    return shares


def smoothed(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Ordered counts with the roughness taken out that noise explains, or as they are.

    Penalized least squares on second differences; the penalty is the one with the least unbiased
    estimate of risk, among them none at all.

    Args:
        counts: noisy, float64 (levels,).
        sigma: standard deviation of one cell's noise.
    Source:
        [Whittaker 1923] for the penalty, [Stein 1981] for the estimate of risk.
    """
    levels = len(counts)
    if levels < 5 or levels > 2048:
        return counts
    rough = np.diff(np.eye(levels), 2, axis=0)
    weights, basis = np.linalg.eigh(rough.T @ rough)
    parts = basis.T @ counts
    best, kept = levels * sigma**2, np.ones(levels)
    for penalty in np.geomspace(1e-2, 1e5, 29):
        keep = 1.0 / (1.0 + penalty * np.maximum(weights, 0.0))
        lost = float((((1.0 - keep) * parts) ** 2).sum())
        risk = lost + sigma**2 * (2.0 * float(keep.sum()) - levels)
        if risk < best:
            best, kept = risk, keep
    out: np.ndarray = basis @ (kept * parts)
    return out
