"""White-box audit of tables: is the noise that is in them the noise they say, and is that what was priced?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.contract.auditor.bounds import energy_of, expected_energy, law_of
from gibbous.contract.cases import binary_schema
from gibbous.contract.runs import exact_counts, relation_of, release
from gibbous.core.claim import Claim, Relation
from gibbous.core.tables import Dense, NoiseInfo, Table, Tables
from gibbous.privacy import accountant
from gibbous.privacy.noise import Gaussian, Geometric

CLEAR = 12.0  # scales above a threshold from which a cell is practically never dropped


@dataclass(frozen=True, slots=True)
class Residuals:
    """What was found in the noise of some fits.

    Attributes:
        cells: noisy cells compared with exact counts.
        energy: the sum of `bounds.energy_of` over its mean under the stated law: 1 when it holds.
        z: standard errors that the energy is above (or below) 1: of all cells, or of the tables of as
            many columns, if those have less.
        still: places that were exact in every fit, where noise would have moved them.
        kept: whether every cell of a thresholded table exceeds the stated threshold.
        priced: whether the stated noise is covered by the plan's total.
    """

    cells: int
    energy: float
    z: float
    still: int
    kept: bool
    priced: bool

    @property
    def holds(self) -> bool:
        """Whether there is at least as much noise as stated, everywhere, and it was paid for."""
        return self.z > -6.0 and self.still == 0 and self.kept and self.priced


def residuals(kind: type[Any], one: Any, *, fits: int = 80) -> Residuals | None:
    """Compare noisy cells with exact counts on a constructed table: seven crowds, one empty cell.

    Returns:
        The finding; None for a mechanism that releases no noisy tables.
    """
    schema = binary_schema(3)
    values = np.repeat([[i >> 2, i >> 1 & 1, i & 1] for i in range(7)], 600, axis=0)
    plan = one.plan(schema, None if kind.about.releases == "tables" else 2)
    if kind.about.releases != "tables" or not plan.total.is_dp:
        return None
    doubt, energies = _Places(), _Energies()
    priced = kept = True
    for _ in range(fits):
        output = release(one, schema, values, None, plan)
        assert isinstance(output, Tables)
        tables = added(output.parts) if output.parts else output.published()
        every = [replace(t.context, support="dense") for t in tables]
        exact = exact_counts(schema, values, every)
        for table, truth in zip(tables, exact, strict=True):
            places, moved = _residuals(table, truth.cells.values)
            doubt.note(table, places, moved)
            energies.note(table, moved)
        for part in output.parts or (output,):
            kept &= all(_above(table) for table in part.published())
            priced &= _priced(part.published(), plan.total, relation_of(one))
    cells, energy = energies.pooled()
    return Residuals(cells, energy, energies.least(), doubt.still(), kept, priced)


def added(parts: tuple[Tables, ...]) -> tuple[Table, ...]:
    """Counts of all records from those of their parts, for contexts that every part counted once.

    The sum of the parts' noise is stated as Gaussian noise of the same variance, whatever its law.
    """
    each = [
        {t.context: t for t in part.published() if isinstance(t.cells, Dense)} for part in parts
    ]
    sums = []
    for context in each[0]:
        if all(context in one for one in each):
            tables = [one[context] for one in each]
            counts = np.sum([table.cells.values for table in tables], axis=0)
            scale = math.sqrt(sum(table.noise.variance for table in tables))
            sums.append(Table(context, Dense(counts), NoiseInfo("gaussian", scale)))
    return tuple(sums)


class _Energies:
    """Squared noise over its stated variance, by the number of columns of a table.

    One step of a method often counts tables of as many columns together: a fault in its price is
    plain there, and faint among the cells of all other steps.
    """

    def __init__(self) -> None:
        self._sums: dict[int, np.ndarray] = {}  # cells, energy, its mean and variance

    def note(self, table: Table, moved: np.ndarray) -> None:
        """One table: noisy minus exact counts of its cells."""
        mean, variance = expected_energy(table.noise)
        cells = len(moved)
        facts = np.array([cells, energy_of(table.noise, moved), cells * mean, cells * variance])
        columns = len(table.context.columns)
        self._sums[columns] = self._sums.get(columns, np.zeros(4)) + facts

    def pooled(self) -> tuple[int, float]:
        """Cells, and the mean energy of one; 1 without cells."""
        cells, energy, mean, _ = self._all()
        return int(cells), float(energy / mean) if cells else 1.0

    def least(self) -> float:
        """The least number of standard errors above 1: of all cells, or of one group."""
        return min(
            float((energy - mean) / math.sqrt(max(variance, 1.0)))
            for _, energy, mean, variance in (self._all(), *self._sums.values())
        )

    def _all(self) -> np.ndarray:
        return np.asarray(sum(self._sums.values(), start=np.zeros(4)))


class _Places:
    """For each place of a table, how unlikely it is that honest noise never moved it."""

    def __init__(self) -> None:
        self._logs: dict[object, float] = {}
        self._moved: set[object] = set()

    def note(self, table: Table, places: np.ndarray, moved: np.ndarray) -> None:
        """One fit of one table: flat positions, and noisy minus exact counts there."""
        values, chances = law_of(table.noise)
        same = math.log(float(chances[values == 0][0]))
        for place, by in zip(places.tolist(), moved.tolist(), strict=True):
            name = (table.context, place)
            self._logs[name] = self._logs.get(name, 0.0) + same
            if by:
                self._moved.add(name)

    def still(self) -> int:
        """Places that never moved, where noise would have stayed put with probability below 1e-9."""
        return sum(
            log < math.log(1e-9) for name, log in self._logs.items() if name not in self._moved
        )


def _residuals(table: Table, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flat places and noisy minus exact counts, of cells that a threshold cannot have dropped."""
    cells, levels = table.cells, exact.shape[1]
    if isinstance(cells, Dense):
        places, noisy = np.arange(exact.size), cells.values.ravel()
    else:
        places = (cells.keys.astype(np.int64) * levels) + cells.levels.astype(np.int64)
        noisy = cells.values
    truth = exact.ravel()[places]
    keep = np.ones(len(truth), dtype=bool)
    if table.noise.threshold is not None:
        keep = truth > table.noise.threshold + CLEAR * table.noise.scale
    return places[keep], (noisy - truth)[keep]


def _above(table: Table) -> bool:
    least = table.noise.threshold
    values = table.cells.values
    return least is None or bool((values[values != 0] > least).all())


def _priced(tables: tuple[Table, ...], total: Claim, relation: Relation) -> bool:
    """Whether the stated noise of all tables together is within the plan's total."""
    groups: dict[NoiseInfo, int] = {}
    for table in tables:
        if table.noise.threshold is None:
            groups[table.noise] = groups.get(table.noise, 0) + 1
    spends = []
    for info, count in groups.items():
        scale = Fraction(info.scale)
        gaussian = Gaussian(scale, total.measure)
        noise = Geometric(scale) if info.law == "geometric" else gaussian
        spends.append(noise.cost(count, relation, 1))
    return not spends or accountant.within(total, spends)
