"""Purse: a claim that was reserved in, and whether each purchase is covered out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from threading import RLock

from gibbous.core.claim import NUMBERS, Claim
from gibbous.core.errors import PrivacyRefused
from gibbous.privacy import accountant


class Purse:
    """A reserved budget and what was paid out of it; divided, each part pays beside the others.

    Parts may pay at the same time, from several threads.
    """

    __slots__ = ("_lock", "_paid", "_parent", "_parts", "budget")

    def __init__(self, budget: Claim, parent: Purse | None = None) -> None:
        self.budget, self._parent = budget, parent
        self._lock: RLock = parent._lock if parent else RLock()
        self._paid: Counter[Claim] = Counter()
        self._parts: list[tuple[Purse, ...]] = []

    def spend(self, price: Claim) -> None:
        """Note a purchase.

        Raises:
            PrivacyRefused: it is not covered, or has a negative price.
        """
        if min(getattr(price, name) for name in NUMBERS) < 0:
            raise PrivacyRefused(
                "REFUND",
                "A purchase has a negative price.",
                "Nothing that was spent comes back.",
                "This is a fault of the noise or of the draw that priced it.",
                state="The reserved budget stays spent; nothing was released.",
            )
        if not self.pay(price):
            raise PrivacyRefused(
                "OVERSPEND",
                f"The method asked for more than it planned: {price.words()} on top of "
                f"{max(map(Counter.total, self._through()))} earlier purchases.",
                f"This run reserved {self.budget.words()}.",
                "This is a fault of the method: its plan and its run disagree.",
                state="The reserved budget stays spent; nothing was released.",
            )

    def pay(self, price: Claim) -> bool:
        """Note a purchase, unless it is not covered on some path through this purse."""
        with self._lock:
            self._paid[price] += 1
            covered = False
            try:
                covered = all(accountant.within(self.budget, path) for path in self._through())
            finally:
                if not covered:
                    self._paid[price] -= 1
            return covered

    def divided(self, parts: int) -> tuple[Purse, ...]:
        """Purses of the parts of one division of the records."""
        found = tuple(Purse(self.budget, self) for _ in range(parts))
        with self._lock:
            self._parts.append(found)
        return found

    def longest(self) -> Counter[Claim]:
        """Of what one record can have paid for, the path with the most purchases."""
        return max(self.paths(), key=Counter.total)

    def paths(self) -> Iterator[Counter[Claim]]:
        """What one record can have paid for, and how often: own purchases, and of each division one part's.

        Of parts that paid the same only one is followed.
        """
        yield from _with_one_of_each(self._paid, self._parts)

    def _through(self) -> list[Counter[Claim]]:
        """The paths through this purse: of no other can a purchase out of it change the sum."""
        with self._lock:
            found, below = list(self.paths()), self
            while (above := below._parent) is not None:
                others = [group for group in above._parts if below not in group]
                beside = list(_with_one_of_each(above._paid, others))
                found = [own + rest for own, rest in itertools.product(found, beside)]
                below = above
            return found


def _with_one_of_each(
    paid: Counter[Claim], divisions: Iterable[tuple[Purse, ...]]
) -> Iterator[Counter[Claim]]:
    choices = [
        {frozenset(path.items()) for part in group for path in part.paths()} for group in divisions
    ]
    for chosen in itertools.product(*choices):
        yield sum((Counter(dict(path)) for path in chosen), +paid)
