"""Tilt: draw level v with probability proportional to exp(epsilon n[v]), as exact integer weights."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.gibbs import tilt_pure
from gibbous.privacy.calibrate.rounding import exp_down

_BITS = 52
_LONGEST = 1 << 20  # differences beyond this many records are read as this many


@dataclass(frozen=True, slots=True)
class Tilt:
    """Q(v | k) proportional to exp(epsilon n[k, v]): the exponential mechanism on counts.

    Weights are integers E[d] for d records below the largest count, E[d - 1] / E[d] <= e**epsilon
    exactly, so rounding costs nothing in privacy.

    Guarantee:
        One draw from one key is epsilon-DP under add/remove (bounded range epsilon) and 2
        epsilon-DP under replace-one. Proven: docs/proofs/exponential.md.
    Source:
        [park2013, def. 2].

    Attributes:
        epsilon: nats a draw; > 0.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ParameterError(
                "EPSILON",
                f"epsilon of Tilt is {self.epsilon!r}.",
                "It must be a fraction > 0.",
                "For example Tilt(Fraction(1, 10)).",
            )

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Exact weights, uint64, the largest for the largest count, of secret int64 (keys, levels)."""
        if counts.size == 0:
            return np.ones(counts.shape, dtype=np.uint64)
        ladder = _ladder(self.epsilon, min(_BITS, 62 - counts.shape[1].bit_length()))
        below = counts.max(axis=1, keepdims=True) - counts
        found: np.ndarray = ladder[np.minimum(below, len(ladder) - 1)]
        return found

    def loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of one draw from one key whose counts differ by one unit."""
        if levels < 2:
            return Fraction(0)
        return tilt_pure(self.epsilon, 1, relation, max_rows)

    def reset_loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of a whole table whose keys are each drawn from at most once."""
        return self.loss(levels, relation, max_rows)


@lru_cache(maxsize=8)
def _ladder(epsilon: Fraction, bits: int) -> np.ndarray:
    """E[0] = 2**bits, E[d] = ceil(E[d-1] / R) with R just below e**epsilon, until it is 1."""
    growth = exp_down(epsilon)
    scale = 1 << 64
    ratio = int(growth * scale)  # rounded down once more
    steps = [1 << bits]
    while steps[-1] > 1 and len(steps) <= _LONGEST:
        lower = -(-steps[-1] * scale // ratio)
        if lower >= steps[-1]:  # R is 1 to within the unit of the weights
            break
        steps.append(lower)
    ladder = np.array(steps, dtype=np.uint64)
    ladder.setflags(write=False)
    return ladder
