"""Layout: how a context is counted. Public facts and a number of rows in; path, arrays, bytes out.

Routes:
    small   dense, few cells: many such tables in one pass over the records;
    dense   every cell has a place in memory;
    sort    only keys that occur: cell ids of all rows, sorted, run-length coded;
    pairs   as sort, where keys x levels passes 63 bits: (key, level) pairs are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from gibbous.core.context import WORD, Context, MinHash, Radix, hash_weights, mix64, strides
from gibbous.core.errors import MAY_BE_SPENT, EngineFailure, ResourceLimit
from gibbous.core.moment import Moment
from gibbous.core.schema import Schema

Route = Literal["small", "dense", "sort", "pairs"]
SMALL = 4096  # cells of a table that is counted in several copies
GROUP = 4096  # words of a group of parents that are looked up at once (32 KB)
LOOKUP = 1 << 16  # words of all combinations of parents up to which keys are looked up
MOST_RECORDS = 1 << 40  # scores of private choices are proven up to here (docs/proofs/noise.md)
SPLIT = 1 << 17  # rows below which a table is counted by one thread
PARTS = 64 << 20  # bytes of partial tables that threads may hold of one context
THREAD = 2 << 20  # bytes of buffers and of small tables, a thread


class Terms(NamedTuple):
    """A mixed-radix sum: columns int64 (terms,), steps uint64 (terms,)."""

    cols: np.ndarray
    steps: np.ndarray

    @staticmethod
    def of(columns: Sequence[int], sizes: Sequence[int], factor: int = 1) -> Terms:
        """Terms of some columns, the last fastest, times `factor`; one-level columns add none."""
        steps = [step * factor for step in strides(tuple(sizes))]
        kept = [(c, s) for c, s, size in zip(columns, steps, sizes, strict=True) if size > 1]
        return Terms(
            np.array([c for c, _ in kept], dtype=np.int64),
            np.array([s for _, s in kept], dtype=np.uint64),
        )


class HashGroups(NamedTuple):
    """Parents of a hashed key in groups whose words are looked up together.

    Attributes:
        first: int64 (groups + 1,): where the terms of each group start in `terms`.
        base: int64 (groups + 1,): where the words of each group start in `words`.
        words: uint64 (words,) to be summed (Hashed), or (width, words) to be minimized (MinHash).
        shift: uint64, 64 - bits of the key, for at least 2 buckets.
    """

    first: np.ndarray
    terms: Terms
    base: np.ndarray
    words: np.ndarray
    shift: np.uint64


def choose_route(context: Context, rows: int, limit: int) -> Route:
    """Which way a context is counted: dense tables where asked, or where they are not mostly empty.

    All tables together may take `limit` bytes.
    """
    cells = context.cells
    if context.support == "dense" or (cells <= 2 * rows and 8 * cells <= limit):
        small = cells <= SMALL and isinstance(context.key, Radix)
        return "small" if small else "dense"
    return "sort" if cells <= WORD else "pairs"


def tables(contexts: Sequence[Context], rows: int, limit: int) -> list[np.ndarray | None]:
    """Zeros, int64 (cells,), of each context that is counted densely by itself; None of others."""
    return [
        np.zeros(c.cells, dtype=np.int64) if choose_route(c, rows, limit) == "dense" else None
        for c in contexts
    ]


def cell_terms(context: Context, factor: int = 1) -> Terms:
    """Terms of the cell id key * levels + level of a mixed-radix context."""
    sizes = context.parent_sizes + context.target_sizes
    return Terms.of(context.columns, sizes, factor)


def hash_groups(context: Context) -> HashGroups:
    """Combine the words of neighboring parents, so that a row needs fewer look-ups."""
    key = context.key
    assert not isinstance(key, Radix)
    width = (key.width,) if isinstance(key, MinHash) else ()
    groups = _grouped(context.parent_sizes, GROUP // math.prod(width))
    weights = hash_weights(context)
    cols, steps, words = [], [], []
    for group in groups:
        sizes = tuple(context.parent_sizes[j] for j in group)
        terms = Terms.of([context.parents[j] for j in group], sizes)
        cols.append(terms.cols)
        steps.append(terms.steps)
        words.append(_combined([weights[j] for j in group], minimum=isinstance(key, MinHash)))
    joined = np.concatenate(words) if words else np.empty((0, *width), dtype=np.uint64)
    return HashGroups(
        first=_starts([len(c) for c in cols]),
        terms=Terms(_joined(cols, np.int64), _joined(steps, np.uint64)),
        base=_starts([len(w) for w in words]),
        words=np.ascontiguousarray(joined.T),
        shift=np.uint64(64 - (key.buckets.bit_length() - 1)),
    )


def key_table(context: Context) -> np.ndarray | None:
    """Key of every combination of parents, uint64 (combinations,); None if there are too many.

    For a hashed key of at least 2 buckets.
    """
    key, combinations = context.key, math.prod(context.parent_sizes)
    width = key.width if isinstance(key, MinHash) else 1
    if combinations * width > LOOKUP or isinstance(key, Radix) or not context.parents:
        return None
    words = _combined(hash_weights(context), minimum=isinstance(key, MinHash))
    if isinstance(key, MinHash):
        total = np.zeros(combinations, dtype=np.uint64)
        for one in words.T:
            total = mix64(total ^ one)
        words = total
    return words >> np.uint64(64 - (key.buckets.bit_length() - 1))


def check_contexts(
    contexts: Sequence[Context], schema: Schema, *, rows: int = 0, state: str = MAY_BE_SPENT
) -> None:
    """Refuse contexts that do not belong to the schema, and more records than scores are exact for.

    Args:
        rows: records; 0 where they were checked before.
        state: what was charged by then.
    Raises:
        EngineFailure: a column is not there, or its size differs.
        ResourceLimit: more than 2^63 keys or levels, or more than 2^40 records.
    """
    if rows > MOST_RECORDS:
        raise ResourceLimit(
            "RECORDS",
            "There are more than 2^40 records.",
            "Scores of private choices are proven exact for at most so many.",
            "Divide the records by a public rule, and release the parts apart.",
            state=state,
        )
    sizes = schema.sizes
    for context in contexts:
        told = context.parent_sizes + context.target_sizes
        inside = all(0 <= c < len(sizes) for c in context.columns)
        if not inside or told != tuple(sizes[c] for c in context.columns):
            raise EngineFailure(
                "CONTEXT",
                "A context names columns or sizes that the schema does not have.",
                "Positions and sizes are those of the scanned schema.",
                "Build contexts with gibbous.structure from the same schema.",
                state=state,
            )
        if context.keys > WORD or context.levels > WORD:
            raise ResourceLimit(
                "CELLS",
                f"A table has {_power(context.keys)} keys and {_power(context.levels)} levels.",
                "Each may be at most 2^63.",
                "Use fewer columns in one table, coarser bins, or hashed keys.",
                state=state,
            )


def estimate(
    contexts: Sequence[Context], rows: int, *, threads: int, limit: int, slab: int | None = None
) -> int:
    """Bytes that `tally` needs at its peak, beyond the records; an upper bound.

    Records on disk are counted `slab` rows at a time.
    """
    results, working = 0, []
    at_once = rows if slab is None else min(rows, slab)
    for context in contexts:
        route = choose_route(context, rows, limit)
        occupied = min(rows, context.cells)
        work = 0
        if not isinstance(context.key, Radix):
            width = context.key.width if isinstance(context.key, MinHash) else 1
            groups = GROUP * len(context.parents)
            work = 8 * (3 * width * sum(context.parent_sizes) + 2 * groups + 3 * LOOKUP)
        if route in ("small", "dense"):
            results += 8 * context.cells
            work += 8 * context.cells * (tables_at_once(context, threads) - 1)
        if context.support == "seen":
            results += 24 * occupied
            work += 16 * min(at_once, occupied) if at_once < rows else 16 * occupied
        if route in ("sort", "pairs") and at_once < rows:
            # Lists of the slabs before, together less than twice the longest; and a merged one.
            results += 24 * (min(rows, 2 * occupied) - occupied)
            work += 24 * (occupied + min(at_once, occupied))
        if route == "sort":
            work += at_once * (4 if context.cells <= 1 << 32 else 8)
        if route == "pairs":
            work += 56 * at_once
        working.append(work)
    return results + sum(sorted(working)[-threads:]) + threads * THREAD


def tables_at_once(context: Context, threads: int) -> int:
    """In how many row ranges a dense table may be counted, each with a table of its own."""
    return max(1, min(threads, PARTS // (8 * context.cells)))


def check_moments(moments: Sequence[Moment], kept: Sequence[int], rows: int) -> None:
    """Raise EngineFailure for factors whose numbers were not kept, ResourceLimit for sums beyond 63 bits."""
    if any(position not in kept for moment in moments for position in moment.factors):
        raise EngineFailure(
            "NUMBERS",
            "The numbers of a column were asked for, and only its bins were kept.",
            "A plan names the columns whose numbers it sums (Plan.numbers).",
            "This is a fault of the method: name the column in its plan.",
        )
    if any(moment.bound * max(rows, 1) >= 1 << 62 for moment in moments):
        raise ResourceLimit(
            "SUMS",
            "A sum over all records may pass 63 bits.",
            "Sums are taken in whole numbers of 64 bits.",
            "Declare fewer decimals for the column.",
        )


def _grouped(sizes: tuple[int, ...], limit: int) -> list[list[int]]:
    groups: list[list[int]] = []
    combinations = 0
    for j, size in enumerate(sizes):
        if groups and combinations * size <= limit:
            groups[-1].append(j)
            combinations *= size
        else:
            groups.append([j])
            combinations = size
    return groups


def _combined(weights: list[np.ndarray], *, minimum: bool) -> np.ndarray:
    total = weights[0]
    for one in weights[1:]:
        pair = np.minimum(total[:, None], one[None]) if minimum else total[:, None] + one[None]
        total = pair.reshape(len(total) * len(one), *total.shape[1:])
    return total


def _starts(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


def _power(count: int) -> str:
    return f"about 10^{len(str(count)) - 1}" if count >= 10**6 else str(count)
