"""A context -> one ibis expression that counts it in any database, and back to keys: all in int64.

Databases have signed 64-bit integers and group-bys, and neither unsigned words nor sums modulo 2^64.
Hence a hashed key takes one of three forms:

    radix    few combinations of parents: they are counted as they are, keys are looked up afterwards;
    halves   Hashed: words are added in two 32-bit halves, and the carry goes from one to the other;
    least    MinHash: words are compared by rank; the few ranks that are least are hashed afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gibbous.core.context import (
    WORD,
    Context,
    Hashed,
    MinHash,
    Radix,
    hash_weights,
    keys_of,
    mix64,
    strides,
)
from gibbous.disintegrate import layout

if TYPE_CHECKING:
    import ibis.expr.types as ir

Form = Literal["radix", "halves", "least"]
_HALF = 32
_LOW = (1 << _HALF) - 1
_WIDE = 1 << 62  # ends each list of words and is never looked up: the list is one of 64-bit numbers


def form_of(context: Context) -> Form:
    """How keys of a context are made in a database."""
    if isinstance(context.key, Radix) or _constant(context) or _few(context):
        return "radix"
    return "halves" if isinstance(context.key, Hashed) else "least"


def relation(columns: Sequence[int], name: str) -> ir.Table:
    """The codes of some columns as a table without a backend: c0, c1, ...

    Args:
        columns: positions in the schema.
        name: of the table or view that holds them, of any integer type.
    """
    from gibbous.core.extras import need

    ibis = need("ibis", "duckdb")
    # Declared narrower than they are: then every use casts, which Spark and DuckDB both need.
    found: ir.Table = ibis.table({f"c{place}": "int8" for place in columns}, name=name)
    return found


def counts(codes: ir.Table, context: Context) -> ir.Table:
    """Count one context where the codes lie.

    Args:
        codes: integer columns c0, c1, ... by position in the schema (more columns do no harm).
        context: what to count; at most 2^63 keys and as many levels.
    Returns:
        int64 columns that `settled` reads, one row a group that occurs: the counts are in `n`, the
        groups in `cell`, or in `key` and `level` where both do not fit one number, or in `least0`,
        `least1`, ... and `level`.
    """
    level = _mixed(codes, context.targets, context.target_sizes)
    if form_of(context) == "least":
        groups = {**_least(codes, context), "level": level}
    else:
        key = _halves(codes, context) if form_of(context) == "halves" else _parents(codes, context)
        keys = _keys(context)
        if keys * context.levels > WORD:
            groups = {"key": key, "level": level}
        else:
            groups = {"cell": level if keys == 1 else key * context.levels + level}
    return codes.select(**groups).group_by(list(groups)).aggregate(n=lambda part: part.count())


def statement(table: str, context: Context, dialect: str) -> str:
    """The SQL of `counts` over a table or view named `table`.

    Args:
        dialect: "duckdb", "pyspark", or another that ibis knows.
    """
    from gibbous.core.extras import need

    ibis = need("ibis", "duckdb")
    columns = context.columns or (0,)
    return str(ibis.to_sql(counts(relation(columns, table), context), dialect=dialect))


def settled(context: Context, found: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Keys and levels of groups that `counts` gave: they may repeat, where a hash brings them together.

    Args:
        found: the columns of the answer, (groups,) each.
    Returns:
        keys and levels, uint64 (groups,).
    """
    if "cell" in found:
        width = np.uint64(context.levels)
        cells = found["cell"].astype(np.uint64)
        keys, levels = cells // width, cells % width
    else:
        levels = found["level"].astype(np.uint64)
        keys = _folded(context, found) if "least0" in found else found["key"].astype(np.uint64)
    if form_of(context) == "radix" and not isinstance(context.key, Radix):
        keys = _looked_up(context, keys)
    return keys, levels


def _parents(codes: ir.Table, context: Context) -> ir.IntegerValue:
    if _constant(context):
        return _sum([])
    return _mixed(codes, context.parents, context.parent_sizes)


def _mixed(codes: ir.Table, columns: Sequence[int], sizes: Sequence[int]) -> ir.IntegerValue:
    import ibis

    terms = [
        _code(codes, column) * ibis.literal(step, "int64")
        for column, step, size in zip(columns, strides(tuple(sizes)), sizes, strict=True)
        if size > 1
    ]
    return _sum(terms)


