"""Brute force: counts by a dictionary and Python integers, written without the code under test."""

from __future__ import annotations

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context, Hashed, Key, MinHash, Radix
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Counts, Dense

MASK = (1 << 64) - 1


def schema_of(sizes: list[int]) -> Schema:
    """Numeric columns of the given numbers of bins (a size is then a length, not a list)."""
    return Schema(
        tuple(
            Column(f"c{i}", "numeric", edges=tuple(float(e) for e in range(size + 1)))
            for i, size in enumerate(sizes)
        )
    )


def codes_of(schema: Schema, rows: int, rng: np.random.Generator, dtype: str = "") -> Codes:
    """Uniform codes, column-major."""
    columns = np.stack([rng.integers(0, size, rows) for size in schema.sizes])
    return Codes(schema, columns.astype(dtype or schema.code_dtype()).T, secret=True)


def context_of(
    schema: Schema,
    targets: tuple[int, ...],
    parents: tuple[int, ...] = (),
    key: Key = Radix(),  # noqa: B008
    *,
    seen: bool = False,
) -> Context:
    """A context with the sizes of the schema."""
    sizes = schema.sizes
    return Context(
        targets,
        parents,
        tuple(sizes[c] for c in targets),
        tuple(sizes[c] for c in parents),
        key,
        "seen" if seen else "dense",
    )


def count(context: Context, codes: Codes) -> dict[tuple[int, int], int]:
    """(key, level) -> count, for those that occur."""
    out: dict[tuple[int, int], int] = {}
    for row in codes.values.tolist():
        cell = key_of(context, row), radix(row, context.targets, context.target_sizes)
        out[cell] = out.get(cell, 0) + 1
    return out


def as_dict(counts: Counts) -> dict[tuple[int, int], int]:
    """What an engine returned, after checks of type, order and shape."""
    cells = counts.cells
    assert cells.values.dtype == np.int64
    if isinstance(cells, Dense):
        assert counts.context.support == "dense"
        assert cells.values.shape == (counts.context.keys, counts.context.levels)
        keys, levels = np.nonzero(cells.values)
        values = cells.values[keys, levels]
    else:
        assert counts.context.support == "seen"
        keys, levels, values = cells.keys, cells.levels, cells.values
        assert keys.dtype == levels.dtype == np.uint64
        assert keys.shape == levels.shape == values.shape
    assert (values > 0).all()
    found = list(zip(keys.tolist(), levels.tolist(), strict=True))
    assert found == sorted(set(found))
    return dict(zip(found, values.tolist(), strict=True))


def key_of(context: Context, row: list[int]) -> int:
    """Key of one row, by the words of core.context's docstrings."""
    key = context.key
    if isinstance(key, Radix):
        return radix(row, context.parents, context.parent_sizes)
    if isinstance(key, Hashed):
        total = sum(_word(key.seed, c, row[c]) for c in context.parents) & MASK
        return _top(total, key.buckets)
    assert isinstance(key, MinHash)
    total = 0
    for w in range(key.width):
        words = [_word(key.seed, c, row[c] * key.width + w) for c in context.parents]
        total = _mix(total ^ min(words, default=MASK))
    return _top(total, key.buckets)


def radix(row: list[int], columns: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """Mixed radix, the last column fastest."""
    total = 0
    for column, size in zip(columns, sizes, strict=True):
        total = total * size + row[column]
    return total


def _word(seed: int, column: int, item: int) -> int:
    start = (seed * 0x9E3779B97F4A7C15 + column * 0xD1B54A32D192ED03 + 1) & MASK
    return _mix(_mix((item + start) & MASK) ^ start)


def _top(word: int, buckets: int) -> int:
    return word * buckets >> 64


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)
