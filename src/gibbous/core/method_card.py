"""About a method: what it is called, where it comes from, what is claimed and what is proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gibbous.core.claim import Kind, Unit


@dataclass(frozen=True, slots=True)
class About:
    """The card of one mechanism, shown by `gibbous methods`.

    Attributes:
        name: registered name, equal to the file name.
        title: a short title.
        paper: key of the source, with section or equation, for example "sbhg, alg. 3".
        unit: what the budget buys.
        kind: kind of claim.
        releases: "tables" (rows are free afterwards) or "rows" (each drawn row was paid for).
        claimed: what the paper claims, in words.
        proven: what is proven here, in words, with relation.
        audited: what the audit of the running code checks.
        limit: what drawn rows approach as the budget grows: the records, or only their mode.
        shared: of rows: all sets are drawn from one noisy answer.
    """

    name: str
    title: str
    paper: str
    unit: Unit
    kind: Kind
    releases: Literal["tables", "rows"]
    claimed: str
    proven: str
    audited: str
    limit: Literal["records", "mode"] = "records"
    shared: bool = False
