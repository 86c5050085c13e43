"""Lower bounds of mu, of Gaussian differential privacy, from the coins that an attack guessed right.

Canaries of one run share its noise, so their guesses do not count as independent; runs do. Whatever a
mu-GDP method does, the expected share of right guesses of a run is at most Phi(mu / 2). The bound tests
the mean of these shares, numbers in [0, 1], and assumes nothing else of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gibbous.contract.auditor.canaries import Seen
from gibbous.contract.auditor.findings import Evidence
from gibbous.core.claim import Claim

BETS = np.geomspace(0.01, 0.99, 16)  # shares of what can be lost in one run; all are tried at once
STEPS = 40  # halvings of an interval of chances
LARGEST = 1 - 1e-9  # chance of a right guess; mu = 12
OFTEN = 1.645  # standard errors: 95 of 100
POINTS = 200  # quantiles of a run's share


def mu_bound(right: np.ndarray, level: float) -> float:
    """The largest mu that these runs refute at `level`; 0 when they refute none.

    If the mean is at most p, the wealth of someone who bets the share c of what can be lost in each
    run, prod (1 + c (right / p - 1)), has mean at most 1, and so has the average over several c. It
    reaches 1 / level with probability at most level (Markov), at any time somebody looks (Ville).

    Args:
        right: share of right guesses of each independent run, in [0, 1].
        level: probability of a bound above the truth.
    Source:
        [Waudby-Smith, Ramdas 2024] for the mean; [Dong, Roth, Su 2022] for Phi(mu / 2), which is the
        largest (power + 1 - false alarms) / 2 of the trade-off function of mu.
    """
    shares, counts = np.unique(right, return_counts=True)
    low, high = 0.5, LARGEST
    if not _refuted(shares, counts, low, level):
        return 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _refuted(shares, counts, middle, level) else (low, middle)
    return _mu(low)


def smallest_caught(mu: float, canaries: int, runs: int, level: float) -> float:
    """The smallest true mu that 95 of 100 such audits flag where `mu` is claimed; inf: none.

    Args:
        mu: that is claimed.
        canaries: of each run, each guessed as well as the true mu allows, with noise of its own.
    """
    from scipy.stats import binom

    claimed = _chance(mu)

    def flagged(chance: float) -> bool:
        points = binom.ppf((np.arange(POINTS) + 0.5) / POINTS, canaries, chance) / canaries
        less = OFTEN * math.sqrt(chance * (1 - chance) / (canaries * runs))
        counts = np.full(POINTS, runs / POINTS)
        return _refuted(np.maximum(points - less, 0.0), counts, claimed, level)

    low, high = claimed, LARGEST
    if not flagged(high):
        return math.inf
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if flagged(middle) else (middle, high)
    return _mu(high)


def by_mu(tables: Sequence[tuple[Evidence, Sequence[Seen]]], total: Claim) -> Evidence | None:
    """The largest bound of mu from the runs of some setups, each at its share of the level.

    A coin is guessed heads when the sum of the canary's noisy cells, each over its variance, is past
    half of what heads add: fixed in advance, and the best test where the noise is Gaussian.
    """
    claimed = float(total.mu) if total.is_dp else 0.0
    tables = [(told, seen) for told, seen in tables if any(run.by_law.any() for run in seen)]
    if not claimed or not tables:
        return None
    share = 1 / len(tables)
    found = [_bounded(told, seen, claimed, told.level * share) for told, seen in tables]
    best = max(found, key=lambda one: one.bound or 0.0)
    return replace(best, level=tables[0][0].level)


def _bounded(told: Evidence, seen: Sequence[Seen], claimed: float, level: float) -> Evidence:
    right = np.array([_right(run).mean() for run in seen])
    canaries = len(seen[0].coins)
    reach = smallest_caught(claimed, canaries, len(seen), level)
    noise = _stated_mu(seen) / reach
    guessed = f"{100 * right.mean():.1f} % of {canaries * len(seen):,} coins guessed right"
    return Evidence(
        kind="mu",
        name=told.name,
        relation=told.relation,
        runs=len(seen),
        violated=(bound := mu_bound(right, level)) > claimed,
        claimed=claimed,
        bound=bound,
        ceiling=mu_bound(np.ones(len(seen)), level),
        caught=noise,
        words=guessed,
    )


def _right(run: Seen) -> np.ndarray:
    """Of each canary: 1 if its coin is guessed right, a half where nothing is known of it."""
    guess = np.sign(run.by_law)
    return np.asarray((1 + np.where(run.coins, guess, -guess)) / 2)


def _stated_mu(seen: Sequence[Seen]) -> float:
    """The mu that the stated noise leaves to the attack: its log ratio differs by mu^2 on average."""
    ratios, coins = (
        np.concatenate([getattr(run, name) for run in seen]) for name in ("by_law", "coins")
    )
    if coins.all() or not coins.any():
        return 0.0
    return math.sqrt(max(0.0, float(ratios[coins].mean() - ratios[~coins].mean())))


def _refuted(shares: np.ndarray, counts: np.ndarray, chance: float, level: float) -> bool:
    """Whether the wealth of the bettors reaches 1 / level if the mean is `chance` at most."""
    growth = np.log1p(BETS[:, None] * (shares / chance - 1)) @ counts
    most = float(growth.max())
    wealth = most + math.log(float(np.exp(growth - most).mean()))
    return wealth >= -math.log(level)


def _chance(mu: float) -> float:
    return min(LARGEST, (1 + math.erf(mu / 2 / math.sqrt(2))) / 2)


def _mu(chance: float) -> float:
    from scipy.special import ndtri

    return 2 * float(ndtri(chance))
