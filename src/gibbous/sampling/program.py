"""Programs: the conditionals of a release laid out flat for the kernels, with the order of their steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.context import Context, Hashed, MinHash, Radix, hash_weights, strides
from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Schema
from gibbous.core.tables import LogLinear, Tables
from gibbous.sampling.alias_kernels import fill_hash, vose
from gibbous.sampling.cells.cell_rows import CellsReady, ready_cells
from gibbous.sampling.conditionals import Conditional, conditionals, margins, parent_codes
from gibbous.sampling.loglinear.model_rows import Ready, ready
from gibbous.sampling.step_fields import (
    AT_CELLS,
    AT_HASH,
    AT_MAP,
    AT_PARENTS,
    AT_PROBES,
    AT_RANKS,
    BITS,
    DIRECT,
    FIELDS,
    KEEP32,
    KEEP64,
    KIND,
    LAST,
    LEVELS,
    LOOKUP,
    PARENTS,
    PROBES,
    SHIFT,
    SMALL,
    TARGET,
    WIDTH,
    Flat,
)
from gibbous.sampling.structural_zeros import Rule, rules_of

_MOST_CELLS = 1 << 32
_SPREAD = 1 << 18  # cells up to which every key gets a conditional of its own, instead of a map


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One draw of a program: a table's targets, given columns that are already there.

    Attributes:
        conditional: where the law comes from; None draws a column from its noisy margin.
        margin: float64 (levels,) of a step without a conditional.
        rules: structural zeros that this draw has to respect.
        packed: alias tables of a single target, (slots, levels) uint32 or uint64; the last row
            keeps the previous value. None for several targets.
        slots: slot of every key, where the key space is small; None where it is searched.
    """

    conditional: Conditional | None
    targets: tuple[int, ...]
    margin: np.ndarray | None
    rules: tuple[Rule, ...]
    packed: np.ndarray | None
    slots: np.ndarray | None

    @property
    def compiled(self) -> bool:
        """Whether a kernel can run it: one target, no structural zeros."""
        return self.packed is not None and not self.rules


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What sampling needs of a release, prepared once.

    Attributes:
        start: one step a column from the noisy margins: initial rows of a chain, or columns that no
            table draws.
        order: positions in `steps`, one pass.
        chained: whether rows start from `start` and are redrawn (gibbs), else drawn once.
        flat: start, then steps.
    """

    schema: Schema
    start: tuple[Step, ...]
    steps: tuple[Step, ...]
    order: tuple[int, ...]
    sweeps: int
    chained: bool
    flat: Flat


def prepare(tables: Tables) -> Program | Ready | CellsReady:
    """Compile a release into a program: conditionals, alias tables, lookups; or a model's layout.

    Raises:
        ResourceLimit: a table is too large to draw from.
    """
    schema, recipe = tables.schema, tables.recipe
    if recipe.draw == "cells":
        if not isinstance(tables.model, CellModel):
            raise ValueError("a recipe of cells has a cell model")
        return ready_cells(schema, tables.model)
    if recipe.draw == "loglinear":
        if not isinstance(tables.model, LogLinear):
            raise ValueError("a log-linear recipe has a model")
        return ready(schema, tables.model, recipe.sweeps)
    rules, chained = rules_of(schema), recipe.draw == "gibbs"
    found = conditionals(tables)
    if chained and any(len(c.context.targets) != 1 for c in found):
        raise ValueError("gibbs redraws one column a table")
    wide = max(schema.sizes) > 256
    start = tuple(
        Step(None, (j,), one, (), pack(one[None, :], wide), None)
        for j, one in enumerate(margins(tables))
    )
    known: set[int] = set(range(len(schema)))
    if not chained:
        known -= {t for i in recipe.order for t in found[i].context.targets}
        _check_order(found, recipe.order, set(known))
    steps: list[Step] = [start[0]] * len(found)
    for i in recipe.order:
        known |= set(found[i].context.targets)
        steps[i] = _step(found[i], tuple(r for r in rules if set(r.columns) <= known), wide)
    kept = tuple(steps)
    return Program(
        schema,
        start,
        kept,
        recipe.order,
        recipe.sweeps if chained else 1,
        chained,
        _flatten((*start, *kept), wide),
    )


def pack(shares: np.ndarray, wide: bool) -> np.ndarray:
    """Alias tables, with a last row that keeps the previous value.

    Args:
        shares: float64 (slots, levels).
        wide: 32-bit thresholds in uint64 cells; otherwise 24-bit ones in uint32 cells (at most 256
            levels).
    Returns:
        (slots + 1, levels).
    """
    slots, levels = shares.shape
    threshold, alias = np.empty(shares.shape), np.empty(shares.shape, dtype=np.int64)
    lists, scaled = np.empty((2, levels), dtype=np.int64), np.empty(levels)
    vose(np.ascontiguousarray(shares), threshold, alias, lists, scaled)
    bits, low, keep = (32, 32, KEEP64) if wide else (24, 8, KEEP32)
    kind = np.uint64 if wide else np.uint32
    points = np.rint(threshold * 2.0**bits).astype(np.uint64)
    full = points >> np.uint64(bits) > 0
    points[full] -= np.uint64(1)
    own = np.broadcast_to(np.arange(levels, dtype=np.uint64), shares.shape)
    other = np.where(full, own, alias.astype(np.uint64))
    packed = (points << np.uint64(low)) | other
    packed[packed == keep] -= np.uint64(1) << np.uint64(low)  # that value means something else
    out = np.full((slots + 1, levels), keep, dtype=kind)
    out[:slots] = packed
    return out


def _check_order(found: tuple[Conditional, ...], order: tuple[int, ...], known: set[int]) -> None:
    for i in order:
        context = found[i].context
        if not set(context.parents) <= known:
            raise ValueError("an ancestral order draws parents before their children")
        known |= set(context.targets)


def _step(conditional: Conditional, rules: tuple[Rule, ...], wide: bool) -> Step:
    context = conditional.context
    own = tuple(
        r
        for r in rules
        if set(r.columns) & set(context.targets)
        # A rule inside several targets is masked in the cells themselves.
        and not (len(context.targets) > 1 and set(r.columns) <= set(context.targets))
    )
    slots = None
    if context.keys <= DIRECT:
        keys = np.arange(context.keys, dtype=np.uint64)
        radix = isinstance(context.key, Radix)
        codes = parent_codes(context, keys) if radix else np.zeros((0, len(keys)))
        slots = conditional.resolve(keys, codes)
        slots = np.where(slots < 0, conditional.slots, slots)
    packed = None if conditional.shares is None else pack(conditional.shares, wide)
    return Step(conditional, context.targets, None, own, packed, slots)


class _Pool:
    def __init__(self, kind: type[np.generic]) -> None:
        self.kind, self.parts, self.size = kind, [np.zeros(0, dtype=kind)], 0

    def add(self, part: np.ndarray) -> int:
        at = self.size
        self.parts.append(part.ravel().astype(self.kind, copy=False))
        self.size += part.size
        return at

    def join(self) -> np.ndarray:
        return np.concatenate(self.parts)


def _flatten(steps: tuple[Step, ...], wide: bool) -> Flat:
    names = ("weights", "maps", "probes", "probe_steps", "ranks", "ids", "slots")
    kinds: tuple[type[np.generic], ...] = (
        np.uint64,
        np.uint32,
        np.uint64,
        np.uint64,
        np.int64,
        np.uint64,
        np.int64,
    )
    pools = {n: _Pool(k) for n, k in zip(names, kinds, strict=True)}
    cells, parents = _Pool(np.uint64 if wide else np.uint32), _Pool(np.uint64)
    matrix = np.zeros((len(steps), FIELDS), dtype=np.int64)
    for row, step in zip(matrix, steps, strict=True):
        if step.packed is None:
            continue
        if step.packed.size >= _MOST_CELLS:
            raise _too_large(step.packed.size)
        row[TARGET], row[LEVELS] = step.targets[0], step.packed.shape[1]
        row[AT_PARENTS], row[SMALL] = parents.size // 3, 1
        packed = step.packed
        if step.conditional is not None:
            _key_fields(row, step.conditional.context, parents, pools["weights"])
            packed = _lookup_fields(row, step, pools)
        row[AT_CELLS] = cells.add(packed)
    joined = {name: pool.join() for name, pool in pools.items()}
    joined["probes"] = joined["probes"].reshape(-1, 3)
    return Flat(matrix, parents.join().reshape(-1, 3), cells.join(), **joined)


def _key_fields(row: np.ndarray, context: Context, parents: _Pool, weights: _Pool) -> None:
    key = context.key
    row[PARENTS] = len(context.parents)
    row[KIND] = 0 if isinstance(key, Radix) else 1 if isinstance(key, Hashed) else 2
    row[SMALL] = int(isinstance(key, Radix) and context.keys < 1 << 32)
    offsets = [0] * len(context.parents)
    if not isinstance(key, Radix):
        offsets = [weights.add(part) for part in hash_weights(context)]
        row[WIDTH] = key.width if isinstance(key, MinHash) else 1
        row[SHIFT] = 65 - key.buckets.bit_length()
    steps = strides(context.parent_sizes)
    for column, step, offset in zip(context.parents, steps, offsets, strict=True):
        parents.add(np.array([column, step, offset], dtype=np.uint64))


def _lookup_fields(row: np.ndarray, step: Step, pools: dict[str, _Pool]) -> np.ndarray:
    """Fill in how a key finds its slot; return the cells as they are to be stored."""
    conditional, packed = step.conditional, step.packed
    assert conditional is not None
    assert packed is not None
    if step.slots is not None:
        levels = packed.shape[1]
        if len(step.slots) * levels <= max(_SPREAD, 2 * packed.size):
            spread: np.ndarray = packed[step.slots]
            return spread
        row[LOOKUP], row[AT_MAP] = 1, pools["maps"].add(step.slots)
        return packed
    row[LOOKUP], row[SMALL] = 2, 0
    row[LAST] = conditional.last if conditional.last >= 0 else conditional.slots
    _hash_fields(row, conditional, pools)
    return packed


def _hash_fields(row: np.ndarray, conditional: Conditional, pools: dict[str, _Pool]) -> None:
    wanted, slots = [conditional.keys], [np.arange(len(conditional.keys), dtype=np.int64)]
    offset = conditional.context.keys  # ids of different probes share one table, in turn
    row[AT_PROBES] = pools["probes"].size // 3
    row[AT_RANKS] = pools["ranks"].add(conditional.ranks)
    for stage, probes in enumerate(conditional.stages):
        for probe in probes:
            row[PROBES] += 1
            at = pools["probe_steps"].add(np.array(probe.steps, dtype=np.uint64))
            span = 1 + sum(
                step * (size - 1)
                for step, size in zip(probe.steps, conditional.context.parent_sizes, strict=True)
            )
            if offset + span >= 1 << 64:
                raise _too_large(offset + span)
            pools["probes"].add(np.array([stage, offset, at], dtype=np.uint64))
            wanted.append(probe.ids + np.uint64(offset))
            slots.append(probe.slots)
            offset += span
    every = np.concatenate(wanted)
    row[BITS] = max(1, (2 * len(every)).bit_length())
    ids = np.zeros(1 << int(row[BITS]), dtype=np.uint64)
    held = np.full(1 << int(row[BITS]), -1, dtype=np.int64)
    fill_hash(ids, held, every, np.concatenate(slots))
    row[AT_HASH] = pools["ids"].add(ids)
    pools["slots"].add(held)


def _too_large(cells: int) -> ResourceLimit:
    return ResourceLimit(
        "TABLESIZE",
        f"A table to draw from would have {cells} cells or ids.",
        "It may have fewer than 2**32 cells, and ids below 2**64.",
        "Use fewer context columns, or coarser levels.",
        state="What was bought stays bought; the tables are published as they are.",
    )
