"""What adaptive_gibbs knows so far: what was bought, how rare levels are merged, where chains begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gibbous.core.recode import Groups, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, LogLinear, Merged, Table
from gibbous.structure.cliques import Clique, Limits
from gibbous.structure.merging import MOST_GROUPS, kinds_of, merged_levels, most_groups
from gibbous.structure.smoothing import Components, added, one_way
from gibbous.synthesize.loglinear import Chains, independent, start

CHAINS = (4096, 50_000)
DRAWS = 1_500_000  # most values in all chains together
SEED = 1  # of the chains: public, and the same for all; the noise alone is secret


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What was bought, and the model made of it. Public.

    Attributes:
        schema: public.
        seen: the same with rare levels of wide columns merged: what the model and further tables see.
        tables: as they were released.
        components: of all tables.
        references: of each measured clique, what its counts are compared with when noise is taken out.
        shares: one distribution a column, in codes of the model once there is one.
        rows: noisy number of records, >= 1.
        model, chains: fitted to all that; None before the first fit.
    """

    schema: Schema
    seen: Schema
    tables: tuple[Table, ...] = ()
    components: Components = field(default_factory=Components)
    references: dict[Clique, tuple[np.ndarray, ...]] = field(default_factory=dict)
    shares: tuple[np.ndarray, ...] = ()
    rows: float = 1.0
    model: LogLinear | None = None
    chains: Chains | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each column of the model."""
        return self.seen.sizes


def model_sizes(schema: Schema, limits: Limits) -> tuple[int, ...]:
    """Codes of each column of the model at most: its levels, or as many groups as they are merged to."""
    found = []
    for j, size in enumerate(schema.sizes):
        apart = int(kinds_of(schema, j).max()) + 1 if size > MOST_GROUPS else size
        found.append(max(apart, most_groups(limits.cells)) if size > MOST_GROUPS else size)
    return tuple(found)


def bought(known: Known, tables: Sequence[Table]) -> Known:
    """The same and further tables; shares and the number of rows follow."""
    entries = []
    for table in tables:
        assert isinstance(table.cells, Dense)
        shape = table.context.parent_sizes + table.context.target_sizes
        values = table.cells.values.reshape(shape).astype(np.float64)
        entries.append((table.context.columns, values, max(table.noise.variance, 1e-6)))
    components = added(known.components, entries)
    return _followed(replace(known, tables=(*known.tables, *tables), components=components))


def _followed(known: Known) -> Known:
    """With shares and the number of rows made of the components."""
    rows, shares = max(1.0, known.components.total()), []
    for j, column in enumerate(known.seen.columns):
        counts, sigma = known.components.table((j,))
        # Groups differ in width: their counts are not smooth where those of the levels are.
        whole_levels = known.seen.sizes[j] == known.schema.sizes[j]
        shares.append(one_way(counts, sigma, rows, ordered=column.ordered and whole_levels))
    return replace(known, rows=rows, shares=tuple(shares))


def merging(known: Known, limits: Limits) -> tuple[Merged | None, ...]:
    """How wide columns are merged, from noisy 1-way tables; None for the others."""
    found: list[Merged | None] = []
    for j, column in enumerate(known.schema.columns):
        if column.size <= MOST_GROUPS:
            found.append(None)
            continue
        counts, sigma = known.components.table((j,))
        found.append(
            merged_levels(
                counts,
                sigma,
                known.rows,
                ordered=column.ordered,
                alike=kinds_of(known.schema, j),
                most=most_groups(limits.cells),
            )
        )
    return tuple(found)


def changes(merged: Sequence[Merged | None]) -> dict[int, Groups]:
    """What the Curator is asked to show the records by."""
    return {j: Groups(one.groups) for j, one in enumerate(merged) if one is not None}


def grouped(known: Known, merged: Sequence[Merged | None]) -> Known:
    """The same 1-way tables with rare levels added up."""
    seen = recoded_schema(known.schema, changes(merged))
    entries = []
    for j, one in enumerate(merged):
        counts, sigma = known.components.table((j,))
        levels = len(counts)
        if one is not None:
            counts = np.bincount(one.groups, weights=counts)
        # The mean over groups: a group has the noise of each of its levels.
        entries.append(((j,), counts, sigma**2 * levels / len(counts)))
    return _followed(replace(known, seen=seen, components=added(Components(), entries)))


def begun(known: Known, limits: Limits) -> Known:
    """With rare levels of wide columns merged, and chains of independent columns."""
    merged = merging(known, limits)
    if any(merged):
        known = grouped(known, merged)
    model = independent(known.shares, merged if any(merged) else ())
    count = int(np.clip(known.rows, CHAINS[0], most_chains(known.sizes)))
    chains = start(model, known.schema, known.shares, count, seed=SEED)
    return replace(known, model=model, chains=chains)


def most_chains(sizes: Sequence[int]) -> int:
    """Chains at most, by the number of columns."""
    return max(CHAINS[0], min(CHAINS[1], DRAWS // max(len(sizes), 1)))
