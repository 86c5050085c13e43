"""Entropy l-diversity of drawn values: how far each conditional is mixed with the uniform law."""

from __future__ import annotations

import math

import numpy as np

from gibbous.core.errors import ParameterError

_STEPS = 60  # bisections of beta in [0, 1]: below the resolution of float64


def entropy_nats(probabilities: np.ndarray) -> np.ndarray:
    """Shannon entropy of each key, float64 (keys,), in nats.

    Args:
        probabilities: float64 (keys, levels), rows sum to 1.
    """
    safe = np.where(probabilities > 0, probabilities, 1.0)
    return np.asarray(-np.sum(probabilities * np.log(safe), axis=-1))


def diverse_beta(counts: np.ndarray, l: float) -> np.ndarray:  # noqa: E741
    """The smallest beta with entropy((1 - beta) P + beta U) >= ln l, key by key.

    The entropy increases with beta, so bisection on beta in [0, 1] always ends; on alpha it would
    not, because alpha is infinite at l = levels.

    Args:
        counts: n[key, level] >= 0, (keys, levels).
        l: 1 <= l <= levels.
    Returns:
        float64 (keys,); 1 for keys without records, whose law is uniform.
    Source:
        [park2013, IV.B; park2014, s3.3B].
    """
    _check_l(counts.shape[-1], l)
    levels, totals = counts.shape[-1], counts.sum(axis=-1, keepdims=True)
    law = np.where(totals > 0, counts / np.maximum(totals, 1), 1.0 / levels)
    low, high = np.zeros(len(law)), np.ones(len(law))
    goal = math.log(l) if l < levels else math.inf  # there, only beta = 1
    for _ in range(_STEPS):
        middle = (low + high) / 2
        mixed = (1.0 - middle)[:, None] * law + middle[:, None] / levels
        enough = entropy_nats(mixed) >= goal
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    high = np.where(entropy_nats(law) >= math.log(l), 0.0, high)
    return np.asarray(np.where(totals[:, 0] > 0, high, 1.0))


def max_probability_beta(counts: np.ndarray, l: float) -> np.ndarray:  # noqa: E741
    """The smallest beta with every probability <= 1 / l: the stricter criterion.

    beta = max(0, (p_max - 1/l) / (p_max - 1/levels)).

    Args:
        counts: n[key, level] >= 0, (keys, levels).
        l: 1 <= l <= levels.
    Returns:
        float64 (keys,); 1 for keys without records.
    """
    _check_l(counts.shape[-1], l)
    levels, totals = counts.shape[-1], counts.sum(axis=-1)
    top = np.where(totals > 0, counts.max(axis=-1) / np.maximum(totals, 1), 1.0 / levels)
    over = np.maximum(top - 1.0 / l, 0.0)
    beta = np.divide(over, top - 1.0 / levels, out=np.zeros_like(over), where=over > 0)
    return np.asarray(np.where(totals > 0, np.minimum(beta, 1.0), 1.0))


def alpha_from_beta(beta: np.ndarray, totals: np.ndarray, levels: int) -> np.ndarray:
    """Virtual records a level that mix in a share beta of the uniform law: N beta / (C (1 - beta)).

    Returns:
        float64 (keys,); infinity, read as the uniform law, where beta is 1.
    """
    share = np.asarray(beta, dtype=np.float64)
    rest = levels * (1.0 - share)
    out = np.full(np.shape(share), np.inf)
    np.divide(np.asarray(totals) * share, rest, out=out, where=rest > 0)
    return out


def beta_from_alpha(alpha: np.ndarray, totals: np.ndarray, levels: int) -> np.ndarray:
    """Share of the uniform law when alpha virtual records are added: C alpha / (N + C alpha)."""
    virtual = levels * np.asarray(alpha, dtype=np.float64)
    whole = np.asarray(totals) + virtual
    finite = np.isfinite(whole) & (whole > 0)
    out = np.ones(np.shape(whole))
    np.divide(virtual, whole, out=out, where=finite)
    return out


def q_star(levels: int, l: float) -> float:  # noqa: E741
    """The largest probability of one level that entropy l-diversity still allows.

    The root q of h(q) + (1 - q) ln(levels - 1) = ln l above 1 / levels; rounded up. It is well above
    1 / l: entropy l-diversity does not hold an adversary's success to 1 / l.
    """
    _check_l(levels, l)
    low, high = 1.0 / levels, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        rest = 1.0 - middle
        if rest == 0.0:  # l is 1, to within float64
            return 1.0
        spread = -middle * math.log(middle) - rest * math.log(rest) + rest * math.log(levels - 1)
        low, high = (middle, high) if spread >= math.log(l) else (low, middle)
    return high


def l_from_fraction_published(share: float, levels: int) -> float:
    """l for the fraction of the largest entropy that park2013 writes as log l: levels ** share."""
    return float(levels**share)


def _check_l(levels: int, l: float) -> None:  # noqa: E741
    if not 1 <= l <= levels:
        raise ParameterError(
            "DIVERSITY",
            f"l is {l:g} for a column of {levels} levels.",
            "l lies between 1 and the number of levels of every redrawn column.",
            "Lower l, or leave the column out.",
        )
