"""The Dirichlet posterior of a cross table as an urn of whole balls: exact weights and their price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.dirichlet import dirichlet_loss, prior_loss

MOST_DRAWS = 1 << 31
"""Values of one urn, beside dips.MOST_RECORDS records."""

_FINEST = 28  # alpha is a multiple of 2**-28 at least
_ROOM = 1 << 61  # balls of the prior at most; those of records and draws together fit beside them


@dataclass(frozen=True, slots=True)
class Posterior:
    """Virtual records, the same number in each of C cells, beside the records of a table.

    A record is `unit` balls and the prior of a cell `ones` of them, so that every probability is a
    ratio of whole numbers. Polya's urn puts a ball of each drawn value back: its values then have
    the law of draws from Dirichlet(n + alpha) probabilities, with no probability ever computed.

    Guarantee:
        m values of one urn are k ln(1 + m / effective)-DP for units of up to k rows; without returned
        balls m ln(1 + k / effective)-DP. Both relations.
        Proven: docs/proofs/dirichlet.md, docs/proofs/dp_prior.md.
    Source:
        [bowen2016, s3.1.2]; Blackwell and MacQueen (1973).

    Attributes:
        alpha: virtual records a cell; > 0.
        cells: C, of the public cross table.
    """

    alpha: Fraction
    cells: int

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Fraction) or self.alpha <= 0 or self.cells < 1:
            raise ParameterError(
                "ALPHA",
                f"alpha of Posterior is {self.alpha!r}, over {self.cells} cells.",
                "alpha is a fraction > 0, over one cell at least; alpha = 0 copies records.",
                "Take alpha from the budget, for example with dirichlet_alpha(1, draws=100).",
            )

    @property
    def balls(self) -> tuple[int, int]:
        """(prior balls of one cell, balls of one record); (1, 0) when the prior drowns all records."""
        for shift in range(_FINEST, -1, -1):
            ones = math.ceil(self.alpha * (1 << shift))
            if ones * self.cells <= _ROOM:
                return ones, 1 << shift
        return 1, 0

    @property
    def effective(self) -> Fraction | None:
        """The alpha that is used, at least `alpha`; None when values are uniform."""
        ones, unit = self.balls
        return Fraction(ones, unit) if unit else None

    def urn_loss(self, draws: int, max_rows: int = 1) -> Fraction:
        """Cost in nats of `draws` values of one urn."""
        alpha = self._priced(draws)
        return Fraction(0) if alpha is None else dirichlet_loss(alpha, draws, max_rows)

    def fixed_loss(self, draws: int, max_rows: int = 1) -> Fraction:
        """Cost in nats of `draws` values drawn with the posterior mean, no ball put back."""
        alpha = self._priced(draws)
        return Fraction(0) if alpha is None else prior_loss(alpha, draws, max_rows)

    def _priced(self, draws: int) -> Fraction | None:
        """The effective alpha, or None where nothing about records can show."""
        return None if draws == 0 or self.cells < 2 else self.effective
