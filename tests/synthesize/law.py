"""Exact laws of drawn rows on tiny tables, by enumeration; written apart from the code under test."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

Row = tuple[int, ...]
Records = Mapping[Row, int]
Law = dict[tuple[Row, ...], float]
Weigh = Callable[[Sequence[int]], Sequence[float]]
Reset = Literal["visit", "row", "never"]


def add(alpha: float) -> Weigh:
    """Weights n + alpha."""
    return lambda counts: [n + alpha for n in counts]


def tilt(epsilon: float) -> Weigh:
    """Weights exp(epsilon n), relative to the largest."""
    return lambda counts: [math.exp(epsilon * (n - max(counts))) for n in counts]


def conditional(data: Records, sizes: Row, column: int, row: Row, weigh: Weigh) -> list[float]:
    """P(column = v | the other columns of row), all of them being parents."""
    cells = [(*row[:column], v, *row[column + 1 :]) for v in range(sizes[column])]
    weights = weigh([data.get(cell, 0) for cell in cells])
    total = sum(weights)
    return [w / total for w in weights]


def law(
    data: Records,
    sizes: Row,
    weigh: Weigh,
    *,
    rows: int = 1,
    sweeps: int = 1,
    reset: Reset = "never",
    chained: bool = False,
    seed: Row | None = None,
) -> Law:
    """Law of the rows of one block: seed uniform (or given), then rows one after the other.

    Args:
        chained: row i + 1 starts from row i; otherwise every row has a fresh seed.
        reset: a key that was visited is uniform: from the visit on, from the end of its row on, or
            never.
    """
    seeds = [seed] if seed else list(itertools.product(*map(range, sizes)))
    paths: dict[tuple[Row, frozenset[object], tuple[Row, ...]], float] = {
        (s, frozenset(), ()): 1 / len(seeds) for s in seeds
    }
    for number in range(rows):
        if number and not chained:
            paths = _merge(
                ((s, used, out), weight / len(seeds))
                for (_, used, out), weight in paths.items()
                for s in seeds
            )
        for visit in range(sweeps * len(sizes)):
            paths = _visit(paths, data, sizes, visit % len(sizes), weigh, reset)
        paths = _merge(
            ((row, _closed(used, reset), (*out, row)), weight)
            for (row, used, out), weight in paths.items()
        )
    found: Law = defaultdict(float)
    for (_, _, out), weight in paths.items():
        found[out] += weight
    return dict(found)


def _visit(paths, data, sizes, column, weigh, reset):  # type: ignore[no-untyped-def]
    def moves() -> Iterator[tuple[object, float]]:
        for (row, used, out), weight in paths.items():
            key = (column, row[:column] + row[column + 1 :])
            spent = key in used
            shares = (
                [1 / sizes[column]] * sizes[column]
                if spent
                else conditional(data, sizes, column, row, weigh)
            )
            if reset == "visit":
                after = used | {key}
            elif reset == "row":
                after = used | {("open", key)}
            else:
                after = used
            for value, share in enumerate(shares):
                if share:
                    moved = (*row[:column], value, *row[column + 1 :])
                    yield (moved, after, out), weight * share

    return _merge(moves())


def _closed(used: frozenset[object], reset: Reset) -> frozenset[object]:
    """At the end of a row the keys that it visited are reset (the paper's reading)."""
    if reset != "row":
        return used
    return frozenset(k[1] if k[0] == "open" else k for k in used)  # type: ignore[index]


def _merge(moves: Iterable[tuple[object, float]]) -> dict:  # type: ignore[type-arg]
    found: dict[object, float] = defaultdict(float)
    for state, weight in moves:
        found[state] += weight
    return dict(found)


def loss(one: Law, two: Law) -> float:
    """Largest |log ratio| of two laws with the same support."""
    assert set(one) == set(two)
    return max(abs(math.log(one[o] / two[o])) for o in one)


def tables(sizes: Row, most: int) -> Iterator[tuple[Row, ...]]:
    """All tables of at most `most` records, as multisets."""
    cells = list(itertools.product(*map(range, sizes)))
    for n in range(most + 1):
        yield from itertools.combinations_with_replacement(cells, n)


def exact_epsilon(sizes: Row, most: int, relation: str, law_of: Callable[[Records], Law]) -> float:
    """Largest loss between neighbors of at most `most` records (the larger one)."""
    cells = list(itertools.product(*map(range, sizes)))
    laws = {t: law_of(Counter(t)) for t in tables(sizes, most)}
    worst = 0.0
    for table in laws:
        if relation == "add_remove":
            others = [tuple(sorted((*table, c))) for c in cells] if len(table) < most else []
        else:
            others = [
                tuple(sorted((*table[:i], c, *table[i + 1 :])))
                for i in range(len(table))
                for c in cells
            ]
        for other in others:
            worst = max(worst, loss(laws[table], laws[other]))
    return worst
