"""What epsilon and delta mean for somebody who attacks: odds, beliefs, guesses, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erf, exp, sqrt
from typing import Final

from gibbous.core.claim import Claim

MEANINGLESS: Final = 20.0  # an epsilon beyond which a bound on odds excludes almost nothing
PRIORS: Final = (0.001, 0.01, 0.1, 0.5, 0.9)
FALSE_ALARMS: Final = (0.001, 0.01, 0.05, 0.1)
GRID: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Belief:
    """What an attacker may come to believe: its probability before, and the least and the most after."""

    before: float
    low: float
    high: float


def belief(before: float, epsilon: float) -> Belief:
    """Bounds on a belief after a release, by Bayes' rule: odds change by a factor e^epsilon at most."""
    factor = exp(min(epsilon, 700.0))
    high = before * factor / (before * factor + (1 - before))
    low = before / (before + factor * (1 - before))
    return Belief(before, low, high)


def exceeded(delta: Fraction) -> Fraction:
    """The largest probability that odds change by more than 2 e^epsilon under (epsilon, delta)-DP.

    With P and Q the laws of the output of two neighbors, and A where P > 2 e^epsilon Q:
    delta >= P(A) - e^epsilon Q(A) >= P(A) / 2. Odds beyond e^epsilon alone can be more probable than
    delta by any factor, so delta is not a probability that the bound fails.
    """
    return min(Fraction(1), 2 * delta)


def right_guess(epsilon: float, delta: float = 0.0) -> float:
    """The most probable a right guess between two versions of the data can be, with even chances before."""
    factor = exp(min(epsilon, 700.0))
    return min(1.0, (factor + delta) / (1 + factor))


def advantage(epsilon: float, delta: float = 0.0, mu: float = 0.0) -> float:
    """The largest excess of true over false alarms of a membership test, also under mu-Gaussian DP."""
    bound = 2 * right_guess(epsilon, delta) - 1
    return min(bound, erf(mu / sqrt(8)) * (1 + 1e-12)) if mu else bound


def stated(claim: Claim) -> tuple[float, float] | None:
    """(epsilon, delta) of a claim that bounds odds; None for others, and where they are too large."""
    if claim.kind not in ("pure", "approximate", "probabilistic"):
        return None
    epsilon = float(claim.epsilon)
    return (epsilon, float(claim.delta)) if epsilon <= MEANINGLESS else None
