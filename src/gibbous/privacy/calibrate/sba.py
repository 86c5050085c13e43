"""The stability-based histogram of one table as its paper states it, and what is true of it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from gibbous.core.exact import Number
from gibbous.privacy.calibrate.rounding import positive, probability

ThresholdForm = Literal["sbhg", "vadhan", "tight"]


def sba_threshold(epsilon: Number, delta: Number, form: ThresholdForm = "tight") -> float:
    """The three thresholds of one table under replace_one, b = 2 / epsilon.

    Args:
        form: "sbhg" 1 + b ln(1/delta), true delta is half; "vadhan" 1 + b ln(2/delta), a quarter;
            "tight" 1 + b ln(1/(2 delta)), all of it.
    """
    factor = {"sbhg": 1.0, "vadhan": 2.0, "tight": 0.5}[form]
    scale = 2.0 / float(positive("epsilon", epsilon))
    return 1.0 + scale * math.log(factor / float(probability("delta", delta)))


def survival(counts: np.ndarray, scale: float, threshold: float) -> np.ndarray:
    """P(count + noise > threshold) for continuous Laplace noise of this scale, all in counts; float64."""
    gap = threshold - np.asarray(counts, dtype=np.float64)
    half = 0.5 * np.exp(-np.abs(gap) / scale)
    return np.where(gap >= 0, half, 1.0 - half)


def survival_published(counts: np.ndarray, epsilon: Number, delta: Number) -> np.ndarray:
    """The paper's survival probability (delta / 2) e^(epsilon (k - 1) / 2): true only for k <= t."""
    rate = float(positive("epsilon", epsilon))
    half = float(probability("delta", delta)) / 2.0
    return half * np.exp(rate * (np.asarray(counts, dtype=np.float64) - 1.0) / 2.0)


def expected_l1(counts: np.ndarray, scale: float, threshold: float) -> float:
    """Expected L1 error of the occupied cells, Laplace noise kept above a threshold, all in counts.

    sum of c (1 - p) + g, with p the chance to survive and g = E(|noise|, survives). With tau = t - c:
    for tau >= 0, g = (tau + b) e^(-tau/b) / 2; else g = b - (b - tau) e^(tau/b) / 2.

    Source:
        [sbhg, prop. 1], corrected (docs/proofs/stable.md).
    """
    cells = np.asarray(counts, dtype=np.float64)
    gap = np.abs(threshold - cells)
    half = 0.5 * np.exp(-gap / scale) * (gap + scale)
    error = np.where(threshold >= cells, half, scale - half)
    return float(np.sum(cells * (1.0 - survival(cells, scale, threshold)) + error))


def proposition1(counts: np.ndarray, epsilon: Number, delta: Number) -> float:
    """Expected L1 error at the paper's scale 2 / epsilon and threshold 1 + b ln(1 / delta), corrected."""
    scale = 2.0 / float(positive("epsilon", epsilon))
    return expected_l1(counts, scale, sba_threshold(epsilon, delta, "sbhg"))


def proposition1_published(counts: np.ndarray, epsilon: Number, delta: Number) -> float:
    """The paper's formula n - sum p c + (2 / epsilon) sum p, kept for comparison: it can be negative.

    It reads the error of a cell that survives as 2 / epsilon, although to survive takes noise above
    t - c, and uses the survival probability of counts up to t for all counts.
    """
    cells = np.asarray(counts, dtype=np.float64)
    kept = survival_published(cells, epsilon, delta)
    scale = 2.0 / float(positive("epsilon", epsilon))
    return float(cells.sum() - np.sum(kept * cells) + scale * kept.sum())
