"""Memory of adaptive_gibbs: what a run holds beyond records and 1-way tables, from the schema alone."""

from __future__ import annotations

from collections.abc import Sequence

from gibbous.mechanisms import _adaptive_known, _rounds
from gibbous.structure.cliques import Limits, pairs

CANDIDATE = 32  # bytes a cell: the Curator's count, the expected one, the chains' and a distance
GOAL = 96  # bytes a cell of a margin that rows are closed to: sums, shares, and its layout twice
CHAIN = 64  # bytes a chain beside its codes: weights, places, an order


def working_bytes(sizes: Sequence[int], limits: Limits) -> int:
    """An upper estimate, in bytes: candidates of one round, chains, goals of the rows.

    Args:
        sizes: codes of each column of the model, at most.
        limits: of the candidates.
    """
    two = sum(sizes[a] * sizes[b] for a, b in pairs(sizes, limits))
    three = min(limits.all_cells, _all_triples(sizes))
    goals = min(two, _rounds.GOAL_CELLS)
    chains = _adaptive_known.most_chains(sizes)
    width = 1 if max(sizes, default=1) <= 256 else 2
    rows = max(chains, _rounds.CLOSED) * (3 * width * len(sizes) + CHAIN)
    return CANDIDATE * (min(two, limits.all_cells) + three) + GOAL * goals + rows


def _all_triples(sizes: Sequence[int]) -> int:
    """Cells of all triples of columns with more than one code: an elementary symmetric polynomial."""
    free = [size for size in sizes if size > 1]
    one, two, three = (sum(size**k for size in free) for k in (1, 2, 3))
    return (one**3 - 3 * one * two + 2 * three) // 6
