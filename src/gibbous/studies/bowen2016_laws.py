"""The laws of synthesizers of one binary column: true counts in, counts of synthetic sets out.

Each function draws what a mechanism would release, for many repeats at once. It simulates on
constructed data; nothing here protects anybody. Counts are of ones among n rows; n is public and two
tables are neighbors if one record is replaced, the relation under which the paper's prices hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from gibbous.studies.seeded_draws import Draws, laplace

Floats = npt.NDArray[np.float64]
PRIOR: Final = 1 / 3  # of each level, the neutral prior of Kerman (2011)

Law = Callable[[Draws, Floats, int, float, int], Floats]
"""(draws, s, n, epsilon, sets) -> x: s float64 (repeats,), x float64 (sets, repeats)."""
Loss = Callable[[int, float, int], float]
"""(n, epsilon, sets) -> true cost of all sets in nats."""


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """One method of the study.

    Attributes:
        label: in tables and figures.
        number: of its stream of draws; never given to another one.
        releases: one set, several sets each with its own noise, or several with one noise, whose
            variance the interval then adds.
        law: what it releases.
        loss: what that costs, where the paper charges epsilon; None: no bound.
    """

    label: str
    number: int
    releases: Literal["one set", "noise per set", "noise once"]
    law: Law
    loss: Loss | None


def multiple_synthesis(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """MS: p from its posterior, then n values, for each set; no noise, and no bound."""
    del epsilon
    return _posterior(draws, np.broadcast_to(s, (sets, s.size)), n)


def modips(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """modips with thresholding: s + Lap(m / epsilon) for each set, clipped to [0, n]."""
    noise = draws.at(1).laplace(sets, s.size) * (sets / epsilon)
    return _posterior(draws, np.clip(s + noise, 0, n), n)


def modips_once(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """modips with thresholding whose sum is released once, s + Lap(1 / epsilon), for all sets."""
    noisy = _sanitized(draws, s, n, epsilon)
    return _posterior(draws, np.broadcast_to(noisy, (sets, s.size)), n)


def shared_variance(n: int, epsilon: float) -> float:
    """V_s of a share whose count was noised once; a number in [0, 1] has no more than 1/4."""
    return min(2 / (epsilon * n) ** 2, 0.25)


def modips_truncated(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """modips with truncation as printed: Lap(m / epsilon) redrawn until s + noise is in [0, n]."""
    return _posterior(draws, _truncated(draws, s, n, sets / epsilon, sets), n)


def modips_corrected(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """modips with truncation at the scale whose true cost is epsilon."""
    scale = truncated_laplace_scale(epsilon / sets, n)
    return _posterior(draws, _truncated(draws, s, n, scale, sets), n)


def laplace_sanitizer(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """One table: s + Lap(1 / epsilon), clipped to [0, n] and rounded; no value is drawn."""
    del sets
    return np.rint(_sanitized(draws, s, n, epsilon))[None, :]


def laplace_drawn(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """The same table as proportions, from which n values are drawn."""
    del sets
    return draws.at(2).binomial(n, _sanitized(draws, s, n, epsilon) / n, s.size)[None, :]


def dirichlet(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """MD with two cells (beta-binomial): alpha = n / (e^(epsilon / m) - 1) virtual records a cell."""
    alpha = n / _expm1(epsilon / sets)
    p = draws.at(1).beta(alpha + s, alpha + n - s, sets, s.size)
    return draws.at(2).binomial(n, p, sets, s.size)


def dp_prior(draws: Draws, s: Floats, n: int, epsilon: float, sets: int) -> Floats:
    """n values with the fixed p = (s + alpha) / (n + 2 alpha), alpha = 1 / (e^(epsilon / n) - 1)."""
    del sets
    alpha = 1 / _expm1(epsilon / n)
    return draws.at(1).binomial(n, (s + alpha) / (n + 2 * alpha), s.size)[None, :]


def truncated_laplace_loss(scale: float, n: float) -> float:
    """True cost of Lap(scale) redrawn until the sum of a count in [0, n] and it is in [0, n].

    1 / b + ln(Z(1) / Z(0)) with Z(s) = 1 - e^(-s/b)/2 - e^(-(n-s)/b)/2: the normalizer depends on the
    records. For large n it is ln(2 e^(1/b) - 1).

    Source:
        Corrects [bowen2016, s3.2] ("truncation").
    """
    rate = 1 / scale
    top = -math.expm1(-rate) - math.expm1(-(n - 1) * rate)
    return rate + math.log(top / -math.expm1(-n * rate))


def truncated_laplace_scale(epsilon: float, n: float) -> float:
    """The scale with truncated_laplace_loss(scale, n) = epsilon, by bisection."""
    low, high = 1 / epsilon, 4 / epsilon
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if truncated_laplace_loss(middle, n) > epsilon:
            low = middle
        else:
            high = middle
    return high


def _truncated(draws: Draws, s: Floats, n: int, scale: float, sets: int) -> Floats:
    """s + Lap(scale) given that it lies in [0, n], by the inverse between its two ends."""
    low, high = _laplace_cdf(-s / scale), _laplace_cdf((n - s) / scale)
    unit = low + (high - low) * draws.at(1).uniform(sets, s.size)
    return np.clip(s + laplace(unit) * scale, 0, n)


def _sanitized(draws: Draws, s: Floats, n: int, epsilon: float) -> Floats:
    return np.clip(s + draws.at(1).laplace(s.size) / epsilon, 0, n)


def _posterior(draws: Draws, s: Floats, n: int) -> Floats:
    p = draws.at(2).beta(PRIOR + s, PRIOR + n - s, *s.shape)
    return draws.at(3).binomial(n, p, *s.shape)


def _laplace_cdf(x: Floats) -> Floats:
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _expm1(x: float) -> float:
    return math.expm1(min(x, 600.0))  # beyond, alpha is 0 to every digit


_exact: Loss = lambda n, epsilon, sets: epsilon  # noqa: E731
_truncated_total: Loss = lambda n, epsilon, sets: (  # noqa: E731
    sets * truncated_laplace_loss(sets / epsilon, n)
)
SYNTHESIZERS: Final = (
    Synthesizer("modips, clipped", 1, "noise per set", modips, _exact),
    Synthesizer("modips, sanitized once", 8, "noise once", modips_once, _exact),
    Synthesizer(
        "modips, truncated as printed", 2, "noise per set", modips_truncated, _truncated_total
    ),
    Synthesizer("modips, truncated, corrected", 3, "noise per set", modips_corrected, _exact),
    Synthesizer("Laplace sanitizer", 4, "one set", laplace_sanitizer, _exact),
    Synthesizer("Laplace sanitizer, drawn rows", 9, "one set", laplace_drawn, _exact),
    Synthesizer("MD", 5, "noise per set", dirichlet, _exact),
    Synthesizer("DP-prior", 6, "one set", dp_prior, _exact),
    Synthesizer("MS, no noise", 7, "noise per set", multiple_synthesis, None),
)
