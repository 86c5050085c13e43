"""Entropy l-diversity of drawn values: how far each conditional is mixed with the uniform law."""

from __future__ import annotations

import math

import numpy as np

from gibbous.core.errors import ParameterError

_STEPS = 60  # bisections of beta in [0, 1]: below the resolution of float64
_LOST = 1e-14  # of entropy a level, by float64 sums and by weights in units of 2**-52


def entropy_nats(probabilities: np.ndarray) -> np.ndarray:
    """Shannon entropy in nats, float64 (keys,), of float64 (keys, levels) whose rows sum to 1."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    return np.asarray(-np.sum(probabilities * np.log(safe), axis=-1))


def diverse_law(
    law: np.ndarray,
    l: float,  # noqa: E741
    criterion: str,
    moved: float,
) -> np.ndarray:
    """Each key's law, mixed with the uniform one just so far that it stays l-diverse when it is drawn.

    Args:
        law: P, float64 (keys, levels).
        l: 1 <= l <= levels.
        criterion: "entropy" (>= ln l) or "max_probability" (<= 1/l).
        moved: total variation distance by which rounding and drawing may move the law. Entropy is
            then lost by at most moved ln(levels - 1) + h(moved) (Audenaert 2007); a law that is
            mixed all the way is exactly uniform, and drawn so.
    Returns:
        float64 (keys, levels).
    """
    if criterion == "max_probability":
        beta = max_probability_beta(law, l, moved)
    else:
        spread = math.log(max(law.shape[-1] - 1, 1)) - math.log(moved)
        beta = diverse_beta(law, l, moved * spread - (1.0 - moved) * math.log1p(-moved))
    return mixed_with_uniform(conditional(law), beta)


def diverse_beta(counts: np.ndarray, l: float, spare: float = 0.0) -> np.ndarray:  # noqa: E741
    """The smallest beta with entropy((1 - beta) P + beta U) >= ln l, key by key.

    The entropy increases with beta, so bisection on beta in [0, 1] always ends; on alpha it would
    not, because alpha is infinite at l = levels. A little is added to ln l, so that rounding
    afterwards leaves the statement true.

    Args:
        counts: n[key, level] >= 0, (keys, levels).
        l: 1 <= l <= levels.
        spare: nats beyond ln l.
    Returns:
        float64 (keys,); 1 for keys without records, whose law is uniform.
    Source:
        [park2013, IV.B; park2014, s3.3B].
    """
    _check_l(counts.shape[-1], l)
    levels, law = counts.shape[-1], conditional(counts)
    goal = math.log(l) + _LOST * levels + spare if l < levels else math.inf  # there, only beta = 1
    uneven = law.max(axis=-1) > 1.0 / levels
    short = np.flatnonzero(uneven & (entropy_nats(law) < goal) & (l > 1))
    low, high = np.zeros(len(short)), np.ones(len(short))
    for _ in range(_STEPS if len(short) else 0):
        middle = (low + high) / 2
        enough = entropy_nats(mixed_with_uniform(law[short], middle)) >= goal
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    beta = np.where(counts.sum(axis=-1) > 0, 0.0, 1.0)
    beta[short] = high  # the side that satisfies the criterion
    return beta


def max_probability_beta(
    counts: np.ndarray,
    l: float,  # noqa: E741
    spare: float = 0.0,
) -> np.ndarray:
    """The smallest beta with every probability <= 1 / l: the stricter criterion.

    beta = max(0, (p_max - 1/l) / (p_max - 1/levels)).

    Args:
        counts: n[key, level] >= 0, (keys, levels).
        l: 1 <= l <= levels.
        spare: of probability, below 1/l.
    Returns:
        float64 (keys,); 1 for keys without records.
    """
    _check_l(counts.shape[-1], l)
    levels, top = counts.shape[-1], conditional(counts).max(axis=-1)
    most = 1.0 / l - (_LOST if l > 1 else 0.0) - spare
    over = np.maximum(top - most, 0.0)
    beta = np.divide(over, top - 1.0 / levels, out=np.zeros_like(over), where=top > 1.0 / levels)
    return np.asarray(np.where(counts.sum(axis=-1) > 0, np.minimum(beta, 1.0), 1.0))


def conditional(counts: np.ndarray) -> np.ndarray:
    """n / N of each key, float64 (keys, levels); uniform for keys without records."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(totals > 0, counts / np.maximum(totals, 1), 1.0 / counts.shape[-1]))


def mixed_with_uniform(law: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """(1 - beta) P + beta U of each key, float64 (keys, levels); beta (keys,) lies in [0, 1]."""
    return np.asarray((1.0 - beta)[:, None] * law + beta[:, None] / law.shape[-1])


def alpha_from_beta(beta: np.ndarray, totals: np.ndarray, levels: int) -> np.ndarray:
    """Virtual records a level that mix in a share beta of the uniform law: N beta / (C (1 - beta)).

    float64 (keys,); infinity, read as the uniform law, where beta is 1.
    """
    share = np.asarray(beta, dtype=np.float64)
    rest = levels * (1.0 - share)
    out = np.full(np.shape(share), np.inf)
    np.divide(np.asarray(totals) * share, rest, out=out, where=rest > 0)
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


def _check_l(levels: int, l: float) -> None:  # noqa: E741
    if not 1 <= l <= levels:
        raise ParameterError(
            "DIVERSITY",
            f"l is {l:g} for a column of {levels} levels.",
            "l lies between 1 and the number of levels of every redrawn column.",
            "Lower l, or leave the column out.",
        )
