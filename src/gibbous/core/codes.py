"""Codes: a table as small integers under its schema, one contiguous run a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbous.core.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Codes:
    """A table of codes.

    Attributes:
        schema: says what the codes mean.
        values: (rows, columns) unsigned integers, column-major, so that `values.T` is contiguous.
        secret: codes of the confidential records: never printed, pickled or written.
        numbers: ((column position, float64 (rows,)), ...) of numeric columns whose numbers are known,
            not only their bins: of records that are summed, or of rows that a model drew. Where a
            code says missing, the number means nothing.
    """

    schema: Schema
    values: np.ndarray
    secret: bool = False
    numbers: tuple[tuple[int, np.ndarray], ...] = ()

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.schema):
            raise ValueError("values must be (rows, columns of the schema)")
        if any(found.shape != (len(self.values),) for _, found in self.numbers):
            raise ValueError("numbers must be one a row")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def by_column(self) -> np.ndarray:
        """(columns, rows), C-contiguous: what kernels read."""
        return self.values.T

    def number(self, place: int) -> np.ndarray:
        """Numbers of one column, float64 (rows,); KeyError where they are not known."""
        return dict(self.numbers)[place]

    def part(self, which: slice | np.ndarray) -> Codes:
        """Some of the rows, with their numbers."""
        numbers = tuple((place, found[which]) for place, found in self.numbers)
        values = np.ascontiguousarray(self.values.T[:, which]).T
        return Codes(self.schema, values, self.secret, numbers)

    def __repr__(self) -> str:
        if self.secret:
            return "<Codes, secret>"
        return f"<Codes {self.values.shape[0]} rows x {self.values.shape[1]} columns>"

    def __reduce__(self) -> tuple[object, ...]:
        if self.secret:
            raise TypeError("codes of confidential records are never pickled")
        return (Codes, (self.schema, self.values, False, self.numbers))


def joined(parts: Sequence[Codes]) -> Codes:
    """The rows of tables of one schema, one after the other, with their numbers; at least one table."""
    first = parts[0]
    if len(parts) == 1:
        return first
    values = np.concatenate([one.by_column for one in parts], axis=1).T
    numbers = tuple(
        (place, np.concatenate([one.number(place) for one in parts])) for place, _ in first.numbers
    )
    return Codes(first.schema, values, first.secret, numbers)


def empty_codes(schema: Schema, rows: int) -> np.ndarray:
    """Zeros of the right type and layout, (rows, columns)."""
    return np.zeros((len(schema), rows), dtype=schema.code_dtype()).T
