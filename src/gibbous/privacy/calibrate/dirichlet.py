"""Exact prices of Dirichlet and mixture draws, of truncated noise, and the split of one budget."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from gibbous.core.errors import ParameterError
from gibbous.core.exact import Number, down, up
from gibbous.privacy.calibrate.gibbs import alpha_from_eps0
from gibbous.privacy.calibrate.rounding import exp, expm1, log1p, positive, precise, price, smallest

MOST_RECORDS = 1 << 32
"""Records that an urn holds; of a larger table the first so many in cell order are read."""

WHOLE = 1 << 62
"""Parts of a mixture: its share is a whole number of them."""

# Dirichlet and mixture draws ---------------------------------------------------------------------


def dirichlet_loss(alpha: Number, draws: int, max_rows: int = 1) -> Fraction:
    """Pure cost of `draws` values from one set of Dirichlet probabilities: k ln(1 + m / alpha).

    Rounded up; replace one and add/remove alike. Tight for k = 1. A unit with several rows may join
    several empty cells, so its rows do not get cheaper after the first.

    Args:
        alpha: least virtual records a cell; > 0.
        draws: m, values that share the probabilities; public.
        max_rows: k, most rows of one privacy unit.
    Source:
        [bowen2016, s3.1.2]; [onthemap, thm. 4.1] for k = 1. Proven: docs/proofs/dirichlet.md.
    """
    return price(max_rows * log1p(draws / positive("alpha", alpha)))


def dirichlet_alpha(epsilon: Number, draws: int, max_rows: int = 1) -> Fraction:
    """The least alpha, to twelve digits, whose `draws` values cost at most epsilon together.

    m / (e^(epsilon / k) - 1), rounded up.

    Guarantee:
        dirichlet_loss(alpha, draws, max_rows) <= epsilon.
    """
    each = min(positive("epsilon", epsilon) / max_rows, Fraction(700))
    return up(max(1, draws) / expm1(each), 12)


def prior_loss(alpha: Number, draws: int, max_rows: int = 1) -> Fraction:
    """Pure cost of `draws` values, each with P = (n + alpha) / (N + C alpha): m ln(1 + k / alpha).

    Source:
        [bowen2016, s3.1.2] (DP-prior). Proven: docs/proofs/dp_prior.md.
    """
    return price(draws * log1p(max_rows / positive("alpha", alpha)))


def prior_alpha(epsilon: Number, draws: int, max_rows: int = 1) -> Fraction:
    """The least alpha, to twelve digits, with prior_loss(alpha, draws, max_rows) <= epsilon."""
    return alpha_from_eps0(
        min(positive("epsilon", epsilon) / max(1, draws), Fraction(700)), max_rows
    )


def smoothed_loss(share: Number, bins: int, rows: int, draws: int, max_rows: int = 1) -> Fraction:
    """Pure cost of `draws` values from (1 - share) of the records and `share` of the uniform law.

    m k ln(1 + (1 - lambda) B / (n lambda)), rounded up; 0 for lambda = 1.

    Args:
        share: lambda, in (0, 1].
        bins: B, cells.
        rows: n, the public number of records that the mixture is made for.
        draws: m, values released.
    Source:
        [bowen2016, s3.2.3], for any m. Proven: docs/proofs/smoothed_histogram.md.
    """
    weight = positive("share", share)
    return price(draws * max_rows * log1p((1 - weight) * bins / (rows * weight)))


def smoothed_share(
    epsilon: Number, bins: int, rows: int, draws: int, max_rows: int = 1
) -> Fraction:
    """The least lambda, to fifteen digits, with smoothed_loss(...) <= epsilon.

    B / (B + n (e^(epsilon / (m k)) - 1)), rounded up.
    """
    each = min(positive("epsilon", epsilon) / max(1, draws * max_rows), Fraction(700))
    share = up(bins / (bins + rows * expm1(each)), 15)
    return min(share, Fraction(1))


# Truncated noise ---------------------------------------------------------------------------------


def truncated_geometric_epsilon(
    scale: Number, sensitivity: int = 1, width: int | None = None, beside: int = 0
) -> Fraction:
    """True cost of two-sided geometric noise redrawn until the sum is inside its bounds, rounded up.

    (D + F) / b + ln(Z(a + D) / Z(a)), where Z(s) is the chance that s + noise lies in [a, a + W]: the
    normalizer depends on the data. Without an upper bound ln(...) tends to ln(1 + q - q^(D + 1)),
    q = e^(-1/b). At b = D this is about 1.49 against the 1 that is usually charged.

    Args:
        scale: b, in the units of the sum.
        sensitivity: D, a whole number >= 1.
        width: W = upper minus lower bound, >= D; None for no upper bound.
        beside: F, what the same unit moves other statistics by that have no bound on that side.
    Source:
        Corrects [bowen2016, s3.3] ("truncation"). Proven: docs/proofs/truncation.md.
    """
    rate = 1 / positive("scale", scale)
    if width is not None and width < sensitivity:
        raise _narrow(sensitivity, width)
    near = precise(lambda x: (-x).exp(), rate * (sensitivity + 1))
    base = exp(-rate)
    if width is None:
        ratio = base - near
    else:
        far = precise(lambda x: (-x).exp(), rate * (width + 1))
        beyond = precise(lambda x: (-x).exp(), rate * (width - sensitivity + 1))
        ratio = (1 + base - near - beyond) / (1 - far) - 1
    return price(rate * (sensitivity + beside) + log1p(max(ratio, Fraction(0))))


def truncated_geometric_scale(
    epsilon: Number, sensitivity: int = 1, width: int | None = None, beside: int = 0
) -> Fraction:
    """The least scale, to ten digits, with truncated_geometric_epsilon(...) <= epsilon."""
    budget = positive("epsilon", epsilon)
    low = (sensitivity + beside) / budget
    return smallest(
        lambda b: truncated_geometric_epsilon(b, sensitivity, width, beside) <= budget,
        low,
        # The normalizers differ by a factor e^(D/b) at most, so twice the usual scale suffices.
        low * 2,
        10,
    )


# Splits ------------------------------------------------------------------------------------------


def equal_split(epsilon: Number, parts: int) -> tuple[Fraction, ...]:
    """One budget over `parts` statistics, the same share each; sums to epsilon exactly."""
    return (positive("epsilon", epsilon) / _some(parts),) * parts


def optimal_split(epsilon: Number, sensitivities: Sequence[Number]) -> tuple[Fraction, ...]:
    """The split with the least total variance of Laplace noise: epsilon_j in proportion to s_j^(2/3).

    Args:
        sensitivities: s_j > 0, of each statistic, in units in which their variances are added up.
    Returns:
        Shares rounded down to 18 digits; their sum is at most epsilon.
    Source:
        Lagrange multiplier of the sum of s_j^2 / epsilon_j^2 at a fixed sum of epsilon_j.
    """
    budget = positive("epsilon", epsilon)
    _some(len(sensitivities))
    weights = [_two_thirds(positive("sensitivity", s)) for s in sensitivities]
    whole = sum(weights, Fraction(0))
    return tuple(down(budget * weight / whole, 18) for weight in weights)


def _two_thirds(value: Fraction) -> Fraction:
    return precise(lambda x: (2 * x.ln() / Decimal(3)).exp(), value)


def _some(parts: int) -> int:
    if parts < 1:
        raise ParameterError(
            "SPLIT",
            f"A budget cannot be split over {parts} statistics.",
            "There is at least one.",
            "Release at least one statistic.",
        )
    return parts


def _narrow(sensitivity: int, width: int) -> ParameterError:
    return ParameterError(
        "WIDTH",
        f"Bounds of width {width} were given for a statistic that one unit changes by {sensitivity}.",
        "The width is at least the sensitivity.",
        "Correct the bounds of the statistic.",
    )
