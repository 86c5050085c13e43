"""What paid discovery costs: its part of a budget, divided among purchases, and what is left of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gibbous.core.claim import Claim, Relation, zcdp
from gibbous.core.discovery import Discovery
from gibbous.core.plan import Spend
from gibbous.core.protocols import Mechanism
from gibbous.privacy.noise import Gaussian, Thresholded, gaussian_for, selecting_for

PROOF = "docs/proofs/discovery.md"
SHARES = {
    "kinds": Fraction(6, 100),
    "kinds again": Fraction(10, 100),
    "levels": Fraction(10, 100),
    "rare": Fraction(26, 100),
    "bounds": Fraction(28, 100),
    "more": Fraction(20, 100),
}
"""Of the rho of discovery before a method; the last three are divided when it is known who needs them."""
ALONE = {what: share / (1 - SHARES["more"]) for what, share in SHARES.items()} | {
    "more": Fraction(0)
}
LATER = ("rare", "bounds", "kinds again", "more")  # purchases that hang on earlier ones
GRIDS = 2  # tables a column of numbers, on which its bounds are found
LOOKS = 2  # at levels: delta is divided by so many
WORTH = 20  # of rho of discovery, for each share of its cells that a column lost


@dataclass(frozen=True, slots=True)
class Parts:
    """The budget of discovery, and the method on the rest.

    Attributes:
        rho: of everything that is bought before the method.
        tails: delta of texts that one unit alone has.
        known: what is public.
        relation: of the run.
        method: at what is left; None where nothing is.
        shares: of rho, for each purchase.
        unspent: of rho, what the method got in the end, where that is known.
    """

    rho: Fraction
    tails: Fraction
    known: Discovery
    relation: Relation
    method: Mechanism | None = None
    shares: Mapping[str, Fraction] = field(default_factory=lambda: ALONE)
    unspent: Fraction = Fraction(0)

    @property
    def columns(self) -> int:
        """How many columns are looked at."""
        return len(self.known.names) - (self.known.unit.column is not None)

    def noise(self, what: str, columns: int) -> Gaussian:
        """Noise for one table a column."""
        return gaussian_for(self._rho(what), columns, self.relation, self.known.unit.max_rows)

    def selecting(self, columns: int, share: Fraction | None = None) -> Thresholded:
        """Noise for texts, and the threshold above which they are kept.

        Args:
            columns: that are asked in this look.
            share: of rho, for one of them in the second look; None: for all of them in the first.
        """
        most, tails = self.known.unit.max_rows, self.tails / LOOKS
        if share is None:
            return selecting_for(self._rho("levels"), tails, columns, self.relation, most)
        return selecting_for(self.rho * share, tails / columns, 1, self.relation, most)

    def saved(self, what: str) -> Parts:
        """What is not bought goes to the second look and to bounds, as they share the rest."""
        two = ("rare", "bounds")
        more = 1 + self.shares[what] / sum(self.shares[one] for one in two)
        changed = {one: self.shares[one] * more for one in two} | {what: Fraction(0)}
        return replace(self, shares={**self.shares, **changed})

    def divided(self, weights: Sequence[float], numbers: int) -> tuple[Parts, list[Fraction]]:
        """What is left after the first look at levels, divided by what is needed then.

        Bounds keep their share a column. Of the second look no column gets less than the plan says, and
        what is more than that goes by weights, before a method no more than each is worth; without a column
        to look at again, bounds get all.

        Args:
            weights: of the columns to be looked at again, > 0: the share of rows that each lost.
            numbers: columns that need bounds, at most.
        Returns:
            The budget with the share of bounds; of rho, the share of each column that is looked at again.
        """
        left = self.shares["rare"] + self.shares["bounds"] + self.shares["more"] * bool(weights)
        own = self.shares["bounds"] * Fraction(numbers, self.columns) if weights else left
        least, found = self.shares["rare"] / self.columns, [Fraction(weight) for weight in weights]
        more = left - own - len(found) * least
        shares = [least + more * weight / sum(found) for weight in found]
        if self.method is not None:
            pairs = zip(shares, found, strict=True)
            shares = [
                max(least, min(share, WORTH * weight / self.columns)) for share, weight in pairs
            ]
        return replace(self, shares={**self.shares, "bounds": own, "rare": left - own}), shares

    def left(self, spent: Iterable[Claim]) -> Fraction:
        """Of rho, what all purchases of discovery left, in thousandths, rounded down.

        No more than the shares that follow from outcomes: of kinds and usual levels nothing is left.
        """
        rest = self.rho - sum((claim.rho for claim in spent), Fraction(0))
        most = sum(self.shares[what] for what in LATER)
        return Fraction(math.floor(1000 * min(rest / self.rho, most)), 1000)

    def misses(self) -> tuple[tuple[str, float], ...]:
        """What is not found, where all columns are asked for their texts."""
        least = self.selecting(self.columns, self.shares["rare"] / self.columns).threshold
        return (("levels held by fewer rows than about this are missed", float(least)),)

    def spends(self) -> tuple[Spend, ...]:
        """The purchases, at the noise that they have where they are made of all columns."""
        words = (
            (("kinds",), "kinds, missing cells and decimals of", Fraction(0)),
            (("levels",), "usual levels of", self.tails / LOOKS),
            (LATER, "rarer levels, bounds and kinds again of", self.tails / LOOKS),
        )
        found = []
        for parts, text, tails in words:
            rho = sum((self._rho(what) for what in parts), Fraction(0))
            rho -= self.rho * self.unspent * (parts is LATER)
            claim = replace(zcdp(rho, relation=self.relation, source=PROOF), delta=tails)
            tables = {what: GRIDS if what == "bounds" else 1 for what in parts if what != "more"}
            noises = (self.noise(what, n * self.columns) for what, n in tables.items())
            sigma = max(noise.info().scale for noise in noises)
            detail = f"gaussian noise, sigma {sigma:.6g} counts or less"
            if tails:
                share = self.shares["rare"] / self.columns if parts is LATER else None
                least = self.selecting(self.columns, share).threshold
                detail += f", levels kept above {least} or less"
            if parts is LATER and self.method is not None and not self.unspent:
                detail += "; what is not needed goes to the method"
            found.append(Spend(f"{text} {self.columns} columns", claim, detail))
        return tuple(found)

    def _rho(self, what: str) -> Fraction:
        return self.rho * self.shares[what]
