"""Seeded draws for simulated studies: uniform words in, random numbers of a law out, vectorized.

Every draw is the inverse of a distribution function at a counter-based uniform (decision 4), so that
repeat r of a setting is the same for any number of repeats and processes. These are simulations of
what a mechanism would do: nothing here protects anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbous.core.extras import need
from gibbous.core.stream import stream_key, words

Floats = npt.NDArray[np.float64]
_STREAM = 0x73747564  # "stud": apart from the streams of rows and of evaluations


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of one part of a study; another `path` of numbers, other draws."""

    seed: int
    path: tuple[int, ...]

    def at(self, *more: int) -> Draws:
        """The draws of a part of this part."""
        return Draws(self.seed, (*self.path, *more))

    def uniform(self, *shape: int, start: int = 0) -> Floats:
        """Uniform on the open interval (0, 1), float64 of the shape, first axis outermost.

        Args:
            start: how many rows (of the first axis) of the same stream come before.
        """
        count = int(np.prod(shape))
        skipped = start * (count // shape[0] if shape[0] else 0)
        drawn = words(stream_key(self.seed, _STREAM, *self.path), skipped, count)
        unit: Floats = ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return unit.reshape(shape)

    def normal(self, *shape: int) -> Floats:
        """Standard normal."""
        return np.asarray(_special().ndtri(self.uniform(*shape)))

    def laplace(self, *shape: int) -> Floats:
        """Laplace of mean 0 and scale 1."""
        return laplace(self.uniform(*shape))

    def gamma(self, a: npt.ArrayLike, *shape: int) -> Floats:
        """Gamma of shape a (broadcast) and rate 1."""
        return np.asarray(_special().gammaincinv(a, self.uniform(*shape)))

    def beta(self, a: npt.ArrayLike, b: npt.ArrayLike, *shape: int) -> Floats:
        """Beta of a and b (broadcast)."""
        return beta(self.uniform(*shape), a, b)

    def binomial(self, n: npt.ArrayLike, p: npt.ArrayLike, *shape: int) -> Floats:
        """Binomial of n trials and probability p (broadcast), as float64."""
        return binomial(self.uniform(*shape), n, p)


def laplace(unit: Floats) -> Floats:
    """Laplace of scale 1 by its inverse."""
    side = np.minimum(unit, 1 - unit)
    return np.asarray(np.sign(unit - 0.5) * -np.log(2 * side))


def beta(unit: Floats, a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Beta by its inverse; normal to second order where a and b are both beyond 10^7.

    The inverse of the incomplete beta function is slow there, and the skew that the normal leaves out
    is below 2 10^-3 of a standard deviation at four of them.
    """
    special = _special()
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    large = np.minimum(a, b) > 1e7
    if not large.any():
        return np.asarray(special.betaincinv(a, b, unit))
    a, b = (np.broadcast_to(part, unit.shape) for part in (a, b))
    large = np.broadcast_to(large, unit.shape)
    mean = a / (a + b)
    out: Floats = mean + np.sqrt(mean * (1 - mean) / (a + b + 1)) * special.ndtri(unit)
    small = ~large
    out[small] = special.betaincinv(a[small], b[small], unit[small])
    return out


def binomial(unit: Floats, n: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Binomial by its inverse, exact at p = 0 and p = 1."""
    n, p = np.asarray(n, dtype=np.float64), np.clip(np.asarray(p, dtype=np.float64), 0.0, 1.0)
    counts = need("scipy.stats", "evaluate").binom.ppf(unit, n, p)
    counts = np.where(p <= 0, 0.0, np.where(p >= 1, n, counts))
    return np.asarray(np.clip(counts, 0.0, n))


def multinomial(draws: Draws, n: npt.ArrayLike, p: Floats) -> Floats:
    """Counts of n trials over cells: binomials of what is left, float64 of the shape of p.

    Args:
        n: trials, broadcast over all axes of p but the last.
        p: probabilities, (..., cells); each row sums to 1.
    """
    cells = p.shape[-1]
    left = np.broadcast_to(np.asarray(n, dtype=np.float64), p.shape[:-1]).copy()
    tail = np.cumsum(p[..., ::-1], axis=-1)[..., ::-1]
    counts = np.zeros(p.shape)
    for cell in range(cells - 1):
        share = np.divide(p[..., cell], tail[..., cell], out=np.zeros_like(left),
                          where=tail[..., cell] > 0)  # fmt: skip
        counts[..., cell] = draws.at(cell).binomial(left, share, *left.shape)
        left -= counts[..., cell]
    counts[..., -1] = left
    return counts


def _special() -> Any:
    return need("scipy.special", "evaluate")
