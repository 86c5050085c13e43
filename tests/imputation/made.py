"""Small tables for the imputation tests, and words that repeat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gibbous.core.schema import Column, Impossible, Schema
from gibbous.core.stream import stream_key, words
from gibbous.sampling.imputation.records import Records


def schema_of(sizes: tuple[int, ...], impossible: tuple[Impossible, ...] = ()) -> Schema:
    return Schema(
        tuple(Column(f"x{j}", "nominal", levels=tuple(range(n))) for j, n in enumerate(sizes)),
        impossible=impossible,
    )


def records_from(values: np.ndarray, sizes: tuple[int, ...]) -> Records:
    """Distinct rows of values (records, columns)."""
    distinct, counts = np.unique(values, axis=0, return_counts=True)
    codes = np.ascontiguousarray(distinct.T.astype(np.int32)).reshape(len(sizes), -1)
    return Records(codes, counts.astype(np.int64), sizes)


def linked(rows: int, seed: int = 3) -> np.ndarray:
    """Three columns of 3, 4 and 2 codes: x1 leans to x0, x2 to high x1."""
    rng = np.random.default_rng(seed)
    first = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    second = np.where(rng.random(rows) < 0.6, first, rng.integers(0, 4, rows))
    third = rng.random(rows) < 0.15 + 0.2 * second
    return np.stack([first, second, third.astype(int)], axis=1)


LINKED = (3, 4, 2)


def repeated(seed: int) -> Callable[[int], np.ndarray]:
    """A source of words that gives the same words again when it is made again."""
    asked = [0]

    def more(count: int) -> np.ndarray:
        asked[0] += 1
        return words(stream_key(seed, asked[0]), 0, count)

    return more
