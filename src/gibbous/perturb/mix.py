"""Mix each conditional with the uniform one: randomized response on top of the counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.gibbs import eps0_from_alpha
from gibbous.privacy.calibrate.scales import steps

_UNIT = 1 << 20
_ROOM = 1 << 62


@dataclass(frozen=True, slots=True)
class Mix:
    """Q(v | k) = (1 - beta) n[k, v] / N[k] + beta / C; uniform where N[k] = 0.

    Guarantee:
        One draw is ln(1 + C (1 - beta) / beta)-DP between any two tables, neighbors or not: it is
        randomized response. Proven: docs/proofs/diverse.md.
    Source:
        [park2013, s IV.B] (the mixing form of its perturbation).

    Attributes:
        beta: weight of the uniform law, 0 <= beta <= 1; 0 copies records and has no guarantee.
    """

    beta: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.beta, Fraction) or not 0 <= self.beta <= 1:
            raise ParameterError(
                "BETA",
                f"beta of Mix is {self.beta!r}.",
                "It must be a fraction between 0 and 1.",
                "For example Mix(Fraction(1, 2)).",
            )

    @property
    def scaled(self) -> int:
        """beta in units of 2**-20, rounded up."""
        return math.ceil(self.beta * _UNIT)

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Exact weights (1 - beta) C n + beta N, times 2**20, uint64, of secret int64 (keys, levels)."""
        levels = max(counts.shape[1], 1)
        kept = np.minimum(counts, _ROOM // (_UNIT * levels * levels)).astype(np.uint64)
        totals = kept.sum(axis=1, keepdims=True)
        own = np.uint64((_UNIT - self.scaled) * levels)
        mixed = kept * own + totals * np.uint64(self.scaled)
        return np.where(totals == 0, np.uint64(1), mixed)

    def loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of one draw, whatever differs."""
        if levels < 2 or self.scaled == _UNIT:
            return Fraction(0)
        if self.scaled == 0:
            raise _copies()
        # As with virtual records, of which there are beta / (C (1 - beta)) for each real one.
        return eps0_from_alpha(Fraction(self.scaled, levels * (_UNIT - self.scaled)))

    def reset_loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of a whole table whose keys are each drawn from at most once."""
        return steps(relation) * max_rows * self.loss(levels, relation)


def _copies() -> ParameterError:
    return ParameterError(
        "BETA",
        "beta of Mix is 0, and a guarantee was asked for.",
        "beta > 0 gives one; beta = 0 copies records.",
        "Raise beta, for example Mix(Fraction(1, 2)).",
    )
