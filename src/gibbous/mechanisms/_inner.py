"""The method inside a combinator: named with its options, so that it survives JSON; built when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from gibbous.core.claim import Claim, Measure
from gibbous.core.codes import Codes
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.exact import down
from gibbous.core.keywords import Assumed
from gibbous.core.method_card import About
from gibbous.core.params import as_json, build, describe
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.mechanisms import registry
from gibbous.privacy.accountant import as_zcdp
from gibbous.privacy.calibrate.gdp import epsilon_of, mu_squared_for
from gibbous.privacy.calibrate.zcdp import epsilon_from_zcdp, rho_from_approx

Options = tuple[tuple[str, object], ...]
Own = Literal["own"]
OWN: Own = "own"
"""Stands for the budget and the relation of the method inside."""
BUDGET = ("epsilon", "delta", "relation")
COMBINATORS = ("per_set", "parallel", "paid_bins")


def settle(combinator: Any) -> None:
    """Bring `method`, `options` and the budget of a combinator into their frozen form.

    A mechanism given as `method` becomes its registered name and its parameters. What is left "own" of
    epsilon, delta and relation becomes the method's own; None where it has none.

    Raises:
        ParameterError: options have another form, or name a part of the budget.
        UsageError: there is no such method, or it has no such option.
    """
    given = combinator.method
    options = _pairs(combinator)
    if not isinstance(given, str):
        own = _parameters(given)
        options = {**{k: v for k, v in own.items() if k not in BUDGET}, **options}
        budget = {k: own.get(k) for k in BUDGET}
        object.__setattr__(combinator, "method", given.about.name)
    elif given in COMBINATORS:  # its own budget is that of the method inside of it
        inner = build(registry.load(given), options)
        budget = {name: getattr(inner, name) for name in BUDGET}
    else:
        budget = {}
    known = {p.name: p.default for p in describe(registry.load(combinator.method))}
    for name in BUDGET:
        value = getattr(combinator, name)
        if value == OWN:
            assumed = known.get(name)
            if name == "epsilon" and type(assumed) is float:
                assumed = Assumed(assumed)
            value = budget.get(name, assumed)
        elif value is None and budget.get(name, known.get(name)) is not None:
            raise _unstated(combinator, name)
        if name != "relation" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if name not in known and name == "relation" and value in (None, "add_remove"):
            value = "add_remove"
        elif name not in known and value is not None:
            raise _no_budget(combinator, name)
        object.__setattr__(combinator, name, value)
    kept = {k: v for k, v in options.items() if k not in known or v != known[k]}
    object.__setattr__(combinator, "options", tuple(sorted(kept.items())))
    written = as_json(made(combinator))  # the method checks them, and has one form of each
    object.__setattr__(combinator, "options", tuple((k, _frozen(written[k])) for k in sorted(kept)))


def made(combinator: Any, epsilon: float | None = None, delta: float | None = None) -> Mechanism:
    """The method inside, with its options and a budget.

    Args:
        epsilon, delta: in place of the combinator's own.
    """
    kind = registry.load(combinator.method)
    known = {p.name for p in describe(kind)}
    budget = {
        "epsilon": combinator.epsilon if epsilon is None else epsilon,
        "delta": combinator.delta if delta is None else delta,
        "relation": combinator.relation,
    }
    inside = {k: v for k, v in budget.items() if k in known and v is not None}
    built: Mechanism = build(kind, {**dict(combinator.options), **inside})
    return built


def refuse(combinator: Any, allowed: tuple[str, ...] = ()) -> None:
    """Refuse what cannot be combined: a combinator inside another, and bins that each run would buy anew.

    Args:
        allowed: combinators that may be inside.
    """
    name = combinator.method
    if dict(combinator.options).get("scale") == "paid":
        raise _own_bins("set or part")
    if name in COMBINATORS and name not in allowed:
        raise UsageError(
            "NESTED",
            f"{type(combinator).__name__} was asked for around {name}.",
            "A combinator takes a method that is none itself; parallel takes per_set, paid_bins both.",
            "For example Parallel(PerSet(method)), or PaidBins(PerSet(method)): bins are bought once.",
        )


class Card:
    """`about` of a combinator: of the class its own card, of an instance one that fits its method.

    Args:
        own: the card of the class.
        inside: whether rows that a method pays for stay what an instance releases.
    """

    def __init__(self, own: About) -> None:
        self.own = own

    def __get__(self, instance: Any, owner: type) -> About:
        """The card."""
        if instance is None:
            return self.own
        card = made(instance).about
        unit = self.own.unit if card.releases == "tables" else "dataset"
        return replace(
            self.own,
            title=f"{card.title} ({card.name}), {self.own.title}",
            paper=f"{card.paper}; {self.own.paper}",
            kind=card.kind,
            releases=card.releases,
            unit=unit,
            limit=card.limit,
            audited=self.own.audited if card.releases == "tables" else f"inside: {card.audited}",
        )


def one_schema(found: list[Tables] | list[Codes], schema: Schema, what: str) -> Schema:
    """The schema that all results have in common.

    Raises:
        PrivacyRefused: a method that pays for bins found other ones each time.
    """
    if any(one.schema != found[0].schema for one in found):
        error = _own_bins(what)
        error.state = "What was reserved stays spent; nothing was released."
        raise error
    return found[0].schema if found else schema


def gaussian(plan: Plan) -> bool:
    """Whether all purchases of a plan are in rho, or all in mu, and fit into its total as such."""
    kinds = {spend.claim.kind for spend in plan.spends}
    if kinds not in ({"zcdp"}, {"gdp"}) or plan.total.kind != "approximate":
        return False
    paid = sum((spend.claim.price for spend in plan.spends), Fraction(0))
    return paid <= plan.total.mu_squared or paid <= rho_from_approx(
        plan.total.epsilon, plan.total.delta
    )


@dataclass(frozen=True, slots=True)
class Share:
    """What one run of the method inside takes of a Gaussian budget.

    Attributes:
        epsilon: that the method inside is given.
        measure: in which everything is added up: in mu where that run is priced in it.
        taken, whole: of that measure.
    """

    epsilon: float
    measure: Measure
    taken: Fraction
    whole: Fraction

    def counted(self, claim: Claim) -> Claim:
        """A purchase as it is added up: in rho, if only the run for itself is cheaper in mu."""
        return claim if self.measure == "gdp" else as_zcdp(claim)

    def total(self, claim: Claim) -> Claim:
        """The total of everything; it says nothing of mu where it is added up in rho."""
        return replace(claim, mu_squared=self.whole if self.measure == "gdp" else Fraction(0))


def share_of(combinator: Any, share: Fraction, planned: Callable[[Mechanism], Plan]) -> Share:
    """A share of the budget for a run of the method inside; a public rule.

    Args:
        share: in (0, 1).
        planned: the plan of the method inside, at any budget.
    Raises:
        PrivacyRefused: it is too small for noise to be made.
    """

    def in_mu(part: Share) -> bool:
        return planned(made(combinator, part.epsilon)).total.measure == "gdp"

    whole = planned(made(combinator)).total
    epsilon, delta = whole.epsilon, whole.delta
    if in_mu(part := one_share(epsilon, delta, share, "gdp")):
        return part
    if not in_mu(part := one_share(epsilon, delta, share, "zcdp")):
        return part
    squares = 2 * part.whole * share / mu_squared_for(epsilon, delta)  # mu^2 / 2 is its rho
    small = one_share(epsilon, delta, squares, "gdp")
    return Share(small.epsilon, "zcdp", small.taken / 2, part.whole)


@lru_cache(maxsize=64)
def one_share(epsilon: Fraction, delta: Fraction, share: Fraction, measure: Measure) -> Share:
    """A share of (epsilon, delta) in one measure."""
    number = mu_squared_for if measure == "gdp" else rho_from_approx
    back = epsilon_of if measure == "gdp" else epsilon_from_zcdp
    whole = number(epsilon, delta)
    found = down(back(whole * share, delta), 12)
    for _ in range(60):
        if found > 0 and (taken := number(found, delta)) <= whole * share:
            return Share(float(found), measure, taken, whole)
        found = down(found * (1 - Fraction(1, 10**11)), 12)
    raise PrivacyRefused(
        "SHARE",
        f"epsilon = {float(epsilon):g} cannot be divided, a part of {float(share):.3g}.",
        "Each part needs a share of the budget that noise can be made for.",
        "Ask for fewer parts, or for a larger budget.",
    )


def summed(claims: list[Claim]) -> Claim:
    """Purchases of one kind on the same records, added up exactly."""
    total = claims[0]
    for claim in claims[1:]:
        total = total.then(claim)
    return total


def _pairs(combinator: Any) -> dict[str, object]:
    given = combinator.options
    try:
        pairs = dict(given.items() if isinstance(given, Mapping) else given)
        if any(not isinstance(name, str) for name in pairs):
            raise TypeError
    except (TypeError, ValueError):
        raise ParameterError(
            "PARAM",
            f"options of {type(combinator).__name__} has the wrong form.",
            "It names parameters of the method inside, with their values.",
            "For example options={'parents': 2}, on the command line --set 'options={parents = 2}'.",
        ) from None
    stray = [name for name in BUDGET if name in pairs]
    if stray:
        raise _in_options(combinator, stray[0])
    return {name: _frozen(value) for name, value in pairs.items()}


def _parameters(given: Any) -> dict[str, object]:
    about = getattr(given, "about", None)
    if isinstance(given, type) or not isinstance(about, About):
        raise ParameterError(
            "PARAM",
            f"method is a {type(given).__name__}.",
            "It is a registered name, or a mechanism.",
            "For example method='noisy_pegs', or method=NoisyPegs(parents=2).",
        )
    if about.name not in registry.names() or type(given) is not registry.load(about.name):
        raise UsageError(
            "UNREGISTERED",
            f"The method {about.name!r} is not registered.",
            "A combinator keeps its method by name, so that a receipt can name it.",
            "Register it under the entry points gibbous.mechanisms.",
        )
    return {name: _frozen(value) for name, value in as_json(given).items()}


def _frozen(value: object) -> object:
    if isinstance(value, Mapping):
        return tuple(
            (_frozen(k) if isinstance(k, tuple) else str(k), _frozen(v)) for k, v in value.items()
        )
    if isinstance(value, Decimal):  # of a configuration file
        return float(value)
    return tuple(_frozen(v) for v in value) if isinstance(value, list | tuple) else value


def _in_options(combinator: Any, name: str) -> ParameterError:
    return ParameterError(
        "PARAM",
        f"options of {type(combinator).__name__} names {name}.",
        f"{', '.join(BUDGET)} are parameters of {type(combinator).__name__} itself, which passes them on.",
        f"Give {name}= beside options=, on the command line --{name}.",
    )


def _unstated(combinator: Any, name: str) -> ParameterError:
    return ParameterError(
        "PARAM",
        f"{name} of {type(combinator).__name__} is None.",
        f"It is what the method inside takes, or {OWN!r} for its own.",
        f"A budget is stated, never assumed. For example {name}={OWN!r}.",
    )


def _own_bins(what: str) -> PrivacyRefused:
    return PrivacyRefused(
        "SCHEMAS",
        f"The method inside pays for bins, and would have other ones for each {what}.",
        "All rows of a release are under one schema.",
        "Use public bins, or the method without this combinator.",
    )


def _no_budget(combinator: Any, name: str) -> PrivacyRefused:
    return PrivacyRefused(
        "NOBUDGET",
        f"{name} was given for {type(combinator).__name__} around {combinator.method}.",
        f"{combinator.method} has no {name}.",
        f"Leave {name} out, or choose another method.",
    )
