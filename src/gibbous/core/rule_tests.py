"""What a rule asks of a row, as arrays can be tested for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gibbous.core.column import Column


@dataclass(frozen=True, slots=True, eq=False)
class Among:
    """The code of a column is one of some: bool (codes,)."""

    place: int
    codes: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """A sum of columns lies between two numbers; a value that is missing meets it.

    Attributes:
        terms: (position, how often it is added), in the order of the text.
        low, high: ends; those in `open` do not belong to it.
        target: column that is computed from the others, in an equality.
        close: an equality holds up to so much.
    """

    terms: tuple[tuple[int, int], ...]
    low: float = -math.inf
    high: float = math.inf
    open: tuple[bool, bool] = (False, False)
    target: int | None = None
    close: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """The codes of some columns are a possible combination: bool, one axis a column."""

    places: tuple[int, ...]
    possible: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A column is what another one determines: its code or number by code of the detail; nan: any."""

    detail: int
    group: int
    values: np.ndarray


Test = Among | Between | Combined | Mapped


def of(test: Test) -> tuple[int, ...]:
    """Positions of the columns that a test names."""
    if isinstance(test, Among):
        return (test.place,)
    if isinstance(test, Between):
        return tuple(place for place, _ in test.terms)
    return test.places if isinstance(test, Combined) else (test.detail, test.group)


def level_values(column: Column) -> np.ndarray:
    """What the codes of a column of levels count in a comparison: their numbers, else their ranks."""
    values = np.full(column.size, np.nan)
    plain = all(type(level) in (int, float) for level in column.levels)
    values[: column.bins] = np.array(column.levels if plain else range(column.bins), dtype=float)
    return values


def code_of(column: Column, value: object) -> int | None:
    """The code of a level; a text that reads like it will do, as keys of a table are text."""
    for code, level in enumerate(column.levels):
        if type(level) is type(value) and level == value:
            return code
    labels = column.labels()
    words = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return labels.index(words) if words in labels and not column.binned else None


def is_whole(column: Column) -> bool:
    """Whether the values of a column are whole numbers, or count as such."""
    if column.binned:
        return column.integer or column.kind == "date"
    return not any(isinstance(level, float) for level in column.levels)


def ends(column: Column) -> tuple[float, float]:
    """The least and the most that a column counts in a comparison."""
    if column.binned:
        return float(column.edges[0]), float(column.edges[-1])
    values = level_values(column)[: column.bins]
    return float(values.min()), float(values.max())
