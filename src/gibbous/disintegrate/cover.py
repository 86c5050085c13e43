"""Cover: many small contexts in; fewer, larger tables out, of which each context is a margin.

Counting costs one memory access a row and table, so that one table of four columns is cheaper than
the six of its pairs. The tables are exact, hence so are their margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbous.core.context import Context
from gibbous.disintegrate import layout

ROWS = 1 << 17  # below it, adding up margins costs more than counting them


@dataclass(frozen=True, slots=True)
class Cover:
    """One table to count, and the contexts (by place) that are its margins.

    Attributes:
        table: mixed-radix cells of some columns, as a context without parents.
        places: positions of contexts; one, if it is the table itself.
    """

    table: Context
    places: list[int]


def covers(contexts: Sequence[Context], places: Sequence[int], rows: int) -> list[Cover]:
    """Cover small contexts (at `places`) by tables of at most `layout.SMALL` cells.

    Greedy: start with a context left over, then add the column that completes most contexts.
    """
    if rows < ROWS:
        return [Cover(_table(contexts[i]), [i]) for i in places]
    size: dict[int, int] = {}
    left: dict[frozenset[int], list[int]] = {}
    near: dict[int, dict[frozenset[int], None]] = {}
    for i in places:
        one = contexts[i]
        columns = frozenset(one.columns)
        left.setdefault(columns, []).append(i)
        size.update(zip(one.columns, one.parent_sizes + one.target_sizes, strict=True))
        for c in columns:
            near.setdefault(c, {})[columns] = None
    out = []
    for first in list(left):
        if first not in left:
            continue
        union = _grow(first, near, size)
        done = [first, *(s for c in union for s in near[c] if s <= union and s != first)]
        found: list[int] = []
        for columns in dict.fromkeys(done):
            found += left.pop(columns)
            for c in columns:
                del near[c][columns]
        alone = len(found) == 1
        ordered = tuple(sorted(union))
        whole = Context(ordered, (), tuple(size[c] for c in ordered), ())
        out.append(Cover(_table(contexts[found[0]]) if alone else whole, found))
    return out


def margin(table: np.ndarray, cover: Cover, context: Context) -> np.ndarray:
    """Counts of one context, from the table that covers it: int64 (cells,)."""
    columns = cover.table.columns
    if columns == context.columns:
        return table if len(cover.places) == 1 else table.copy()
    cells = table.reshape(cover.table.target_sizes)
    dropped = tuple(i for i, c in enumerate(columns) if c not in context.columns)
    kept = [c for c in columns if c in context.columns]
    summed: np.ndarray = cells.sum(axis=dropped)
    return summed.transpose([kept.index(c) for c in context.columns]).ravel()


def _grow(
    first: frozenset[int], near: dict[int, dict[frozenset[int], None]], size: dict[int, int]
) -> set[int]:
    union, cells = set(first), 1
    for c in first:
        cells *= size[c]
    while True:
        gain: dict[int, int] = {}
        for c in union:
            for columns in near[c]:
                extra = columns - union
                if len(extra) == 1:
                    (one,) = extra
                    gain[one] = gain.get(one, 0) + 1
        fitting = [(-g, size[c], c) for c, g in gain.items() if cells * size[c] <= layout.SMALL]
        if not fitting:
            return union
        best = min(fitting)[2]
        union.add(best)
        cells *= size[best]


def _table(context: Context) -> Context:
    return Context(context.columns, (), context.parent_sizes + context.target_sizes, ())
