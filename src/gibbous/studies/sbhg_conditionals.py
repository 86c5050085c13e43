"""Counts of one column within each key of its context columns, also of a nearest key [park2013]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from gibbous.core.context import located
from gibbous.studies.seeded_draws import Draws

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Hashed:
    """P(target | context) as counts.

    Attributes:
        context: positions of the columns that its key is made of.
        keys: the keys that occur, increasing, int64 (keys,).
        counts: int64 (keys + 1, levels); the last line, all zero, stands for every other key.
    """

    target: int
    context: tuple[int, ...]
    radices: tuple[int, ...]
    keys: Ints
    counts: Ints

    @property
    def levels(self) -> int:
        """Levels of the target."""
        return int(self.counts.shape[1])

    def lines(self, state: Ints, draws: Draws | None = None) -> Ints:
        """Line of the counts for each row of codes, int64 (rows,); a subclass may draw among several."""
        keys = mixed(state[:, self.context], self.radices)
        at, hit = located(self.keys, keys)
        return np.where(hit, at, len(self.keys))


def hashed(codes: Ints, sizes: Sequence[int], target: int, context: Sequence[int]) -> Hashed:
    """Count a table of codes, int64 (rows, columns)."""
    radices = tuple(sizes[c] for c in context)
    keys, lines = np.unique(mixed(codes[:, tuple(context)], radices), return_inverse=True)
    counts = np.bincount(
        lines * sizes[target] + codes[:, target], minlength=(len(keys) + 1) * sizes[target]
    ).reshape(len(keys) + 1, sizes[target])
    return Hashed(target, tuple(context), radices, keys, counts)


def disintegrated(codes: Ints, sizes: Sequence[int], parents: int) -> tuple[Hashed, ...]:
    """One table a column, its key the columns of the largest mutual information, as printed.

    The ranking reads the raw records, which the printed proofs leave out (MI ranks are a release).

    Source:
        [park2014, s3.2; sbhg, s3.2].
    """
    order = ranked(codes, sizes)
    return tuple(hashed(codes, sizes, j, order[j][:parents]) for j in range(len(sizes)))


def ranked(codes: Ints, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """For each column the others by mutual information, the largest first."""
    p = len(sizes)
    shared = np.zeros((p, p))
    for a in range(p):
        for b in range(a):
            joint = np.bincount(
                codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b]
            ).reshape(sizes[a], sizes[b])
            shared[a, b] = shared[b, a] = information(joint)
    np.fill_diagonal(shared, -np.inf)
    return tuple(tuple(int(c) for c in np.argsort(-row, kind="stable")[:-1]) for row in shared)


def information(joint: npt.NDArray[np.int64]) -> float:
    """Mutual information of a two-way table, in nats."""
    p = joint / max(joint.sum(), 1)
    product = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    held = p > 0
    return float(np.sum(p[held] * np.log(p[held] / product[held])))


def mixed(codes: Ints, radices: Sequence[int]) -> Ints:
    """Rows as whole numbers in mixed radix, int64 (rows,); 0 without columns."""
    out = np.zeros(len(codes), dtype=np.int64)
    for column, radix in zip(codes.T, radices, strict=True):
        out = out * radix + column
    return out


def drawn(cumulative: Floats, lines: Ints, unit: Floats) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """One level a row, by inverting the running sums of its line.

    Args:
        cumulative: running sums of weights, float64 (lines, levels).
    Returns:
        Levels int64 (rows,), and whether the line has any weight.
    """
    sums = cumulative[lines]
    total = sums[:, -1]
    level = (sums <= (unit * total)[:, None]).sum(axis=1)
    return np.minimum(level, cumulative.shape[1] - 1), total > 0


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
    """Keys by their codes in some of the columns, those that agree side by side."""

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
