"""Smoothing: noisy counts and their noise in; non-negative shares that the noise is taken out of, out.

Post-processing of public numbers alone. Where a cell's noise swamps its count, the best guess is
not the noisy count clipped at 0, but what cells like it turn out to be.

Several tables are combined by their interaction components: for each subset of its columns, sum the
other columns of a table out and center every axis. Components of one table carry independent noise
when the cells do, so equal components of different tables are averaged by inverse variance, and added
up again. Linear and exact for Gaussian noise; overlapping tables agree afterwards.

Source:
    [Xiao, He, Ding, Kifer 2023] (ResidualPlanner) for the split; inverse-variance means are Gauss's.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gibbous.structure import table_kernels
from gibbous.structure.table_kernels import Noisy, Ratios, State

Columns = tuple[int, ...]

PASSES = 20  # of raking
GRID = 40  # ratios a reference is multiplied by
STEPS, LEAD = 40, 12  # of the fixed-point iteration: in all, and before a reference is chosen
LEAST_PART = 0.003  # of the most that a cell can be
SMALLEST, LARGEST = 0.02, 1000.0
TINY = 1e-9
EXPECTED = 3.0  # cells' worth of the law of ratios that is expected before a table is seen
LOUD = 0.6  # see `one_way`: from which on levels are shrunk to each other
LOUD_EVEN_SO = 1.5  # the same of what smoothing leaves, about two levels' worth
NOTHING, BELOW, ABOVE = 0.2, 1.2, 0.6  # its share at 0; how slowly it falls in log ratio from 1


def denoised(
    counts: np.ndarray,
    sigma: float,
    references: Sequence[np.ndarray],
    margins: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Posterior means of the cells of one table; see `estimated`."""
    return estimated(counts, sigma, references, margins)[0]


