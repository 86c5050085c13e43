"""Seeded row numbers for references and splits: resampled, permuted, split; no global generator."""

from __future__ import annotations

import numpy as np

from gibbous.core.stream import stream_key, uniforms, words

_STREAM = 0x6576616C  # "eval": apart from the streams that drew the rows themselves


def resampled(rows: int, size: int, seed: int, *stream: int) -> np.ndarray:
    """`size` row numbers drawn with replacement: int64 (size,)."""
    places = uniforms(stream_key(seed, _STREAM, 0, *stream), 0, size) * rows
    return np.minimum(places.astype(np.int64), max(rows - 1, 0))


def permutation(rows: int, seed: int, *stream: int) -> np.ndarray:
    """A random order of the row numbers: int64 (rows,)."""
    return np.asarray(np.argsort(words(stream_key(seed, _STREAM, 1, *stream), 0, rows)))


def sampled(rows: int, size: int, seed: int, *stream: int) -> np.ndarray:
    """At most `size` different row numbers, in increasing order: int64."""
    if size >= rows:
        return np.arange(rows)
    return np.sort(permutation(rows, seed, *stream)[:size])


def number(seed: int, *stream: int) -> int:
    """A seed for a library that takes a whole number: 0 <= it < 2^31."""
    return stream_key(seed, _STREAM, 2, *stream) >> 33
