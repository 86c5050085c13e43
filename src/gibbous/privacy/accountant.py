"""Adding up claims: purchases and a budget in, a yes or no out; exact, and rounded against us."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter

from gibbous.core.claim import KINDS, Claim, Kind, approximate, gdp, zcdp
from gibbous.core.errors import PrivacyRefused
from gibbous.core.exact import Number
from gibbous.privacy.calibrate.gdp import delta_of, epsilon_of, rate_at, square_of_choice
from gibbous.privacy.calibrate.rounding import geometric_sum, probability
from gibbous.privacy.calibrate.zcdp import delta_from_zcdp, epsilon_from_zcdp, pure_to_zcdp

_epsilon, _delta = attrgetter("epsilon"), attrgetter("delta")
_COVERS: dict[Kind, frozenset[Kind]] = {
    "pure": frozenset({"pure"}),
    "zcdp": frozenset({"pure", "zcdp", "gdp"}),
    "gdp": frozenset({"pure", "gdp"}),
    "approximate": frozenset({"pure", "zcdp", "gdp", "approximate"}),
    "probabilistic": frozenset({"pure", "probabilistic"}),
    "l_diversity": frozenset({"l_diversity"}),
    "none": frozenset(KINDS),
}
"""Which kinds of purchase a budget of each kind can cover by proven conversions."""


def within(budget: Claim, spends: Iterable[Claim] | Counter[Claim]) -> bool:
    """Whether all purchases together are covered by a budget (adaptive sequential composition).

    pure and probabilistic: sums. zCDP: sums, a pure purchase counting epsilon tanh(epsilon / 2) and one
    of Gaussian DP mu^2 / 2. Gaussian DP: sums of mu^2; nothing in rho can be counted. An approximate
    budget that is kept by Gaussian DP (`Claim.mu_squared`) is counted in that account alone, whatever
    another one would allow: the plan chose it before there were any data. approximate: covered if any
    one of these is: epsilons and deltas added, with the zCDP part converted at what is left of epsilon;
    or everything as zCDP, converted at epsilon, with the deltas added. l-diversity: the
    least. A budget of kind none covers anything.

    Args:
        budget: what was reserved.
        spends: purchases on the same records, in any order; or how many there were of each.
    Raises:
        PrivacyRefused: a purchase is under another neighbor relation than the budget, or of a kind
            that has no proven conversion into the budget's.
    """
    times = Counter(spends)
    for spend in times:
        _check_pair(budget, spend)
    if budget.kind == "l_diversity":
        return all(spend.l >= budget.l for spend in times)
    if budget.kind == "zcdp":
        return _total(times, _rho) <= budget.rho and _total(times, _delta) <= budget.delta
    if budget.kind == "gdp" or budget.mu_squared:
        return _within_gdp(budget, times)
    if budget.kind == "approximate":
        return _within_approximate(budget, times)
    if budget.kind == "none":
        return True
    return _total(times, _epsilon) <= budget.epsilon and _total(times, _delta) <= budget.delta


def as_zcdp(claim: Claim) -> Claim:
    """A claim as zCDP, rounded up: epsilon tanh(epsilon / 2) of a pure one, mu^2 / 2 of mu-Gaussian DP.

    Raises:
        PrivacyRefused: the claim is none of these, or has a delta beside its mu.
    """
    if claim.kind == "approximate" and claim.mu_squared:
        return _relabel(zcdp(claim.mu_squared / 2), claim)
    if claim.kind not in _COVERS["zcdp"] or claim.delta:
        raise _no_conversion(claim.kind, "zcdp")
    return claim if claim.kind == "zcdp" else _relabel(zcdp(_rho(claim)), claim)


def as_gdp(claim: Claim) -> Claim:
    """A claim as mu-Gaussian DP: its own mu, or that of pure epsilon-DP, 2 Phi^-1(e^eps / (1 + e^eps)).

    Raises:
        PrivacyRefused: it has none: zCDP, and epsilon with delta alone, imply no Gaussian DP.
    """
    if not _has_mu(claim):
        raise _no_conversion(claim.kind, "gdp")
    if claim.kind == "gdp":
        return claim
    if claim.mu_squared or not claim.epsilon:
        return _relabel(gdp(claim.mu_squared), claim)
    # A log ratio within [-epsilon, epsilon] has range 2 epsilon.
    return _relabel(gdp(square_of_choice(2 * claim.epsilon)), claim)


def as_approximate(claim: Claim, delta: Number) -> Claim:
    """A claim as (epsilon, delta)-DP, epsilon rounded up.

    A pure claim keeps its epsilon (with delta 0) unless going through zCDP gives a smaller one.
    A probabilistic claim implies (epsilon, delta)-DP with the same numbers.

    Args:
        claim: pure, zCDP, Gaussian, approximate or probabilistic.
        delta: where zCDP and Gaussian DP are converted; an approximate claim with a smaller or equal
            delta stays.
    Raises:
        PrivacyRefused: the claim is not of differential privacy, or already has a larger delta.
    """
    goal = probability("delta", delta)
    if not claim.is_dp:
        raise _no_conversion(claim.kind, "approximate")
    if claim.kind in ("approximate", "probabilistic", "gdp"):
        if claim.delta > goal or (claim.kind == "gdp" and claim.delta == goal):
            raise _larger_delta(claim)
        if claim.kind != "gdp":
            return replace(claim, kind="approximate")
        epsilon = (
            epsilon_of(claim.mu_squared, goal - claim.delta) if claim.mu_squared else Fraction(0)
        )
        known = Fraction(0) if claim.delta else claim.mu_squared
        return _relabel(approximate(epsilon, goal, mu_squared=known), claim)
    rho, spare = _rho(claim), goal - claim.delta  # a zCDP claim may have a delta: of thresholds
    if spare <= 0:
        raise _larger_delta(claim)
    epsilon = epsilon_from_zcdp(rho, spare) if rho > 0 else Fraction(0)
    if claim.kind == "pure" and claim.epsilon <= epsilon:
        return replace(claim, kind="approximate")
    return _relabel(approximate(epsilon, goal), claim)


def for_group(total: Claim, units: int, spends: Sequence[Claim] = ()) -> Claim:
    """What a claim for one unit says of several units together.

    epsilon grows by the factor units, delta by (e^(units epsilon) - 1) / (e^epsilon - 1), rho and mu^2
    by units^2. A probabilistic claim, and a Gaussian one with a delta beside it, is read as
    (epsilon, delta)-DP first.

    Args:
        total: of one unit.
        units: how many differ between the two versions of the data, >= 1.
        spends: what the total is made of; each part then grows by its own rule, and parts in rho are
            converted at the delta that the total had kept for them, as are parts in mu; those in mu
            beside others count mu^2 / 2 in rho. Empty: the total alone.
    Raises:
        PrivacyRefused: the claim is not of differential privacy.
    Source:
        docs/proofs/accounting.md, groups.
    """
    if units < 1:
        raise ValueError("a group has at least one unit")
    if not total.is_dp:
        raise _no_conversion(total.kind, "approximate")
    if not spends:
        return _grown(total, units)
    if any(spend.kind == "zcdp" and spend.delta for spend in spends):
        return _grown(total, units)  # the thresholds of a group have no rule of their own
    parts = [_grown(spend, units) for spend in spends]
    epsilon, spare = sum(p.epsilon for p in parts), total.delta - _deltas(spends)
    rho = sum((_converted(part) for part in parts), Fraction(0))
    if rho > 0 and (spare <= 0 or total.kind in ("zcdp", "gdp")):
        return _grown(total, units)
    delta = _deltas(parts) + (spare if rho > 0 else 0)
    squares = Fraction(0)
    if rho > 0 and all(part.kind == "gdp" for part in parts):
        squares = sum((part.mu_squared for part in parts), Fraction(0))
        epsilon = epsilon_of(squares, spare)
    elif rho > 0:
        all_rho = sum((_rho(part) for part in parts), Fraction(0))
        epsilon = min(epsilon + epsilon_from_zcdp(rho, spare), epsilon_from_zcdp(all_rho, spare))
    kind: Kind = "approximate" if delta > 0 else "pure"
    return replace(
        total,
        kind=kind,
        epsilon=Fraction(epsilon),
        delta=min(delta, Fraction(1)),
        rho=Fraction(0),
        mu_squared=squares if total.mu_squared else Fraction(0),
    )


def true_alarms(claim: Claim, false_alarms: float) -> float:
    """The largest rate of true alarms of a membership test with a rate of false ones, by any of its bounds.

    Args:
        claim: pure, approximate, Gaussian or probabilistic; straight from mu where it has one.
        false_alarms: in (0, 1): how often the test is wrong about a unit that is not in the data.
    Returns:
        How often it is right about one that is, at most; in [0, 1], rounded up.
    Raises:
        PrivacyRefused: the claim is of another kind.
    Source:
        [Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015]; [Dong, Roth, Su 2022] for mu.
    """
    bounds = [1.0]
    if claim.kind in ("pure", "approximate", "probabilistic"):
        factor, delta = math.exp(min(float(claim.epsilon), 700.0)), float(claim.delta)
        bounds += [factor * false_alarms + delta, 1 - (1 - delta - false_alarms) / factor]
    elif claim.kind != "gdp":
        raise _no_conversion(claim.kind, "gdp")
    if claim.mu_squared:
        spare = 0.0 if claim.kind == "approximate" else float(claim.delta)
        bounds.append(rate_at(claim.mu_squared, false_alarms) + spare)
    return min(1.0, min(bounds) * (1 + 1e-12))


def _grown(claim: Claim, units: int) -> Claim:
    """One claim, for a group."""
    if claim.kind == "gdp" and claim.delta:
        claim = as_approximate(claim, 2 * claim.delta)
    if claim.kind == "zcdp" and claim.delta:
        raise _no_conversion("zcdp", "approximate")
    kind = "approximate" if claim.kind == "probabilistic" else claim.kind
    delta = claim.delta * (geometric_sum(claim.epsilon, units) if claim.delta else 1)
    return replace(
        claim,
        kind=kind,
        epsilon=claim.epsilon * units,
        delta=min(delta, Fraction(1)),
        rho=claim.rho * units * units,
        mu_squared=claim.mu_squared * units * units,
    )


def _within_gdp(budget: Claim, spends: Counter[Claim]) -> bool:
    """The account of Gaussian DP: squares of mu add up, and deltas beside them."""
    if not all(map(_has_mu, spends)):
        return False  # nothing in rho has a mu, nor has what has an epsilon and a delta alone
    spare = budget.delta
    if budget.kind == "approximate":  # what turns the whole mu into epsilon is not there for others
        spare -= delta_of(budget.mu_squared, budget.epsilon)
    used = _total(spends, lambda spend: as_gdp(spend).mu_squared)
    return used <= budget.mu_squared and _total(spends, lambda spend: as_gdp(spend).delta) <= spare


def _within_approximate(budget: Claim, spends: Counter[Claim]) -> bool:
    spare = budget.delta - _total(spends, _delta)
    if spare < 0:
        return False
    left = budget.epsilon - _total(spends, _epsilon)
    if _fits(_total(spends, _converted), left, spare):
        return True
    return _fits(_total(spends, _rho), budget.epsilon, spare)


def _total(spends: Counter[Claim], part: Callable[[Claim], Fraction]) -> Fraction:
    """A part of all purchases together: alike ones are many in a run, and are multiplied, exactly."""
    return sum((times * part(spend) for spend, times in spends.items()), Fraction(0))


def _fits(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    if rho == 0:
        return epsilon >= 0
    return epsilon > 0 and delta_from_zcdp(rho, epsilon) <= delta


def _converted(spend: Claim) -> Fraction:
    """Rho of what has no epsilon of its own: mu-GDP implies mu^2 / 2, and never the other way around."""
    return spend.rho + (spend.mu_squared / 2 if spend.kind == "gdp" else 0)


def _rho(spend: Claim) -> Fraction:
    # (epsilon, delta)-DP is delta-approximate zCDP with the rho of its pure part
    # [Bun, Steinke 2016, lemma 8.8; the pure part as Kairouz, Oh, Viswanath 2015]; the deltas add.
    return _converted(spend) + (pure_to_zcdp(spend.epsilon) if spend.epsilon > 0 else 0)


def _has_mu(claim: Claim) -> bool:
    return claim.kind in _COVERS["gdp"] or claim.mu_squared > 0


def _relabel(made: Claim, of: Claim) -> Claim:
    same = ("unit", "relation", "basis", "source", "fixed")
    return replace(made, **{name: getattr(of, name) for name in same})


def _deltas(spends: Sequence[Claim]) -> Fraction:
    return sum((spend.delta for spend in spends if spend.delta), Fraction(0))


def _check_pair(budget: Claim, spend: Claim) -> None:
    if spend.kind not in _COVERS[budget.kind]:
        raise _no_conversion(spend.kind, budget.kind)
    if set(spend.fixed) - set(budget.fixed):
        raise _not_covered(set(spend.fixed) - set(budget.fixed))
    if spend.relation != budget.relation:
        raise PrivacyRefused(
            "MIXED",
            f"A purchase under {spend.relation} was counted against a budget under {budget.relation}.",
            "One total has one neighbor relation.",
            "Price the purchase under the relation of the budget; its number changes with it.",
        )


def _larger_delta(claim: Claim) -> PrivacyRefused:
    return PrivacyRefused(
        "DELTA",
        "A claim was asked for at a smaller delta than it has.",
        f"Its delta is {float(claim.delta):.6g}.",
        "State it at its own delta, or above.",
    )


def _not_covered(names: set[str]) -> PrivacyRefused:
    return PrivacyRefused(
        "FIXED",
        f"A purchase leaves {', '.join(sorted(names))} unprotected, and the budget does not.",
        "A total covers what each of its parts covers.",
        "Reserve a claim that names these columns as public.",
    )


def _no_conversion(source: Kind, target: Kind) -> PrivacyRefused:
    return PrivacyRefused(
        "MIXED",
        f"A claim of kind {source} cannot be counted as {target}.",
        "A total is stated in one definition, and this conversion has no proof.",
        "State the two apart, or choose a budget of the same kind.",
    )
