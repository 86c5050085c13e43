"""Purse: a claim that was reserved in, and whether each purchase is covered out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from gibbous.core.claim import Claim
from gibbous.privacy import accountant


class Purse:
    """A reserved budget and what was paid out of it; divided, each part pays beside the others."""

    __slots__ = ("_paid", "_parent", "_parts", "budget")

    def __init__(self, budget: Claim, parent: Purse | None = None) -> None:
        self.budget, self._parent = budget, parent
        self._paid: Counter[Claim] = Counter()
        self._parts: list[list[Purse]] = []

    def pay(self, price: Claim) -> bool:
        """Note a purchase, unless it is not covered on some path through the parts."""
        top = self
        while top._parent is not None:
            top = top._parent
        self._paid[price] += 1
        covered = False
        try:
            covered = all(accountant.within(self.budget, path) for path in top.paths())
        finally:
            if not covered:
                self._paid[price] -= 1
        return covered

    def divided(self, parts: int) -> tuple[Purse, ...]:
        """Purses of the parts of one division of the records."""
        found = [Purse(self.budget, self) for _ in range(parts)]
        self._parts.append(found)
        return tuple(found)

    def paths(self) -> Iterator[Counter[Claim]]:
        """What one record can have paid for, and how often: own purchases, and of each division one part's.

        Of parts that paid the same only one is followed.
        """
        choices = [
            {frozenset(path.items()) for part in group for path in part.paths()}
            for group in self._parts
        ]
        for chosen in itertools.product(*choices):
            yield sum((Counter(dict(path)) for path in chosen), +self._paid)
