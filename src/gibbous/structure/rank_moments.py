"""Shares of two ordered columns in, the same with the rank dependence that their noisy table shows out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from gibbous.structure.smoothing import rake

TRIES = 8  # of a secant on the exponent
MOST = 15.0  # of the exponent in any cell: far more than any table needs


def ranked(
    shares: np.ndarray,
    counts: np.ndarray,
    sigma: float,
    own: Sequence[np.ndarray],
    levels: Sequence[int],
) -> np.ndarray:
    """Shares whose mean product of ranks is the noisy one, as far as that is known; margins stay.

    The noise taken out of single cells takes dependence with it: each gives way to what is expected
    of it. One sum over all cells carries far less noise than they do. Shares are tilted by exp(t x rank x
    rank) up to what the noisy sum says, less what its noise explains.

    Args:
        shares: of pairs, float64 (levels, levels), sum 1.
        counts: noisy, of the same cells.
        sigma: standard deviation of one cell's noise, in counts.
        own: shares of each column alone.
        levels: of each column, those in order; codes after them, such as missing, have no rank.
    Source:
        [Goodman 1979] for the one parameter of ordered tables; [James and Stein 1961] for what is kept.
    """
    product = np.multiply.outer(*(_ranks(one, n) for one, n in zip(own, levels, strict=True)))
    rows = max(1.0, float(counts.sum()))
    error = sigma / rows * math.sqrt(float(np.square(product).sum()))
    return _tilted(shares, own, product, product, float((product * counts).sum()) / rows, error)


def halved(
    shares: np.ndarray,
    own: Sequence[np.ndarray],
    levels: Sequence[int],
    covariance: float,
    error: float,
) -> np.ndarray:
    """As `ranked`, by how often both columns are on one side of their middle.

    Args:
        shares, own, levels: as for `ranked`.
        covariance: noisy: of `contrast` in the two columns, over all rows.
        error: standard deviation of its noise.
    Source:
        [Blomqvist 1950] for the measure of dependence; a tilt by normal scores, which a normal pair has.
    """
    pairs = list(zip(own, levels, strict=True))
    product = np.multiply.outer(*(_scores(_ranks(one, n)) for one, n in pairs))
    sides = np.multiply.outer(*(contrast(one, halves(one, n))[halves(one, n)] for one, n in pairs))
    return _tilted(shares, own, product, sides, covariance, error)


def halves(own: np.ndarray, levels: int) -> np.ndarray:
    """0 for levels below the cut nearest to the middle of their shares, 1 above, 2 for other codes."""
    below = np.cumsum(own[:levels])[:-1] / max(float(own[:levels].sum()), 1e-12)
    cut = int(np.argmin(np.abs(below - 0.5))) + 1
    return np.array([0] * cut + [1] * (levels - cut) + [2] * (len(own) - levels))


def contrast(own: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """A number for below and one for above, 1 apart, with mean 0; and 0 for other codes."""
    mass = np.bincount(sides, weights=own, minlength=3)
    above = float(mass[1] / max(mass[0] + mass[1], 1e-12))
    return np.array([-above, 1 - above, 0.0])


def _tilted(
    shares: np.ndarray,
    own: Sequence[np.ndarray],
    product: np.ndarray,
    seen: np.ndarray,
    noisy: float,
    error: float,
) -> np.ndarray:
    """Shares times exp(t x product), raked to a noisy mean of `seen`, less what its noise explains."""
    have = float((seen * shares).sum())
    left = noisy - have
    if abs(left) <= error:
        return shares
    wanted = have + left * (1 - (error / left) ** 2)
    spread = max(float((product * seen * shares).sum()), 1e-12)
    most = MOST / max(float(np.abs(product).max()), 1e-12)
    tilt, best = 0.0, shares
    for _ in range(TRIES):
        tilt = float(np.clip(tilt + (wanted - have) / spread, -most, most))
        best = rake(shares * np.exp(tilt * product), own)
        have = float((seen * best).sum())
    return best


def _ranks(own: np.ndarray, levels: int) -> np.ndarray:
    """Mean rank of each level, as a share of all that have one, less the mean; 0 for codes without."""
    ranks = np.zeros(len(own))
    ordered = own[:levels] / max(float(own[:levels].sum()), 1e-12)
    ranks[:levels] = np.cumsum(ordered) - ordered / 2 - 0.5
    return ranks


def _scores(ranks: np.ndarray) -> np.ndarray:
    """Normal quantiles of ranks between -1/2 and 1/2."""
    return np.array([NormalDist().inv_cdf(min(max(rank + 0.5, 1e-9), 1 - 1e-9)) for rank in ranks])
