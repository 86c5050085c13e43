"""What an analyst reads: estimates with intervals, a fitted model, a table of shares; text, frames, JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbous.core.json_values import plain
from gibbous.evaluation.inference.combining_rules import Floats

SHOWN = 40  # rows of a printed table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Combined:
    """One estimate from several synthetic sets, or several of them.

    Arrays have the shape of one set's estimates: () for a number, (estimates,) for several.

    Attributes:
        estimate: the mean over the sets.
        se: standard error, the root of the variance T.
        df: degrees of freedom; infinite for the normal law.
        low, high: ends of the interval.
        level: probability that the interval is made for.
        sampling, synthesis, noise: shares of T in [0, 1]: the records are a sample; sets and rows are
            finite; counts were noised.
        sets: sets behind each estimate.
        rows, records: N and n as they were used; None if the rule does not need them.
        warnings: what was assumed, and what no rule covers, one sentence each.
    """

    estimate: Floats
    se: Floats
    df: Floats
    low: Floats
    high: Floats
    level: float
    rule: str
    why: str
    sampling: Floats
    synthesis: Floats
    noise: Floats
    sets: Floats
    rows: float | None = None
    records: float | None = None
    names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """(low, high)."""
        return self.low, self.high

    @property
    def variance(self) -> Floats:
        """T."""
        return self.se**2

    def __repr__(self) -> str:
        return f"<Combined: {self.estimate.size} estimates by {self.rule}>"

    def __str__(self) -> str:
        percent = f"{100 * self.level:g} %"
        head = ("", "estimate", "se", "df", f"low {percent}", f"high {percent}")
        rows: list[Sequence[str]] = [(*head, "sampling", "synthesis", "noise")]
        for one in self.records_of():
            numbers = [shown(one[k]) for k in ("estimate", "se", "df", "low", "high")]
            parts = [_percent(one[k]) for k in ("sampling", "synthesis", "noise")]
            rows.append((str(one["name"]), *numbers, *parts))
        lines = [*aligned(rows), f"rule: {self.rule}. {self.why}"]
        return "\n".join([*lines, *(f"note: {text}" for text in self.warnings)])

    def records_of(self) -> list[dict[str, Any]]:
        """One dictionary an estimate: name, estimate, se, df, low, high and the shares."""
        arrays = {
            key: np.atleast_1d(getattr(self, key))
            for key in ("estimate", "se", "df", "low", "high", "sampling", "synthesis", "noise")
        }
        names = self.names or tuple(str(i) for i in range(arrays["estimate"].size))
        return [
            {"name": name, **{key: float(a[i]) for key, a in arrays.items()}}
            for i, name in enumerate(names)
        ]

    def frame(self) -> Any:
        """A polars frame, one row an estimate."""
        import polars as pl

        return pl.DataFrame(self.records_of())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; infinite degrees of freedom and undefined numbers become null."""
        return {
            "rule": self.rule,
            "why": self.why,
            "level": self.level,
            "rows": self.rows,
            "records": self.records,
            "estimates": [
                plain(one)
                | {"sets": plain(float(m)), "noise_variance": plain(one["noise"] * one["se"] ** 2)}
                for one, m in zip(self.records_of(), np.atleast_1d(self.sets), strict=True)
            ],
            "warnings": list(self.warnings),
        }


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Text columns: the first `left` ones to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def shown(value: float) -> str:
    """A number for people."""
    if math.isnan(value):
        return "-"
    if math.isinf(value) or (value > 1e4 and value == round(value)):
        return "inf" if math.isinf(value) else f"{value:,.0f}"
    return f"{value:.4g}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.0f} %"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fit:
    """A model fitted to every set and combined.

    Attributes:
        combined: coefficients, intervals, rule.
        remarks: coefficients that some set does not determine, and rows left out.
        references: column -> the level that its others are compared with.
        provisional: whether the noise was drawn again a few times only, and the last word follows.
    """

    formula: str
    family: str
    combined: Combined
    remarks: tuple[str, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    provisional: bool = False

    def __repr__(self) -> str:
        return f"<Fit of {self.formula!r} ({self.family}): {len(self.combined.names)} coefficients>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Estimate, standard error, degrees of freedom, interval, shares of variance; rule and reason."""
        sets = int(np.max(np.atleast_1d(self.combined.sets), initial=0))
        head = f"{self.formula} ({self.family}), sets: {sets}{', provisional' * self.provisional}"
        lines = [head, str(self.combined), *(f"note: {text}" for text in self.remarks)]
        return "\n".join([*lines, *self.compared()])

    def compared(self) -> tuple[str, ...]:
        """The line that says what levels are compared with; none without levels."""
        said = ", ".join(f"{name} = {level}" for name, level in self.references.items())
        return (f"compared with: {said}",) if said else ()

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
            "references": dict(self.references),
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shares:
    """Shares of the combinations of some columns.

    Attributes:
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
