"""Noisy counts of narrow bins, in up to five looks: each cuts finer what the one before found filled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.recode import Edges
from gibbous.core.schema import Schema
from gibbous.structure.contexts import margins
from gibbous.structure.fine_bins import (
    PARTS,
    Steps,
    counted_edges,
    finer_steps,
    most_values,
    next_edges,
    rows_of,
)

BINS = (
    "narrow bins",
    "finer bins",
    "finer bins (third look)",
    "finer bins (fourth look)",
    "finest bins",
)
LATER = Fraction(1, 4)  # of the price of one of the first two looks, for each later one


@dataclass(frozen=True, slots=True)
class Look:
    """One count of bins of some columns.

    Attributes:
        bins: what is counted, in words.
        which: positions of the columns.
        noise: of each count.
    """

    bins: str
    which: tuple[int, ...]
    noise: Noise

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(max(self.noise.info().variance, 1e-6))

    @property
    def words(self) -> str:
        """For a plan."""
        info = self.noise.info()
        return f"{info.law} noise, scale {info.scale:.6g} counts"


def looks_at(
    schema: Schema,
    edges: Mapping[int, tuple[float, ...]],
    noise_for: Callable[[Fraction, int], Noise],
    *,
    finer: bool,
    beside: int = 0,
) -> tuple[Look, ...]:
    """Which columns are looked at how often, a public fact, and with what noise.

    Args:
        edges: of the narrow bins, by position.
        noise_for: of a share of the price of all looks, and the number of tables that it is for.
        finer: whether narrow bins may be cut.
        beside: other tables, bought with the noise of the first look.
    """
    held = {j: most_values(schema.columns[j], cut) if finer else 0 for j, cut in edges.items()}
    each = [tuple(edges)]
    for cut in range(len(PARTS)):
        each.append(tuple(j for j, values in held.items() if values > math.prod(PARTS[:cut])))
    tables, later = sum(map(len, each[:2])) + beside, sum(map(len, each[2:]))
    price = 1 / (tables + LATER * later)  # of one table of the first two looks
    first = noise_for(tables * price, tables)
    return tuple(
        Look(bins, which, first if place < 2 else noise_for(LATER * len(which) * price, len(which)))
        for place, (bins, which) in enumerate(zip(BINS, each, strict=True))
        if which or not place
    )


def bought_steps(
    curator: CuratorLike, edges: Mapping[int, tuple[float, ...]], looks: tuple[Look, ...]
) -> dict[int, Steps]:
    """Spend: counts of narrow bins, of parts of those that clearly hold records, of parts of these."""
    if not edges:
        return {}
    columns = curator.schema.columns
    first, rows = _counts(curator, edges, looks[0])
    seen = {j: [(cut, first[j], looks[0].sigma)] for j, cut in edges.items()}
    for look in looks[1:]:
        fine = {j: next_edges(columns[j], seen[j]) for j in look.which}
        for j, counts in (_counts(curator, fine, look)[0] if fine else {}).items():
            seen[j].append((fine[j], counts, look.sigma))
    return {j: finer_steps(columns[j], known, rows[j]) for j, known in seen.items()}


def _counts(
    curator: CuratorLike, edges: Mapping[int, tuple[float, ...]], look: Look
) -> tuple[dict[int, np.ndarray], dict[int, tuple[float, float]]]:
    """Spend: noisy counts of bins and, at the end, of the upper bound alone, by position.

    Returns:
        Counts, and `rows_of` them.
    """
    columns = curator.schema.columns
    view = curator.recoded({j: Edges(counted_edges(columns[j], cut)) for j, cut in edges.items()})
    tables = view.noisy_counts([margins(view.schema)[j] for j in edges], look.noise)
    cells = {
        j: table.cells.values.ravel().astype(np.float64)
        for j, table in zip(edges, tables, strict=True)
    }
    bins = {j: len(cut) for j, cut in edges.items()}
    return {j: one[: bins[j]] for j, one in cells.items()}, rows_of(cells, bins, look.sigma)
