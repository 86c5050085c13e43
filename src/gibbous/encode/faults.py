"""What does not fit the schema, collected over all columns and reported once, without any value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.errors import SchemaMismatch
from gibbous.read.fields import shown

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Fault:
    """Records of one column that do not fit.

    Attributes:
        name: short upper-case name of the error.
        column: name of the column.
        what: what is wrong, in the plural: "values outside its declared levels". How many is not kept:
            it is a count of confidential records.
        row: first data row, counted from 1 without the header.
        allowed, fix: whole sentences.
    """

    name: str
    column: str
    what: str
    row: int
    allowed: str
    fix: str

    def words(self) -> str:
        """The fault in a message."""
        return f"column {shown(self.column)}: {self.what}, first in data row {self.row:,}"

    def later(self, rows: int) -> Fault:
        """The same fault `rows` further down."""
        return replace(self, row=self.row + rows)


OUTSIDE = (
    "UNKNOWNLEVEL",
    "values outside its declared levels",
    "Values are among the declared levels; the domain is never extended from the data.",
    "Add the levels to the schema, or declare other = '__other__' to catch them.",
)
BOUNDS = (
    "BOUNDS",
    "values outside its declared bounds",
    "Values lie between lower and upper.",
    "Widen the bounds in the schema, or declare clamp = true to move values to the bound.",
)
MISSING = (
    "MISSINGVALUE",
    "missing values",
    "The column is declared without missing values.",
    "Set missing = true in the schema, or complete the data.",
)
NUMBER = (
    "NOTANUMBER",
    "values that are not numbers",
    "Numbers are written 12, -0.5 or 1e3; infinities and nan are not numbers.",
    "Correct the values, set null to the text that means missing, or use kind = 'nominal'.",
)
FINITE = (
    "NOTFINITE",
    "values that are infinite or nan",
    "Values are finite; missing values are null.",
    "Correct the values; clamp = true moves infinities to the bound.",
)
WHOLE = (
    "NOTWHOLE",
    "values that are not whole numbers",
    "The column is declared integer = true; floats beyond 2^53 are not exact.",
    "Set integer = false in the schema, or correct the values.",
)
DAY = (
    "NOTADAY",
    "values that are not days in the declared form",
    "Days are ISO text (2020-01-31) unless the schema declares their format.",
    "Declare it, for example format = '%d/%m/%Y'; it is never guessed.",
)

ORDER = (DAY, NUMBER, FINITE, WHOLE, BOUNDS, OUTSIDE, MISSING)


def in_order(faults: Mapping[tuple[int, str], Fault]) -> list[Fault]:
    """Faults by (place of the column, name): column by column, what is unreadable first."""
    rank = [kind[0] for kind in ORDER]
    return [faults[k] for k in sorted(faults, key=lambda k: (k[0], rank.index(k[1])))]


def found(kind: tuple[str, str, str, str], column: str, bad: np.ndarray) -> list[Fault]:
    """The fault, of a kind of this module, of the records in a mask, bool (rows,), if there are any."""
    if not bad.any():
        return []
    name, what, allowed, fix = kind
    return [Fault(name, column, what, int(bad.argmax()) + 1, allowed, fix)]


def refuse(faults: list[Fault]) -> None:
    """Raise one SchemaMismatch that names every faulty column, if there is any."""
    if not faults:
        return
    first = faults[0]
    shown_faults = "; ".join(f.words() for f in faults[:_SHOWN])
    rest = f"; and {len(faults) - _SHOWN} more columns" if len(faults) > _SHOWN else ""
    others = " Each kind of fault has its own remedy; this is the first one." * (
        len({f.name for f in faults}) > 1
    )
    raise SchemaMismatch(
        first.name,
        f"The data do not fit the schema: {shown_faults}{rest} (values withheld).",
        first.allowed,
        first.fix + others,
    )
