"""Counts that are redrawn until none is negative, with the price that this really has."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Claim, Relation, pure
from gibbous.core.exact import Number
from gibbous.core.protocols import Progress, silent
from gibbous.core.tables import Cells, Dense, NoiseInfo
from gibbous.privacy.calibrate.dips import truncated_geometric_epsilon, truncated_geometric_scale
from gibbous.privacy.calibrate.rounding import positive
from gibbous.privacy.calibrate.scales import steps
from gibbous.privacy.noise import Geometric

PROOF = "docs/proofs/modips.md"


@dataclass(frozen=True, slots=True)
class Truncated:
    """Two-sided geometric noise under the condition that the noisy count is not negative.

    Guarantee:
        k c (1 / b + ln(1 + q - q^2))-DP for one table, q = exp(-1 / b), k rows a unit, c cells that a
        row changes (1 under add_remove, 2 under replace_one). The second term is the normalizer, which
        depends on the count. Basis: proven (docs/proofs/modips.md).
    Source:
        Corrects the "truncation" of [bowen2016, s4.1].

    Attributes:
        base: the noise before the condition.
    """

    base: Geometric

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Price of this noise on `tables` histograms of the same records, from the scale alone."""
        each = truncated_geometric_epsilon(self.base.scale, 1)
        return pure(each * tables * steps(relation) * max_rows, relation=relation, source=PROOF)

    def info(self) -> NoiseInfo:
        """What is published about it: the law before the condition."""
        return self.base.info()

    def add(self, cells: Cells, *, progress: Progress = silent) -> Dense:
        """Noisy counts of every cell, each drawn again until it is not negative."""
        noisy = self.base.add(cells, progress=progress).values.copy()
        exact = cells.values
        while (low := noisy < 0).any():
            noisy[low] = self.base.add(Dense(exact[low])).values
        return Dense(np.asarray(noisy))


def truncated_for(epsilon: Number, relation: Relation, max_rows: int) -> Truncated:
    """Truncated noise for one table whose price is at most epsilon."""
    share = positive("epsilon", epsilon) / Fraction(steps(relation) * max_rows)
    noise = Truncated(Geometric(truncated_geometric_scale(share, 1)))
    assert noise.cost(1, relation, max_rows).epsilon <= positive("epsilon", epsilon)
    return noise
