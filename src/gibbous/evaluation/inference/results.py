"""What an analyst reads: a fitted model, a table of shares; both print, become frames, become JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbous.evaluation.inference.combined_estimate import Combined, aligned, shown

SHOWN = 40  # rows of a printed table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fit:
    """A model fitted to every set and combined.

    Attributes:
        formula, family: of the model.
        combined: coefficients, intervals, rule.
        remarks: coefficients that some set does not determine, and rows left out.
    """

    formula: str
    family: str
    combined: Combined
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Fit of {self.formula!r} ({self.family}): {len(self.combined.names)} coefficients>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Estimate, standard error, degrees of freedom, interval, shares of variance; rule and reason."""
        sets = int(np.max(np.atleast_1d(self.combined.sets), initial=0))
        head = f"{self.formula} ({self.family}), sets: {sets}"
        return "\n".join([head, str(self.combined), *(f"note: {text}" for text in self.remarks)])

    def frame(self) -> Any:
        """A polars frame, one row a coefficient."""
        return self.combined.frame()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "formula": self.formula,
            "family": self.family,
            **self.combined.to_json(),
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shares:
    """Shares of the combinations of some columns.

    Attributes:
        columns: names.
        levels: one dictionary a combination.
        combined: shares with intervals; those of a released table may be negative.
        source: "released table" or "rows".
        with_intervals: whether intervals were asked for.
    """

    columns: tuple[str, ...]
    levels: tuple[dict[str, str], ...]
    combined: Combined
    source: str
    with_intervals: bool = True

    def __repr__(self) -> str:
        return f"<Shares of {' x '.join(self.columns)} from the {self.source}>"

    def __str__(self) -> str:
        rows = self.rows()
        head: list[Sequence[str]] = [tuple(rows[0])]
        width = len(self.columns)
        head += [
            (*map(str, list(row.values())[:width]), *(shown(v) for v in list(row.values())[width:]))
            for row in rows[:SHOWN]
        ]
        lines = aligned(head, left=width)
        if len(rows) > SHOWN:
            lines.append(f"... and {len(rows) - SHOWN} more")
        if not self.with_intervals:
            return "\n".join([*lines, f"from the {self.source}"])
        lines.append(f"from the {self.source}. {self.combined.why}")
        return "\n".join([*lines, *(f"note: {text}" for text in self.combined.warnings)])

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a combination: its levels, share, se, low and high within [0, 1]."""
        rows = []
        for one, number in zip(self.levels, self.combined.records_of(), strict=True):
            row: dict[str, Any] = {**one, "share": number["estimate"]}
            if self.with_intervals:
                # A share that noise put outside [0, 1] is moved there, and its interval with it.
                moved = min(max(number["estimate"], 0.0), 1.0) - number["estimate"]
                low, high = (min(max(number[k] + moved, 0.0), 1.0) for k in ("low", "high"))
                row |= {"se": number["se"], "low": low, "high": high}
            rows.append(row)
        return rows

    def frame(self) -> Any:
        """A polars frame, one row a combination."""
        import polars as pl

        return pl.DataFrame(self.rows())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "columns": list(self.columns),
            "source": self.source,
            "why": self.combined.why,
            "level": self.combined.level,
            "shares": self.rows(),
            "warnings": list(self.combined.warnings),
        }
