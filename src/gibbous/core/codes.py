"""Codes: a table as small integers under its schema, one contiguous run a column."""

from __future__ import annotations

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
    """

    schema: Schema
    values: np.ndarray
    secret: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.schema):
            raise ValueError("values must be (rows, columns of the schema)")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def by_column(self) -> np.ndarray:
        """(columns, rows), C-contiguous: what kernels read."""
        return self.values.T

    def __repr__(self) -> str:
        if self.secret:
            return "<Codes, secret>"
        return f"<Codes {self.values.shape[0]} rows x {self.values.shape[1]} columns>"

    def __reduce__(self) -> tuple[object, ...]:
        if self.secret:
            raise TypeError("codes of confidential records are never pickled")
        return (Codes, (self.schema, self.values, False))


def empty_codes(schema: Schema, rows: int) -> np.ndarray:
    """Zeros of the right type and layout, (rows, columns)."""
    return np.zeros((len(schema), rows), dtype=schema.code_dtype()).T
