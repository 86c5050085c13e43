"""Cliques: which columns may be measured together."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gibbous.core.context import Context

Clique = tuple[int, ...]
LARGER_CELLS = 20_000  # of a table of three or four columns
FEW_CELLS = 128  # of a table of three or four columns that is looked at whatever the model knows
MOST_LARGER = 4096  # ways to choose three and four columns, up to which they are looked at

GOAL_PAIRS = 2_016  # all pairs of 64 columns


@dataclass(frozen=True, slots=True)
class Limits:
    """Public limits of what is looked at.

    Attributes:
        cells: most cells of a candidate.
        all_cells: most cells of all candidates of a round.
    """

    cells: int = 1_048_576
    all_cells: int = 16_000_000


def context_of(sizes: Sequence[int], clique: Clique) -> Context:
    """The dense table of a clique; its cells reshape to one axis a column, in order."""
    return _context(clique, tuple(sizes[c] for c in clique))


@functools.lru_cache(maxsize=1 << 15)
def _context(clique: Clique, sizes: tuple[int, ...]) -> Context:
    """Made once: thousands are looked up by every pick, and the same object is found fastest."""
    return Context(clique[-1:], clique[:-1], sizes[-1:], sizes[:-1])


def pairs(
    sizes: Sequence[int], limits: Limits, *, among: Collection[Clique] | None = None
) -> tuple[Clique, ...]:
    """All pairs of columns (of `among`) with more than one level whose table is within the limits."""
    free = [j for j, size in enumerate(sizes) if size > 1]
    fitting = [
        pair
        for pair in itertools.combinations(free, 2)
        if sizes[pair[0]] * sizes[pair[1]] <= limits.cells and (among is None or pair in among)
    ]
    return _within(fitting, sizes, limits.all_cells)


def goal_pairs(
    sizes: Sequence[int], measured: Collection[Clique], cells: int
) -> tuple[Clique, ...]:
    """Pairs that rows are closed to, within so many cells; of wide tables, those inside a measured clique."""
    limits = Limits(cells, cells)
    if math.comb(sum(size > 1 for size in sizes), 2) <= GOAL_PAIRS:
        return pairs(sizes, limits)
    held = {pair for clique in measured for pair in itertools.combinations(clique, 2)}
    return pairs(sizes, limits, among=held)


def larger(sizes: Sequence[int], known: Collection[Clique], limits: Limits) -> tuple[Clique, ...]:
    """Cliques of three and four columns within the limits: how so many interact is new.

    Those of few cells are all looked at: a parity shows in no smaller table. Of others, triples all of
    whose pairs are in cliques of the model.
    """
    near: dict[int, set[int]] = {}
    for clique in known:
        for a, b in itertools.combinations(clique, 2):
            near.setdefault(a, set()).add(b)
            near.setdefault(b, set()).add(a)
    tied = {
        (a, b, c)
        for a in near
        for b in (x for x in near[a] if x > a)
        for c in (x for x in near[a] & near[b] if x > b)
    }
    most = min(limits.cells, LARGER_CELLS)
    fitting = [c for c in {*tied, *few_celled(sizes)} if cells_of(sizes, c) <= most]
    return _within(sorted(fitting), sizes, limits.all_cells)


def few_celled(sizes: Sequence[int]) -> tuple[Clique, ...]:
    """All cliques of three and four columns of at most `FEW_CELLS` cells; none of too many columns."""
    free = [j for j, size in enumerate(sizes) if 1 < size <= FEW_CELLS // 4]
    if sum(math.comb(len(free), ways) for ways in (3, 4)) > MOST_LARGER:
        return ()
    every = (c for ways in (3, 4) for c in itertools.combinations(free, ways))
    return tuple(c for c in every if cells_of(sizes, c) <= FEW_CELLS)


def cells_of(sizes: Sequence[int], clique: Clique) -> int:
    """Cells of the table of a clique."""
    return math.prod(sizes[j] for j in clique)


def _within(cliques: Sequence[Clique], sizes: Sequence[int], most: int) -> tuple[Clique, ...]:
    """As many cliques as fit, the smallest tables first; in the given order."""
    cells: Mapping[Clique, int] = {c: cells_of(sizes, c) for c in cliques}
    kept, used = set(), 0
    for clique in sorted(cliques, key=lambda c: (cells[c], c)):
        if used + cells[clique] > most:
            break
        kept.add(clique)
        used += cells[clique]
    return tuple(c for c in cliques if c in kept)
