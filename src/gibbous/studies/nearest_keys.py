"""Conditionals in which a key that does not occur is read as a nearest one that does [park2013]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gibbous.studies.sbhg_conditionals import Hashed, Ints, mixed
from gibbous.studies.seeded_draws import Draws


@dataclass(frozen=True, slots=True, eq=False)
class Nearest(Hashed):
    """Conditionals in which an unknown key is read as one that occurs: a nearest by Hamming distance.

    Where several are as near, each has the same probability. On raw keys this leaks which of them occur.

    Attributes:
        distances: place d groups the keys by every set of all but d columns of the key.
    """

    distances: tuple[tuple[_Alike, ...], ...]

    @staticmethod
    def of(table: Hashed) -> Nearest:
        """The same counts, their keys grouped by what they have in common."""
        columns = range(len(table.context))
        codes = np.stack(np.unravel_index(table.keys, table.radices), axis=1)
        distances = tuple(
            tuple(_Alike.of(codes, table.radices, kept) for kept in combinations(columns, many))
            for many in range(len(columns), -1, -1)
        )
        own = (table.target, table.context, table.radices, table.keys, table.counts)
        return Nearest(*own, distances)

    def lines(self, state: Ints, draws: Draws | None = None) -> Ints:
        """Line of a nearest key that occurs, int64 (rows,)."""
        assert draws is not None
        codes = state[:, self.context]
        unit = draws.uniform(len(state))
        nearest = np.full(len(state), -1)
        for stage in self.distances:
            left = np.flatnonzero(nearest < 0)
            if not len(left):
                break
            # Of a row without any nearer key, each key here agrees with it in one set of columns.
            spans = [alike.span(codes[left]) for alike in stage]
            many = np.stack([stop - start for start, stop in spans])
            ends = np.cumsum(many, axis=0)
            point = (unit[left] * ends[-1]).astype(np.int64)
            which = (ends <= point).sum(axis=0)
            for place, (alike, (start, _)) in enumerate(zip(stage, spans, strict=True)):
                hit = which == place
                inside = point[hit] - (ends[place] - many[place])[hit]
                nearest[left[hit]] = alike.order[start[hit] + inside]
        return nearest


@dataclass(frozen=True, slots=True, eq=False)
class _Alike:
    """Keys by their codes in some of the columns.

    Attributes:
        kept: places of these columns.
        radices: of these columns.
        order: keys, those that agree in them side by side.
        values: of these columns in that order, as one number.
    """

    kept: tuple[int, ...]
    radices: tuple[int, ...]
    order: Ints
    values: Ints

    @staticmethod
    def of(codes: Ints, radices: Sequence[int], kept: tuple[int, ...]) -> _Alike:
        own = tuple(radices[place] for place in kept)
        values = mixed(codes[:, kept], own)
        order = np.argsort(values, kind="stable")
        return _Alike(kept, own, order, values[order])

    def span(self, codes: Ints) -> tuple[Ints, Ints]:
        """Where the keys that agree with each row start and stop in the order."""
        wanted = mixed(codes[:, self.kept], self.radices)
        return np.searchsorted(self.values, wanted), np.searchsorted(self.values, wanted, "right")
