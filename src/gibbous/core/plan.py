"""Plan: what a run will cost and need, computed from the schema alone, never from a record."""

from __future__ import annotations

from dataclasses import dataclass, field

from gibbous.core.claim import Claim, short
from gibbous.core.notebook import html_table


@dataclass(frozen=True, slots=True)
class Spend:
    """One planned purchase.

    Attributes:
        what: for people, for example "15 hashed tables".
        claim: its cost.
        detail: noise and sensitivity in words, for example "geometric noise, scale 13 counts".
    """

    what: str
    claim: Claim
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {"what": self.what, "claim": self.claim.to_json(), "detail": self.detail}


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """The cost and needs of one run.

    Attributes:
        mechanism: registered name.
        params: its parameters as JSON values.
        rows: rows a set; None means the noisy number of rows.
        sets: number of synthetic sets.
        claim: the guarantee of one unit (a row, a block, the artifact).
        total: the guarantee of everything that is released: all rows, all sets. This is what the
            ledger charges.
        published: what the paper claims for the same parameters, in words.
        spends: the parts of the total.
        cells: cells to be counted (a Python integer).
        memory_bytes: estimate of peak memory beyond the records themselves.
        errors: (name, value) expected errors, e.g. ("noise sd of one cell, counts", 17.4).
        warnings: for people, each a full sentence.
        numbers: positions of numeric columns whose numbers, not only their bins, are summed.
        beside: what is promised of drawn values by post-processing, at no cost: no part of the total.
    """

    mechanism: str
    params: dict[str, object]
    rows: int | None
    sets: int
    claim: Claim
    total: Claim
    published: str
    spends: tuple[Spend, ...] = ()
    cells: int = 0
    memory_bytes: int = 0
    errors: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = field(default=())
    numbers: tuple[int, ...] = ()
    beside: tuple[Spend, ...] = ()

    def __repr__(self) -> str:
        return f"<Plan of {self.mechanism}: {self.headline()}>"

    def __str__(self) -> str:
        """A short table: the total first, then its parts, expected errors and warnings."""
        public = self.total.fixed or self.total.kind == "probabilistic"
        unknown = "as many rows as records" if public else "the noisy number of rows"
        rows = unknown if self.rows is None else f"{self.rows:,} rows"
        facts = [(spend.what, spend.claim.amount(), spend.detail) for spend in self.spends]
        facts += [(name, f"{value:.4g}", "") for name, value in self.errors]
        facts += [("memory beyond the records", f"{self.memory_bytes / 1e6:.3g} MB", "")]
        widths = [max(len(fact[i]) for fact in facts) for i in (0, 1)]
        lines = [
            f"{self.mechanism}, sets: {self.sets}, each of {rows}",
            f"total: {self.headline()}",
        ]
        lines += [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in facts]
        lines += [f"  beside it: {said.what}: {said.detail}" for said in self.beside]
        return "\n".join([*lines, *(f"  warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        rows = [(spend.what, spend.claim.amount(), spend.detail) for spend in self.spends]
        rows += [(name, f"{value:.4g}", "expected") for name, value in self.errors]
        rows += [(said.what, "no cost", said.detail) for said in self.beside]
        rows += [("warning", "", text) for text in self.warnings]
        title = f"{self.mechanism}, sets: {self.sets}; total: {self.headline()}"
        return html_table(title, ("what", "cost or value", "detail"), rows)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; fractions as exact text."""
        return {
            "mechanism": self.mechanism,
            "params": self.params,
            "rows": self.rows,
            "sets": self.sets,
            "claim": self.claim.to_json(),
            "total": self.total.to_json(),
            "published": self.published,
            "spends": [spend.to_json() for spend in self.spends],
            "cells": self.cells,
            "memory_bytes": self.memory_bytes,
            "errors": dict(self.errors),
            "warnings": list(self.warnings),
            **({"beside": [said.to_json() for said in self.beside]} if self.beside else {}),
        }

    def headline(self) -> str:
        """The total first, then the unit: 'epsilon = 1 per row: 500 rows cost 500'."""
        if self.claim.unit in ("row", "block") and self.claim.is_dp:
            number = f"epsilon = {short(self.claim.epsilon)} per {self.claim.unit}"
            count = (self.rows or 0) * self.sets
            return f"{number}: {count} rows cost {short(self.total.epsilon)}"
        return self.total.words()
