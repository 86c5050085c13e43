"""Cells of margins, counted by the local engine: many margins a pass, and only cells that occur."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.disintegrate.records import LocalEngine
from gibbous.evaluate.draws import permutation
from gibbous.evaluate.utility.chosen import Margin

ENTRIES = 1 << 22  # cells that one batch of margins may hold (100 MB)


def cells(
    codes: Codes, margins: Sequence[Margin], *, given: tuple[int, ...] = ()
) -> Iterator[Sparse]:
    """Count margins.

    Args:
        codes: the table.
        margins: columns whose combinations are the levels; the last one varies fastest.
        given: columns whose combinations are the keys.
    Yields:
        Per margin the cells that occur.
    """
    engine = LocalEngine.from_codes(codes)
    sizes = codes.schema.sizes
    keys = tuple(sizes[c] for c in given)
    contexts = [
        Context(m, given, tuple(sizes[c] for c in m), keys, support="seen") for m in margins
    ]
    for batch in _batches(contexts, codes.rows):
        for counts in engine.tally(batch):
            assert isinstance(counts.cells, Sparse)
            yield counts.cells


def beside(
    real: Codes, others: Sequence[Codes], margins: Sequence[Margin]
) -> Iterator[tuple[Margin, Sparse, tuple[Sparse, ...]]]:
    """Count margins of several tables together, so that only one batch of each is held.

    Yields:
        A margin, its cells in the first table, and its cells in each of the others.
    """
    tallies = [cells(table, margins) for table in (real, *others)]
    for margin, (mine, *theirs) in zip(margins, zip(*tallies, strict=True), strict=True):
        yield margin, mine, tuple(theirs)


def located(known: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each wanted level is among known ones (increasing, at least one), and whether it is."""
    places = np.searchsorted(known, wanted)
    places[places == len(known)] = 0
    return places, known[places] == wanted


def grouped(codes: Codes, groups: int, seed: int) -> Codes:
    """The same rows with one column more, the last: a random group of (almost) equal size."""
    schema = codes.schema
    name = "group"
    while name in schema.names:
        name += "_"
    column = Column(name, "ordinal", levels=tuple(range(groups)))
    wider: Schema = replace(schema, columns=(*schema.columns, column))
    values = np.empty((len(wider), codes.rows), dtype=wider.code_dtype())
    values[:-1] = codes.by_column
    values[-1] = groups_of(codes.rows, groups, seed)
    return Codes(wider, values.T, codes.secret)


def groups_of(rows: int, groups: int, seed: int) -> np.ndarray:
    """A random group of each row, all of (almost) equal size: int64 (rows,), below `groups`."""
    place = np.empty(rows, dtype=np.int64)
    place[permutation(rows, seed, 5)] = np.arange(rows) % groups
    return place


def unravelled(levels: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Codes of each column of a margin from its level numbers: int64 (cells,) a column."""
    out, rest = [], levels.astype(np.int64)
    for size in reversed(sizes):
        rest, code = np.divmod(rest, size)
        out.append(code)
    return out[::-1]


def _batches(contexts: Sequence[Context], rows: int) -> Iterator[list[Context]]:
    batch: list[Context] = []
    held = 0
    for context in contexts:
        entries = min(rows, context.cells)
        if batch and held + entries > ENTRIES:
            yield batch
            batch, held = [], 0
        batch.append(context)
        held += entries
    if batch:
        yield batch
