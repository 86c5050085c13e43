"""Truncated Laplace noise: what redrawing until inside the bounds really costs."""

from __future__ import annotations

import math

from gibbous.core.exact import Number
from gibbous.privacy.calibrate.rounding import positive


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
