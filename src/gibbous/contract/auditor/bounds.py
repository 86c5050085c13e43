"""What counts of an attack prove: guesses or hits in, a lower bound of epsilon (or a p-value) out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gibbous.core.claim import Claim
from gibbous.core.tables import Criterion, NoiseInfo

LARGEST = 60.0  # nats; no number of runs shows more
STEPS = 30  # halvings of an interval of epsilon: to 1e-7
FAILING = np.concatenate([[0.25, 0.5], np.arange(1.0, 13.0)])  # runs whose delta may have struck


def lower_bound(hits_one: int, hits_two: int, runs: int, delta: float, level: float) -> float:
    """Largest epsilon that (hits_one, hits_two) out of `runs` contradict at `level`.

    Clopper-Pearson on both rates, each at level / 2: log((p_low - delta) / q_high), at least 0.
    """
    from scipy.stats import beta

    low = float(beta.ppf(level / 2, hits_one, runs - hits_one + 1)) if hits_one else 0.0
    high = float(beta.ppf(1 - level / 2, hits_two + 1, runs - hits_two)) if hits_two < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def stated(claim: Claim) -> tuple[float, float]:
    """Epsilon and delta that a claim implies, rounded for it (upward); infinity for no claim."""
    if not claim.is_dp:
        return math.inf, 0.0
    if claim.kind in ("zcdp", "gdp"):
        from gibbous.privacy.accountant import as_approximate

        claim = as_approximate(claim, Fraction(1, 10**6))
    return float(claim.epsilon), float(claim.delta)


def guess_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float, runs: int = 1
) -> float:
    """How likely so many correct guesses are, at most, if the claim holds.

    Each canary was in or out (or one of two records) by its own fair coin, and the attack guessed a
    fixed number of the coins from the outputs. Given an output, the number of right guesses is
    dominated by W + F: W binomial(guesses, e^epsilon / (1 + e^epsilon)), and F between 0 and the
    canaries of a run, of mean at most 2 delta times them. One run:

        P <= P(W >= v) + 2 m delta max_i P(v - i <= W < v) / i.

    Several runs, of m canaries each: their F are independent, hence for every k

        P <= P(W >= v - k m) + min over u of u^-k (1 + 2 delta (u - 1))^runs.

    Args:
        canaries: coins of all runs that were thrown, also those that were not guessed.
        guesses: their number, <= canaries; chosen before the outputs were seen. Without delta it may
            follow from the outputs; with delta the p-value is then worth at most twice as much.
        correct: v <= guesses.
        epsilon: of the claim, in nats.
        delta: of the claim.
        runs: independent runs that share the canaries evenly.
    Returns:
        A p-value in [0, 1].
    Source:
        [Steinke, Nasr, Jagielski 2023, thm. 5.2 and app. D]; the second line is Chernoff's bound.
    """
    from scipy.stats import binom

    accuracy = 1 / (1 + math.exp(-epsilon))
    if delta == 0 or not correct:
        return float(binom.sf(correct - 1, guesses, accuracy))
    if runs > 1:
        failing = FAILING[: np.searchsorted(FAILING, runs)]
        most = -(-canaries // runs)
        slack = binom.sf(np.ceil(correct - failing * most) - 1, guesses, accuracy)
        return float(min(1.0, (slack + _failures(failing, runs, delta)).min()))
    below = binom.pmf(np.arange(correct)[::-1], guesses, accuracy).cumsum()
    steepest = float((below / np.arange(1, correct + 1)).max())
    tail = float(binom.sf(correct - 1, guesses, accuracy))
    return min(1.0, tail + 2 * canaries * delta * steepest)


def guess_bound(
    canaries: int, guesses: int, correct: int, delta: float, level: float, runs: int = 1
) -> float:
    """The largest epsilon that these guesses refute at `level`; 0 when they refute none.

    Args:
        canaries, guesses, correct, delta, runs: as in `guess_p_value`.
    """

    def refuted(epsilon: float) -> bool:
        return guess_p_value(canaries, guesses, correct, epsilon, delta, runs) <= level

    if not guesses or not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < LARGEST and refuted(high):
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def quick_bounds(guesses: np.ndarray, correct: np.ndarray, level: float) -> np.ndarray:
    """`guess_bound` at delta = 0 for many attacks at once: by Clopper-Pearson, which it then equals."""
    from scipy.stats import beta

    rate = beta.ppf(level, np.maximum(correct, 1), guesses - np.maximum(correct, 1) + 1)
    rate = np.where(correct > 0, rate, 0.0)
    with np.errstate(divide="ignore"):
        bounds: np.ndarray = np.maximum(0.0, np.log(rate) - np.log1p(-rate))
    return bounds


def diversity_bound(
    levels: int, most: int, draws: int, level: float, criterion: Criterion = "entropy"
) -> float:
    """The largest l that a law can have whose likeliest level came `most` times in `draws`.

    With q the Clopper-Pearson lower bound of that level's probability, the entropy is largest when
    the other levels share the rest evenly; l is the exponential of it. Of the largest probability, 1/q.
    """
    from scipy.stats import beta

    low = float(beta.ppf(level / levels, most, draws - most + 1)) if most else 0.0
    if low <= 1 / levels:
        return float(levels)
    if criterion == "max_probability":
        return 1 / low
    rest = 1 - low
    spread = rest * math.log(rest / (levels - 1)) if rest > 0 and levels > 1 else 0.0
    return math.exp(-low * math.log(low) - spread)


def scale_p_value(cells: Mapping[NoiseInfo, int], energy: float) -> float:
    """How likely so little noise is, at most, if it follows the stated laws.

    The statistic is the sum over cells of |x| / b (geometric) or x^2 / (2 sigma^2) (Gaussian), which
    is sufficient for the scale. The bound is Chernoff's, so it holds for every number of cells:
    P(sum <= s) <= min over t of exp(t s) prod E exp(-t u).

    Args:
        cells: how many cells were compared under each stated law.
    """
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 50.0, 300)])
    moments = [(n, _log_moment(law, grid)) for law, n in cells.items()]
    logs = grid * energy + sum(n * (one - one[0]) for n, one in moments)  # at 0 it is 0, exactly
    return float(math.exp(min(0.0, float(logs.min()))))


def expected_energy(law: NoiseInfo) -> tuple[float, float]:
    """Mean and variance of one cell's share of the statistic of `scale_p_value`."""
    values, chances = law_of(law)
    share = _share(law, values)
    mean = float(chances @ share)
    return mean, float(chances @ (share - mean) ** 2)


