"""Add alpha virtual records, or more, to each level of each key, as exact integer weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.gibbs import alpha_from_eps0, block_pure, eps0_from_alpha

_PRECISE = 25  # significant bits of alpha, when it is neither tiny nor huge
_FINEST = 30  # alpha is a multiple of 2**-30 at least
_HUGE = 40  # from 2**40 on, alpha is read as infinite
_ROOM = 1 << 62  # weights of a key sum to at most this

MOST_RATIO = 1 << 34

LARGEST = Fraction(700)
"""Nats a draw beyond which a budget is read as this: such an alpha is far below the finest."""


@dataclass(frozen=True, slots=True)
class Add:
    """P(v | k) = (n[k, v] + alpha) / (N[k] + C alpha), with alpha rounded up to a binary fraction.

    Guarantee:
        One draw from one key is ln(1 + g/effective)-DP for units of up to g rows, under both
        relations, and of bounded range that number under add/remove. Proven: docs/proofs/pegs.md.
    Source:
        [park2014, eq. 6], [sbhg, s3.2].

    Attributes:
        alpha: virtual records a level; > 0.
        ratios: one whole number >= 1 a level, from public facts: virtual records in proportion to
            them, with alpha for the smallest, on which alone the price depends. () for alpha everywhere.
    """

    alpha: Fraction
    ratios: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(type(r) is not int or not 0 < r < MOST_RATIO for r in self.ratios):
            raise ParameterError(
                "ALPHA",
                "A ratio of virtual records is not a whole number above 0, or too large.",
                f"Each level needs virtual records; ratios are at least 1 and below {MOST_RATIO:,}.",
                "For example Add(Fraction(1), (2, 1)).",
            )
        if not isinstance(self.alpha, Fraction) or self.alpha <= 0:
            raise ParameterError(
                "ALPHA",
                f"alpha of Add is {self.alpha!r}.",
                "It must be a fraction > 0; alpha = 0 copies records.",
                "Take alpha from the budget, for example with Add.within(Fraction(1, 13)).",
            )

    @staticmethod
    def within(epsilon: Fraction, max_rows: int = 1) -> Add:
        """The least alpha, to twelve digits, whose draws cost at most `epsilon` > 0 nats each."""
        return Add(alpha_from_eps0(min(epsilon, LARGEST), max_rows))

    @property
    def scaled(self) -> tuple[int, int]:
        """(A, D): the effective alpha is A/D >= alpha, with D a power of two; (1, 0) is uniform."""
        if self.alpha >= 1 << _HUGE:
            return 1, 0
        size = self.alpha.numerator.bit_length() - self.alpha.denominator.bit_length()
        shift = min(_FINEST, max(0, _PRECISE - size))
        return math.ceil(self.alpha * (1 << shift)), 1 << shift

    @property
    def effective(self) -> Fraction | None:
        """The alpha that is used; None when draws are uniform."""
        ones, unit = self.scaled
        return Fraction(ones, unit) if unit else None

    @property
    def prior(self) -> int | np.ndarray:
        """Weight of a level without records (by level, where they have ratios). Under structural zeros
        the possible levels share that of the others, so that a conditional never rests on fewer
        virtual records than there are.
        """
        return self._empty(len(self.ratios)) if self.ratios else self.scaled[0]

    @property
    def epsilon(self) -> Fraction:
        """ln(1 + 1/effective), rounded up: what one draw costs, in nats, for units of one row."""
        return self.loss(2, "add_remove")

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Exact integer weights n D + A of secret counts, int64 (keys, levels): uint64, rows below 2**63.

        A count above what 62 bits hold is read as that limit, which keeps the guarantee: it moves
        by at most one when a record comes or goes.
        """
        levels = max(counts.shape[1], 1)
        empty = self._empty(levels)
        if self._priced(levels) is None:
            return np.tile(empty[: counts.shape[1]], (len(counts), 1))
        limit = (_ROOM - int(empty.sum())) // (self.scaled[1] * levels)
        kept = np.minimum(counts, limit).astype(np.uint64)
        whole: np.ndarray = kept * np.uint64(self.scaled[1]) + empty[: counts.shape[1]]
        return whole

    def _virtual(self, levels: int) -> tuple[int, ...]:
        """Virtual records of each level, in the unit of the weights; the least of them is `scaled`'s."""
        ones, least = self.scaled[0], min(self.ratios, default=1)
        return tuple(-(-ones * ratio // least) for ratio in self.ratios or (1,) * levels)

    def _empty(self, levels: int) -> np.ndarray:
        """Weights of a key without records; of every key, where draws cost nothing."""
        free = self._priced(levels) is None
        own = (self.ratios or (1,) * levels) if free else self._virtual(levels)
        return np.array(own, dtype=np.uint64)

    def loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of one draw from one key whose counts differ by one unit."""
        alpha = self._priced(levels)
        return Fraction(0) if alpha is None else eps0_from_alpha(alpha, max_rows)

    def reset_loss(self, levels: int, relation: Relation, max_rows: int = 1) -> Fraction:
        """Cost in nats of a whole table whose keys are each drawn from at most once."""
        alpha = self._priced(levels)
        return Fraction(0) if alpha is None else block_pure(alpha, [levels], relation, max_rows)

    def _priced(self, levels: int) -> Fraction | None:
        """The effective alpha, or None where a draw is uniform or has one outcome: it costs nothing."""
        effective = self.effective
        if effective is None or levels < 2 or sum(self._virtual(levels)) >= _ROOM // 2:
            return None
        return effective
