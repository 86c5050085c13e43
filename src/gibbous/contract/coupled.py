"""Coupled audit: a run on one table, and its neighbor counted beside it with the same answers.

The second run is given what the first one drew: noise, choices, levels and words. It must then ask for
the same and release the same, and what its exact counts differ by is what each purchase shows. Nothing
here asks noise or a draw what it costs: losses come from exact counts and from what the samplers are told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gibbous.contract.cases import Neighbors, priced_pairs, secret
from gibbous.contract.losses import SLACK, Loss, loss_of, short_of
from gibbous.contract.repeated_answers import Answers
from gibbous.contract.runs import described
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Unit


@dataclass(frozen=True, slots=True)
class Coupled:
    """What was found in one coupled run.

    Attributes:
        leaks: what records changed without a purchase, in words.
        total: what is wrong with all purchases together, in words; else empty.
    """

    losses: tuple[Loss, ...]
    leaks: tuple[str, ...]
    total: str

    @property
    def ratio(self) -> float:
        """The largest share of a price that a purchase shows."""
        return max((loss.ratio for loss in self.losses), default=0.0)

    @property
    def uncovered(self) -> str:
        """What is priced too low, in words; else empty."""
        return next((loss.words for loss in self.losses if loss.ratio > SLACK), self.total)

    @property
    def words(self) -> str:
        """Everything that is wrong; else empty."""
        return "; ".join(filter(None, (self.uncovered, *self.leaks)))


def coupled(
    mechanism: Mechanism,
    one: Codes,
    two: Codes,
    rows: int | None = None,
    *,
    sets: int = 1,
    rare: bool = False,
) -> Coupled:
    """Run a mechanism on one table and beside it on the other, and hold what differs against what was paid.

    Args:
        one, two: neighbors under the mechanism's relation and the schema's unit. Records that both
            have stand at the same places: those that differ come last.
        rare: in place of random answers the least likely levels, at which the two laws differ most, and
            noise that is never 0.
    """
    plan = mechanism.plan(one.schema, rows, sets)
    pair = Answers(rare)
    outputs = [pair.run(mechanism, side, plan, rows, sets) for side in (one, two)]
    losses = tuple(loss_of(*both) for both in zip(*pair.sides, strict=False))
    if not pair.leaks and len(pair.sides[0]) != len(pair.sides[1]):
        pair.leaks.append("a purchase is made for one of two neighbors only")
    if not pair.leaks and described(outputs[0]) != described(outputs[1]):
        pair.leaks.append("the record that differs shows although all answers are the same")
    if not plan.total.is_dp:
        return Coupled((), (), "")
    losses = tuple(loss for loss in losses if not math.isnan(loss.ratio))
    return Coupled(losses, tuple(dict.fromkeys(pair.leaks)), short_of(plan.total, losses))


def uncovered(
    mechanism: Mechanism, relation: Relation, rows: int | None = None, *, sets: int = 1
) -> str:
    """The pair of constructed neighbors that a release does not cover, in words; else empty."""
    for pair in priced_pairs(relation):
        try:
            mechanism.plan(pair.schema, rows, sets)
        except PrivacyRefused:
            if pair.schema.unit == Unit():
                raise
            continue  # a method may refuse persons with several rows
        one, two = (secret(pair.schema, values) for values in (pair.one, pair.two))
        told = coupled(mechanism, one, two, rows, sets=sets).uncovered
        if told:
            return f"{pair.name}: {told}"
    return ""


def differing(mechanism: Mechanism, pair: Neighbors, rows: int | None = None) -> str:
    """What tells two neighbors, or one table and its rows in another order, apart in coupled runs.

    Returns:
        What records change without a purchase, in words; else empty.
    """
    told = []
    for name, table in (("the record that differs", pair.two), ("the order", pair.one[::-1])):
        one, two = (secret(pair.schema, values) for values in (pair.one, table))
        told += [f"{name} ({leak})" for leak in coupled(mechanism, one, two, rows, rare=True).leaks]
    return " and ".join(told)
