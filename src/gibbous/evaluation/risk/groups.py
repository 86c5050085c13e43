"""Group-bys on packed integers: rows of several tables in, one integer a row and sparse counts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbous.core.context import located
from gibbous.evaluation.tables import Side

_WORD = 1 << 62  # packed keys stay below this


def packed(sides: Sequence[Side], columns: Sequence[str]) -> list[np.ndarray]:
    """One integer a row, the same for two rows (of any of the tables) that agree on the columns.

    Args:
        columns: names; none gives every row the same integer.
    Returns:
        int64 (rows,) a table. No table of all combinations is made: where their number does not fit
        a word, the combinations seen so far are numbered and the packing goes on.
    """
    schema = sides[0].schema
    keys = [np.zeros(side.rows, dtype=np.int64) for side in sides]
    cells = 1
    for name in columns:
        index, size = schema.index(name), schema[name].size
        if cells * size >= _WORD:
            keys, cells = _renumbered(keys)
        for key, side in zip(keys, sides, strict=True):
            key *= size
            key += side.codes.by_column[index]
        cells *= size
    return keys


def _renumbered(keys: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
    seen, places = np.unique(np.concatenate(keys), return_inverse=True)
    ends = np.cumsum([len(key) for key in keys])[:-1]
    return [part.astype(np.int64) for part in np.split(places, ends)], max(len(seen), 1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tally:
    """How often each integer occurs.

    Attributes:
        keys: the integers that occur, increasing: int64 (groups,).
        counts: rows of each: int64 (groups,).
    """

    keys: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(labels: np.ndarray) -> Tally:
        """Count them."""
        return Tally(*np.unique(labels, return_counts=True))

    def at(self, labels: np.ndarray) -> np.ndarray:
        """Counts of these integers, zero where one does not occur: int64 (wanted,)."""
        places, hit = located(self.keys, labels)
        return np.where(hit, self.counts[places], 0) if len(self.keys) else places


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells:
    """A sparse cross table: groups, increasing, by the codes of one column; int64 (cells,) each."""

    group: np.ndarray
    level: np.ndarray
    count: np.ndarray
    total: np.ndarray

    @staticmethod
    def of(groups: np.ndarray, levels: np.ndarray, size: int) -> Cells:
        """Count groups, int64 (rows,) and not negative, by codes below `size`."""
        seen, numbers = np.unique(groups, return_inverse=True)
        cells = Tally.of(numbers.astype(np.int64) * size + levels)
        number, level = np.divmod(cells.keys, size)
        total = np.bincount(number, weights=cells.counts, minlength=len(seen)).astype(np.int64)
        return Cells(seen[number], level, cells.counts, total[number])

    def modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Each group and its most frequent level.

        Of equally frequent levels the one that is more frequent in the whole table is taken, then
        the one of the lower code.
        """
        if not len(self.group):
            return self.group, self.level
        margin = np.bincount(self.level, weights=self.count)[self.level]
        order = np.lexsort((self.level, -margin, -self.count, self.group))
        first = np.ones(len(order), dtype=bool)
        first[1:] = self.group[order][1:] != self.group[order][:-1]
        return self.group[order][first], self.level[order][first]

    def share(self, groups: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of rows in each of these groups, the share that has this level, and the group's rows.

        Returns:
            share float64 (wanted,), NaN where the group has no rows; rows int64 (wanted,).
        """
        seen, first = np.unique(self.group, return_index=True)
        place, hit = located(seen, groups)
        rows = np.where(hit, self.total[first][place], 0) if len(seen) else place
        size = int(max(self.level.max(initial=0), np.max(levels, initial=0))) + 1
        number = np.repeat(np.arange(len(seen)), np.diff([*first, len(self.group)]))
        cells = Tally(number * size + self.level, self.count)
        rows_of_level = np.where(hit, cells.at(place * size + levels), 0)
        with np.errstate(invalid="ignore"):
            return np.where(rows > 0, rows_of_level / np.maximum(rows, 1), np.nan), rows
