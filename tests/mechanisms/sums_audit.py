"""White-box audit of sums: is the noise in them the noise they state, and does that cover real neighbors?

Nothing here asks the noise what it costs: changes are those of exact sums of two tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import norm

from gibbous.core.cell_model import CellModel
from gibbous.core.claim import Claim, Measure, Relation, gdp, pure, zcdp
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.moment import Moment
from gibbous.core.recode import recoded
from gibbous.core.tables import Table, Tables
from gibbous.disintegrate.plain import sums
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms._modips_statistics import coarsening
from gibbous.privacy import accountant
from tests.mechanisms.numeric_records import MIXED, ran, secret

SLACK = Fraction(10**9 + 1, 10**9)
FEW = 40  # runs whose noise is pooled


@dataclass(frozen=True)
class Released:
    """Every noisy table of a release: counts, then sums with their factors."""

    tables: tuple[Table, ...]
    factors: tuple[tuple[int, ...], ...]


def released(tables: Tables) -> Released:
    assert isinstance(tables.model, CellModel)
    own = tables.model.sums
    return Released(
        (*tables.items, *(one.table for one in own)), ((), *(one.factors for one in own))
    )


def exact(found: Released, records: Codes) -> list[np.ndarray]:
    """The exact counts and sums that the noisy ones were made from."""
    coarse = recoded(records, coarsening(records.schema))
    engine = LocalEngine.from_codes(coarse)
    out = []
    for table, factors in zip(found.tables, found.factors, strict=True):
        context: Context = table.context
        counted = (
            sums(coarse, [Moment(context, factors, 1)]) if factors else engine.tally([context])
        )
        out.append(counted[0].cells.values)
    return out


def energy(mechanism: Any, records: Codes) -> float:
    """Least, over the tables, of standard errors by which squared noise exceeds its stated variance."""
    ratios: list[list[np.ndarray]] = []
    laws = []
    for _ in range(FEW):
        found = released(ran(mechanism, records)[0])
        truth = exact(found, records)
        moved = [
            ((table.cells.values - one) ** 2 / table.noise.variance).ravel()
            for table, one in zip(found.tables, truth, strict=True)
        ]
        ratios.append(moved)
        laws = [table.noise.law for table in found.tables]
    worst = math.inf
    for place, law in enumerate(laws):
        pooled = np.concatenate([run[place] for run in ratios])
        spread = math.sqrt(5.0 if law == "geometric" else 2.0)
        worst = min(worst, float((pooled.mean() - 1) / spread * math.sqrt(len(pooled))))
    return worst


def covered(mechanism: Any) -> bool:
    """Whether the stated noise of one release covers what one extreme record does to it."""
    total = mechanism.plan(MIXED, None).total
    return accountant.within(Claim(**_fields(total)), shown(mechanism, total.measure))


def shown(mechanism: Any, measure: Measure = "zcdp") -> Sequence[Claim]:
    """What the stated noise of each table of one release shows of one extreme record, in one measure."""
    one, two = _pair(mechanism.relation)
    found = released(ran(mechanism, one)[0])
    return _spends(found, one, two, mechanism.relation, measure)


def _fields(total: Claim) -> dict[str, Any]:
    from dataclasses import fields

    found = {f.name: getattr(total, f.name) for f in fields(total)}
    return found | {n: found[n] * SLACK for n in ("epsilon", "delta", "rho", "mu_squared")}


def _pair(relation: Relation) -> tuple[Codes, Codes]:
    crowd = np.zeros((4, 4))
    middle = {2: [50.0] * 4, 3: [250.0] * 4}
    ends = {2: [*middle[2], 100.0], 3: [*middle[3], 500.0]}
    codes = np.vstack([crowd, [[1, 2, 0, 0]]])
    with_one = secret(MIXED, codes, ends)
    if relation == "add_remove":
        return secret(MIXED, crowd, middle), with_one
    moved = np.vstack([crowd, [[0, 1, 0, 0]]])
    other = secret(MIXED, moved, {2: [*middle[2], 0.0], 3: [*middle[3], 0.0]})
    return with_one, other


def _mu(sigma: float) -> float:
    """mu of one count with discrete Gaussian noise: a shift of one is seen best at threshold one."""
    steps = np.arange(1, int(12 * min(sigma, 1e3)) + 2)
    total = 1 + 2 * float(np.exp(-(steps**2) / (2 * sigma**2)).sum())
    at_zero = 1 / (total if sigma < 1e3 else sigma * math.sqrt(2 * math.pi))
    return float(2 * norm.ppf((1 + at_zero) / 2))


def _spends(
    found: Released, one: Codes, two: Codes, relation: Relation, measure: Measure
) -> Sequence[Claim]:
    spends = []
    for table, a, b in zip(found.tables, exact(found, one), exact(found, two), strict=True):
        change = np.abs(a - b).astype(object)
        scale = Fraction(table.noise.scale)
        if table.noise.law == "geometric":
            spends.append(pure(Fraction(int(change.sum())) / scale, relation=relation))
        else:
            square = Fraction(int((change**2).sum()))
            if measure == "gdp":
                spends.append(gdp(square * Fraction(_mu(float(scale))) ** 2, relation=relation))
            else:
                spends.append(zcdp(square / (2 * scale * scale), relation=relation))
    return spends
