"""Noisy counts and noisy sums in, a cell model out: post-processing, a public rule of public numbers.

Every statistic is divided, floored, clipped and projected after the noise, so nothing here costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.cell_model import CellModel, Draws, NoisySum, Values
from gibbous.core.number_grid import Grid, from_grid, grid_of
from gibbous.core.schema import Schema
from gibbous.core.tables import Table, Tables
from gibbous.sampling.cells.cell_index import cell_sizes, numeric_columns, present
from gibbous.sampling.cells.parameters import definite

LEAST_VARIANCE = 1 / 12  # in grid steps squared: of rounding to the grid
MEAN_NOISE = 1 / 2  # half ranges of noise from which a cell's own mean is not used
SPREAD_NOISE = 1 / 12  # half ranges squared of noise from which a cell's own covariance is not used
RAISED = 1.96  # spreads of its noise that a variance at its floor may well have lost


def fitted(
    schema: Schema,
    counts: Table,
    sums: Sequence[NoisySum],
    *,
    prior: float,
    draws: Draws,
    values: Values = "matched",
    raised: float = 0.0,
) -> CellModel:
    """The cell model of noisy tables.

    Means are noisy sums over noisy counts (at least 1), clipped to the bounds. Cells whose mean would
    carry more noise than half of a half range are one group, with one mean. Covariances are second
    moments less what the means explain, the noise's own variance taken out of squared sums; variances
    are clipped to [1/12 grid step squared, what the bounds allow], correlations to [-1, 1], and the
    correlation matrix is moved to a positive definite one.

    Args:
        counts: noisy counts of `layout.cell_context`.
        sums: a first moment of each numeric column over the same cells; second moments of each pair
            and each square, over the same cells (a covariance a cell) or over the first factor's own
            context (one covariance).
        prior: virtual records of the whole table, for the posterior law of the shares.
        raised: standard deviations of its noise that a variance at its floor is put above it.
    Source:
        [bowen2016, s4.2, s4.3] with sums in place of means: docs/proofs/modips.md.
    """
    work = _Work.of(schema, counts, sums, raised)
    means, support = work.means()
    pooled, freedom = work.pooled(means)
    covariances, degrees = pooled[None], np.array([freedom])
    if work.own_spreads:
        covariances, degrees = work.each(means, pooled, freedom)
    steps = np.array([float(grid.step) for grid in work.grids])
    return CellModel(
        sizes=cell_sizes(schema),
        numbers=work.numbers,
        counts=np.maximum(work.noisy, 0.0),
        prior=prior,
        means=_in_units(means, work.grids),
        support=support,
        covariances=covariances * (steps[:, None] * steps[None, :]),
        freedom=degrees,
        draws=draws,
        values=values,
        sums=tuple(sums),
    )


def refitted(tables: Tables, *, raised: float = 0.0) -> Tables:
    """The same tables with the cell model fitted again to their counts and the model's sums."""
    model = tables.model
    if not isinstance(model, CellModel):
        raise ValueError("these tables have no cell model")
    again = fitted(
        tables.schema,
        tables.items[0],
        model.sums,
        prior=model.prior,
        draws=model.draws,
        values=model.values,
        raised=raised,
    )
    return replace(tables, model=again)