def _halves(codes: ir.Table, context: Context) -> ir.IntegerValue:
    """Top bits of the sum of the parents' words modulo 2^64."""
    assert isinstance(context.key, Hashed)
    words = [*zip(context.parents, hash_weights(context), strict=True)]
    low = _sum([_listed(codes, c, w & np.uint64(_LOW)) for c, w in words])
    high = _sum([_listed(codes, c, w >> np.uint64(_HALF)) for c, w in words])
    high = (high + (low >> _HALF)) & _LOW
    bits = context.key.buckets.bit_length() - 1
    if bits <= _HALF:
        return high >> (_HALF - bits)
    return high * (1 << (bits - _HALF)) + ((low & _LOW) >> (2 * _HALF - bits))


def _least(codes: ir.Table, context: Context) -> dict[str, ir.IntegerValue]:
    """For each MinHash value, the rank of the least word among the parents; packed where they fit."""
    import ibis

    ranked = _ranked(context)
    place = np.cumsum([0, *context.parent_sizes])
    packed: dict[str, ir.IntegerValue] = {}
    for number, among in enumerate(_packs([len(words) for words, _ in ranked])):
        total = ibis.literal(0, "int64")
        for one in among:
            words, ranks = ranked[one]
            each = [
                _listed(codes, column, ranks[place[i] : place[i + 1]])
                for i, column in enumerate(context.parents)
            ]
            total = total * len(words) + (ibis.least(*each) if len(each) > 1 else each[0])
        packed[f"least{number}"] = total
    return packed


def _folded(context: Context, found: Mapping[str, np.ndarray]) -> np.ndarray:
    """The key of each group of least ranks: what `core.context.keys_of` does with least words."""
    assert isinstance(context.key, MinHash)
    ranked = _ranked(context)
    least: dict[int, np.ndarray] = {}
    for number, among in enumerate(_packs([len(words) for words, _ in ranked])):
        left = found[f"least{number}"].astype(np.int64)
        for one in reversed(among):
            words = ranked[one][0]
            least[one] = words[left % len(words)]
            left = left // len(words)
    total = np.zeros(len(found["level"]), dtype=np.uint64)
    for one in range(context.key.width):
        total = mix64(total ^ least[one])
    return total >> np.uint64(64 - (context.key.buckets.bit_length() - 1))


def _ranked(context: Context) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each MinHash value: the words of all parents in order, uint64, and the rank of each."""
    weights = np.concatenate(hash_weights(context))  # (levels of all parents, width)
    out = []
    for column in weights.T:
        words, ranks = np.unique(column, return_inverse=True)
        out.append((words, ranks))
    return out


def _packs(sizes: Sequence[int]) -> list[list[int]]:
    """Neighbors that fit one number below 2^63 together."""
    packs: list[list[int]] = []
    product = WORD
    for place, size in enumerate(sizes):
        if product * size > WORD:
            packs.append([])
            product = 1
        packs[-1].append(place)
        product *= size
    return packs


def _looked_up(context: Context, combinations: np.ndarray) -> np.ndarray:
    table = None if _constant(context) else layout.key_table(context)
    if table is None:
        one = keys_of(context, np.zeros((1, max(context.columns, default=0) + 1), dtype=np.uint8))
        return np.full(len(combinations), one[0])
    return table[combinations.astype(np.intp)]


def _few(context: Context) -> bool:
    """As `layout.key_table` has it."""
    width = context.key.width if isinstance(context.key, MinHash) else 1
    return math.prod(context.parent_sizes) * width <= layout.LOOKUP


def _constant(context: Context) -> bool:
    """A hashed key that is the same for all records."""
    key = context.key
    return not isinstance(key, Radix) and (key.buckets == 1 or not context.parents)


def _keys(context: Context) -> int:
    """Numbers that a key takes in the database."""
    if isinstance(context.key, Hashed) and form_of(context) == "halves":
        return context.key.buckets
    return 1 if _constant(context) else math.prod(context.parent_sizes)


def _listed(codes: ir.Table, column: int, words: np.ndarray) -> ir.IntegerValue:
    import ibis

    values = [*words.tolist(), _WIDE]
    found: Any = codes[f"c{column}"]
    return ibis.literal(values, type="array<int64>")[found.cast("int32")]


def _code(codes: ir.Table, column: int) -> ir.IntegerValue:
    found: Any = codes[f"c{column}"]
    return found.cast("int64")


def _sum(terms: Sequence[ir.IntegerValue]) -> ir.IntegerValue:
    import ibis

    return reduce(lambda a, b: a + b, terms) if terms else ibis.literal(0, "int64")
