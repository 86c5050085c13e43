"""Counter-based sampling streams: word i of a stream depends on (seed, stream, i) and nothing else.

Only for sampling from public tables. Noise never comes from here (see privacy.entropy).
Source: splitmix64 (Steele, Lea, Flood 2014), keyed by the stream.
"""

from __future__ import annotations

import numpy as np

from gibbous.core.context import mix64

GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def stream_key(seed: int, *stream: int) -> int:
    """64-bit key of one stream: of any whole number as seed, and numbers such as (set, sweep, column)."""
    key = _mix((seed & _MASK) ^ _mix((seed >> 64) & _MASK))
    for part in (len(stream), *stream):
        key = _mix((key + GOLDEN) & _MASK ^ _mix((part + 1) & _MASK))
    return key


def words(key: int, start: int, count: int) -> np.ndarray:
    """Words start..start+count of a stream: uint64 (count,), uniform."""
    return words_at(key, np.arange(start, start + count, dtype=np.uint64))


def words_at(key: int, numbers: np.ndarray) -> np.ndarray:
    """The words of a stream at some places: uint64, like `numbers`."""
    return mix64(numbers * np.uint64(GOLDEN) + np.uint64(key))


def uniforms(key: int, start: int, count: int) -> np.ndarray:
    """Words as float64 in [0, 1), 53 bits."""
    return (words(key, start, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
