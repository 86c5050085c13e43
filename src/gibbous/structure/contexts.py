"""From a public schema to the contexts that are counted; nothing here has seen a record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from gibbous.core.context import WORD, Context, Hashed, MinHash, Radix, Support
from gibbous.core.errors import ParameterError, ResourceLimit, UsageError
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, words

Given = tuple[tuple[str, tuple[str, ...]], ...]
"""Context columns written down by name: ((column, (parent, ...)), ...)."""

Public = Literal["ordered", "lsh", "minhash"]
"""Contexts from the schema alone, by a word; all are free."""
Choice = Given | Public

MAX_KEYS = 1 << 16  # exact keys a context before parents are hashed into buckets


def joint(schema: Schema, support: Support = "dense") -> Context:
    """The full cross table as one context.

    The level of a row is the mixed-radix code of all its columns. Where that needs more than 63
    bits, leading columns become the key: a cell is then (key, level), and still a full combination.

    Raises:
        ResourceLimit: two halves of 63 bits do not hold a row.
    """
    sizes = schema.sizes
    cut = len(sizes)
    while cut > 0 and math.prod(sizes[cut - 1 :]) <= WORD:
        cut -= 1
    if math.prod(sizes[:cut]) > WORD:
        raise ResourceLimit(
            "JOINT",
            f"The full cross table of {len(sizes)} columns has {schema.cells:.3g} cells.",
            "A cell number has at most 126 bits.",
            "Use noisy_pegs or sbhg, which count a few columns at a time.",
        )
    columns = tuple(range(len(sizes)))
    return Context(columns[cut:], columns[:cut], sizes[cut:], sizes[:cut], support=support)


def margins(schema: Schema) -> tuple[Context, ...]:
    """One context a column, without parents: the 1-way tables, in schema order."""
    return tuple(Context((j,), (), (size,), ()) for j, size in enumerate(schema.sizes))


def conditional(
    schema: Schema,
    target: int,
    parents: Sequence[int],
    *,
    support: Support = "dense",
    max_keys: int = MAX_KEYS,
    seed: int = 0,
) -> Context:
    """One column given others, by position: exact keys up to `max_keys`, else hashed into buckets.

    The public hash has the largest power of two of buckets that is not above `max_keys`.
    """
    sizes = tuple(schema.sizes[c] for c in parents)
    exact = math.prod(sizes) <= max_keys
    key = Radix() if exact else Hashed(1 << (max(1, max_keys).bit_length() - 1), seed)
    return Context((target,), tuple(parents), (schema.sizes[target],), sizes, key, support)


def ring(columns: int, parents: int) -> tuple[tuple[int, ...], ...]:
    """The public default: each column given the `parents` columns before it, in a ring.

    It carries no information about records, so it costs nothing, and it is a good choice only when
    the order of the columns means something.
    """
    near = min(parents, columns - 1)
    return tuple(tuple((j - k) % columns for k in range(near, 0, -1)) for j in range(columns))


def named(schema: Schema, given: Given) -> tuple[tuple[int, ...], ...]:
    """Positions of context columns that were written down by name; columns left out have none.

    UsageError for an unknown name, a column twice, or a column among its own parents.
    """
    positions: dict[int, tuple[int, ...]] = {}
    for target, parents in given:
        j = schema.index(target, "contexts= names")
        places = tuple(schema.index(name, "contexts= names") for name in parents)
        if j in positions or j in places or len(set(places)) < len(places):
            raise UsageError(
                "CONTEXTS",
                f"The contexts given for column {target!r} repeat a column.",
                "A column is listed once, and is not among its own context columns.",
                "Correct contexts=.",
            )
        positions[j] = places
    return tuple(positions.get(j, ()) for j in range(len(schema)))


def hashed(
    schema: Schema,
    parents: Sequence[Sequence[int]],
    *,
    support: Support = "dense",
    max_keys: int = MAX_KEYS,
) -> tuple[Context, ...]:
    """One context a column, in schema order, given its parents; see `conditional`."""
    return tuple(
        conditional(schema, j, chosen, support=support, max_keys=max_keys)
        for j, chosen in enumerate(parents)
    )


def lsh(schema: Schema, parents: int, *, seed: int = 0) -> tuple[Context, ...]:
    """Locality-sensitive hashing for the Hamming distance: a public random subset of columns each.

    Rows that agree in a share s of the columns share a key with probability about s ** parents.

    Args:
        parents: columns sampled for each target, without replacement.
        seed: public; never a function of records.
    Source:
        [park2013, s3]; coordinate sampling is the family of Indyk and Motwani (1998).
    """
    chosen = []
    for j in range(len(schema)):
        others = [c for c in range(len(schema)) if c != j]
        draws = words(stream_key(seed, j), 0, max(len(others), 1)).tolist()
        ranked = sorted(zip(draws, others, strict=False))
        chosen.append(tuple(sorted(c for _, c in ranked[:parents])))
    return hashed(schema, chosen)


def minhash(
    schema: Schema, width: int, *, seed: int = 0, buckets: int = 1 << 10
) -> tuple[Context, ...]:
    """MinHash of the set of (column, level) items of the rest of the row.

    Two rows share one MinHash value with probability equal to the Jaccard similarity of their items.

    Args:
        width: values a key; more is finer.
        seed: public.
        buckets: keys a context, a power of two.
    Source:
        [park2013, s3].
    """
    out = []
    for j, size in enumerate(schema.sizes):
        others = tuple(c for c in range(len(schema)) if c != j)
        sizes = tuple(schema.sizes[c] for c in others)
        key = MinHash(width, buckets, seed) if others else Radix()
        out.append(Context((j,), others, (size,), sizes, key))
    return tuple(out)


def given_or_ring(schema: Schema, given: Choice, parents: int) -> tuple[Context, ...]:
    """The contexts that were written down, or made by a public rule; the ring when neither was.

    Args:
        given: by name; or "ordered" (the `parents` columns before it, without the ring: one pass then
            draws each column from columns that are drawn, not from its seed), "lsh" (`parents`
            columns at random, by a public seed), "minhash" (so many values of the rest of the row);
            empty for the ring.
        parents: of all of these.
    """
    if given == "lsh":
        return lsh(schema, parents)
    if given == "minhash":
        return minhash(schema, max(parents, 1))
    if given == "ordered":
        before = [tuple(range(max(0, j - parents), j)) for j in range(len(schema))]
        return hashed(schema, before)
    return hashed(schema, named(schema, given) if given else ring(len(schema), parents))


def topological(parents: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Positions of all columns, each after its parents, the smallest first; None where they form a cycle."""
    order: list[int] = []
    left = list(range(len(parents)))
    while left:
        ready = [j for j in left if all(c in order for c in parents[j])]
        if not ready:
            return None
        order.append(ready[0])
        left.remove(ready[0])
    return tuple(order)


def tidy(mechanism: Any) -> None:
    """Bring a `contexts` field, a mapping or lists, into its frozen form; ParameterError for another."""
    given = mechanism.contexts
    if given in get_args(Public):
        return  # `check` knows which mechanisms take a word
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    try:
        frozen = tuple((str(name), tuple(map(str, parents))) for name, parents in pairs)
        if any(isinstance(parents, str) for _, parents in pairs):
            raise TypeError
    except (TypeError, ValueError):
        raise ParameterError(
            "PARAM",
            f"contexts of {type(mechanism).__name__} has the wrong form.",
            "It names the context columns of each column.",
            "For example contexts={'income': ['age', 'education']}.",
        ) from None
    object.__setattr__(mechanism, "contexts", frozen)
