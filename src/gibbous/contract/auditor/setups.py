"""The constructed tables of an audit, and where their records fall in public tables; nothing is real data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gibbous.contract.runs import relation_of
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context, keys_of, levels_of
from gibbous.core.errors import GibbousError
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Table, Tables

WIDE = 4096  # levels of the one column whose cells are all canaries
NARROW = 128  # the same where there is a delta: it strikes a whole run, so runs are kept small
MANY = 4  # columns of the table in which a canary is in several tables
FEW = 8  # levels of a column where all combinations may be counted, or rows are paid
CELLS = 20_000  # of all tables of several columns together
LONGEST = 128  # rows of one block
CLEAR = 13.0  # scales above the threshold that a crowd has
MAX_DENSE = 1 << 24  # cells of one table


def setups(mechanism: Mechanism) -> Iterator[Setup]:
    """The tables with canaries that fit a mechanism, those that show most first.

    Of a method whose tables have a threshold, crowds lift the canaries above it.
    """
    relation = relation_of(mechanism)
    if mechanism.about.releases == "rows":
        for name, number in (("one column", 1), ("three columns", 3)):
            schema = schema_of(number, FEW)
            rows = free_rows(mechanism, schema)
            yield with_canaries(f"{name}, {FEW} levels", schema, relation, rows=rows)
        return
    pure = mechanism.plan(schema_of(1, 2), None).total.kind == "pure"
    levels = WIDE if pure else NARROW
    one = schema_of(1, levels)
    if mechanism.plan(one, None).cells <= 4 * levels:
        yield with_canaries(f"one column, {levels} levels, canaries alone", one, relation)
    several = _several(mechanism)
    columns = f"{len(several)} columns, {several.sizes[0]} levels"
    yield with_canaries(f"{columns}, canaries alone", several, relation)


def crowded(setup: Setup, laws: set[NoiseInfo]) -> Setup | None:
    """The setup with crowds that lift each canary's cells above the thresholds that were seen."""
    stated = [law for law in laws if law.threshold is not None]
    if not stated:
        return None
    crowd = max(int((law.threshold or 0) + CLEAR * law.scale) + 2 for law in stated)
    everybody = np.concatenate([setup.inside, *(() if setup.outside is None else (setup.outside,))])
    base = np.concatenate([setup.base, np.repeat(everybody, crowd, axis=0)])
    name = setup.name.replace("canaries alone", f"canaries in crowds of {crowd}")
    return replace(setup, name=name, base=base)


def laws_of(output: Tables | Codes) -> set[NoiseInfo]:
    """The noise that the tables of an output state."""
    return {t.noise for t in output.published()} if isinstance(output, Tables) else set()


def schema_of(columns: int, levels: int) -> Schema:
    """`columns` nominal columns with the same number of levels each."""
    names = tuple(f"v{i}" for i in range(levels))
    return Schema(tuple(Column(f"x{j}", "nominal", levels=names) for j in range(columns)))


def free_rows(mechanism: Mechanism, schema: Schema) -> int:
    """The most rows (up to a limit) that cost no more than one: the length of a block."""
    one = mechanism.plan(schema, 1).total
    rows = 1
    while rows < LONGEST and mechanism.plan(schema, rows + 1).total == one:
        rows += 1
    return rows


def _several(mechanism: Mechanism) -> Schema:
    """Several columns with as many levels as leave the tables small; FEW where no plan says so."""
    for levels in (64, 32, 16):
        schema = schema_of(MANY, levels)
        try:
            if mechanism.plan(schema, None).cells <= CELLS:
                return schema
        except GibbousError:
            continue
    return schema_of(MANY, FEW)


def with_canaries(
    name: str, schema: Schema, relation: Relation, *, rows: int | None = None
) -> Setup:
    """Canary i has level i (or, when it is replaced, level i or i + half) in every column."""
    levels = schema.sizes[0]
    everybody = np.repeat(np.arange(levels)[:, None], len(schema), axis=1)
    base = np.zeros((0, len(schema)), dtype=np.int64)
    if relation == "add_remove":
        return Setup(name, schema, base, everybody, rows=rows)
    half = levels // 2
    return Setup(name, schema, base, everybody[:half], everybody[half : 2 * half], rows=rows)


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """Constructed records with canaries: each is in or out, or one record or another, by a coin.

    Attributes:
        base: records that are always there, codes (rows, columns).
        inside: what canary i is when its coin shows heads, codes (canaries, columns).
        outside: what it is otherwise; None: it is not there (add or remove one).
        rows: output rows to ask for, of methods that pay by the row.
    """

    name: str
    schema: Schema
    base: np.ndarray
    inside: np.ndarray
    outside: np.ndarray | None = None
    rows: int | None = None

    def __len__(self) -> int:
        return len(self.inside)

    def records(self, coins: np.ndarray) -> np.ndarray:
        """The table under these coins, bool (canaries,)."""
        parts = [self.base, self.inside[coins]]
        if self.outside is not None:
            parts.append(self.outside[~coins])
        return np.concatenate(parts)


