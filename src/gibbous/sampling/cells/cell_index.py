"""Cells of a schema: how the codes of a row and the numbers in it map to a cell and back."""

from __future__ import annotations

import math

import numpy as np

from gibbous.core.cell_model import CellModel
from gibbous.core.context import Context, strides
from gibbous.core.schema import Column, Schema
from gibbous.sampling.structural_zeros import rules_of


def numeric_columns(schema: Schema) -> tuple[int, ...]:
    """Positions of the numeric and date columns."""
    return tuple(j for j, column in enumerate(schema) if column.binned)


def cell_sizes(schema: Schema) -> tuple[int, ...]:
    """Codes of each column in the cells: of a numeric one a number, and missing where it is allowed."""
    return tuple(1 + column.missing if column.binned else column.size for column in schema)


def cell_context(schema: Schema) -> Context:
    """The table of all cells: columns that tell cells apart, or the first one where none does."""
    sizes = cell_sizes(schema)
    columns = tuple(j for j, size in enumerate(sizes) if size > 1) or (0,)
    return Context(columns, (), tuple(sizes[j] for j in columns), ())


def digits(sizes: tuple[int, ...], column: int) -> np.ndarray:
    """Code of one column in every cell, int64 (cells,)."""
    step = strides(sizes)[column]
    cells = np.arange(math.prod(sizes), dtype=np.int64)
    return cells // step % sizes[column]


def present(model_sizes: tuple[int, ...], numbers: tuple[int, ...]) -> np.ndarray:
    """Whether a cell has a number of each numeric column, bool (cells, numeric columns)."""
    cells = math.prod(model_sizes)
    found = np.ones((cells, len(numbers)), dtype=bool)
    for place, column in enumerate(numbers):
        found[:, place] = digits(model_sizes, column) == 0
    return found


def possible_cells(schema: Schema, model: CellModel) -> np.ndarray:
    """Cells that the structural zeros leave open, bool (cells,); all of them where none is left open.

    A rule that names bins of a numeric column closes a cell only where the number is missing; rows
    that break such a rule are drawn again.
    """
    found = np.ones(model.cells, dtype=bool)
    for rule in rules_of(schema):
        hit = np.ones(model.cells, dtype=bool)
        for column, codes in zip(rule.columns, rule.hits, strict=True):
            own = digits(model.sizes, column)
            described = schema.columns[column]
            if described.binned:
                gone = described.missing_code is not None and bool(codes[described.missing_code])
                whole = bool(codes[: described.bins].all())
                hit &= np.where(own == 0, whole, gone)
            else:
                hit &= codes[own]
        found &= ~hit
    return found if found.any() else np.ones(model.cells, dtype=bool)


def settled(column: Column, values: np.ndarray) -> np.ndarray:
    """Numbers within the bounds, with the precision of the column: float64."""
    low, high = float(column.edges[0]), float(column.edges[-1])
    if column.integer or column.kind == "date":
        return np.asarray(np.clip(np.rint(values), math.ceil(low), math.floor(high)))
    if column.decimals is None:
        return np.asarray(np.clip(values, low, high))
    unit = 10.0**column.decimals
    first, last = math.ceil(low * unit), math.floor(high * unit)
    if first > last:
        return np.asarray(np.clip(values, low, high))
    return np.asarray(np.clip(np.rint(values * unit), first, last) / unit)


def bins_of(column: Column, values: np.ndarray) -> np.ndarray:
    """Code of each number inside the bounds."""
    inner = np.array([float(edge) for edge in column.edges[1:-1]])
    return np.searchsorted(inner, values, side="right")
