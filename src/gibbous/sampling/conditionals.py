"""Public noisy tables to conditional probabilities: clipped, smoothed, backed off, never undefined."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gibbous.core.context import Context, Radix, located, radix_digits, strides
from gibbous.core.errors import ResourceLimit
from gibbous.core.tables import Dense, Recipe, Table, Tables
from gibbous.structure.reconcile import fitted_margins, reconcile

NEAREST_PARENTS = 8  # the nearest key is searched among 2**parents projections


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """One place where a key that has no counts of its own may find some.

    Attributes:
        steps: per parent, the weight of its code in the id; 0 leaves it out.
        ids: uint64 (entries,), sorted, unique.
        slots: int64 (entries,): the conditional to use.
    """

    steps: tuple[int, ...]
    ids: np.ndarray
    slots: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """One table as conditionals, one a slot, and how a key finds its slot.

    Attributes:
        keys: uint64 (kept keys,), sorted: key i has slot i.
        stages: where other keys look, in turn; within a stage the hit of best rank counts.
        ranks: int64 (slots,): smaller is better; decides between hits of one stage.
        last: slot of a key that finds nothing; -1 keeps the row's previous value.
        shares: float64 (slots, levels) of a single target; None for several targets.
        starts, levels, weights: the cells of slot i are starts[i]..starts[i + 1]: level codes
            uint64 and weights float64 > 0. A slot without cells is uniform over all levels.
        sums: float64 (cells + 1,): running sums of the weights over all slots, 0 first; empty for one target.
    """

    context: Context
    keys: np.ndarray
    stages: tuple[tuple[Probe, ...], ...]
    ranks: np.ndarray
    last: int
    shares: np.ndarray | None
    starts: np.ndarray
    levels: np.ndarray
    weights: np.ndarray
    sums: np.ndarray

    @property
    def slots(self) -> int:
        """Number of conditionals."""
        return len(self.starts) - 1

    def resolve(self, keys: np.ndarray, parents: np.ndarray) -> np.ndarray:
        """Slot of each key: the definition that compiled lookups reproduce.

        Args:
            keys: uint64 (rows,).
            parents: codes of the parents, (parents, rows).
        Returns:
            int64 (rows,); -1 keeps the previous value.
        """
        found = _look_up(self.keys, np.arange(len(self.keys)), keys)
        for stage in self.stages:
            todo = np.flatnonzero(found < 0)
            if not len(todo):
                break
            best = np.full(len(todo), -1, dtype=np.int64)
            for probe in stage:
                slot = _look_up(probe.ids, probe.slots, probe_ids(probe, parents[:, todo]))
                better = (slot >= 0) & ((best < 0) | (self.ranks[slot] < self.ranks[best]))
                best = np.where(better, slot, best)
            found[todo] = best
        return np.where(found < 0, self.last, found)


def conditionals(tables: Tables) -> tuple[Conditional, ...]:
    """The conditionals of a release, in the order of `Tables.items`.

    Counts at or below the floor, and impossible levels, are read as 0. A single target is smoothed
    by kappa counts of its column's noisy margin. A key without counts backs off as the recipe says.
    Last, each law of a column that is to be diverse is made so (docs/proofs/noisy_diverse.md).
    """
    pulls = margins(tables)
    if tables.recipe.fit == "rake":
        tables = reconcile(tables)
    return tuple(_conditional(table, tables, pulls) for table in tables.items)


def margins(tables: Tables) -> tuple[np.ndarray, ...]:
    """The noisy margin of each column as probabilities, float64 (levels,).

    Dense tables are combined by inverse variance; a column that only thresholded tables have is
    their sum; a column without any positive count is uniform. Levels that are impossible by
    themselves are left out.
    """
    every = tables.items + tables.extra
    fitted = fitted_margins(tables.schema.sizes, every)
    found = []
    for column, size in enumerate(tables.schema.sizes):
        sums = [_sparse_margin(table, column) for table in every]
        dense = any(isinstance(t.cells, Dense) and _column_step(t.context, column) for t in every)
        kept = [one for one in sums if one is not None]
        shares = fitted[column] if dense or not kept else np.sum(kept, axis=0)
        possible = np.ones(size, dtype=bool)
        for rule in tables.schema.impossible:
            if len(rule.where) == 1 and tables.schema.index(rule.where[0][0]) == column:
                possible[list(rule.where[0][1])] = False
        shares = np.maximum(shares, 0.0) * possible
        if shares.sum() <= 0:
            shares = possible.astype(np.float64) if possible.any() else np.ones(size)
        found.append(shares / shares.sum())
    return tuple(found)


def _sparse_margin(table: Table, column: int) -> np.ndarray | None:
    """Kept counts of each level of a column, or None if the table does not have it."""
    place = _column_step(table.context, column)
    if isinstance(table.cells, Dense) or place is None:
        return None
    size, step, in_level = place
    codes = table.cells.levels if in_level else table.cells.keys
    levels = ((codes // np.uint64(step)) % np.uint64(size)).astype(np.int64)
    sums: np.ndarray = np.bincount(levels, weights=table.cells.values, minlength=size)
    return sums


def _column_step(context: Context, column: int) -> tuple[int, int, bool] | None:
    """Size of a column, its step, and whether it is in the level (else in the key)."""
    if column in context.targets:
        at = context.targets.index(column)
        return context.target_sizes[at], strides(context.target_sizes)[at], True
    if column in context.parents and isinstance(context.key, Radix):
        at = context.parents.index(column)
        return context.parent_sizes[at], strides(context.parent_sizes)[at], False
    return None


def _conditional(table: Table, tables: Tables, pulls: tuple[np.ndarray, ...]) -> Conditional:
    context, recipe = table.context, tables.recipe
    keys, levels, values = _positive(table, recipe.floor)
    possible = _possible(context, tables, levels)
    keys, levels, values = keys[possible], levels[possible], values[possible]
    own, first = np.unique(keys, return_index=True)
    parts = [(keys, levels, values)]
    bounds = [np.append(first, len(keys))]
    stages: list[tuple[Probe, ...]] = []
    held = len(own)
    full = len(own) == context.keys  # no key can miss
    if recipe.fallback == "prefix" and not full:
        for steps in _prefixes(context):
            ids = _project(context, keys, steps)
            merged = _merge(ids, levels, values)
            unique, starts = np.unique(merged[0], return_index=True)
            stages.append((Probe(steps, unique, held + np.arange(len(unique))),))
            parts.append(merged)
            bounds.append(np.append(starts, len(merged[0])))
            held += len(unique)
    totals = np.add.reduceat(values, first) if len(own) else np.zeros(0)
    ranks = np.zeros(held + 1, dtype=np.int64)
    ranks[: len(own)][np.lexsort((own, -totals))] = np.arange(len(own))
    if recipe.fallback == "nearest" and not full:
        stages.extend(_nearest_stages(context, own, ranks))
    # The last slot: a single target's noisy margin, else the sum over all keys.
    few = 0 if len(context.targets) == 1 else len(keys)
    margin = _merge(np.zeros(few, dtype=np.uint64), levels[:few], values[:few])
    parts.append(margin)
    bounds.append(np.array([0, len(margin[0])]))
    starts, cells, weights = _join(parts, bounds)
    shares = None
    if len(context.targets) == 1:
        pull = pulls[context.targets[0]]
        shares = _diverse(_smooth(starts, cells, weights, pull, recipe), context, recipe)
    last = -1 if recipe.fallback == "reject" and recipe.draw == "gibbs" else held
    sums = np.append(0.0, np.cumsum(weights)) if shares is None else np.zeros(0)
    return Conditional(
        context, own, tuple(stages), ranks, last, shares, starts, cells, weights, sums
    )


def _positive(table: Table, floor: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells above the floor (and above 0), sorted by (key, level)."""
    cells, limit = table.cells, max(floor, 0)
    if isinstance(cells, Dense):
        place = np.flatnonzero(cells.values.ravel() > limit)
        wide = np.uint64(max(cells.values.shape[1], 1))
        at = place.astype(np.uint64)
        return at // wide, at % wide, cells.values.ravel()[place].astype(np.float64)
    keep = cells.values > limit
    return cells.keys[keep], cells.levels[keep], cells.values[keep].astype(np.float64)


