"""Several sets, each from tables with noise of its own: the budget is divided over the sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.exact import down, exact
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
from gibbous.core.params import as_json, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Mechanism
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.mechanisms import _inner, registry
from gibbous.mechanisms._budget import in_account
from gibbous.mechanisms._inner import OWN, Options, Own
from gibbous.mechanisms.limits import budget

PROOF = "docs/proofs/per_set.md"
MOST_SETS = 200
DIGITS = 15  # of a share: such a decimal and its float are one and the same


@answering_class
@dataclass(frozen=True, slots=True)
class PerSet:
    """Run a method once for every set, each time with its share of the budget.

    A method whose noise is Gaussian throughout (its purchases are all priced in rho or mu) gives each set
    rho / m, or mu^2 / m: an average over the sets is then as exact as with one noise for all. Any
    other method gives each set epsilon / m and delta / m, and an average has m times the noise variance.

    Guarantee:
        That of the method inside, at the budget given here, for all sets together; any number of rows
        is free. No paper claims this combinator: bowen2016 sanitizes for every set with epsilon / m.
        Proven here: composition, docs/proofs/per_set.md. Audited: contract, with the saboteurs of the
        method inside; tests/sets with a budget that is not divided.
    Source:
        [bowen2016, s3.2] (split over sets); Bun and Steinke (2016) for rho / m.
    """

    about: ClassVar[About] = _inner.Card(  # type: ignore[assignment]
        About(
            name="per_set",
            title="with noise for every set",
            paper="bowen2016, s3.2 (budget split over sets)",
            unit="artifact",
            kind="approximate",
            releases="tables",
            claimed="epsilon for m sets, each sanitized with epsilon / m",
            proven="the guarantee of the method inside for all sets together; rho / m, or mu^2 / m, where "
            "it is Gaussian",
            audited="noisy cells of the running code; half the noise and undivided budgets are caught",
        )
    )

    method: str | Mechanism = param(
        "noisy_pegs", help="The method inside: a registered name, or a mechanism."
    )
    epsilon: float | Own | None = param(
        OWN,
        budget,
        unit="nats",
        help="The whole budget of all sets; own: that of the method inside.",
    )
    delta: float | Own | None = param(
        OWN, probability, help="Of all sets together; own: that of the method inside."
    )
    relation: Relation = param(
        OWN, help="Which tables count as neighbors; own: that of the method inside."
    )
    options: Options = param((), help="Further parameters of the method inside, by name.")

    def __post_init__(self) -> None:
        _inner.settle(self)
        _inner.refuse(self)
        check(self)
        if registry.load(str(self.method)).about.releases != "tables":
            raise _paid(str(self.method))

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: the total of the method inside at the whole budget.

        Raises:
            ResourceLimit: more than 200 sets.
        """
        if sets == 1:
            whole = _inner.made(self).plan(schema, rows, 1)
            return replace(whole, mechanism=self.about.name, params=as_json(self))
        # Of Gaussian noise, an average over sets is as exact as with one noise for all.
        with in_account("gaussian"):
            return self._planned(schema, rows, sets)

    def _planned(self, schema: Schema, rows: int | None, sets: int) -> Plan:
        whole = _inner.made(self).plan(schema, rows, 1)
        split, part = self._split(schema, sets)
        plans = [one.plan(schema, rows, 1) for one in split]
        first, claim, total = plans[0], whole.claim, whole.total
        paid = [[plan.spends[i].claim for plan in plans] for i in range(len(first.spends))]
        warnings = first.warnings
        if part is None:
            warnings += (_loud(sets),)
        else:
            paid = [[part.counted(one) for one in claims] for claims in paid]
            claim, total = part.total(claim), part.total(total)
        return replace(
            first,
            mechanism=self.about.name,
            params=as_json(self),
            sets=sets,
            claim=claim,
            total=total,
            published=whole.published,
            spends=tuple(
                Spend(f"{spend.what}, for each of {sets} sets", _inner.summed(claims), spend.detail)
                for spend, claims in zip(first.spends, paid, strict=True)
            ),
            cells=first.cells * sets,
            memory_bytes=first.memory_bytes * sets,
            warnings=warnings,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: the method inside, once for every set."""
        found: list[Tables] = []
        shared = sets > 1 and curator.known_counts
        own = curator.recoded({}, known=None) if shared else curator
        with in_account("gaussian"):
            split = self._split(curator.schema, sets)[0]
        for number, one in enumerate(split):
            curator.report("sets", number, sets)
            tables = one.run(own, rows, 1)
            assert isinstance(tables, Tables)
            found.append(tables)
        _inner.one_schema(found, curator.schema, "set")
        return replace(found[0], copies=tuple(found[1:]))

    def _split(self, schema: Schema, sets: int) -> tuple[list[Mechanism], _inner.Share | None]:
        """The method inside, once for every set, each with its share of the budget."""
        if sets > MOST_SETS:
            raise ResourceLimit(
                "SETS",
                f"{sets} sets with noise of their own were asked for.",
                f"per_set takes at most {MOST_SETS}: every set has tables of its own.",
                "Ask for fewer, or for sets that share one noise (the method without per_set).",
            )
        if sets == 1:
            return [_inner.made(self)], None
        assert self.epsilon is not None
        known = _inner.made(self).plan(schema, None, 1)
        if _inner.gaussian(known):
            part = _inner.share_of(self, Fraction(1, sets), lambda one: one.plan(schema, None, 1))
            return [_inner.made(self, epsilon=part.epsilon)] * sets, part
        epsilons = divided(exact(self.epsilon), sets)
        # A delta that the method does not use stays whole: a share of it would look like one given.
        none = self.delta is None or not known.total.delta
        deltas = [None] * sets if none else divided(exact(self.delta or 0), sets)
        return [_inner.made(self, *pair) for pair in zip(epsilons, deltas, strict=True)], None


def divided(whole: Fraction, sets: int) -> list[float]:
    """Shares whose exact sum is `whole`, or less by a part in 1e15; the last one has the rest.

    Args:
        whole: a budget, > 0.
    """
    each = down(whole / sets, DIGITS)
    rest = whole - each * (sets - 1)
    last = float(rest)
    if exact(last) > rest:
        last = float(down(rest, DIGITS))
    return [float(each)] * (sets - 1) + [last]


def _loud(sets: int) -> str:
    return (
        f"Each of {sets} sets has 1/{sets} of epsilon: the noise variance of an average over the sets is "
        f"about {sets} times that of one noise for all sets. Leave per_set out, or use a method with "
        "Gaussian noise, with which the split is free."
    )


def _paid(name: str) -> ParameterError:
    return ParameterError(
        "PARAM",
        f"method of PerSet is {name!r}.",
        "It must be a method that releases tables: one that releases rows draws them anew for every set "
        "as it is.",
        f"Use {name} without per_set, or for example method='noisy_pegs'.",
    )


__all__ = ["PerSet", "divided"]