def unfloored(tables: Tables) -> tuple[Tables, tuple[int, ...]]:
    """Tables whose floored variances are as large as their noise allows, and the columns of these.

    Noise may leave nothing, or less, of a small variance. Rows of the model then hardly differ, and say
    nothing of how much the records do.

    Returns:
        The tables with every variance at its floor raised by `RAISED` standard deviations of its
        noise; positions of the numeric columns, () where no variance was at its floor.
    """
    places: set[int] = set()

    def lifted(own: Tables) -> Tables:
        if isinstance(own.model, CellModel):
            again = refitted(own, raised=RAISED)
            assert isinstance(again.model, CellModel)
            before, after = (
                np.einsum("mii->mi", one.covariances) for one in (own.model, again.model)
            )
            hit = (after > before * (1 + 1e-9)).any(axis=0)
            places.update(np.array(own.model.numbers)[hit].tolist())
            own = again if hit.any() else own
        copies, parts = (tuple(map(lifted, group)) for group in (own.copies, own.parts))
        return replace(own, copies=copies, parts=parts)

    found = lifted(tables)
    return found, tuple(sorted(places))


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """Everything in grid steps; d numeric columns.

    Attributes:
        noisy: float64 (cells,), noisy counts, possibly negative.
        first: float64 (cells, d), noisy sums; 0 where a number is missing.
        noise: float64 (d,), variance of the noise in one of them.
        second: noisy sums of products by pair of places: (cells,) or (1,).
        second_noise: variance of the noise in one of them, by pair.
        there: bool (cells, d), whether the cell has a number.
        own_spreads: whether each cell has a covariance of its own.
        raised: standard deviations of noise that a variance at its floor is put above it.
    """

    numbers: tuple[int, ...]
    grids: tuple[Grid, ...]
    noisy: np.ndarray
    first: np.ndarray
    noise: np.ndarray
    second: dict[tuple[int, int], np.ndarray]
    second_noise: dict[tuple[int, int], float]
    there: np.ndarray
    own_spreads: bool
    raised: float

    @staticmethod
    def of(schema: Schema, counts: Table, sums: Sequence[NoisySum], raised: float) -> _Work:
        numbers = numeric_columns(schema)
        there = present(cell_sizes(schema), numbers)
        noisy = counts.cells.values.ravel().astype(np.float64)
        first, noise = np.zeros(there.shape), np.zeros(len(numbers))
        second: dict[tuple[int, int], np.ndarray] = {}
        second_noise: dict[tuple[int, int], float] = {}
        for one in sums:
            places = tuple(numbers.index(factor) for factor in one.factors)
            values = one.table.cells.values.ravel().astype(np.float64)
            if len(places) == 1:
                first[:, places[0]] = np.where(there[:, places[0]], values, 0.0)
                noise[places[0]] = one.table.noise.variance
                continue
            pair = (places[0], places[1])
            own = one.table.context == counts.context
            both = there[:, pair[0]] & there[:, pair[1]]
            second[pair] = np.where(both, values, 0.0) if own else values[:1]
            second_noise[pair] = one.table.noise.variance
        return _Work(
            numbers=numbers,
            grids=tuple(grid_of(schema.columns[column]) for column in numbers),
            noisy=noisy,
            first=first,
            noise=noise,
            second=second,
            second_noise=second_noise,
            there=there,
            own_spreads=len(noisy) > 1 and min(map(len, second.values()), default=1) > 1,
            raised=raised,
        )

    @property
    def halves(self) -> np.ndarray:
        """Half range of each numeric column, in grid steps."""
        return np.array([float(grid.half) for grid in self.grids])

    @property
    def records(self) -> np.ndarray:
        """Noisy counts, at least 1."""
        return np.asarray(np.maximum(self.noisy, 1.0))

    @property
    def clear(self) -> np.ndarray:
        """Cells whose own means are used, bool (cells,)."""
        if not self.numbers:
            return np.ones(len(self.noisy), dtype=bool)
        worst = float((np.sqrt(self.noise) / self.halves).max())
        return np.asarray(worst <= MEAN_NOISE * self.records)

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Means (cells, d), and the records that each cell's rest on."""
        clear, records = self.clear, self.records
        found = self.first / records[:, None]
        support = np.where(clear, records, np.inf)
        for place in range(len(self.numbers)):
            group = ~clear & self.there[:, place]
            if not group.any():
                continue
            value, behind = self._group_mean(group, place)
            found[~clear, place] = value
            support[group] = np.minimum(support[group], behind)
        support[np.isinf(support)] = 1.0
        return np.asarray(np.clip(found, -self.halves, self.halves)), support

    def _group_mean(self, group: np.ndarray, place: int) -> tuple[float, float]:
        """Mean of a group of cells; of all cells, where the group has more noise than it may."""
        for cells in (group, self.there[:, place]):
            behind = max(float(self.noisy[cells].sum()), 1.0)
            noise = math.sqrt(int(cells.sum()) * self.noise[place])
            if noise <= MEAN_NOISE * behind * self.halves[place]:
                return float(self.first[cells, place].sum()) / behind, behind
        return 0.0, 1.0

    def pooled(self, means: np.ndarray) -> tuple[np.ndarray, float]:
        """Covariance within cells (d, d), and its degrees of freedom."""
        width = len(self.numbers)
        found = np.zeros((width, width))
        freedom = math.inf if width else 1.0
        for (i, j), values in self.second.items():
            both = self.there[:, i] & self.there[:, j]
            behind = float(self.noisy[both].sum())
            groups = int((self.clear & both).sum()) + bool((~self.clear & both).any())
            degrees = max(behind - groups, width + 2.0)
            explained = self._explained(i, j, both, means)
            found[i, j] = found[j, i] = (float(values.sum()) - explained) / degrees
            freedom = min(freedom, degrees)
        sizes = [self.second[j, j].size for j in range(width)]
        squares = (means[self.clear] ** 2).sum(axis=0)[None]
        matrix, own = found[None], np.array([freedom])
        least = self._least(own, np.array(sizes), squares)
        return _projected(matrix, self.halves, own, least)[0], freedom

    def _least(self, degrees: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """What variances at their floor become, (matrices, d); `raised` spreads of the noise above it.

        Args:
            sums: noisy sums of squares behind one variance.
            squares: squared means behind it, added up, (matrices, d).
        """
        second = np.array([self.second_noise[j, j] for j in range(len(self.numbers))])
        noise = np.sqrt(sums * second + 4 * squares * self.noise)
        return np.asarray(LEAST_VARIANCE + self.raised * noise / degrees[:, None])

    def _explained(self, i: int, j: int, both: np.ndarray, means: np.ndarray) -> float:
        """Sum over cells of records times the product of means, less what noise adds to squares."""
        extra = self.noise[i] if i == j else 0.0
        clear = self.clear & both
        products = self.first[clear, i] * self.first[clear, j] - extra
        total = float((products / self.records[clear]).sum())
        rest = ~self.clear & both
        if not rest.any():
            return total
        behind = max(float(self.noisy[rest].sum()), 0.0)
        at = int(np.flatnonzero(rest)[0])
        return total + behind * float(means[at, i] * means[at, j])

    def each(
        self, means: np.ndarray, pooled: np.ndarray, freedom: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """A covariance a cell (cells, d, d); the pooled one where a cell's own has too much noise."""
        cells, width = self.there.shape
        found = np.broadcast_to(pooled, (cells, width, width)).copy()
        degrees = np.full(cells, freedom)
        worst = max(
            math.sqrt(variance) / (self.halves[i] * self.halves[j])
            for (i, j), variance in self.second_noise.items()
        )
        own = self.clear & self.there.all(axis=1)
        own &= (self.records - 1 >= width + 2) & (worst <= SPREAD_NOISE * (self.records - 1))
        left = self.records[own] - 1
        for (i, j), values in self.second.items():
            extra = self.noise[i] if i == j else 0.0
            explained = (self.first[own, i] * self.first[own, j] - extra) / self.records[own]
            found[own, i, j] = found[own, j, i] = (values[own] - explained) / left
        degrees[own] = left
        least = self._least(left, np.ones(width), means[own] ** 2)
        found[own] = _projected(found[own], self.halves, left, least)
        return found, degrees


def _projected(
    covariances: np.ndarray, halves: np.ndarray, freedom: np.ndarray, least: np.ndarray
) -> np.ndarray:
    """Covariances that the bounds allow and that are positive definite.

    Args:
        covariances: float64 (matrices, d, d), symmetric, in grid steps squared.
        halves: half range of each column, (d,).
        least: what a variance at its floor becomes, (matrices, d).
    """
    if not covariances.size:
        return covariances
    most = halves**2 * ((freedom + 1) / freedom)[:, None]
    diagonal = np.einsum("mii->mi", covariances)
    lifted = np.where(diagonal > LEAST_VARIANCE, diagonal, least)
    spread = np.sqrt(np.minimum(lifted, np.maximum(most, LEAST_VARIANCE)))
    scale = spread[:, :, None] * spread[:, None, :]
    correlations = np.clip(covariances / scale, -1.0, 1.0)
    np.einsum("mii->mi", correlations)[:] = 1.0
    return np.asarray(definite(correlations) * scale)


def _in_units(means: np.ndarray, grids: Sequence[Grid]) -> np.ndarray:
    columns = [from_grid(means[:, place], grid) for place, grid in enumerate(grids)]
    return np.stack(columns, axis=1) if columns else means
