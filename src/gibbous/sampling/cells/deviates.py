"""Normal and gamma deviates from seeded words: a place of a stream in, always the same number out.

Only for drawing from public models. Noise never comes from here (see privacy.entropy).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbous.core.context import mix64
from gibbous.core.stream import GOLDEN, stream_key

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Coefficients of Wichura (1988), AS 241, PPND16; highest power last.
_NEAR = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_FAR = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FARTHEST = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def uniforms(numbers: np.ndarray, key: int) -> Floats:
    """Uniforms strictly inside (0, 1) at chosen places, uint64, of a stream."""
    word = mix64(numbers * np.uint64(GOLDEN) + np.uint64(key))
    # 52 bits and a half: exact in float64, hence never 0 and never 1.
    found: Floats = ((word >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return found


def normals(numbers: np.ndarray, key: int) -> Floats:
    """Standard normal deviates at chosen places of a stream, by the inverse of the normal law."""
    return normal_quantile(uniforms(numbers, key))


def normal_quantile(share: np.ndarray) -> Floats:
    """The inverse of the standard normal distribution function, to about 1e-16 relative.

    Source:
        Wichura (1988), algorithm AS 241, PPND16.
    """
    centered = share - 0.5
    found: Floats = np.empty_like(centered)
    near = np.abs(centered) <= 0.425
    inside = centered[near]
    found[near] = inside * _ratio(_NEAR, 0.180625 - inside * inside)
    outer = share[~near]
    tail = np.sqrt(-np.log(np.minimum(outer, 1.0 - outer)))
    middle = tail <= 5.0
    size = np.where(middle, _ratio(_FAR, tail - 1.6), _ratio(_FARTHEST, tail - 5.0))
    found[~near] = np.where(outer < 0.5, -size, size)
    return found


def log_gammas(shapes: np.ndarray, *stream: int) -> Floats:
    """Logarithms of gamma deviates, one a shape; minus infinity for shape 0.

    Args:
        shapes: float64 (count,), >= 0.
    Source:
        Marsaglia and Tsang (2000); below shape 1 by a power of a uniform, in logarithms, so that
        tiny shapes do not vanish.
    """
    places = np.arange(len(shapes), dtype=np.uint64)
    raised = np.where(shapes < 1.0, shapes + 1.0, shapes)
    third = raised - 1.0 / 3.0
    slope = 1.0 / np.sqrt(9.0 * third)
    found = np.zeros(len(shapes))
    left = np.arange(len(shapes))
    attempt = 0
    while len(left):
        key = stream_key(*stream, 0, attempt)
        normal = normals(places[left], key)
        cube = (1.0 + slope[left] * normal) ** 3
        point = uniforms(places[left], stream_key(*stream, 1, attempt))
        allowed = cube > 0
        logs = np.log(np.where(allowed, cube, 1.0))
        bound = 0.5 * normal**2 + third[left] * (1.0 - cube + logs)
        taken = allowed & (np.log(point) < bound)
        found[left[taken]] = np.log(third[left[taken]]) + logs[taken]
        left = left[~taken]
        attempt += 1
    small = shapes < 1.0
    point = uniforms(places[small], stream_key(*stream, 2))
    with np.errstate(divide="ignore"):
        found[small] += np.where(shapes[small] > 0, np.log(point) / shapes[small], -np.inf)
    return found


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], at: np.ndarray) -> Floats:
    values = []
    for coefficients in parts:
        total = np.full_like(at, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total * at + coefficient
        values.append(total)
    found: Floats = values[0] / values[1]
    return found
