"""Where constructed records fall in public tables: contexts in, cells and their exact counts out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.core.context import Context, keys_of, levels_of
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Table

MAX_DENSE = 1 << 24  # cells of one table


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """Constructed records with canaries: each is in or out, or one record or another, by a coin.

    Attributes:
        name: in words.
        schema: public.
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
        keys, levels = _cells_of(context, np.where(there[:, None], known, 0))
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


def _cells_of(context: Context, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    whole = codes.astype(np.uint64)
    return keys_of(context, whole), levels_of(context, whole)
