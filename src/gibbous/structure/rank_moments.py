"""Shares of two ordered columns in, the same with the rank dependence that their noisy table shows out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibbous.structure.smoothing import rake

TRIES = 8  # of a secant on the exponent
MOST = 60.0  # of the exponent, for scores between -1/2 and 1/2: far more than any table needs


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
    # The product sums to 0 over the table of independent columns: what margins say is taken off.
    left = float((product * (counts / rows - np.multiply.outer(*own))).sum())
    left -= float((product * (shares - np.multiply.outer(*own))).sum())
    error = sigma / rows * math.sqrt(float(np.square(product).sum()))
    if abs(left) <= error:
        return shares
    wanted = float((product * shares).sum()) + left * (1 - (error / left) ** 2)
    spread = max(float((np.square(product) * shares).sum()), 1e-12)
    tilt, best, have = 0.0, shares, float((product * shares).sum())
    for _ in range(TRIES):
        tilt = float(np.clip(tilt + (wanted - have) / spread, -MOST, MOST))
        best = rake(shares * np.exp(tilt * product), own)
        have = float((product * best).sum())
    return best


def _ranks(own: np.ndarray, levels: int) -> np.ndarray:
    """Mean rank of each level, as a share of all that have one, less the mean; 0 for codes without."""
    ranks = np.zeros(len(own))
    ordered = own[:levels] / max(float(own[:levels].sum()), 1e-12)
    ranks[:levels] = np.cumsum(ordered) - ordered / 2 - 0.5
    return ranks
