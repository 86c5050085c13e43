"""Gathering: partial counts of some rows in, as they come; one Dense or Sparse a context out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbous.core.context import Context
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate import kernels, passes

Part = Sparse | np.ndarray
"""Counts of some rows: int64 (cells,), or the cells that occur among them."""


class Gathering:
    """What was counted so far. Secret.

    Args:
        contexts: what is counted.
        tables: int64 (cells,) of dense contexts that jobs add to where they are, or None.
    """

    def __init__(
        self, contexts: Sequence[Context], tables: Sequence[np.ndarray | None] | None = None
    ) -> None:
        self._contexts = contexts
        self._dense: list[np.ndarray | None] = list(tables or [None] * len(contexts))
        self._runs: list[list[Sparse]] = [[] for _ in contexts]

    def __repr__(self) -> str:
        return "<Gathering, secret>"

    def add(self, place: int, part: Part) -> None:
        """Take in a part of the counts of one context.

        Lists of cells are merged while the last is half as long as the one before it, or longer:
        each cell is moved about as many times as the number of parts has bits, and all lists
        together are less than twice as long as the first.
        """
        if isinstance(part, np.ndarray):
            known = self._dense[place]
            if known is None:
                self._dense[place] = part
            elif known is not part:  # another range of rows
                known += part
            return
        runs = self._runs[place]
        runs.append(part)
        while len(runs) > 1 and 2 * len(runs[-1].values) >= len(runs[-2].values):
            _join(runs)

    def finish(self) -> tuple[Counts, ...]:
        """All counts; what was gathered is given away."""
        out = []
        for place, context in enumerate(self._contexts):
            table, self._dense[place] = self._dense[place], None
            runs, self._runs[place] = self._runs[place], []
            while len(runs) > 1:
                _join(runs)
            if table is None:
                out.append(Counts(context, runs[0]))
            elif context.support == "seen":
                out.append(Counts(context, passes.occupied(context, table)))
            else:
                shape = (context.keys, context.levels)
                out.append(Counts(context, Dense(table.reshape(shape))))
        return tuple(out)


def _join(runs: list[Sparse]) -> None:
    last = runs.pop()
    runs[-1] = added(runs[-1], last)


def added(one: Sparse, two: Sparse) -> Sparse:
    """The counts of two parts of the records together."""
    if not len(one.values):
        return two
    cells = kernels.union(one.keys, one.levels, two.keys, two.levels)
    keys, levels = np.empty((2, cells), dtype=np.uint64)
    values = np.empty(cells, dtype=np.int64)
    kernels.merge(
        one.keys, one.levels, one.values, two.keys, two.levels, two.values, keys, levels, values
    )
    return Sparse(keys, levels, values)
