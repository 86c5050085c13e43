"""The model of adaptive_gibbs: made of what was bought, fitted, brought to its last form. All public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from gibbous.core.machine import usable_cores
from gibbous.core.recode import Groups, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Goal, LogLinear, Merged, Table
from gibbous.sampling.loglinear import (
    Chains,
    Schedule,
    Target,
    fit,
    independent,
    margins,
    planted,
    start,
    sweep,
    with_cliques,
)
from gibbous.sampling.loglinear.fit import agreed, blocks_of, gap_of
from gibbous.sampling.loglinear.laws import listable, outer, shares_of
from gibbous.sampling.structural_zeros import possible_cells
from gibbous.structure.cliques import Clique, Limits, cells_of, goal_pairs, pairs
from gibbous.structure.merging import CLEAR, LEAST_GROUPS, kinds_of, merged_levels, most_groups
from gibbous.structure.projection import projected
from gibbous.structure.rank_moments import halved, ranked
from gibbous.structure.smoothing import Component, Components, added, estimated, one_way, rake

CHAINS = (8192, 50_000)
DRAWS = 1_500_000  # most values in all chains together
SEED = 1  # of the chains: public, and the same for all; the noise alone is secret
ROUND = tuple(
    Schedule(steps=1, sweeps=1, passes=2, gain=gain) for gain in (1.0, 1.0, 0.7, 0.5, 0.4, 0.3)
)
# From the model of the round before, which has only to learn what is new.
ON = tuple(Schedule(steps=1, sweeps=1, passes=2, gain=gain) for gain in (1.0, 0.6, 0.3))
LAST = tuple(
    Schedule(steps=1, sweeps=2, passes=2, gain=gain)
    for gain in (
        *(1.0, 1.0, 1.0, 1.0, 0.7, 0.7, 0.5, 0.5, 0.5, 0.5, 0.4, 0.4),
        *(0.3, 0.3, 0.3, 0.2, 0.2, 0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.1),
    )
)
CROWDED = 3.0  # cliques a column from which on steps are shortened: each adds its sampling noise
# Of a model whose rows can be listed, without Monte Carlo: each round goes on from the one before.
EXACT_ROUND, EXACT_LAST = (Schedule(steps=1, passes=1),), (Schedule(steps=2, passes=4, bound=30.0),)
WORSE = 1.05  # times the least distance from its targets that a fit had: beyond, that model is kept
SLACK = 0.5  # standard deviations that a cell of a fit may stay from its target
SAMPLED = 0.1  # of a cell's noise, in variance, that the chains of the last fit may add
SAMPLED_BEFORE = 0.3  # the same of the chains of the rounds
BETWEEN = 0.02  # of the independent table in a reference: between chains nothing was seen
DAMPED = 0.06  # of a cell's noise: below it, a fit takes smaller steps
RAKES = 4
AVERAGED = 12  # times that the chains are counted for the margins of the rows
GOAL_CELLS = 4_000_000  # most cells of all margins that rows are closed to
WEIGHT_ONE_WAY = 3.0
CLOSED = 65_536  # most rows that are closed to their margins together

Estimates = Mapping[Clique, tuple[Component, np.ndarray, np.ndarray]]


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
        estimates: of each measured clique the component they were made from, and its cells without their
            noise, with standard deviations; made by `fitted`.
        tied: whether a look found columns tied, where records are few.
        halves: of two ordered columns the noisy covariance of being above their middles, and its error.
        model, chains: fitted to all that; `begun` makes the first ones.
    """

    schema: Schema
    seen: Schema
    tables: tuple[Table, ...] = ()
    components: Components = field(default_factory=Components)
    references: dict[Clique, tuple[np.ndarray, ...]] = field(default_factory=dict)
    shares: tuple[np.ndarray, ...] = ()
    rows: float = 1.0
    estimates: Estimates = field(default_factory=dict)
    tied: bool = False
    halves: Mapping[Clique, tuple[float, float]] = field(default_factory=dict)
    model: LogLinear = field(default=None)  # type: ignore[assignment]
    chains: Chains = field(default=None)  # type: ignore[assignment]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each column of the model."""
        return self.seen.sizes

    @property
    def listed(self) -> bool:
        """Whether all rows of the model can be listed."""
        return listable(self.sizes, self.references)

    @property
    def told(self) -> bool:
        """Whether the table of all columns was bought."""
        return tuple(range(len(self.sizes))) in self.references


