"""The budget of a plan: what its purchases divide, and the measure in which they add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from gibbous.core.claim import Claim, Measure, Relation, gdp, pure, zcdp
from gibbous.core.exact import down, exact, root_down
from gibbous.core.moment import Moment
from gibbous.core.plan import Spend
from gibbous.core.protocols import MomentNoise, Noise
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.privacy.calibrate.gdp import choice_price, mu_squared_for, square_of_choice
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.noise import (
    gaussian_for,
    geometric_for,
    moment_gaussian_for,
    moment_geometric_for,
)

PI = Fraction(355, 113)  # rounded up; a public factor, no part of a price
CLAIMS: dict[Measure, Callable[..., Claim]] = {"pure": pure, "zcdp": zcdp, "gdp": gdp}


@dataclass(frozen=True, slots=True)
class Budget:
    """What the purchases of one plan divide, decided from public facts before there are any data.

    Attributes:
        measure: in which they add up.
        whole: epsilon, rho, or the square of mu.
        relation: of the claim.
        max_rows: most rows of one privacy unit.
        source: of the plan's own claim.
        dearer: what a choice takes of this whole, over what it takes of epsilon or rho.
    """

    measure: Measure
    whole: Fraction
    relation: Relation
    max_rows: int
    source: str
    dearer: Fraction = Fraction(1)

    def noise(self, share: Fraction, tables: int = 1) -> Noise:
        """Noise for tables that together cost a share of the whole."""
        shape = (share, tables, self.relation, self.max_rows)
        return (
            geometric_for(*shape)
            if self.measure == "pure"
            else gaussian_for(*shape, measure=self.measure)
        )

    def moment_noise(self, share: Fraction, moment: Moment) -> MomentNoise:
        """Noise for the sums of one moment that cost a share of the whole."""
        shape = (share, moment, self.relation, self.max_rows)
        return (
            moment_geometric_for(*shape)
            if self.measure == "pure"
            else moment_gaussian_for(*shape, measure=self.measure)
        )

    def spend(self, what: str, share: Fraction, detail: str) -> Spend:
        """A planned purchase with a share of the whole."""
        claim = CLAIMS[self.measure](share, relation=self.relation, source=self.source)
        return Spend(what, claim, detail)

    def cost(self, noise: Noise, tables: int) -> Fraction:
        """What so many tables with this noise take of the whole."""
        return noise.cost(tables, self.relation, self.max_rows).price

    def choices(self, share: Fraction) -> Fraction:
        """A share for choices, stated for epsilon or rho, in this measure: choices of the same epsilon."""
        return share * self.dearer

    def pick_epsilon(self, share: Fraction) -> Fraction:
        """The largest epsilon of one choice that costs at most a share of the whole."""
        if self.measure == "gdp":
            return _epsilon_of_choice(share)
        return share if self.measure == "pure" else root_down(8 * share)

    def pick_price(self, epsilon: Fraction) -> Fraction:
        """What one choice takes of the whole."""
        return choice_price(epsilon, self.measure).price


Account = Measure | Literal["gaussian"]
_ACCOUNT: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def in_account(measure: Account) -> Iterator[None]:
    """Within it, every plan takes one measure: for what is composed with purchases of that measure.

    "gaussian" is either one of Gaussian noise, or the one that was decided around it.
    """
    decided = _ACCOUNT.get() if measure == "gaussian" else None
    before = _ACCOUNT.set(decided or measure)
    try:
        yield
    finally:
        _ACCOUNT.reset(before)


def budget_of(
    mechanism: Any,
    schema: Schema,
    tables: int = 1,
    *,
    choice: Fraction = Fraction(0),
    measure: Measure | None = None,
    geometric: bool = False,
) -> Budget:
    """The budget of a mechanism; a plan takes the measure that buys less noise, a run its plan's.

    Args:
        tables: that are bought together with most of it.
        choice: share of epsilon or rho that pays for choices.
        measure: where it was decided; else by a public rule.
        geometric: whether geometric noise of the same epsilon, and no delta, is offered beside Gaussian.
    """
    epsilon = exact(mechanism.epsilon)
    rest: tuple[Relation, int, str] = (
        mechanism.relation,
        _plans.most_rows(schema),
        _plans.proof(mechanism),
    )
    pure, account = Budget("pure", epsilon, *rest), measure or _ACCOUNT.get()
    if _plans.is_pure(mechanism) or account == "pure":
        return pure
    decided = None if account == "gaussian" else account
    found = _cheaper(epsilon, exact(mechanism.delta), tables, choice, rest, decided)
    offered = (pure, found) if geometric and account is None else (found,)
    return min(offered, key=lambda one: one.noise(one.whole, tables).info().variance)


@lru_cache(maxsize=256)
def _cheaper(
    epsilon: Fraction,
    delta: Fraction,
    tables: int,
    choice: Fraction,
    rest: tuple[Relation, int, str],
    measure: Measure | None,
) -> Budget:
    rho, squares = rho_from_approx(epsilon, delta), mu_squared_for(epsilon, delta)
    # With choices of epsilon e, e^2/8 of rho becomes pi e^2/8 of mu^2, or a little less.
    both = Budget("zcdp", rho, *rest), Budget("gdp", squares, *rest, dearer=PI * rho / squares)
    if measure is not None:
        return next(budget for budget in both if budget.measure == measure)
    left = [(budget.whole * (1 - budget.choices(choice)), budget) for budget in both]
    offered = [(b.noise(share, tables).info().scale, b) for share, b in left if share > 0]
    return min(offered, key=lambda pair: pair[0])[1]


@lru_cache(maxsize=256)
def _epsilon_of_choice(square: Fraction) -> Fraction:
    """The largest epsilon of a choice that costs at most a square of mu, about."""
    half = math.sqrt(square) / 2
    odds = math.erfc(-half / math.sqrt(2)) / math.erfc(half / math.sqrt(2))
    # Of two points apart by mu the log ratio is ln(odds) on either side: a range of twice that.
    epsilon = down(2 * math.log(odds))
    while square_of_choice(epsilon) > square:
        epsilon = down(epsilon * (1 - Fraction(1, 10**11)))
    return epsilon
