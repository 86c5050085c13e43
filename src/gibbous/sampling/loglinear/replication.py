"""Refit: a released model and its noisy tables in; what the model says of them, and models of others, out.

For the variance that noise puts into an estimate. The model stands for the records, noise is drawn
anew around what it says of each table, and it is fitted to that as it was to the release. Public
numbers alone; which tables there are stays as it was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.context import Radix
from gibbous.core.tables import Dense, Goal, LogLinear, Merged, Table, Tables
from gibbous.sampling.loglinear.chains import Chains, code_dtype, margins, sweep
from gibbous.sampling.loglinear.fit import Schedule, Target, fit
from gibbous.sampling.loglinear.laws import law, listable, outer
from gibbous.sampling.loglinear.model_rows import ModelRows, ready
from gibbous.sampling.structural_zeros import Rule
from gibbous.structure.smoothing import Components, added, denoised, one_way, rake

Clique = tuple[int, ...]

CHAINS = (24_000, 48_000)  # least and most of the model's rows that stand for the records
FITTING = (
    Schedule(steps=4, sweeps=2, passes=2, gain=0.5),
    Schedule(steps=6, sweeps=2, passes=2, gain=0.4, fall=0),
)
EXACTLY = (Schedule(steps=2, passes=4),)
DAMPED = 0.06  # of a cell's noise: below it, a fit takes smaller steps
AVERAGED = 8  # times that the chains are counted for the margins of the rows
RAKES = 8  # rounds in which a reference is raked to its columns
BETWEEN = 0.02  # of the independent table in a reference: between chains nothing was seen
STEEPEST = 10.0  # theta that is taken out at most
LEAST_VARIANCE = 1e-6  # of a cell's noise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refitting:
    """A released model that can be fitted again. Public.

    Attributes:
        tables: as they were released, with their model.
        expected: the same with what the model says in place of the noisy counts; float64 cells.
        rules: structural zeros in codes of the model.
        chains: rows of the model, closed to its goals.
        others: of each clique of several columns, what the other cliques say of it: its margin with
            its own theta taken out. Noise is taken out against it, as columns that say nearly the
            same lend each other their tables.
    """

    tables: Tables
    expected: Tables
    rules: tuple[Rule, ...]
    chains: Chains
    others: Mapping[Clique, np.ndarray]

    @property
    def model(self) -> LogLinear:
        """The released model."""
        return _model(self.tables)


def prepared(tables: Tables, *, seed: int) -> Refitting | None:
    """Make a release ready for being fitted again.

    Args:
        tables: public, with a log-linear model.
        seed: of the rows that stand for the records.
    Returns:
        None where the model is not made of dense tables of the release: some clique or column is in
        none of them, or is counted in other codes than those of the model or the schema.
    """
    if not _is_of_its_tables(tables):
        return None
    model, every = _model(tables), tables.items + tables.extra
    found = ready(tables.schema, model, tables.recipe.sweeps)
    count = int(np.clip(2 * tables.noisy_rows(), *CHAINS))
    if model.goals:  # whole blocks: each is closed to the goals
        count = model.closed * max(1, round(count / model.closed))
    rows = ModelRows(found, seed, 0).rows(0, count, 1).values
    chains = Chains(_grouped(rows, model), found.rules, seed)
    cliques = tuple(dict.fromkeys(table.context.columns for table in every))
    shares = dict(zip(cliques, _margins(model, chains, cliques), strict=True))
    records = float(max(1, tables.noisy_rows()))

    def said(table: Table) -> Table:
        cube = _to_table(shares[table.context.columns], table, model)
        return replace(table, cells=Dense(records * cube.reshape(table.cells.values.shape)))

    items, extra = (tuple(said(t) for t in some) for some in (tables.items, tables.extra))
    expected = replace(tables, items=items, extra=extra)
    return Refitting(tables, expected, found.rules, chains, _others(model, chains))


def _others(model: LogLinear, chains: Chains) -> dict[Clique, np.ndarray]:
    wide = [(c, theta) for c, theta in zip(model.cliques, model.theta, strict=True) if len(c) > 1]
    own = _margins(model, chains, [clique for clique, _ in wide])
    return {
        clique: margin * np.exp(-np.clip(theta, -STEEPEST, STEEPEST)) + 1e-12
        for (clique, theta), margin in zip(wide, own, strict=True)
    }


def refitted(start: Refitting, fresh: Tables, *, threads: int = 1) -> Tables:
    """Fit the model to other noisy counts of the same tables.

    Args:
        start: the release.
        fresh: the released tables with other cells; its model is not read.
        threads: of the sweeps; never changes a byte.
    Returns:
        `fresh` with a model of the same cliques, goals and groups of levels.
    Source:
        The steps are those of a release by `adaptive_gibbs`: components, 1-way shares, noise taken
        out of each clique, raking, a log-linear fit; from the released model on, with fewer steps.
    """
    model = start.model
    every = fresh.items + fresh.extra
    components = added(Components(), [_to_model(table, model) for table in every])
    rows = max(1.0, components.total())
    ordered = [column.ordered for column in fresh.schema]
    shares = []
    for j, size in enumerate(model.sizes):
        counts, sigma = components.table((j,))
        alike = ordered[j] and size == fresh.schema.sizes[j]
        shares.append(one_way(counts, sigma, rows, ordered=alike))
    wanted = _targets(start, components, shares, rows)
    again, chains = replace(model, merged=_merged(fresh, model, rows)), start.chains
    for schedule in EXACTLY if listable(model.sizes, model.cliques) else FITTING:
        again, chains = fit(again, chains, wanted, schedule, threads=threads)
    goals = _goals(again, chains, shares, threads)
    return replace(fresh, model=replace(again, goals=goals))


def _targets(
    start: Refitting, components: Components, shares: Sequence[np.ndarray], rows: float
) -> list[Target]:
    """1-way shares and the cliques of the model, their noise taken out."""
    model = start.model
    found: dict[Clique, Target] = {(j,): Target((j,), one) for j, one in enumerate(shares)}
    for clique in sorted((c for c in model.cliques if len(c) > 1), key=lambda c: (len(c), c)):
        counts, sigma = components.table(clique)
        own = [shares[j] for j in clique]
        apart = outer(own)
        others = (1 - BETWEEN) * rake(start.others[clique], own, RAKES) + BETWEEN * apart
        margins = [rows * one for one in own]
        cells = denoised(counts, sigma, (rows * others, rows * apart), margins)
        cells = cells * _possible(start.rules, clique, model.sizes)
        found[clique] = Target(clique, rake(cells + 1e-12, own), DAMPED * sigma / rows)
    return list(found.values())


def _goals(
    model: LogLinear, chains: Chains, shares: Sequence[np.ndarray], threads: int
) -> tuple[Goal, ...]:
    """The goals of the released model, as the new one has them; 1-way shares are met exactly."""
    wide = [goal for goal in model.goals if len(goal.columns) > 1]
    cliques = [goal.columns for goal in wide]
    sums = _margins(model, chains, cliques)
    if cliques and not listable(model.sizes, model.cliques):
        for _ in range(AVERAGED - 1):
            chains = sweep(model, chains, 2, threads=threads)
            sums = [a + b for a, b in zip(sums, _margins(model, chains, cliques), strict=True)]
    made = [
        replace(goal, shares=shares[goal.columns[0]])
        for goal in model.goals
        if len(goal.columns) == 1
    ]
    for goal, cube in zip(wide, sums, strict=True):
        own = [shares[j] for j in goal.columns]
        possible = _possible(chains.rules, goal.columns, model.sizes)
        smooth = (cube + 1e-6 * cube.sum() * outer(own)) * possible
        made.append(replace(goal, shares=rake(smooth + 1e-15, own)))
    return tuple(made)


def _margins(model: LogLinear, chains: Chains, cliques: Sequence[Clique]) -> list[np.ndarray]:
    """Shares of some cliques under the model: exact where its rows can be listed, else of the chains."""
    if not cliques:
        return []
    if listable(model.sizes, model.cliques):
        whole = law(model, chains.rules)
        return [_margin(whole, clique) for clique in cliques]
    found = margins(chains, model.sizes, [tuple(sorted(clique)) for clique in cliques])
    return [
        (one / max(chains.count, 1)).transpose(np.argsort(np.argsort(clique)))
        for one, clique in zip(found, cliques, strict=True)
    ]


def _margin(whole: np.ndarray, columns: Clique) -> np.ndarray:
    """Sums over all other axes, an axis a column in the order given."""
    others = tuple(a for a in range(whole.ndim) if a not in columns)
    return np.asarray(whole.sum(axis=others).transpose(np.argsort(np.argsort(columns))))


def _is_of_its_tables(tables: Tables) -> bool:
    """Whether every clique and column of the model is in some table, and every table can be read."""
    model, every = _model(tables), tables.items + tables.extra
    held = [set(table.context.columns) for table in every]
    needed = set(model.cliques) | {(j,) for j in range(len(model.sizes))}
    return all(_readable(table, tables) for table in every) and all(
        any(set(clique) <= own for own in held) for clique in needed
    )


def _readable(table: Table, tables: Tables) -> bool:
    """Whether every cell is there, and every axis counts levels, or groups of the model."""
    model, context = _model(tables), table.context
    if not isinstance(table.cells, Dense) or not isinstance(context.key, Radix):
        return False
    return all(
        size in (model.sizes[j], tables.schema.sizes[j])
        for j, size in zip(context.columns, _sizes(table), strict=True)
    )


def _sizes(table: Table) -> tuple[int, ...]:
    return table.context.parent_sizes + table.context.target_sizes


def _to_table(shares: np.ndarray, table: Table, model: LogLinear) -> np.ndarray:
    """Shares in codes of the model, axes as in the table, spread over the levels that it counts."""
    for axis, (j, size) in enumerate(zip(table.context.columns, _sizes(table), strict=True)):
        if size != model.sizes[j]:
            merged = _of(model, j)
            shape = [1] * shares.ndim
            shape[axis] = size
            shares = shares.take(merged.groups, axis=axis) * merged.shares.reshape(shape)
    return shares


def _to_model(table: Table, model: LogLinear) -> tuple[Clique, np.ndarray, float]:
    """Columns (increasing), noisy counts in codes of the model, and the variance of one."""
    columns, sizes = table.context.columns, _sizes(table)
    cube = np.asarray(table.cells.values, dtype=np.float64).reshape(sizes)
    variance = max(table.noise.variance, LEAST_VARIANCE)
    for axis, (j, size) in enumerate(zip(columns, sizes, strict=True)):
        if size != model.sizes[j]:
            cube = _summed(cube, axis, _of(model, j), model.sizes[j])
            variance *= size / model.sizes[j]
    order = sorted(range(len(columns)), key=lambda a: columns[a])
    return tuple(sorted(columns)), cube.transpose(order), variance


def _summed(cube: np.ndarray, axis: int, merged: Merged, groups: int) -> np.ndarray:
    moved = np.moveaxis(cube, axis, 0)
    out = np.zeros((groups, *moved.shape[1:]))
    np.add.at(out, merged.groups, moved)
    return np.moveaxis(out, 0, axis)


def _merged(fresh: Tables, model: LogLinear, rows: float) -> tuple[Merged | None, ...]:
    """The groups of the model, and what the new 1-way tables say of the levels within them."""
    found = list(model.merged)
    for table in fresh.items + fresh.extra:
        (j, *others), size = table.context.columns, _sizes(table)[0]
        if others or not found or found[j] is None or size == model.sizes[j]:
            continue
        merged, sigma = _of(model, j), table.noise.variance**0.5
        column = fresh.schema.columns[j]
        counts = np.asarray(table.cells.values, dtype=np.float64).ravel()
        shares = one_way(counts, sigma, rows, ordered=column.ordered)
        sums = np.bincount(merged.groups, weights=shares, minlength=model.sizes[j])[merged.groups]
        within = np.divide(shares, sums, out=merged.shares.copy(), where=sums > 0)
        found[j] = replace(merged, shares=within)
    return tuple(found)


def _grouped(rows: np.ndarray, model: LogLinear) -> np.ndarray:
    """Rows in codes of the model, (columns, rows)."""
    state = np.empty((len(model.sizes), len(rows)), dtype=code_dtype(model.sizes))
    for j in range(len(state)):
        merged = model.merged[j] if model.merged else None
        state[j] = rows[:, j] if merged is None else merged.groups[rows[:, j]]
    return state


def _of(model: LogLinear, column: int) -> Merged:
    merged = model.merged[column] if model.merged else None
    if merged is None:
        raise ValueError("a column with other codes in the model has merged levels")
    return merged


def _model(tables: Tables) -> LogLinear:
    assert isinstance(tables.model, LogLinear)
    return tables.model


def _possible(rules: Iterable[Rule], clique: Clique, sizes: Sequence[int]) -> np.ndarray:
    """1 where a cell may hold rows, 0 where a structural zero covers all of it."""
    mask = np.ones(tuple(sizes[j] for j in clique))
    for rule in rules:
        if set(rule.columns) <= set(clique):
            every = [np.arange(sizes[j]) for j in clique]
            for j, hits in zip(rule.columns, rule.hits, strict=True):
                every[clique.index(j)] = np.flatnonzero(hits)
            mask[np.ix_(*every)] = 0.0
    return mask