@lru_cache(maxsize=256)
def law_of(law: NoiseInfo) -> tuple[np.ndarray, np.ndarray]:
    """The stated law by itself, without its threshold: whole numbers and their probabilities."""
    reach = (
        math.ceil(45 * law.scale) + 2 if law.law == "geometric" else math.ceil(12 * law.scale) + 2
    )
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-_share(law, values))
    return values, weights / weights.sum()


def energy_of(law: NoiseInfo, noise: np.ndarray) -> float:
    """The statistic of `scale_p_value` of some cells: noisy minus exact counts."""
    return float(_share(law, noise).sum())


def _failures(runs: np.ndarray, of: int, delta: float) -> np.ndarray:
    """P(so many of all runs fail), by Chernoff at the best u >= 1; delta < 1/2."""
    best = np.maximum(1.0, runs * (1 - 2 * delta) / (2 * delta * (of - runs)))
    logs = -runs * np.log(best) + of * np.log1p(2 * delta * (best - 1))
    return np.asarray(np.exp(np.minimum(0.0, logs)))


def _share(law: NoiseInfo, values: np.ndarray) -> np.ndarray:
    power: np.ndarray = np.abs(values) / law.scale
    square: np.ndarray = power**2 / 2
    return power if law.law == "geometric" else square


def _log_moment(law: NoiseInfo, grid: np.ndarray) -> np.ndarray:
    values, chances = law_of(law)
    share = _share(law, values)
    middle = len(values) // 2  # symmetric: zero and twice the positive side
    some, weight = share[middle:], np.where(values[middle:] > 0, 2.0, 1.0) * chances[middle:]
    return np.array([math.log(float(weight @ np.exp(-t * some))) for t in grid])
