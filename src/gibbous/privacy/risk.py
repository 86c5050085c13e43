"""Risk: a budget asked for as the success of a membership test, turned into mu and epsilon."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from gibbous.core.claim import Claim
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.exact import Number, down, exact
from gibbous.core.protocols import Mechanism
from gibbous.privacy.accountant import true_alarms
from gibbous.privacy.calibrate.gdp import epsilon_of, mu_squared_for, mu_squared_for_rate

_TEXT = re.compile(r"tpr@(?P<false>[0-9.e-]+)(?P<a>%?)=(?P<true>[0-9.e-]+)(?P<b>%?)")


def asked_for(method: Mechanism, text: str, *, pure: bool = False) -> Mechanism:
    """The same method with the epsilon that a risk allows; PrivacyRefused if it has no epsilon.

    Args:
        pure: whether its plan is of epsilon alone, whatever its card says.
    """
    risk = risk_of(text)
    if not hasattr(method, "epsilon"):
        raise PrivacyRefused(
            "NOTDP",
            f"A risk was given for {method.about.name}, which makes no claim of differential privacy.",
            "A risk is turned into the epsilon of a method that has one.",
            "Use adaptive_gibbs or noisy_pegs.",
        )
    delta = None if pure or method.about.kind == "pure" else getattr(method, "delta", None)
    if getattr(method, "noise", "") == "gaussian":
        delta = method.delta  # type: ignore[attr-defined]
    return replace(method, epsilon=risk.epsilon(delta))  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Risk:
    """The most that a membership test may find.

    Attributes:
        false_alarms: share of the units that are not in the data which the test takes for ones that are.
        true_alarms: share of those in the data that it may find then, at most; larger.
    """

    false_alarms: Fraction
    true_alarms: Fraction

    @property
    def mu_squared(self) -> Fraction:
        """Of the Gaussian DP that allows no more, rounded down."""
        return mu_squared_for_rate(self.true_alarms, self.false_alarms)

    def epsilon(self, delta: Number | None) -> float:
        """The epsilon that is asked for.

        Args:
            delta: of a method that is accounted in Gaussian DP: its mu then has this epsilon. None for
                one of pure epsilon-DP.
        """
        if delta is None:
            # Odds of a true alarm to a false one are at most e^epsilon; those of silence, too.
            alarm = self.true_alarms / self.false_alarms
            silence = (1 - self.false_alarms) / (1 - self.true_alarms)
            return float(down(math.log(max(alarm, silence)) * (1 - 1e-12)))
        goal, probability = self.mu_squared, exact(delta)
        found = down(epsilon_of(goal, probability), 12)
        while mu_squared_for(found, probability) > goal:
            found = down(found * (1 - Fraction(1, 10**11)), 12)
        return float(found)

    def check(self, total: Claim) -> None:
        """Raise PrivacyRefused for a plan that allows more."""
        found = true_alarms(total, float(self.false_alarms))
        if found > float(self.true_alarms) * (1 + 1e-9):
            raise PrivacyRefused(
                "RISK",
                f"This plan allows a membership test {100 * found:.4g} % true alarms at "
                f"{100 * float(self.false_alarms):g} % false ones: {total.words()}.",
                f"At most {100 * float(self.true_alarms):g} % were asked for, which a plan keeps that is "
                f"accounted in Gaussian DP with mu = {float(self.mu_squared) ** 0.5:.6g}, or has so small "
                "an epsilon.",
                f"Use adaptive_gibbs or noisy_pegs, or give epsilon: at most "
                f"{self.epsilon(None):.4g} keeps it whatever the method.",
            )


def risk_of(text: str) -> Risk:
    """Read "tpr@1%=3%": at 1 % false alarms at most 3 % true ones; shares in percent, or below 1.

    ParameterError for anything else, or where no test could do worse.
    """
    read = _TEXT.fullmatch(text.replace(" ", "").lower())
    try:
        if read is None:
            raise ValueError
        shares = [
            exact(read[name]) / (100 if read[mark] else 1)
            for name, mark in (("false", "a"), ("true", "b"))
        ]
    except (ValueError, ArithmeticError):
        shares = [Fraction(0), Fraction(0)]
    if not 0 < shares[0] < shares[1] < 1:
        raise ParameterError(
            "RISK",
            f"The risk is {text[:40]!r}.",
            "It names a share of false alarms, and a larger one of true alarms, both above 0 and below 1.",
            "For example tpr@1%=3%: a test with 1 % false alarms finds at most 3 % of those in the data.",
        )
    return Risk(*shares)
