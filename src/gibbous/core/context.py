"""Contexts: which columns are counted together, and how a row becomes a key and a level.

A context counts n[key, level]: the level is the mixed-radix code of its target columns, the key a
function of its parent columns. The key function is public and fixed without looking at records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Support = Literal["dense", "seen"]
WORD = 1 << 63  # keys and levels are counted in uint64 and stay below this


@dataclass(frozen=True, slots=True)
class Radix:
    """Key = mixed radix of the parents: every combination has its own key."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """Key = feature hash of the parents: combinations share `buckets` keys.

    Attributes:
        buckets: number of keys, a power of two.
        seed: public.
    """

    buckets: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.buckets & (self.buckets - 1):
            raise ValueError("buckets must be a power of two")


@dataclass(frozen=True, slots=True)
class MinHash:
    """Key = `width` MinHash values of the set of (parent, level) items, folded into `buckets` keys.

    Attributes:
        width: MinHash values a key; more is finer.
        buckets: number of keys, a power of two.
        seed: public.
    """

    width: int
    buckets: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width < 1 or self.buckets < 1 or self.buckets & (self.buckets - 1):
            raise ValueError("width must be >= 1 and buckets a power of two")


Key = Radix | Hashed | MinHash


@dataclass(frozen=True, slots=True)
class Context:
    """Target columns given parent columns.

    Attributes:
        targets, parents: column positions; disjoint.
        target_sizes, parent_sizes: number of codes of each.
        key: the key function.
        support: "dense" releases every key; "seen" only keys that occur, which leaks unless a
            stability threshold is applied.
    """

    targets: tuple[int, ...]
    parents: tuple[int, ...]
    target_sizes: tuple[int, ...]
    parent_sizes: tuple[int, ...]
    key: Key = Radix()
    support: Support = "dense"
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Thousands of contexts are looked up by every paid choice: hashed once, and of whole numbers
        # alone, so that a copy in another process has the same.
        parts = (self.targets, self.parents, self.target_sizes, self.parent_sizes, self.key)
        object.__setattr__(self, "_hash", hash((*parts, self.support == "dense")))

    def __hash__(self) -> int:
        return self._hash

    @property
    def levels(self) -> int:
        """Number of levels (a Python integer)."""
        return math.prod(self.target_sizes)

    @property
    def keys(self) -> int:
        """Number of keys (a Python integer: it may be astronomical)."""
        return math.prod(self.parent_sizes) if isinstance(self.key, Radix) else self.key.buckets

    @property
    def cells(self) -> int:
        """keys x levels."""
        return self.keys * self.levels

    @property
    def columns(self) -> tuple[int, ...]:
        """Parents, then targets."""
        return self.parents + self.targets

    def to_json(self) -> dict[str, object]:
        """Plain values for a manifest."""
        key: dict[str, object] = {"kind": type(self.key).__name__.lower()}
        if not isinstance(self.key, Radix):
            key |= {"buckets": self.key.buckets, "seed": self.key.seed}
        if isinstance(self.key, MinHash):
            key["width"] = self.key.width
        return {
            "targets": list(self.targets),
            "parents": list(self.parents),
            "target_sizes": list(self.target_sizes),
            "parent_sizes": list(self.parent_sizes),
            "key": key,
            "support": self.support,
        }

    @staticmethod
    def from_json(data: dict[str, object]) -> Context:
        """Read what `to_json` wrote; ValueError, KeyError or TypeError if it is not a context."""
        key = dict(data["key"])  # type: ignore[call-overload]
        kind = key.pop("kind")
        makers = {"radix": Radix, "hashed": Hashed, "minhash": MinHash}
        targets, parents, target_sizes, parent_sizes = (
            _whole(data[n]) for n in ("targets", "parents", "target_sizes", "parent_sizes")
        )
        if data["support"] not in ("dense", "seen"):
            raise ValueError("unknown support")
        if len(targets) != len(target_sizes) or len(parents) != len(parent_sizes):
            raise ValueError("sizes do not match columns")
        return Context(
            targets,
            parents,
            target_sizes,
            parent_sizes,
            key=makers[kind](**key),
            support=data["support"],
        )


def strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Mixed-radix weight of each column: the last column varies fastest."""
    out, step = [], 1
    for size in reversed(sizes):
        out.append(step)
        step *= size
    return tuple(reversed(out))


