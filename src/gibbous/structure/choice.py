"""Paid choices of context columns: the exponential mechanism on dependence scores, through the Curator.

Ranking columns by the mutual information of the records would leak (docs/proofs/sbhg.md): here the
1-way tables are released with noise first, and each pick is charged. Between picks only what was
already picked is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Measure
from gibbous.core.context import Context
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.privacy.calibrate.scales import steps
from gibbous.structure.clique_scores import dense, whole

Score = Callable[[Sequence[Counts]], np.ndarray]
DIGIT = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """What is public before the first pick.

    Attributes:
        shares: fitted 1-way distribution of each column.
        rows: noisy number of records, > 0.
    """

    shares: tuple[np.ndarray, ...]
    rows: float


@dataclass(frozen=True, slots=True)
class Network:
    """An order of the columns, and for each column parents that come before it.

    Attributes:
        order: positions of all columns.
        parents: by position of the column, not by order.
        paid: picks that were charged.
    """

    order: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    paid: int = 0


@dataclass(frozen=True, slots=True)
class Caution:
    """How the expected noise of a table lowers its score before its counts are looked at.

    Attributes:
        noise: standard deviation of one cell of the tables to be released, in counts; 0 for none.
        weight: share of the noise that is expected to survive post-processing.
        max_cells: largest table that may be chosen.
    """

    noise: float = 0.0
    weight: float = 0.4
    max_cells: int = 1 << 20

    def price(self, cells: int) -> float:
        """Expected L1 norm of the noise, in counts, times the weight."""
        return self.weight * math.sqrt(2 / math.pi) * self.noise * cells

    def limit(self, rows: float) -> int:
        """Most cells worth looking at: a score is below 2 * rows, so no larger table can win."""
        one = self.price(1)
        return self.max_cells if one == 0 else min(self.max_cells, int(2 * rows / one))


def choose_hashed(
    curator: CuratorLike,
    margins: Margins,
    parents: int,
    *,
    epsilon: Fraction,
    accounting: Measure = "pure",
    max_cells: int = 1 << 20,
) -> tuple[tuple[int, ...], ...]:
    """Spend: the context columns of every column, picked one by one without replacement.

    Args:
        margins: from noisy 1-way tables that were released before.
        parents: picks a column; fewer where no further column keeps the table under `max_cells`.
        epsilon: of one pick; at most `picks(columns, parents)` picks are charged.
        accounting: see `Curator.choose`.
    Returns:
        Positions of the context columns of each column, in the order they were picked.
    Guarantee:
        Each pick is epsilon-DP and epsilon^2/8-zCDP: the score |n_jc - m_j m_c / m| (L1) changes by
        at most 1 when one row is added or removed, 2 when one is replaced. docs/proofs/noisy_pegs.md.
    """
    schema = curator.schema
    contexts_of: list[tuple[int, ...]] = []
    for j, size in enumerate(schema.sizes):
        chosen: tuple[int, ...] = ()
        for _ in range(min(parents, len(schema) - 1) if size > 1 else 0):
            cells = size * math.prod(schema.sizes[c] for c in chosen)
            fits = [
                c
                for c, other in enumerate(schema.sizes)
                if c != j and c not in chosen and other > 1 and cells * other <= max_cells
            ]
            if not fits:
                break
            contexts = [pair(schema, j, c) for c in fits]
            picked = curator.choose(
                contexts,
                pair_scores(contexts, margins),
                sensitivity=steps(curator.relation),
                epsilon=epsilon,
                accounting=accounting,
            )
            chosen = (*chosen, fits[picked])
        contexts_of.append(chosen)
    return tuple(contexts_of)


def choose_network(
    curator: CuratorLike,
    margins: Margins,
    parents: int,
    *,
    epsilon: Fraction,
    caution: Caution,
    accounting: Measure = "zcdp",
    leaves: Collection[int] = (),
) -> Network:
    """Spend: a tree that joins every column to one that is placed, then more parents where they pay.

    The first picks grow a tree by the strongest pair between placed and unplaced columns. Then each
    column may take a further parent among the columns before it, or stay as it is: what a larger
    table gains in dependence is weighed against its noise.

    Args:
        parents: most parents of a column; 0 leaves all columns apart.
        epsilon: of one pick; at most `network_picks(columns, parents)` picks are charged.
        leaves: columns that become the parent of none.
    Guarantee:
        Each pick is epsilon-DP and epsilon^2/8-zCDP. docs/proofs/noisy_pegs.md.
    """
    schema = curator.schema
    free = [j for j, size in enumerate(schema.sizes) if size > 1]
    still = tuple(j for j, size in enumerate(schema.sizes) if size == 1)
    if parents == 0 or len(free) < 2:
        return Network((*still, *free), ((),) * len(schema))
    search = _Search(curator, margins, caution, epsilon, accounting)
    order, chosen = _tree(search, free, leaves)
    paid = sum(map(bool, chosen.values()))
    for reach in range(1, parents):
        for place, j in enumerate(order):
            before = [c for c in order[:place] if c not in leaves]
            options = search.options(j, chosen[j], before) if len(chosen[j]) == reach else []
            if len(options) > 1:
                chosen[j] = search.parents(j, options)
                paid += 1
    return Network((*still, *order), tuple(chosen.get(j, ()) for j in range(len(schema))), paid)


def picks(columns: int, parents: int) -> int:
    """Most purchases that `choose_hashed` can make for a number of columns and parents a column."""
    return columns * min(parents, max(columns - 1, 0))


def network_picks(columns: int, parents: int) -> int:
    """Most purchases that `choose_network` can make for columns of more than one level.

    A tree over all columns has columns - 1 edges. For a further parent beside r others, a column
    needs r + 1 columns before it.
    """
    return sum(columns - 1 - r for r in range(min(parents, max(columns - 1, 0))))


def expected_cells(schema: Schema, parents: int, max_cells: int) -> int:
    """About how many cells `choose_network` counts: a public figure, for memory estimates.

    All pairs, and for each further parent all pairs with a third column of middling size.
    """
    sizes, third = schema.sizes, sorted(schema.sizes)[len(schema) // 2]
    pairs = [a * b for i, a in enumerate(sizes) for b in sizes[:i]]
    first = sum(min(n, max_cells) for n in pairs)
    further = sum(min(n * third, max_cells) for n in pairs)
    return (first + (parents - 1) * further) if parents else 0


def pair(schema: Schema, one: int, two: int) -> Context:
    """The 2-way table of two columns, the same context for (one, two) and (two, one)."""
    parent, target = sorted((one, two))
    return Context((target,), (parent,), (schema.sizes[target],), (schema.sizes[parent],))


def pair_scores(
    contexts: Sequence[Context], margins: Margins, caution: Caution | None = None
) -> Score:
    """Distance of each 2-way table from the product of its noisy margins, in counts.

    Only the 2-way table is secret, so one row changes a score by at most 1 (added or removed).
    """
    held = caution or Caution()

    def score(counts: Sequence[Counts]) -> np.ndarray:
        scores = np.empty(len(contexts))
        for i, (context, secret) in enumerate(zip(contexts, counts, strict=True)):
            of_parent = margins.shares[context.parents[0]]
            of_target = margins.shares[context.targets[0]]
            apart = whole(margins.rows * np.outer(of_parent, of_target))
            scores[i] = np.abs(dense(secret) - apart).sum() - held.price(context.cells)
        return scores

    return score


def parent_scores(contexts: Sequence[Context], margins: Margins, caution: Caution) -> Score:
    """Distance of each table n[key, level] from its own keys times the noisy margin, in counts.

    A row changes one cell by 1 and its key's product by 1 in total: at most 2 (added or removed).
    Products are taken in whole numbers, of shares in two digits of 2^-21.
    """

    def score(counts: Sequence[Counts]) -> np.ndarray:
        scores = np.empty(len(contexts))
        for i, (context, secret) in enumerate(zip(contexts, counts, strict=True)):
            table = dense(secret).astype(np.int64)
            rows = table.sum(axis=1, keepdims=True)
            first, second = digits(margins.shares[context.targets[0]])
            if rows.sum() < 1 << 20:  # the same number in one digit: n times 2^42 fits 62 bits
                apart = table * DIGIT**2 - rows * (first * DIGIT + second)
                exact = int(np.abs(apart).sum())
            else:
                small = rows * second
                low = small & (DIGIT - 1)
                # Each difference is (high - low / DIGIT) / DIGIT.
                high = table * DIGIT - rows * first - (small >> 21)
                signs = np.where(high > 0, 1, -1)
                exact = int((signs * high).sum()) * DIGIT - int((signs * low).sum())
            exact -= round(caution.price(context.cells) * DIGIT**2)
            scores[i] = exact / DIGIT**2
        return scores

    return score


def digits(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares as first / 2^21 + second / 2^42, rounded down: each int64 in [0, 2^21], together at most 1."""
    whole_, rest = np.divmod(np.clip(shares, 0.0, 1.0) * DIGIT, 1.0)
    return whole_.astype(np.int64), np.floor(rest * DIGIT).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What all picks of one search share; each pick is a purchase."""

    curator: CuratorLike
    margins: Margins
    caution: Caution
    epsilon: Fraction
    accounting: Measure

    @property
    def limit(self) -> int:
        return self.caution.limit(self.margins.rows)

    def edge(self, edges: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """The pair that is furthest from independent."""
        contexts = [pair(self.curator.schema, j, a) for j, a in edges]
        score = pair_scores(contexts, self.margins, self.caution)
        return edges[self._pick(contexts, score, rows=1)]

    def options(
        self, target: int, parents: tuple[int, ...], before: Sequence[int]
    ) -> list[tuple[int, ...]]:
        """The parents as they are, and with each affordable one of the columns before added."""
        sizes = self.curator.schema.sizes
        cells = sizes[target] * math.prod(sizes[c] for c in parents)
        more = [c for c in before if c not in parents and cells * sizes[c] <= self.limit]
        return [parents, *((*parents, c) for c in more)]

    def parents(self, target: int, options: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The option whose table is furthest from independent of its keys, noise considered."""
        sizes = self.curator.schema.sizes
        contexts = [
            Context((target,), option, (sizes[target],), tuple(sizes[c] for c in option))
            for option in options
        ]
        score = parent_scores(contexts, self.margins, self.caution)
        return options[self._pick(contexts, score, rows=2)]

    def _pick(self, contexts: Sequence[Context], score: Score, *, rows: int) -> int:
        """`rows` is how much one added row can change a score."""
        return self.curator.choose(
            contexts,
            score,
            sensitivity=rows * steps(self.curator.relation),
            epsilon=self.epsilon,
            accounting=self.accounting,
        )


def _tree(
    search: _Search, free: list[int], leaves: Collection[int]
) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """Order and first parents: the strongest pair between placed and unplaced columns, repeatedly."""
    sizes = search.curator.schema.sizes
    order: list[int] = []
    chosen: dict[int, tuple[int, ...]] = {}
    while len(order) < len(free):
        placed = order or free
        edges = [
            (j, a)
            for j in free
            for a in placed
            if j != a and j not in order and a not in leaves and sizes[j] * sizes[a] <= search.limit
        ]
        if not order:  # a pair stands for both of its directions
            edges = [(j, a) for j, a in edges if j > a or j in leaves]
        if not edges:  # nothing that is affordable: the next column stands alone
            j = next(j for j in free if j not in order)
            order.append(j)
            chosen[j] = ()
            continue
        j, a = search.edge(edges)
        if not order:
            order.append(a)
            chosen[a] = ()
        order.append(j)
        chosen[j] = (a,)
    return order, chosen
