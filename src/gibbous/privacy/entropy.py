"""The only source of cryptographic words, and the maker of all noise that is added to counts.

Noise is drawn by OpenDP's exact integer samplers on the entropy of the operating system. Noise on
cells that are not listed is made of words from here (sampling/flows/grid.py). No seed
reaches this file, and nothing here keeps state between calls, so forked and spawned processes draw
independent noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gibbous.core.errors import EngineFailure, ParameterError
from gibbous.core.machine import beside, usable_cores
from gibbous.core.protocols import Progress, silent

CHUNK = 1 << 15
"""Cells a call into OpenDP: well under a second, so that Ctrl-C is heard between calls."""

GRID = 1 << 20
"""Scores of a choice are read in steps of sensitivity / GRID."""

SPARE = 4
"""Steps beyond the sensitivity that two scores may differ by: float error and rounding (noise.md)."""

_LARGEST_SCALE = 1 << 62
_LARGEST_STEP = 1 << 51  # up to here a float64 is exact to a quarter of a step


def words(count: int) -> np.ndarray:
    """Uniform 64-bit words, uint64 (count,), from the operating system; EngineFailure if it gives none."""
    out = np.empty(count, dtype=np.uint64)
    for start in range(0, count, 1 << 20):
        part = min(1 << 20, count - start)
        out[start : start + part] = np.frombuffer(_urandom(8 * part), dtype=np.uint64)
    return out


def geometric(values: np.ndarray, scale: Fraction, *, progress: Progress = silent) -> np.ndarray:
    """Add two-sided geometric (discrete Laplace) noise, P(g) proportional to exp(-|g| / scale).

    Args:
        values: int64, any shape; secret.
        scale: b in counts, > 0. A scale that no float64 holds is rounded up to the next that one does.
        progress: told ("noise cells", done, total), in whole chunks.
    Returns:
        int64, the same shape. Sums beyond the int64 range saturate at its ends; they do not wrap.
    Raises:
        ParameterError: the scale is not in (0, 2^62).
        EngineFailure: OpenDP is missing, or prices its noise higher than 1 / scale.
    Guarantee:
        (L1 / scale)-DP for inputs that differ by L1 in total. Basis: proven (docs/proofs/noise.md).
    Source:
        [Ghosh, Roughgarden, Sundararajan 2009]; sampler of [Canonne, Kamath, Steinke 2020, alg. 2].
    """
    return _noised(values, _sampler("geometric", noise_scale(scale)), progress)


def gaussian(values: np.ndarray, sigma: Fraction, *, progress: Progress = silent) -> np.ndarray:
    """Add discrete Gaussian noise, P(g) proportional to exp(-g^2 / (2 sigma^2)).

    Args:
        values: int64, any shape; secret.
        sigma: in counts, > 0. A sigma that no float64 holds is rounded up to the next that one does.
        progress: told ("noise cells", done, total), in whole chunks.
    Returns:
        int64, the same shape. Sums beyond the int64 range saturate at its ends; they do not wrap.
    Raises:
        ParameterError: sigma is not in (0, 2^62).
        EngineFailure: OpenDP is missing, or prices its noise higher than 1 / (2 sigma^2).
    Guarantee:
        L2^2 / (2 sigma^2)-zCDP for inputs that differ by L2 in the Euclidean norm. Basis: proven
        (docs/proofs/noise.md).
    Source:
        [Canonne, Kamath, Steinke 2020, prop. 5 and alg. 3].
    """
    return _noised(values, _sampler("gaussian", noise_scale(sigma)), progress)


def exponential_choice(
    scores: np.ndarray, *, epsilon: Fraction, sensitivity: Fraction | int
) -> int:
    """Choose one candidate with P proportional to exp(epsilon * score / (2 * sensitivity)).

    Scores are rounded to whole steps of sensitivity / 2^20 and then compared exactly, with Gumbel
    noise of arbitrary precision (OpenDP's noisy max under the zCDP measure; under the pure measure
    it would be permute-and-flip, whose loss has no bounded range). The noise is scaled for four
    steps more than the sensitivity, which covers that rounding and float error in the scores.
    Scores beyond 2^31 sensitivities are clipped there.

    Args:
        scores: float64 (candidates,), at least one; secret. NaN and -inf are never chosen while a
            finite score exists; they must not depend on records.
        epsilon: > 0, nats.
        sensitivity: the most one privacy unit can change any score; > 0.
    Returns:
        Index of the chosen candidate.
    Raises:
        ParameterError: epsilon or sensitivity is not > 0, or there is no candidate.
        EngineFailure: OpenDP is missing, or prices the choice higher than epsilon^2 / 8.
    Guarantee:
        epsilon-DP, epsilon-bounded range, hence epsilon^2 / 8-zCDP, as long as the float error of
        each score is at most sensitivity / 2^20. Basis: proven (docs/proofs/noise.md).
    Source:
        [McSherry, Talwar 2007]; range and zCDP: [Dong, Durfee, Rogers 2020; Cesar, Rogers 2021].
    """
    flat = np.asarray(scores, dtype=np.float64).ravel()
    step = Fraction(sensitivity) / GRID
    if flat.size == 0 or Fraction(epsilon) <= 0 or step <= 0:
        raise ParameterError(
            "CHOICE",
            "A private choice was asked for without candidates, epsilon or sensitivity.",
            "It needs at least one candidate, epsilon > 0 and sensitivity > 0.",
            "Correct the method; this is not a matter of the data.",
        )
    scale = noise_scale(2 * (GRID + SPARE) / Fraction(epsilon))
    return int(_chooser(scale, Fraction(epsilon))(_whole_steps(flat, step)))


def noise_scale(scale: Fraction) -> Fraction:
    """The smallest float64 at or above a scale in (0, 2^62), which is really used; else ParameterError."""
    if not 0 < scale < _LARGEST_SCALE:
        raise ParameterError(
            "SCALE",
            f"The noise has scale {'0 or less' if scale <= 0 else '2^62 or more'}.",
            "A scale is > 0 and below 2^62.",
            "Choose an epsilon between 1e-6 and 100.",
        )
    number = float(scale)
    if Fraction(number) < scale or number == 0.0:
        number = math.nextafter(number, math.inf)
    return Fraction(number)


def _urandom(count: int) -> bytes:
    try:
        return os.urandom(count)
    except (NotImplementedError, OSError):
        raise EngineFailure(
            "NOENTROPY",
            "The operating system gives no random bytes.",
            "Noise needs getrandom or its equivalent; there is no other source.",
            "Run where the system's random number generator is available.",
        ) from None


def _noised(
    values: np.ndarray, sampler: Callable[[np.ndarray], list[int]], progress: Progress
) -> np.ndarray:
    flat = np.ascontiguousarray(values, dtype=np.int64).ravel()
    out = np.empty_like(flat)
    starts = range(0, flat.size, CHUNK)
    total = len(starts) * CHUNK

    def draw(start: int) -> None:
        out[start : start + CHUNK] = sampler(flat[start : start + CHUNK])

    # OpenDP lets other threads run while it samples, and each thread has a generator of its own there,
    # which the operating system seeds: who draws a chunk changes neither its law nor its price.
    threads = min(usable_cores(), len(starts))
    with beside(draw, starts, threads, name="gibbous-noise") as drawn:
        for start in starts:
            progress("noise cells", start, total)
            next(drawn)
    if flat.size:
        progress("noise cells", total, total)
    return out.reshape(np.shape(values))


def _whole_steps(scores: np.ndarray, step: Fraction) -> np.ndarray:
    # Clipping cannot widen a difference; division and rounding add at most 1.5 steps to one, the
    # scores' own error at most 2.
    top = float(_LARGEST_STEP)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(scores / float(step))
    steps = np.nan_to_num(steps, nan=-top, posinf=top, neginf=-top)
    return np.asarray(np.clip(steps, -top, top).astype(np.int64))


@cache
def _opendp() -> Any:
    # Imported here: loading it takes a third of a second that most commands do not need.
    try:
        import opendp.domains
        import opendp.measurements
        import opendp.measures
        import opendp.metrics
        import opendp.mod
    except ImportError:
        raise EngineFailure(
            "NOOPENDP",
            "OpenDP is not installed, or does not load on this machine.",
            "All noise is drawn by opendp 0.16.",
            "Install it with: pip install 'opendp>=0.16,<0.17'.",
        ) from None
    opendp.mod.enable_features("contrib")
    return opendp


@lru_cache(maxsize=64)
def _sampler(law: str, scale: Fraction) -> Callable[[np.ndarray], list[int]]:
    dp = _opendp()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    if law == "geometric":
        noise = dp.measurements.make_laplace(domain, dp.metrics.l1_distance(T="i64"), float(scale))
        _check_price(Fraction(noise.map(1)), 1 / scale)
    else:
        noise = dp.measurements.make_gaussian(domain, dp.metrics.l2_distance(T="f64"), float(scale))
        _check_price(Fraction(noise.map(1.0)), 1 / (2 * scale * scale))
    return noise  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _chooser(scale: Fraction, epsilon: Fraction) -> Callable[[np.ndarray], int]:
    dp = _opendp()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    measurement = dp.measurements.make_noisy_max(
        domain,
        dp.metrics.linf_distance(T="i64"),
        dp.measures.zero_concentrated_divergence(),
        float(scale),
    )
    _check_price(Fraction(measurement.map(GRID + SPARE)), epsilon * epsilon / 8)
    return measurement  # type: ignore[no-any-return]


def _check_price(theirs: Fraction, ours: Fraction) -> None:
    # OpenDP answers in float64, rounded up, some operations deep: four units in the last place.
    if theirs > ours * (1 + Fraction(4, 1 << 52)):
        raise EngineFailure(
            "NOISEPRICE",
            "OpenDP prices the noise higher than gibbous does.",
            "The price charged must cover the price that the sampler states.",
            "Report this with the versions of gibbous and opendp.",
        )