def radix_digits(numbers: np.ndarray, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Codes of each column, from sums (uint64) of codes times their `strides`."""
    steps = zip(strides(sizes), sizes, strict=True)
    return [numbers // np.uint64(step) % np.uint64(size) for step, size in steps]


def located(known: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each wanted number is among known ones (increasing; 0 if absent), and whether it is."""
    places = np.searchsorted(known, wanted)
    if not len(known):
        return places, np.zeros(len(wanted), dtype=bool)
    places[places == len(known)] = 0
    return places, known[places] == wanted


def keys_of(context: Context, codes: np.ndarray) -> np.ndarray:
    """Key of each row: the definition that compiled kernels must reproduce bit for bit.

    Args:
        codes: (rows, columns of the schema) unsigned integers.
    Returns:
        uint64 (rows,).
    """
    rows = len(codes)
    if isinstance(context.key, Radix):
        _fits(context.keys)
        return _radix(codes, context.parents, context.parent_sizes)
    if isinstance(context.key, Hashed):
        total = np.zeros(rows, dtype=np.uint64)
        for column, weights in zip(context.parents, hash_weights(context), strict=True):
            total += weights[codes[:, column]]
        return _top_bits(total, context.key.buckets)
    best = np.full((context.key.width, rows), np.iinfo(np.uint64).max, dtype=np.uint64)
    for column, weights in zip(context.parents, hash_weights(context), strict=True):
        best = np.minimum(best, weights[codes[:, column]].T)  # weights (levels, width)
    total = np.zeros(rows, dtype=np.uint64)
    for one in best:
        total = mix64(total ^ one)
    return _top_bits(total, context.key.buckets)


def levels_of(context: Context, codes: np.ndarray) -> np.ndarray:
    """Level of each row, uint64 (rows,)."""
    _fits(context.levels)
    return _radix(codes, context.targets, context.target_sizes)


def hash_weights(context: Context) -> list[np.ndarray]:
    """Public random words of a hashed key: per parent uint64 (levels,), or (levels, width) for MinHash."""
    key = context.key
    assert not isinstance(key, Radix)
    width = key.width if isinstance(key, MinHash) else 1
    out = []
    for column, size in zip(context.parents, context.parent_sizes, strict=True):
        item = np.arange(size * width, dtype=np.uint64).reshape(size, width)
        start = np.uint64(
            (key.seed * 0x9E3779B97F4A7C15 + column * 0xD1B54A32D192ED03 + 1) % (1 << 64)
        )
        words = mix64(mix64(item + start) ^ start)
        out.append(words if isinstance(key, MinHash) else words[:, 0])
    return out


def mix64(x: np.ndarray) -> np.ndarray:
    """The splitmix64 finalizer (Steele, Lea, Flood 2014): a bijection of uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed


def _top_bits(words: np.ndarray, buckets: int) -> np.ndarray:
    bits = buckets.bit_length() - 1
    if bits == 0:
        return np.zeros_like(words)
    return words >> np.uint64(64 - bits)


def _radix(codes: np.ndarray, columns: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    total = np.zeros(len(codes), dtype=np.uint64)
    for column, step in zip(columns, strides(sizes), strict=True):
        total += codes[:, column].astype(np.uint64) * np.uint64(step)
    return total


def _fits(count: int) -> None:
    if count > WORD:
        raise OverflowError("more keys or levels than 63 bits; split the context")


def _whole(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or any(not isinstance(v, int) or v < 0 for v in value):
        raise ValueError("expected a list of whole numbers")
    return tuple(value)
