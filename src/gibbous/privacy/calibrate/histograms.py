"""Cheap neighbors of the main mechanisms: Dirichlet draws, smoothed histograms, truncated noise."""

from __future__ import annotations

import math
from fractions import Fraction

from gibbous.core.exact import Number, up
from gibbous.privacy.calibrate.gibbs import alpha_from_eps0
from gibbous.privacy.calibrate.rounding import expm1, positive


def md_alpha(epsilon: Number, draws: int, sets: int = 1) -> Fraction:
    """Prior count of the multinomial-Dirichlet synthesizer: m / (e^(epsilon / sets) - 1), rounded up.

    Replace one, and add/remove with public m; tight in both. With m = 1e6 and epsilon = 7 it is
    912.71 (the paper prints 914, from e^7 rounded to 1096).

    Args:
        draws: m, values drawn a set; public.
        sets: synthetic sets, each with its own draw of the probabilities.
    Source:
        [bowen2016, s3.1; onthemap, thm. 4.1].
    """
    return up(draws / expm1(positive("epsilon", epsilon) / sets), 12)


def dp_prior_alpha(epsilon: Number, draws: int, sets: int = 1) -> Fraction:
    """Prior count when the probabilities are fixed at their mean: 1 / (e^(epsilon / (m sets)) - 1).

    Rounded up. The file is draws x sets values, each costing ln(1 + 1 / alpha).

    Source:
        [bowen2016, s3.1].
    """
    return alpha_from_eps0(positive("epsilon", epsilon) / (draws * sets))


def smoothed_lambda(epsilon: Number, bins: int, rows: int, draws: int | None = None) -> Fraction:
    """Share of the uniform density in a smoothed histogram: B / (B + n (e^(epsilon / m) - 1)).

    Rounded up. The bins are public. Replace one with n public: tight; add/remove with n the larger
    size. m = n as published when `draws` is None.

    Args:
        bins: B.
        rows: n.
        draws: m, rows released.
    Source:
        [bowen2016, s3.2.3].
    """
    count = rows if draws is None else draws
    return up(bins / (bins + rows * expm1(positive("epsilon", epsilon) / count)), 15)


def truncated_laplace_scale(
    epsilon: Number, sensitivity: float = 1.0, width: float = math.inf
) -> float:
    """Scale with which Laplace noise redrawn until inside its bounds is epsilon-DP, rounded up.

    The normalizer depends on the data and costs extra. For any width, b = D / ln((e^epsilon + 1) / 2)
    suffices; for known bounds a smaller root of `truncated_laplace_epsilon` does.

    Args:
        sensitivity: D.
        width: upper bound minus lower bound, > D.
    Source:
        [bowen2016, s3.3], whose D / epsilon is too small.
    """
    rate = float(positive("epsilon", epsilon))
    # ln((e^x + 1) / 2) = ln(1 + expm1(x) / 2); for large x it is x - ln 2.
    root = math.log1p(math.expm1(rate) / 2.0) if rate < 700 else rate - math.log(2.0)
    low, high = sensitivity / rate, sensitivity / root * (1.0 + 1e-14)
    if math.isinf(width):
        return high
    for _ in range(100):
        middle = (low + high) / 2
        if truncated_laplace_epsilon(middle, sensitivity, width) <= rate:
            high = middle
        else:
            low = middle
    return high


def truncated_laplace_epsilon(
    scale: float, sensitivity: float = 1.0, width: float = math.inf
) -> float:
    """True cost of Laplace noise of scale b redrawn until inside bounds of this width.

    D / b + ln(Z(a + D) / Z(a)), Z(s) = 1 - e^(-(s - a)/b) / 2 - e^(-(u - s)/b) / 2; without an upper
    bound ln(2 e^(D/b) - 1).
    """
    near, far = sensitivity / scale, width / scale
    inside = 1.0 - math.exp(-near) / 2.0 - math.exp(near - far) / 2.0
    return near + math.log(inside / (0.5 - math.exp(-far) / 2.0))
