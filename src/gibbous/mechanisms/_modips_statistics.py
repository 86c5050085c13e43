"""What modips measures of a schema, each statistic's part of the budget, and counts that are redrawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from gibbous.core.claim import Claim, Relation, pure
from gibbous.core.context import Context
from gibbous.core.exact import Number
from gibbous.core.moment import Moment, moment
from gibbous.core.protocols import Progress, silent
from gibbous.core.recode import Groups, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Cells, Dense, NoiseInfo
from gibbous.privacy.calibrate.dirichlet import (
    equal_split,
    optimal_split,
    truncated_geometric_epsilon,
    truncated_geometric_scale,
)
from gibbous.privacy.calibrate.rounding import positive
from gibbous.privacy.calibrate.scales import steps
from gibbous.privacy.noise import Geometric
from gibbous.sampling.cells.cell_index import cell_context, cell_sizes, numeric_columns

PROOF = "docs/proofs/modips.md"
Split = Literal["optimal", "equal", "nonsplit"]
Covariance = Literal["pooled", "cells"]


def coarsening(schema: Schema) -> dict[int, Groups]:
    """Public maps under which a numeric column has one code for a number, and one for missing."""
    found = {}
    for place in numeric_columns(schema):
        column = schema.columns[place]
        if column.bins > 1:
            found[place] = Groups((np.arange(column.size) >= column.bins).astype(np.int64))
    return found


def moments(schema: Schema, covariance: Covariance) -> tuple[Moment, ...]:
    """Sums of each numeric column, then of each square and each product of two.

    Args:
        schema: public, before the coarsening: it has the same bounds.
        covariance: "cells" sums products in every cell; "pooled" over all records that have the
            first factor.
    """
    coarse = recoded_schema(schema, coarsening(schema))
    numbers, cells = numeric_columns(schema), cell_context(schema)
    sizes = cell_sizes(schema)
    found = [moment(coarse, cells, (one,)) for one in numbers]
    for place, one in enumerate(numbers):
        whole = Context((one,), (), (sizes[one],), ())
        context = cells if covariance == "cells" else whole
        found += [moment(coarse, context, (one, other)) for other in numbers[place:]]
    return tuple(found)


def weights(sums: Sequence[Moment]) -> tuple[Fraction, ...]:
    """Sensitivity of the counts, then of each moment, with the range of a column as the unit."""
    return (Fraction(1), *(Fraction(1, 2 ** len(one.factors)) for one in sums))


def divided(
    budget: Fraction, sensitivities: Sequence[Fraction], split: Split, noise: str
) -> tuple[Fraction, ...]:
    """Parts of a budget, epsilon (laplace) or rho or mu^2 (gaussian), one a statistic; at most all of it.

    "equal" gives each the same. "nonsplit" gives noise of one scale, in units of the ranges, to all.
    "optimal" makes the sum of the variances smallest: epsilon in proportion to s^(2/3), the others to s.
    """
    if split == "equal":
        return equal_split(budget, len(sensitivities))
    if split == "optimal" and noise == "laplace":
        return optimal_split(budget, sensitivities)
    power = 2 if split == "nonsplit" and noise == "gaussian" else 1
    shares = [s**power for s in sensitivities]
    whole = sum(shares, Fraction(0))
    return tuple(budget * share / whole for share in shares)


@dataclass(frozen=True, slots=True)
class Truncated:
    """Two-sided geometric noise under the condition that the noisy count is within its bounds.

    Guarantee:
        k (c / b + e ln(Z(1) / Z(0)))-DP for one table, Z(s) the chance that s and its noise lie
        within the bounds, k rows a unit, c cells that a row changes (1 under add_remove, 2 under
        replace_one), e = 1 without an upper bound and c with one. The second term is the normalizer,
        which depends on the count. Basis: proven (docs/proofs/modips.md).
    Source:
        Corrects the "truncation" of [bowen2016, s4.1].

    Attributes:
        base: the noise before the condition.
        most: public upper bound, to which exact counts are cut; None for 0 as the only bound.
    """

    base: Geometric
    most: int | None = None

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Price of this noise on `tables` histograms of the same records, from the scale alone."""
        bound, free = _ends(relation, self.most)
        each = truncated_geometric_epsilon(self.base.scale, 1, self.most, free)
        return pure(each * tables * bound * max_rows, relation=relation, source=PROOF)

    def info(self) -> NoiseInfo:
        """What is published about it: the law before the condition."""
        return self.base.info()

    def add(self, cells: Cells, *, progress: Progress = silent) -> Dense:
        """Noisy counts of every cell, each drawn again until it is within the bounds."""
        most = np.iinfo(np.int64).max if self.most is None else self.most
        exact = np.minimum(cells.values, most)
        noisy = self.base.add(replace(cells, values=exact), progress=progress).values.copy()
        while (beyond := (noisy < 0) | (noisy > most)).any():
            noisy[beyond] = self.base.add(Dense(exact[beyond])).values
        return Dense(np.asarray(noisy))

    def draws(self) -> float:
        """Draws that a count at a bound takes on average: no count takes more."""
        rate = 1 / float(self.base.scale)
        far = 0.0 if self.most is None else math.exp(-rate * (self.most + 1))
        return (1 + math.exp(-rate)) / (1 - far)


def truncated_for(
    epsilon: Number, relation: Relation, max_rows: int, most: int | None = None
) -> Truncated:
    """Truncated noise for one table whose price is at most epsilon."""
    bound, free = _ends(relation, most)
    share = positive("epsilon", epsilon) / Fraction(bound * max_rows)
    noise = Truncated(Geometric(truncated_geometric_scale(share, 1, most, free)), most)
    assert noise.cost(1, relation, max_rows).epsilon <= positive("epsilon", epsilon)
    return noise


def _ends(relation: Relation, most: int | None) -> tuple[int, int]:
    """Of the cells that a row changes: those that a bound makes dearer, and for each the others."""
    cells = steps(relation)
    return (1, cells - 1) if most is None else (cells, 0)
