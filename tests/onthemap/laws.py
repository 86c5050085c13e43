"""Brute force: the law of a destination's synthetic counts, with and without a shrunken domain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import exp, lgamma

import numpy as np

from gibbous.core.protocols import Words64
from gibbous.core.stream import stream_key
from gibbous.core.stream import words as stream_words

Counts = tuple[int, ...]


def compositions(total: int, cells: int) -> Iterator[Counts]:
    """All ways to share `total` among `cells`."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, cells - 1):
            yield (first, *rest)


def neighbors(records: Counts) -> Iterator[Counts]:
    """The table itself, and those with one record elsewhere."""
    yield records
    for i, j in product(range(len(records)), repeat=2):
        if i != j and records[i]:
            moved = list(records)
            moved[i] -= 1
            moved[j] += 1
            yield tuple(moved)


def apart(one: Counts, two: Counts) -> int:
    """How many records differ."""
    return sum(abs(a - b) for a, b in zip(one, two, strict=True)) // 2


def law(records: Counts, a: np.ndarray, m: int) -> dict[Counts, float]:
    """Dirichlet-multinomial probabilities of all outputs."""
    weight = np.asarray(records) + a
    held = weight > 0
    out = {}
    for s in compositions(m, len(records)):
        if any(v and not h for v, h in zip(s, held, strict=True)):
            out[s] = 0.0
            continue
        log = lgamma(m + 1) + lgamma(weight[held].sum()) - lgamma(weight[held].sum() + m)
        for v, w in zip(np.asarray(s)[held], weight[held], strict=True):
            log += lgamma(w + v) - lgamma(w) - lgamma(v + 1)
        out[s] = exp(log)
    return out


def shrunken_law(records: Counts, a: np.ndarray, m: int, kept: np.ndarray) -> dict[Counts, float]:
    """The mixture over the domains of algorithm 2."""
    empty = [i for i, n in enumerate(records) if n == 0]
    out: dict[Counts, float] = {}
    for choice in product((0, 1), repeat=len(empty)):
        share, mine = 1.0, a.astype(float).copy()
        for i, keep in zip(empty, choice, strict=True):
            share *= kept[i] if keep else 1 - kept[i]
            mine[i] *= keep
        for s, p in law(records, mine, m).items():
            out[s] = out.get(s, 0.0) + share * p
    return out


def disclosing(records: Counts, laws: dict[Counts, dict[Counts, float]]) -> dict[Counts, float]:
    """The largest |log ratio| of each output over pairs within one record of the table and each other."""
    near = list(dict.fromkeys(neighbors(records)))
    worst: dict[Counts, float] = {}
    for one, two in product(near, repeat=2):
        if apart(one, two) != 1:
            continue
        for s, p in laws[one].items():
            q = laws[two][s]
            loss = 0.0 if p == q else float("inf") if min(p, q) == 0 else abs(np.log(p / q))
            worst[s] = max(worst.get(s, 0.0), float(loss))
    return worst


def seeded(seed: int) -> Words64:
    """A fixed run of words in place of the operating system's."""
    used = [0]

    def words(count: int) -> np.ndarray:
        start, used[0] = used[0], used[0] + count
        return stream_words(stream_key(seed, 1), start, count)

    return words
