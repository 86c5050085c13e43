"""Diverse: the least perturbation of each key that leaves its conditional l-diverse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from gibbous.core.errors import ParameterError

Form = Literal["alpha", "mix"]
Criterion = Literal["entropy", "max_probability"]
_HALVINGS = 48


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
    """

    l: Fraction  # noqa: E741 - the field's name for it
    form: Form = "alpha"
    criterion: Criterion = "entropy"

    def __post_init__(self) -> None:
        known = self.form in ("alpha", "mix") and self.criterion in ("entropy", "max_probability")
        if not isinstance(self.l, Fraction) or self.l < 1 or not known:
            raise ParameterError(
                "L",
                f"Diverse was given l={self.l!r}, form={self.form!r}, "
                f"criterion={self.criterion!r}.",
                "l is a fraction >= 1, form 'alpha' or 'mix', criterion 'entropy' or "
                "'max_probability'.",
                "For example Diverse(Fraction(2)).",
            )

    @property
    def diversity(self) -> Fraction:
        """The l of the claim."""
        return self.l

    def check(self, levels: int) -> None:
        """Refuse an l that a column with so many levels cannot reach.

        A column with one level is let through: its value is public and never redrawn.

        Raises:
            ParameterError: 1 < levels < l.
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

        Args:
            counts: n[key, level], int64 (keys, levels); secret.
        Returns:
            float64 (keys, levels); each row sums to 1; uniform where N = 0.
        Raises:
            ParameterError: l is more than the levels there are.
        """
        levels = counts.shape[1]
        self.check(levels)
        beta = self._mixing(counts)[:, None]
        mixed: np.ndarray = (1 - beta) * _shares(counts) + beta / max(levels, 1)
        return mixed

    def strengths(self, counts: np.ndarray) -> np.ndarray:
        """Per key alpha (infinite where the law must be uniform) or beta; secret like the counts."""
        beta = self._mixing(counts)
        if self.form == "mix":
            return beta
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = counts.sum(axis=1) * beta / (counts.shape[1] * (1 - beta))
        return np.where(beta >= 1, np.inf, alpha)

    def largest_probability(self, levels: int) -> float:
        """q*: the largest probability that the criterion lets one of `levels` levels have."""
        self.check(levels)
        if levels < 2 or self.l == 1:
            return 1.0
        if self.criterion == "max_probability":
            return float(1 / self.l)
        return _largest_at_entropy(math.log(self.l), levels)

    def _mixing(self, counts: np.ndarray) -> np.ndarray:
        keys, levels = counts.shape
        if levels < 2 or self.l == 1:
            empty: np.ndarray = (counts.sum(axis=1) == 0).astype(np.float64)
            return empty
        if self.l == levels:
            return np.ones(keys)
        shares = _shares(counts)
        if self.criterion == "max_probability":
            top = shares.max(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                beta = (top - float(1 / self.l)) / (top - 1 / levels)
            return np.where(top > float(1 / self.l), np.clip(beta, 0, 1), 0.0)
        return _least_mixing(shares, math.log(self.l))


def _shares(counts: np.ndarray) -> np.ndarray:
    totals = counts.sum(axis=1, keepdims=True)
    uniform = 1.0 / max(counts.shape[1], 1)
    shares: np.ndarray = np.where(totals == 0, uniform, counts / np.maximum(totals, 1))
    return shares


def _least_mixing(shares: np.ndarray, entropy: float) -> np.ndarray:
    """Least beta with H((1 - beta) P + beta U) >= entropy: H does not decrease in beta, so bisect."""
    levels = shares.shape[1]
    beta = np.zeros(len(shares))
    todo = np.flatnonzero(_entropy(shares) < entropy)
    part, low, high = shares[todo], np.zeros(len(todo)), np.ones(len(todo))
    for _ in range(_HALVINGS if len(todo) else 0):
        middle = (low + high) / 2
        enough = _entropy((1 - middle)[:, None] * part + middle[:, None] / levels) >= entropy
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    beta[todo] = high  # the side that satisfies the criterion
    return beta


def _entropy(shares: np.ndarray) -> np.ndarray:
    logs = np.log(np.where(shares > 0, shares, 1.0))
    total: np.ndarray = -(shares * logs).sum(axis=1)
    return total


def _largest_at_entropy(entropy: float, levels: int) -> float:
    """q >= 1/levels with h(q) + (1 - q) ln(levels - 1) = entropy, the others being equal."""
    low, high = 1 / levels, 1.0
    for _ in range(200):
        q = (low + high) / 2
        rest = 1 - q
        h = -(q * math.log(q) + (rest * math.log(rest / (levels - 1)) if rest > 0 else 0.0))
        low, high = (q, high) if h >= entropy else (low, q)
    return high
