"""Sums of grid numbers within cells: exact, in whole numbers, for every engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import keys_of, levels_of
from gibbous.core.errors import EngineFailure, ResourceLimit
from gibbous.core.grid import grid_of, to_grid
from gibbous.core.moment import Moment
from gibbous.core.tables import Counts, Dense
from gibbous.disintegrate.records import Store, slabs
from gibbous.disintegrate.slabs import Slabs

CHUNK = 1 << 20  # rows at a time


def sums(codes: Store, moments: Sequence[Moment]) -> tuple[Counts, ...]:
    """One table of sums a moment.

    Args:
        codes: secret; with the numbers of all factors.
    Returns:
        Dense int64 (keys, levels): sum over the cell's records of the product of the factors' grid
        numbers; a record with a missing value in a factor adds 0.
    Raises:
        EngineFailure: numbers of a factor were not kept.
        ResourceLimit: a sum may pass 63 bits.
    """
    kept = set(codes.numbers if isinstance(codes, Slabs) else dict(codes.numbers))
    if any(place not in kept for one in moments for place in one.factors):
        raise EngineFailure(
            "NUMBERS",
            "The numbers of a column were asked for, and only its bins were kept.",
            "A plan names the columns whose numbers it sums (Plan.numbers).",
            "This is a fault of the method: name the column in its plan.",
        )
    if any(one.bound * max(codes.rows, 1) >= 1 << 62 for one in moments):
        raise ResourceLimit(
            "SUMS",
            "A sum over all records may pass 63 bits.",
            "Sums are taken in whole numbers of 64 bits.",
            "Declare fewer decimals for the column.",
        )
    totals = [np.zeros(one.context.cells, dtype=np.int64) for one in moments]
    for part in slabs(codes):
        for one, total in zip(moments, totals, strict=True):
            _add(part, one, total)
    shapes = [(one.context.keys, one.context.levels) for one in moments]
    return tuple(
        Counts(one.context, Dense(total.reshape(shape)))
        for one, total, shape in zip(moments, totals, shapes, strict=True)
    )


def _add(codes: Codes, one: Moment, total: np.ndarray) -> None:
    context = one.context
    for start in range(0, codes.rows, CHUNK):
        which = slice(start, start + CHUNK)
        rows = codes.values[which]
        cells = keys_of(context, rows) * np.uint64(context.levels) + levels_of(context, rows)
        np.add.at(total, cells.astype(np.int64), _product(codes, one, which))


def _product(codes: Codes, one: Moment, which: slice) -> np.ndarray:
    parts = []
    for place in one.factors:
        column = codes.schema.columns[place]
        numbers = to_grid(codes.number(place)[which], grid_of(column))
        if column.missing_code is not None:
            numbers[codes.values[which, place] == column.missing_code] = 0
        parts.append(numbers)
    return math.prod(parts[1:], start=parts[0])