class Places:
    """The cells of one context in which canaries can be, with the counts of everybody else.

    `first` and `second` number the cell of each canary's two records among `cells` cells: all cells
    of a dense table, or those that some record of the setup can occupy.
    """

    __slots__ = ("_keys", "_levels", "_numbers", "base", "cells", "dense", "first", "second")

    def __init__(self, setup: Setup, table: Table, codes: tuple[np.ndarray, ...]) -> None:
        context = table.context
        self.dense = isinstance(table.cells, Dense) and table.cells.values.size <= MAX_DENSE
        self._levels = np.uint64(context.levels)
        known = codes[0] if len(codes) == 1 else np.concatenate(codes)
        there = _valid(context, known)
        inside = np.where(there[:, None], known, 0).astype(np.uint64)
        keys, levels = keys_of(context, inside), levels_of(context, inside)
        self._keys = np.zeros(0, dtype=np.uint64)
        if self.dense:
            numbers = (keys * self._levels + levels).astype(np.int64)
            self.cells = context.cells
            self._numbers = np.zeros(0, dtype=np.uint64)
        else:
            self._keys = np.unique(keys[there])
            packed = self._packed(keys, levels)
            self._numbers = np.unique(packed[there])
            numbers = np.searchsorted(self._numbers, packed)
            self.cells = len(self._numbers)
        numbers = np.where(there, numbers, -1)
        base, canaries = len(codes[0]), len(setup)
        counted = numbers[:base]
        self.base = np.bincount(counted[counted >= 0], minlength=self.cells)
        self.first = numbers[base : base + canaries]
        self.second = numbers[base + canaries :] if setup.outside is not None else None

    def noisy(self, table: Table) -> np.ndarray:
        """The released counts of these cells, float64; NaN where a cell was not released."""
        cells = table.cells
        if isinstance(cells, Dense):
            flat = cells.values.ravel().astype(float)
            return flat if self.dense else self._picked(flat)
        released = np.full(self.cells, np.nan)
        place = np.searchsorted(self._keys, cells.keys)
        known = place < len(self._keys)
        known[known] = self._keys[place[known]] == cells.keys[known]
        packed = self._packed(cells.keys[known], cells.levels[known])
        at = np.searchsorted(self._numbers, packed)
        inside = at < len(self._numbers)
        inside[inside] = self._numbers[at[inside]] == packed[inside]
        released[at[inside]] = cells.values[known][inside]
        return released

    def exact(self, coins: np.ndarray) -> np.ndarray:
        """The exact counts of these cells under the coins, int64."""
        counts: np.ndarray = self.base + self._tally(self.first[coins])
        if self.second is not None:
            counts = counts + self._tally(self.second[~coins])
        return counts

    def expected(self) -> np.ndarray:
        """The mean of `exact` over the coins."""
        counts = self.base + self._tally(self.first) / 2
        if self.second is not None:
            counts = counts + self._tally(self.second) / 2
        return counts

    def _tally(self, numbers: np.ndarray) -> np.ndarray:
        return np.asarray(np.bincount(numbers[numbers >= 0], minlength=self.cells))

    def _packed(self, keys: np.ndarray, levels: np.ndarray) -> np.ndarray:
        # Keys have up to 62 bits: their rank among the keys that can occur has few.
        rank = np.searchsorted(self._keys, keys).astype(np.uint64)
        return np.asarray(rank * self._levels + levels)

    def _picked(self, flat: np.ndarray) -> np.ndarray:
        rank, level = self._numbers // self._levels, self._numbers % self._levels
        where = self._keys[rank.astype(np.int64)] * self._levels + level
        return np.asarray(flat[where.astype(np.int64)])


def translated(setup: Setup, schema: Schema) -> tuple[np.ndarray, ...]:
    """Base, inside and outside records as codes of the schema that a release states.

    It is the setup's own unless a method made another one; a value that it does not have is -1.
    """
    parts = [setup.base, setup.inside]
    if setup.outside is not None:
        parts.append(setup.outside)
    records = [np.asarray(part, dtype=np.int64) for part in parts]
    if schema == setup.schema:
        return tuple(records)
    maps = []
    for column in setup.schema:
        stated = schema[column.name].labels() if column.name in schema.names else ()
        places = {label: code for code, label in enumerate(stated)}
        maps.append(np.array([places.get(label, -1) for label in column.labels()]))
    return tuple(
        np.stack([maps[j][part[:, j]] for j in range(len(maps))], axis=1) for part in records
    )


def _valid(context: Context, codes: np.ndarray) -> np.ndarray:
    """Rows whose values the context has: a broken method may count fewer levels than declared."""
    sizes = np.array(context.parent_sizes + context.target_sizes)
    own = codes[:, list(context.columns)]
    inside = (own >= 0) & (own < sizes)
    return np.asarray(inside.all(axis=1))
