"""Exact laws of the dips family by brute force, in fractions; and the places of an urn, word by word."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.protocols import Words64
from gibbous.core.stream import stream_key, words

Counts = tuple[int, ...]
Law = dict[Counts, Fraction]  # of the multiset of drawn values, as counts a cell
LawOf = Callable[[Counts], Law]


def variance(budgets: Sequence[Fraction], sizes: Sequence[int | Fraction]) -> Fraction:
    """Total variance of Laplace noise of scale size / budget on each statistic: 2 b^2 each."""
    pairs = zip(budgets, sizes, strict=True)
    return sum((2 * (Fraction(s) / e) ** 2 for e, s in pairs), Fraction(0))


def urn(counts: Counts, alpha: Fraction, draws: int) -> Law:
    """Multinomial with Dirichlet(n + alpha) probabilities: ratios of rising factorials."""
    return {
        drawn: Fraction(_orders(drawn))
        * math.prod(
            (_rising(n + alpha, x) for n, x in zip(counts, drawn, strict=True)), start=Fraction(1)
        )
        / _rising(sum(counts) + len(counts) * alpha, draws)
        for drawn in outcomes(len(counts), draws)
    }


def prior(counts: Counts, alpha: Fraction, draws: int) -> Law:
    """Multinomial with the posterior mean as probabilities."""
    whole = sum(counts) + len(counts) * alpha
    return _multinomial([(n + alpha) / whole for n in counts], draws)


def smoothed(counts: Counts, share: Fraction, records: int, draws: int) -> Law:
    """Multinomial with the mixture, a small table filled up with uniform records."""
    places, bins = max(sum(counts), records), len(counts)
    missing = Fraction(places - sum(counts), places)
    own = [Fraction(n, places) + missing / bins for n in counts]
    return _multinomial([(1 - share) * f + share / bins for f in own], draws)


def worst(law_of: LawOf, cells: int, most: int, relation: Relation, rows: int = 1) -> float:
    """The largest log ratio of two neighbors with at most `most` records, over all outcomes.

    Args:
        rows: of the one privacy unit that comes, goes or changes.
    """
    found = 0.0
    for one, two in neighbors(cells, most, relation, rows):
        first, second = law_of(one), law_of(two)
        ratios = [first[x] / second[x] for x in first if second[x]]
        assert all(second[x] or not first[x] for x in first)
        found = max(found, *(abs(math.log(r)) for r in ratios if r))
    return found


def neighbors(
    cells: int, most: int, relation: Relation, rows: int = 1
) -> Iterator[tuple[Counts, Counts]]:
    """Pairs of tables: `rows` records come, or move."""
    for total in range(most + 1):
        for base in outcomes(cells, total):
            for here in outcomes(cells, rows):
                one = tuple(b + h for b, h in zip(base, here, strict=True))
                if relation == "add_remove":
                    yield base, one
                    continue
                for there in outcomes(cells, rows):
                    yield one, tuple(b + t for b, t in zip(base, there, strict=True))


def outcomes(cells: int, draws: int) -> Iterator[Counts]:
    """All ways to divide `draws` over cells."""
    for chosen in itertools.combinations_with_replacement(range(cells), draws):
        yield tuple(chosen.count(c) for c in range(cells))


def seeded(seed: int) -> Words64:
    """Words that a test can repeat."""
    calls = itertools.count()
    return lambda count: words(stream_key(seed, next(calls)), 0, count)


def aimed(points: np.ndarray, totals: np.ndarray) -> Words64:
    """Words that make `bounded(totals)` give these points."""
    return lambda count: points.astype(np.uint64) + totals.astype(np.uint64)


def _multinomial(shares: list[Fraction], draws: int) -> Law:
    return {
        drawn: _orders(drawn)
        * math.prod((p**x for p, x in zip(shares, drawn, strict=True)), start=Fraction(1))
        for drawn in outcomes(len(shares), draws)
    }


def _orders(drawn: Counts) -> int:
    return math.factorial(sum(drawn)) // math.prod(math.factorial(x) for x in drawn)


def _rising(start: Fraction, times: int) -> Fraction:
    return math.prod((start + s for s in range(times)), start=Fraction(1))