def bought(known: Known, tables: Sequence[Table]) -> Known:
    """The same and further tables; shares and the number of rows follow."""
    entries = []
    for table in tables:
        assert isinstance(table.cells, Dense)
        shape = table.context.parent_sizes + table.context.target_sizes
        values = table.cells.values.reshape(shape).astype(np.float64)
        entries.append((table.context.columns, values, max(table.noise.variance, 1e-6)))
    components = added(known.components, entries)
    return followed(replace(known, tables=(*known.tables, *tables), components=components))


def followed(known: Known) -> Known:
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
        counts, sigma = known.components.table((j,))
        clear = float((counts >= CLEAR * sigma).sum())
        most = most_groups(known.schema.sizes, limits.cells, known.rows / sigma, clear)
        if column.size <= max(LEAST_GROUPS, most):
            found.append(None)
            continue
        found.append(
            merged_levels(
                counts,
                sigma,
                known.rows,
                ordered=column.ordered,
                alike=kinds_of(known.schema, j),
                most=most,
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
    return followed(replace(known, seen=seen, components=added(Components(), entries)))


def begun(known: Known, limits: Limits, sigma: float = 0.0) -> Known:
    """With rare levels of wide columns merged, and chains of independent columns.

    Chains are `enough` for pairs whose cells have noise `sigma`; 0: as many as there are records.
    """
    merged = () if known.told else merging(known, limits)  # of all levels, nothing is merged
    if any(merged):
        known = grouped(known, merged)
    model = independent(known.shares, merged if any(merged) else ())
    count = int(np.clip(known.rows, CHAINS[0], most_chains(known.sizes)))
    if sigma > 0.0:
        cells = [cells_of(known.sizes, pair) for pair in pairs(known.sizes, limits)]
        count = enough(known, [(each, sigma) for each in cells], SAMPLED_BEFORE)
    chains = start(model, known.schema, known.shares, count, seed=SEED)
    return replace(known, model=model, chains=chains)


def most_chains(sizes: Sequence[int]) -> int:
    """Chains at most, by the number of columns."""
    return max(CHAINS[0], min(CHAINS[1], DRAWS // max(len(sizes), 1)))


def threads() -> int:
    """Threads of the sweeps; they never change a byte."""
    return min(4, usable_cores())


def concluded(known: Known) -> Known:
    """Fitted for the last time, to tables that are compared with all that the model now knows."""
    if known.listed:
        return fitted(known, LAST)
    known = seen_again(fitted(known, ROUND))
    return fitted(known, LAST, chains_needed(known))


def chains_needed(known: Known) -> int:
    """Chains of the last fit: `enough` for what was bought."""
    found = map(known.components.table, known.references)
    return enough(known, [(counts.size, sigma) for counts, sigma in found], SAMPLED)


def enough(known: Known, tables: Sequence[tuple[int, float]], sampled: float) -> int:
    """Chains whose sampling adds no more than a share `sampled` to the variance of the noise in a cell.

    A cell of a table of c cells expects rows / c records. Counted over the chains it varies by
    rows^2 / (c chains), as bought by sigma^2; the table with the median ratio of these (c, sigma) decides.
    """
    ratios = [known.rows**2 / (cells * sigma**2) for cells, sigma in tables]
    return int(np.clip(np.median(ratios or [0.0]) / sampled, CHAINS[0], most_chains(known.sizes)))


def seen_again(known: Known) -> Known:
    """With a third reference for each clique: what the model says of it by its other cliques.

    That is its margin with the clique's own theta taken out, at the same 1-way shares. Columns that
    say nearly the same lend each other their tables this way.
    """
    cliques = tuple(known.references)
    theta = dict(zip(known.model.cliques, known.model.theta, strict=True))
    references = {}
    counted = margins(known.chains, known.sizes, cliques) if cliques else ()
    for clique, counts in zip(cliques, counted, strict=True):
        own = [known.shares[j] for j in clique]
        apart = outer(own)
        seen = (1 - BETWEEN) * counts / known.chains.count + BETWEEN * apart
        without = rake(seen * np.exp(-np.clip(theta[clique], -10.0, 10.0)) + 1e-12, own)
        third = known.rows * ((1 - BETWEEN) * without + BETWEEN * apart)
        references[clique] = (*known.references[clique][:2], third)
    return replace(known, references=references)


def fitted(known: Known, schedules: Sequence[Schedule], count: int | None = None) -> Known:
    """With a model of all that was bought.

    A fit of a round begins where its tables are nearer: at the model that there is, or at the tree of
    tables that tells most; the last fit begins at the tree, whose chains are in equilibrium. Between rounds
    only what was bought anew is estimated. Where the last step leaves chains further from the targets
    than an earlier one had, by more than WORSE, the earlier model is kept: a fit ends no further away than
    the tree. `count` is the number of chains; None: as before.
    """
    known = replace(
        known, estimates=estimates(known, known.estimates if schedules is ROUND else {})
    )
    wanted, chains = targets(known), known.chains
    model = with_cliques(known.model, [target.columns for target in wanted])
    now = (gap_of(model, chains, wanted), model, chains)
    held: set[Clique] = set()
    if listable(model.sizes, model.cliques):
        schedules = EXACT_ROUND if schedules is ROUND else EXACT_LAST
    else:
        model, chains = planted(model, chains, wanted, count)
        tree = (gap_of(model, chains, wanted), model, chains)
        if schedules is ROUND and now[0] < tree[0]:
            schedules, held = ON, set(known.model.cliques)
        else:
            now = tree
    best, (_, model, chains) = now, now
    blocks = blocks_of(model.sizes, wanted)
    crowd = sum(len(c) for c in known.references if c not in held) / len(model.sizes)
    for schedule in schedules:
        gain = schedule.gain * min(1.0, CROWDED / max(crowd, 1.0))
        step = replace(schedule, gain=gain)
        model, chains = fit(model, chains, wanted, step, blocks=blocks, threads=threads())
        now = (gap_of(model, chains, wanted), model, chains)
        best = min(best, now, key=itemgetter(0))
    _, model, chains = best if now[0] > WORSE * best[0] else now
    return replace(known, model=model, chains=chains)


def estimates(known: Known, before: Estimates) -> Estimates:
    """Measured cliques without their noise; as they were before where none of their tables is new."""
    found = {}
    for clique, references in known.references.items():
        held = known.components.found[clique]
        if clique in before and before[clique][0] is held:
            found[clique] = before[clique]
            continue
        counts, sigma = known.components.table(clique)
        sums = [known.rows * known.shares[j] for j in clique]
        found[clique] = (held, *estimated(counts, sigma, references, sums))
    return found


def targets(known: Known) -> list[Target]:
    """What the model is fitted to: 1-way shares, and measured cliques without their noise."""
    found = [Target((j,), shares) for j, shares in enumerate(known.shares)]
    tables = [(*known.components.table(c), *e[1:]) for c, e in known.estimates.items()]
    if known.tied:  # mostly zeros, which few cells do not show of themselves
        tables = projected(tables, known.rows)
    for clique, (counts, sigma, cells, errors) in zip(known.estimates, tables, strict=True):
        own = [known.shares[j] for j in clique]
        shares = rake(cells * possible_cells(known.seen, clique) + 1e-12, own)
        pair = [known.seen.columns[j] for j in clique]
        if len(pair) == 2 and all(column.ordered for column in pair):
            shares = ranked(shares, counts, sigma, own, [column.bins for column in pair])
        damp, slack = DAMPED * sigma / known.rows, SLACK * errors / known.rows
        found.append(Target(clique, shares, damp, slack=slack))
    if known.told:
        found[len(known.shares) :] = [agreed(found)]
    return found


def finished(known: Known) -> LogLinear:
    """The model with what fresh rows are brought to: its own margins of pairs, averaged over sweeps."""
    sizes, model, chains = known.sizes, known.model, known.chains
    wanted, measured = goal_pairs(sizes, known.references, GOAL_CELLS), targets(known)
    sums = shares_of(model, chains, wanted)
    for _ in range(0 if known.listed or not wanted else AVERAGED):
        chains = sweep(model, chains, 2, threads=threads())
        sums = [a + b for a, b in zip(sums, shares_of(model, chains, wanted), strict=True)]
    near = {target.columns: target for target in measured if not known.listed}
    goals = [Goal((j,), shares, WEIGHT_ONE_WAY) for j, shares in enumerate(known.shares)]
    for pair, total in zip(wanted, sums, strict=True):
        own, have = [known.shares[j] for j in pair], total / total.sum()
        if pair in near:
            slack = near[pair].slack
            have = np.clip(have, near[pair].shares - slack, near[pair].shares + slack)
        smooth = (have + 1e-6 * outer(own)) * possible_cells(known.seen, pair)
        have = rake(smooth + 1e-15, own)
        if pair in known.halves:
            have = halved(
                have, own, [known.seen.columns[j].bins for j in pair], *known.halves[pair]
            )
        goals.append(Goal(pair, have))
    natural = known.rows * 1.005
    closed = int(natural / math.ceil(natural / CLOSED) + 32)  # blocks of one size, none cut short
    gap = gap_of(model, chains, measured)
    return replace(model, goals=tuple(goals), closed=closed, gap=round(gap, 6))