def _possible(context: Context, tables: Tables, levels: np.ndarray) -> np.ndarray:
    """Cells whose target columns alone are not ruled out."""
    keep = np.ones(len(levels), dtype=bool)
    steps = dict(zip(context.targets, strides(context.target_sizes), strict=True))
    for rule in tables.schema.impossible:
        columns = [tables.schema.index(name) for name, _ in rule.where]
        if not set(columns) <= set(context.targets):
            continue
        hit = np.ones(len(levels), dtype=bool)
        for column, (name, codes) in zip(columns, rule.where, strict=True):
            size = tables.schema[name].size
            lookup = np.zeros(size, dtype=bool)
            lookup[list(codes)] = True
            hit &= lookup[(levels // np.uint64(steps[column])) % np.uint64(size)]
        keep &= ~hit
    return keep


def _smooth(
    starts: np.ndarray, levels: np.ndarray, weights: np.ndarray, pull: np.ndarray, recipe: Recipe
) -> np.ndarray:
    """(n + kappa pi) / (N + kappa) for each slot; the margin itself where a slot has no counts."""
    slots = len(starts) - 1
    counts = np.zeros((slots, len(pull)))
    place = np.repeat(np.arange(slots), np.diff(starts))
    counts[place, levels.astype(np.int64)] = weights
    totals = counts.sum(axis=1, keepdims=True)
    kappa = np.where(totals > 0, recipe.kappa, 1.0)
    shares: np.ndarray = (counts + kappa * pull) / (totals + kappa)
    return shares


def _diverse(shares: np.ndarray, context: Context, recipe: Recipe) -> np.ndarray:
    """The same laws, or l-diverse ones where the recipe asks for them, with room for how rows are drawn."""
    asked = dict(recipe.diverse).get(context.targets[0])
    if asked is None:
        return shares
    from gibbous.privacy.calibrate.diversity import diverse_law

    # Thresholds of alias tables are multiples of 2**-24, cells are found by 32 bits.
    moved = 2.0**-23 + shares.shape[1] * 2.0**-32
    return diverse_law(shares, asked, recipe.criterion, moved)


def _prefixes(context: Context) -> Iterator[tuple[int, ...]]:
    """Steps of ever fewer leading parents: the last one is left out first. None are left out in vain."""
    if not isinstance(context.key, Radix):
        return
    sizes = context.parent_sizes
    for kept in range(len(sizes) - 1, 0, -1):
        if sizes[kept] > 1 and math.prod(sizes[:kept]) > 1:
            yield strides(sizes[:kept]) + (0,) * (len(sizes) - kept)


def _nearest_stages(
    context: Context, own: np.ndarray, ranks: np.ndarray
) -> Iterator[tuple[Probe, ...]]:
    """Stage d holds the projections that leave out d parents: keys at Hamming distance d."""
    sizes = context.parent_sizes
    if not isinstance(context.key, Radix):
        return
    if len(sizes) > NEAREST_PARENTS:
        raise ResourceLimit(
            "NEAREST",
            f"The nearest key was asked for in a table with {len(sizes)} parents.",
            f"It is searched for among at most {NEAREST_PARENTS} parents.",
            "Use fewer parents, or fallback='prefix'.",
        )
    for away in range(1, len(sizes)):
        stage = []
        for subset in range(1 << len(sizes)):
            kept = [j for j in range(len(sizes)) if subset >> j & 1]
            if len(kept) != len(sizes) - away:
                continue
            steps = [0] * len(sizes)
            for column, step in zip(kept, strides(tuple(sizes[j] for j in kept)), strict=True):
                steps[column] = step
            ids = _project(context, own, tuple(steps))
            order = np.lexsort((ranks[: len(own)], ids))
            unique, at = np.unique(ids[order], return_index=True)
            stage.append(Probe(tuple(steps), unique, order[at].astype(np.int64)))
        yield tuple(stage)


def probe_ids(probe: Probe, parents: np.ndarray) -> np.ndarray:
    """Ids that a probe looks for, uint64 (rows,), from parent codes (parents, rows)."""
    total = np.zeros(parents.shape[1], dtype=np.uint64)
    for step, codes in zip(probe.steps, parents, strict=True):
        if step:
            total += codes.astype(np.uint64) * np.uint64(step)
    return total


def parent_codes(context: Context, keys: np.ndarray) -> np.ndarray:
    """Codes of the parents behind mixed-radix keys, uint64 (parents, keys)."""
    digits = radix_digits(keys, context.parent_sizes)
    return np.array(digits, dtype=np.uint64).reshape(len(digits), len(keys))


def _project(context: Context, keys: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    return probe_ids(Probe(steps, keys[:0], keys[:0]), parent_codes(context, keys))


def _merge(
    ids: np.ndarray, levels: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum cells with the same id and level; sorted by (id, level)."""
    if not len(ids):
        return ids, levels, values
    wide = int(levels.max()) + 1
    space = (int(ids.max()) + 1) * wide
    if space <= max(1 << 20, 4 * len(ids)):
        codes = (ids * np.uint64(wide) + levels).astype(np.int64)
        sums = np.bincount(codes, weights=values)
        held = np.flatnonzero(sums).astype(np.uint64)
        return held // np.uint64(wide), held % np.uint64(wide), sums[held.astype(np.int64)]
    order = np.lexsort((levels, ids))
    ids, levels, values = ids[order], levels[order], values[order]
    first = np.flatnonzero(np.append(True, (ids[1:] != ids[:-1]) | (levels[1:] != levels[:-1])))
    return ids[first], levels[first], np.add.reduceat(values, first)


def _join(
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], bounds: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts, offset = [np.zeros(1, dtype=np.int64)], 0
    for part, bound in zip(parts, bounds, strict=True):
        starts.append(bound[1:].astype(np.int64) + offset)
        offset += len(part[0])
    levels = np.concatenate([p[1] for p in parts])
    weights = np.concatenate([p[2] for p in parts])
    return np.concatenate(starts), levels, weights


def _look_up(ids: np.ndarray, slots: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if not len(ids):
        return np.full(len(wanted), -1, dtype=np.int64)
    at, hit = located(ids, wanted)
    return np.where(hit, slots[at], -1).astype(np.int64)
