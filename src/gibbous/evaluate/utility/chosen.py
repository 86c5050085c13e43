"""Which margins are scored: a list that follows from the columns, the order k and a public seed."""

from __future__ import annotations

import itertools
import math

from gibbous.evaluate.draws import resampled

Margin = tuple[int, ...]
"""Positions of columns, increasing."""

EVERY = 2  # orders up to here are scored in full
SAMPLE = 100  # margins of a higher order


def chosen(columns: int, order: int, seed: int, sample: int = SAMPLE) -> tuple[Margin, ...]:
    """The margins of one order, in lexicographic order.

    Args:
        columns: number of columns of the schema.
        order: columns a margin.
        seed: public; decides which margins of an order above EVERY are taken.
        sample: at most so many of such an order; all of them where there are fewer.
    Returns:
        Different margins; none where there are fewer columns than `order`.
    """
    total = math.comb(columns, order)
    if order <= EVERY or total <= sample:
        return tuple(itertools.combinations(range(columns), order))
    found: dict[int, None] = {}
    attempt = 0
    while len(found) < sample:
        places = resampled(total, 2 * sample, seed, 4, order, attempt)
        found |= dict.fromkeys(int(place) for place in places)
        attempt += 1
    ranks = sorted(list(found)[:sample])
    return tuple(combination(columns, order, rank) for rank in ranks)


def combination(columns: int, order: int, rank: int) -> Margin:
    """The combination with this place in the lexicographic list: 0 <= rank < C(columns, order)."""
    out: list[int] = []
    for column in range(columns):
        left = order - len(out)
        if left == 0:
            break
        starting = math.comb(columns - column - 1, left - 1)
        if rank < starting:
            out.append(column)
        else:
            rank -= starting
    return tuple(out)