def estimated(
    counts: np.ndarray,
    sigma: float,
    references: Sequence[np.ndarray],
    margins: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and standard deviations of the cells of one table: empirical Bayes, given margins.

    The true cell is reference x ratio. The law of the ratio over the cells of the table is
    estimated by maximum likelihood from the table itself and a few cells' worth of a law that is the
    same for all tables, and the mean of each cell given its noisy count is returned. Of several
    references the one that makes the counts likeliest is taken.

    Where margins are known, the cells are given them, too: each noisy count is moved by the sum of a
    shift for each axis, and the shifts are those under which the means add up to the margins
    (Lagrange multipliers of the margins; a cell that is sure of its count gives way least). One
    more reference is the most that the margins let a cell be: of columns of which one determines the
    other, a cell is all of that, or nothing.

    Args:
        counts: noisy, any shape.
        sigma: standard deviation of one cell's noise, in counts, > 0.
        references: expected counts of the same shape from something known before, >= 0: for
            example independent columns, or the model before the table was measured.
        margins: known counts of each axis, >= 0, all of one sum; none where nothing is known.
    Returns:
        Both float64 of the same shape; means > 0. Margins are met nearly, not exactly.
    Source:
        [Kiefer and Wolfowitz 1956] for the estimate of the law, [Robbins 1956] for using it,
        [Frechet 1951] for the most that margins let a cell be.
    """
    noisy = np.ascontiguousarray(counts, dtype=np.float64).ravel()
    tried = [_Fit(noisy, sigma, one, counts.shape, margins) for one in references]
    if margins:
        most = functools.reduce(np.minimum.outer, margins)
        tried.append(_Fit(noisy, sigma, most, counts.shape, margins, bound=True))
    lead = LEAD if len(tried) > 1 else STEPS
    best = max(tried, key=lambda one: one.run(lead))
    best.run(STEPS - lead)
    means = np.maximum(best.state.means, TINY).reshape(counts.shape)
    return means, np.sqrt(best.state.variances).reshape(counts.shape)


class _Fit:
    """The cells of one table under one reference, on the way to their posterior means."""

    def __init__(
        self,
        noisy: np.ndarray,
        sigma: float,
        reference: np.ndarray,
        shape: tuple[int, ...],
        margins: Sequence[np.ndarray],
        *,
        bound: bool = False,
    ) -> None:
        base = np.maximum(np.asarray(reference, dtype=np.float64).ravel(), 1e-3)
        if bound:
            law = _parts()
        else:
            seen = np.where(base > 0.1 * sigma, noisy / base, 0.0)
            law = _atoms(max(20.0, min(LARGEST, 1.1 * float(seen.max()))))
        self.ratios = Ratios(*law, EXPECTED)
        sizes = np.array(shape if len(margins) else (), dtype=np.int64)
        sums = np.concatenate([*margins, np.zeros(0)]).astype(np.float64)
        self.given = Noisy(noisy, base, float(sigma), sizes, sums)
        before = self.ratios.before
        means, variances = np.empty_like(noisy), np.empty_like(noisy)
        self.state = State(before.copy(), np.zeros(len(sums)), means, variances)

    def run(self, steps: int) -> float:
        """Some steps on; the log-likelihood after them."""
        room = table_kernels.room_of(self.given, self.ratios)
        return float(table_kernels.posterior(self.given, self.ratios, self.state, room, steps))


@functools.lru_cache(maxsize=1)
def _parts() -> tuple[np.ndarray, float, np.ndarray]:
    """Ratios to the most that a cell can be, their width, and the law expected of them; not to be written."""
    ratios = np.concatenate([[0.0], np.geomspace(LEAST_PART, 1.0, GRID)])
    before = np.concatenate([[0.5], 0.5 * ratios[1:] / ratios[1:].sum()])
    return ratios, -math.log(LEAST_PART) / (GRID - 1) / math.sqrt(12.0), before


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

    Where noise is loud, the projection would put all records on the few levels that drew most of it.
    Levels are posterior means then, compared with even ones, and what the noisy total lacks goes to
    the levels that are known least.

    Args:
        counts: noisy, float64 (levels,).
        sigma: standard deviation of one cell's noise, in counts.
        total: noisy number of records, > 0.
        ordered: whether neighboring levels are alike.
    Returns:
        float64 (levels,), >= 0, sum 1.
    """
    levels = len(counts)
    if ordered and sigma * math.sqrt(2 * levels) <= LOUD_EVEN_SO * total:
        near = smoothed(counts, sigma)
    elif (
        sigma * (levels - 1) * math.sqrt(levels) <= LOUD * total
    ):  # more levels say more of their law
        near = counts
    else:
        means, errors = estimated(counts, sigma, [np.full(levels, total / levels)])
        variances = errors**2 + TINY
        near = means + variances * ((total - means.sum()) / variances.sum())
    near = simplex(near, total)
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


def simplex(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest non-negative array (least squares) of the same shape with a given sum > 0.

    Source:
        Held, Wolfe and Crowder (1974): subtract one constant, clip at 0.
    """
    ordered = np.sort(values, axis=None)[::-1]
    excess = np.cumsum(ordered) - total
    constants = excess / np.arange(1, ordered.size + 1)
    last = int(np.nonzero(ordered > constants)[0][-1])
    near: np.ndarray = np.maximum(values - constants[last], 0.0)
    return near


def rake(
    values: np.ndarray, shares: Sequence[np.ndarray], passes: int = PASSES, *, compiled: bool = True
) -> np.ndarray:
    """Iterative proportional fitting of a positive array to one distribution an axis.

    Args:
        values: float64, one axis a column.
        shares: one distribution an axis, summing to 1; a level of share 0 gets mass 0.
        passes: over all axes.
        compiled: False takes the numpy twin, which differs by rounding alone.
    Returns:
        float64 of the same shape, summing to 1; the margin of the last axis is met exactly.
    Source:
        Deming and Stephan (1940).
    """
    fitted: np.ndarray = values / values.sum()
    if compiled and fitted.ndim:
        cells, sizes = fitted.ravel(), np.array(fitted.shape, dtype=np.int64)
        goals, room = np.concatenate(shares, dtype=np.float64), np.empty(max(fitted.shape))
        table_kernels.rake(cells, sizes, goals, room, passes)
        return cells.reshape(fitted.shape)
    for _ in range(passes):
        for axis, wanted in enumerate(shares):
            others = tuple(a for a in range(fitted.ndim) if a != axis)
            have = fitted.sum(axis=others)
            factor = np.divide(wanted, have, out=np.zeros_like(wanted), where=have > 0)
            fitted = fitted * np.expand_dims(factor, others)
    return fitted


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """What is known of one interaction.

    Attributes:
        total: sum over tables of precision x component, float64, an axis a column.
        precision: sum of 1 / (variance of a cell x cells summed out), > 0.
    """

    total: np.ndarray
    precision: float


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """All measurements so far. Public.

    Attributes:
        found: component of each subset of columns that some table holds; () is the total.
    """

    found: Mapping[Columns, Component] = field(default_factory=dict)

    def holds(self, columns: Columns) -> bool:
        """Whether a table over these columns can be put together."""
        return columns in self.found

    def precision(self, columns: Columns) -> float:
        """Of a cell of the component of these columns, 1 / counts squared; 0 where none was bought."""
        own = self.found.get(columns)
        return own.precision if own else 0.0

    def total(self) -> float:
        """Number of records, by the noisy totals; may be negative."""
        own = self.found[()]
        return float(own.total) / own.precision

    def table(self, columns: Columns) -> tuple[np.ndarray, float]:
        """The combined table over columns that were measured together; else KeyError.

        Returns:
            float64 counts, an axis a column, possibly negative; standard deviation of a cell, in
            counts (root mean square over cells).
        """
        shape = self.found[columns].total.shape
        counts, variance = np.zeros(shape), 0.0
        for subset in subsets(range(len(columns))):
            own = self.found[tuple(columns[a] for a in subset)]
            spread = math.prod(shape[a] for a in range(len(shape)) if a not in subset)
            place = tuple(slice(None) if a in subset else None for a in range(len(shape)))
            counts = counts + (own.total / own.precision)[place] / spread
            freedom = math.prod((shape[a] - 1) / shape[a] for a in subset)
            variance += freedom / own.precision / spread**2
        return counts, math.sqrt(variance)


def added(before: Components, tables: Iterable[tuple[Columns, np.ndarray, float]]) -> Components:
    """The same measurements and further ones: columns, noisy counts, and the variance of a cell's noise."""
    combined = dict(before.found)
    for columns, counts, variance in tables:
        for subset in subsets(range(len(columns))):
            out = tuple(a for a in range(counts.ndim) if a not in subset)
            part = centered(counts.sum(axis=out))
            precision = 1.0 / (variance * math.prod(counts.shape[a] for a in out))
            key = tuple(columns[a] for a in subset)
            own = combined.get(key, Component(np.zeros(part.shape), 0.0))
            combined[key] = Component(own.total + precision * part, own.precision + precision)
    return Components(combined)


def centered(values: np.ndarray) -> np.ndarray:
    """Values with mean 0 along every axis."""
    part: np.ndarray = np.asarray(values, dtype=np.float64)
    for axis in range(part.ndim):
        part = part - part.mean(axis=axis, keepdims=True)
    return part


def subsets(items: Sequence[int]) -> list[Columns]:
    """All subsets, the empty one first, each in the given order."""
    return [
        chosen for size in range(len(items) + 1) for chosen in itertools.combinations(items, size)
    ]
