"""Diverse: the least perturbation of each key that leaves its conditional l-diverse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from gibbous.core.errors import ParameterError
from gibbous.privacy.calibrate.diversity import (
    alpha_from_beta,
    conditional,
    diverse_beta,
    max_probability_beta,
    mixed_with_uniform,
    q_star,
)

Form = Literal["alpha", "mix"]
Criterion = Literal["entropy", "max_probability"]


@dataclass(frozen=True, slots=True)
class Diverse:
    """Per key, the least alpha (or mixing weight) that makes the conditional l-diverse.

    The two forms are one family: adding alpha to each level mixes the conditional with the uniform
    one at beta = C alpha / (N + C alpha). They differ in which number is reported as the strength.

    Guarantee:
        Given the rest of the row, the redrawn value has entropy >= ln l ("entropy"), or no level
        is likelier than 1/l ("max_probability"). Not differentially private: a key that is
        diverse already is not perturbed at all. Proven: docs/proofs/diverse.md.
    Source:
        [park2014, s3.3B], [park2013, s IV.B].

    Attributes:
        l: effective number of levels, 1 <= l <= C.
        form: "alpha" (virtual records) or "mix" (share of the uniform law).
        criterion: "entropy", or the stricter "max_probability".
        share: of the largest entropy ln C of each column, in (0, 1], in place of l: l is C^share.
    """

    l: Fraction = Fraction(1)  # noqa: E741 - the field's name for it
    form: Form = "alpha"
    criterion: Criterion = "entropy"
    share: Fraction | None = None

    def __post_init__(self) -> None:
        known = self.form in ("alpha", "mix") and self.criterion in ("entropy", "max_probability")
        known &= self.share is None or (0 < self.share <= 1 and self.l == 1)
        if not isinstance(self.l, Fraction) or self.l < 1 or not known:
            raise ParameterError(
                "L",
                f"Diverse was given l={self.l!r}, form={self.form!r}, "
                f"criterion={self.criterion!r}, share={self.share!r}.",
                "l is a fraction >= 1, form 'alpha' or 'mix', criterion 'entropy' or "
                "'max_probability', share above 0 and at most 1, without l.",
                "For example Diverse(Fraction(2)).",
            )

    def diversity(self, levels: int) -> Fraction:
        """The l of a column with so many levels: as given, or C^share to twelve decimals, down."""
        if self.share is None:
            return self.l
        power = Fraction(math.floor(levels ** float(self.share) * 10**12), 10**12)
        return min(power, Fraction(levels))

    def check(self, levels: int) -> None:
        """Raise ParameterError for an l that a column with so many levels, at least 2, cannot reach.

        The value of a column with one level is public and never redrawn.
        """
        if 1 < levels < self.l:
            raise ParameterError(
                "L",
                f"l is {float(self.l):g}, and a column has {levels} levels.",
                "l is at most the number of levels of every redrawn column.",
                f"Take l <= {levels}, or keep such columns out of the release.",
            )

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Probabilities Q = (1 - beta) n / N + beta / C with the least beta of each key.

        Of secret counts, int64 (keys, levels); float64, rows sum to 1, uniform where N = 0.
        """
        return mixed_with_uniform(conditional(counts), self._mixing(counts))

    def strengths(self, counts: np.ndarray) -> np.ndarray:
        """Per key alpha (infinite where the law must be uniform) or beta; secret like the counts."""
        beta = self._mixing(counts)
        if self.form == "mix":
            return beta
        return alpha_from_beta(beta, counts.sum(axis=1), counts.shape[1])

    def largest_probability(self, levels: int) -> float:
        """q*: the largest probability that the criterion lets one of `levels` levels have."""
        self.check(levels)
        diversity = self.diversity(levels)
        if levels < 2 or diversity == 1:
            return 1.0
        if self.criterion == "max_probability":
            return float(1 / diversity)
        return q_star(levels, float(diversity))

    def _mixing(self, counts: np.ndarray) -> np.ndarray:
        levels = counts.shape[1]
        self.check(levels)
        if levels < 2:
            return np.ones(len(counts))
        least = diverse_beta if self.criterion == "entropy" else max_probability_beta
        return least(counts, float(self.diversity(levels)))
