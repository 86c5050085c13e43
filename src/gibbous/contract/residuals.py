"""White-box audit of tables: is the noise that is in them the noise they say, and is that what was priced?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.contract.cases import binary_schema, secret
from gibbous.contract.runs import relation_of, release
from gibbous.core.claim import Claim, Relation
from gibbous.core.context import Context
from gibbous.core.tables import Dense, NoiseInfo, Table, Tables
from gibbous.disintegrate.numpy_engine import NumpyEngine
from gibbous.privacy import accountant
from gibbous.privacy.noise import Gaussian, Geometric

CLEAR = 12.0  # scales above a threshold from which a cell is practically never dropped


@dataclass(frozen=True, slots=True)
class Residuals:
    """What was found in the noise of some fits.

    Attributes:
        cells: noisy cells compared with exact counts.
        energy: mean of (noisy - exact)^2 over the stated variance; 1 when the noise is as stated.
        z: standard errors that the energy is above (or below) 1.
        priced: whether the stated noise is covered by the plan's total.
    """

    cells: int
    energy: float
    z: float
    priced: bool

    @property
    def holds(self) -> bool:
        """Whether there is at least as much noise as stated, and the stated noise was paid for."""
        return self.z > -6.0 and self.priced


def residuals(kind: type[Any], one: Any, *, fits: int = 80) -> Residuals | None:
    """Compare noisy cells with exact counts on a constructed table: seven crowds, one empty cell.

    Args:
        kind: the mechanism class.
        one: an instance of it.
        fits: how many fits to pool.
    Returns:
        The finding; None for a mechanism that releases no noisy tables.
    """
    schema = binary_schema(3)
    values = np.repeat([[i >> 2, i >> 1 & 1, i & 1] for i in range(7)], 600, axis=0)
    plan = one.plan(schema, None if kind.about.releases == "tables" else 2)
    if kind.about.releases != "tables" or not plan.total.is_dp:
        return None
    squares: list[np.ndarray] = []
    priced = True
    for _ in range(fits):
        output = release(one, schema, values, None, plan.total)
        assert isinstance(output, Tables)
        tables = output.items + output.extra
        exact = _exact(schema, values, [t.context for t in tables])
        squares += [_standardized(t, e) for t, e in zip(tables, exact, strict=True)]
        priced &= _priced(tables, plan.total, relation_of(one))
    pooled = np.concatenate(squares)
    energy = float(pooled.mean())
    # The square of a geometric variable has relative variance 5, of a Gaussian one 2.
    z = (energy - 1) * math.sqrt(len(pooled) / 5)
    return Residuals(len(pooled), energy, z, priced)


def _exact(schema: Any, values: np.ndarray, contexts: list[Context]) -> list[np.ndarray]:
    engine = NumpyEngine.from_codes(secret(schema, values))
    dense = [Context(**{**_fields(c), "support": "dense"}) for c in contexts]
    found = [c.cells.values for c in engine.tally(dense)]
    engine.close()
    return found


def _fields(context: Context) -> dict[str, Any]:
    return {
        "targets": context.targets,
        "parents": context.parents,
        "target_sizes": context.target_sizes,
        "parent_sizes": context.parent_sizes,
        "key": context.key,
    }


def _standardized(table: Table, exact: np.ndarray) -> np.ndarray:
    """Squared residuals over the stated variance, of the cells that a threshold cannot have dropped."""
    cells = table.cells
    if isinstance(cells, Dense):
        noisy, truth = cells.values.ravel(), exact.ravel()
    else:
        noisy = cells.values
        truth = exact[cells.keys.astype(np.int64), cells.levels.astype(np.int64)]
    keep = np.ones(len(truth), dtype=bool)
    if table.noise.threshold is not None:
        keep = truth > table.noise.threshold + CLEAR * table.noise.scale
    found: np.ndarray = ((noisy - truth)[keep] / math.sqrt(table.noise.variance)) ** 2
    return found


def _priced(tables: tuple[Table, ...], total: Claim, relation: Relation) -> bool:
    """Whether the stated noise of all tables together is within the plan's total."""
    groups: dict[NoiseInfo, int] = {}
    for table in tables:
        if table.noise.threshold is None:
            groups[table.noise] = groups.get(table.noise, 0) + 1
    spends = []
    for info, count in groups.items():
        scale = Fraction(info.scale)
        noise = Geometric(scale) if info.law == "geometric" else Gaussian(scale)
        spends.append(noise.cost(count, relation, 1))
    return not spends or accountant.within(total, spends)
