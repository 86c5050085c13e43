"""A histogram mixed with the uniform law, for a public number of records: exact weights and price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.dirichlet import WHOLE, smoothed_loss


@dataclass(frozen=True, slots=True)
class Smoothed:
    """f = (1 - lambda) f^ + lambda / B, where f^ counts each record as one of max(n, records).

    A table with fewer than `records` records is filled up with uniform ones, so that the promise
    does not rest on how many there are.

    Guarantee:
        m values cost m k ln(1 + (1 - lambda) B / (records lambda)) for units of up to k rows, under
        both relations. Proven: docs/proofs/smoothed_histogram.md.
    Source:
        [bowen2016, eq. 5 and 6]; [Wasserman, Zhou 2010].

    Attributes:
        share: lambda, 0 < lambda <= 1.
        bins: B, cells of the public histogram.
        records: the public number of records that the mixture is made for; >= 1.
    """

    share: Fraction
    bins: int
    records: int

    def __post_init__(self) -> None:
        known = isinstance(self.share, Fraction) and 0 < self.share <= 1
        if not known or self.bins < 1 or self.records < 1:
            raise ParameterError(
                "SHARE",
                f"Smoothed was given share={self.share!r}, bins={self.bins}, "
                f"records={self.records}.",
                "The share is a fraction in (0, 1]; bins and records are at least 1.",
                "Take the share from the budget, for example with smoothed_share(1, 30, 100, 100).",
            )

    @property
    def parts(self) -> int:
        """lambda in units of 2**-62, rounded up."""
        return math.ceil(self.share * WHOLE)

    @property
    def effective(self) -> Fraction:
        """The lambda that is used, at least `share`."""
        return Fraction(self.parts, WHOLE)

    def loss(self, draws: int, max_rows: int = 1) -> Fraction:
        """Cost in nats of `draws` values."""
        if draws == 0 or self.bins < 2 or self.parts == WHOLE:
            return Fraction(0)
        return smoothed_loss(self.effective, self.bins, self.records, draws, max_rows)
