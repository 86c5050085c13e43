"""Cliques: which columns may be measured together, what that is worth, and the paid picks among them.

The worth of a clique is how far the model is from the records on it, less the error that is to be
expected after measuring it. Only the first part looks at records, and only inside the Curator; the
second is a function of the model, the noise and the schema.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.context import Context
from gibbous.core.protocols import CuratorLike
from gibbous.core.tables import Counts, Dense
from gibbous.privacy.calibrate import steps

Clique = tuple[int, ...]
MEAN = math.sqrt(2 / math.pi)  # E|z| of a standard normal
PAIR_CARE, TRIPLE_CARE = 0.55, 1.0  # share of a cell's raw noise that is left after smoothing
OVERLAP = (
    0.5  # what a candidate keeps of its worth once a clique that shares a pair with it is picked
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Public limits of what is looked at.

    Attributes:
        cells: most cells of a candidate.
        all_cells: most cells of all candidates of a round.
    """

    cells: int = 20_000
    all_cells: int = 16_000_000


def context_of(sizes: Sequence[int], clique: Clique) -> Context:
    """The dense table of a clique; its cells reshape to one axis a column, in order."""
    *parents, target = clique
    return Context((target,), tuple(parents), (sizes[target],), tuple(sizes[c] for c in parents))


def pairs(sizes: Sequence[int], limits: Limits) -> tuple[Clique, ...]:
    """All pairs of columns with more than one level whose table is within the limits."""
    free = [j for j, size in enumerate(sizes) if size > 1]
    found = [
        pair
        for pair in itertools.combinations(free, 2)
        if sizes[pair[0]] * sizes[pair[1]] <= limits.cells
    ]
    return _within(found, sizes, limits.all_cells)


def triples(sizes: Sequence[int], known: Collection[Clique], limits: Limits) -> tuple[Clique, ...]:
    """Triples within the limits all of whose pairs are in the model: what is new is how three interact.

    Args:
        known: cliques of the model.
    """
    near: dict[int, set[int]] = {}
    for clique in known:
        for a, b in itertools.combinations(clique, 2):
            near.setdefault(a, set()).add(b)
            near.setdefault(b, set()).add(a)
    found = [
        (a, b, c)
        for a in sorted(near)
        for b in sorted(x for x in near[a] if x > a)
        for c in sorted(x for x in near[a] & near[b] if x > b)
        if sizes[a] * sizes[b] * sizes[c] <= limits.cells
    ]
    return _within(found, sizes, limits.all_cells)


def expected_error(
    expected: np.ndarray, sigma: float, chains: float, *, care: float = PAIR_CARE
) -> float:
    """L1 error, in counts, that is expected of a clique once it is measured.

    A cell much larger than the noise is known up to the noise; of a cell much smaller than it
    nothing is learned, and at most twice its count is at stake. Below that lies what no table of
    whole records can do better than: the spread of counts around the model, and of the chains.

    Args:
        expected: counts that the model expects.
        sigma: noise of one cell, in counts.
        chains: records divided by chains: how much coarser the chains count than the records.
        care: share of the noise that smoothing leaves.
    """
    noise = care * np.minimum(MEAN * sigma, 2.0 * expected)
    spread = np.minimum(2.0 * expected, MEAN * np.sqrt(expected * (1.0 + chains)))
    return float(np.sqrt(noise * noise + spread * spread).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What may be picked in one round, and what is public about it.

    Attributes:
        cliques: candidates.
        contexts: their tables.
        expected: counts that the model expects, float64 (cells,) each.
        errors: `expected_error` of each, in counts.
    """

    cliques: tuple[Clique, ...]
    contexts: tuple[Context, ...]
    expected: tuple[np.ndarray, ...]
    errors: np.ndarray


def care_of(clique: Clique) -> float:
    """Share of the raw noise that is held against a clique."""
    return PAIR_CARE if len(clique) <= 2 else TRIPLE_CARE


def pick(
    curator: CuratorLike, candidates: Candidates, picks: int, *, epsilon: Fraction
) -> tuple[int, ...]:
    """Spend: pick candidates one after the other, each charged.

    Args:
        picks: how many; fewer candidates give fewer picks, which is public.
        epsilon: of one pick.
    Returns:
        Indices of the candidates, distinct.
    Guarantee:
        Each pick is epsilon^2/8-zCDP: the score |n - m|_1 - expected error changes by at most 1 when
        one row is added or removed, 2 when one is replaced; later picks see it through a public map
        of slope at most 1. docs/proofs/adaptive_gibbs.md.
    """
    chosen: list[int] = []
    for _ in range(picks):
        kept = _kept(candidates.cliques, chosen)
        left = np.flatnonzero(kept > 0).tolist()
        if not left:
            break
        picked = curator.choose(
            [candidates.contexts[at] for at in left],
            _Worth([candidates.expected[at] for at in left], candidates.errors[left], kept[left]),
            sensitivity=steps(curator.relation),
            epsilon=epsilon,
            accounting="zcdp",
        )
        chosen.append(left[picked])
    return tuple(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _Worth:
    """The score of candidates: public numbers as fields, secret counts as argument."""

    expected: Sequence[np.ndarray]
    errors: np.ndarray
    kept: np.ndarray

    def __call__(self, counts: Sequence[Counts]) -> np.ndarray:
        worth = gaps(counts, self.expected) - self.errors
        lowered: np.ndarray = np.minimum(worth, self.kept * worth)
        return lowered


def gaps(counts: Sequence[Counts], expected: Sequence[np.ndarray]) -> np.ndarray:
    """L1 distance of each secret table from what the model expects, float64 (tables,)."""
    found = np.empty(len(expected))
    for at, (one, model) in enumerate(zip(counts, expected, strict=True)):
        assert isinstance(one.cells, Dense)
        found[at] = np.abs(one.cells.values.ravel() - model).sum()
    return found


def _kept(cliques: Sequence[Clique], chosen: Sequence[int]) -> np.ndarray:
    """What each candidate keeps of its worth after the picks so far: 0 where it is out."""
    kept = np.ones(len(cliques))
    for pick_ in chosen:
        own = set(cliques[pick_])
        for at, clique in enumerate(cliques):
            shared = len(own.intersection(clique))
            if shared == len(clique):
                kept[at] = 0.0
            elif shared >= 2:
                kept[at] *= OVERLAP
    return kept


def _within(found: Sequence[Clique], sizes: Sequence[int], most: int) -> tuple[Clique, ...]:
    """As many cliques as fit, the smallest tables first; in the given order."""
    cells: Mapping[Clique, int] = {c: math.prod(sizes[j] for j in c) for c in found}
    kept, used = set(), 0
    for clique in sorted(found, key=lambda c: (cells[c], c)):
        if used + cells[clique] > most:
            break
        kept.add(clique)
        used += cells[clique]
    return tuple(c for c in found if c in kept)
