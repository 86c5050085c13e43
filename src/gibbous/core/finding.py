"""Finding: one metric of a synthetic table, with its definition, its interval, what others score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gibbous.core.json_values import plain

Group = Literal["utility", "risk", "inference", "flows"]
Better = Literal["lower", "higher", "near"]
_IN_JSON = (
    *("name", "title", "group", "subject", "value", "interval", "interval_of", "null", "better"),
    *("ideal", "sets", "definition", "source", "confidential", "note", "detail"),
)
GROUPS: tuple[Group, ...] = ("utility", "risk", "inference", "flows")


@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """One metric. There is no threshold: it is read beside its references.

    Attributes:
        name: short and fixed, for example "tv2"; what tables and studies call it.
        title: for people, for example "Distance of two-way margins".
        group: utility, risk, inference or flows.
        value: over all synthetic sets (their mean, unless `definition` says otherwise); NaN where it
            is not defined, and `note` then says why.
        better: "lower" or "higher" is better (for a risk: safer); "near": near `ideal`.
        definition: a full sentence with the formula in words, its unit and its range.
        source: paper and equation, or the book.
        interval: (low, high) with what it covers in `interval_of`; None where none is defined.
        interval_of: in words, for example "95 %, delete-a-group jackknife over synthetic rows".
        null: (reference, value): what "bootstrap" (records resampled with replacement), "holdout"
            (records that were not used) and "independent" (columns permuted one by one) score.
        ideal: for better = "near".
        subject: the columns it is about; empty for the whole table.
        sets: the value of each synthetic set.
        detail: rows of a small table behind it (dictionaries of plain values with equal keys), for
            charts and for the JSON twin.
        confidential: computed against real records: publishing it is a release of its own.
        note: a sentence to read with it; empty for none.
    """

    name: str
    title: str
    group: Group
    value: float
    better: Better
    definition: str
    source: str
    interval: tuple[float, float] | None = None
    interval_of: str = ""
    null: tuple[tuple[str, float], ...] = ()
    ideal: float | None = None
    subject: tuple[str, ...] = ()
    sets: tuple[float, ...] = ()
    detail: tuple[Mapping[str, Any], ...] = field(default=())
    confidential: bool = True
    note: str = ""

    def __repr__(self) -> str:
        return f"<Finding {self.name} = {_shown(self.value)}{self._about()}>"

    def __str__(self) -> str:
        """One line: title, value, interval, references."""
        parts = [f"{self.title}{self._about()}: {_shown(self.value)}"]
        if self.interval:
            parts.append(f"[{_shown(self.interval[0])}, {_shown(self.interval[1])}]")
        if self.null:
            parts.append("(" + ", ".join(f"{k} {_shown(v)}" for k, v in self.null) + ")")
        return " ".join(parts)

    def _about(self) -> str:
        return f" of {', '.join(self.subject)}" if self.subject else ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; NaN and infinities become null."""
        values = {key: plain(getattr(self, key)) for key in _IN_JSON}
        return values | {"null": plain(dict(self.null))}


def _shown(value: float) -> str:
    return "not defined" if math.isnan(value) else f"{value:.4g}"
