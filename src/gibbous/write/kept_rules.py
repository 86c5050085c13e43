"""Rules and the rows of a release: paid rows made to keep them, and what each rule changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gibbous.core.codes import Codes, joined
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables

Changed = tuple[tuple[int, ...], ...]
"""Of each set, the rows that each rule changed."""


def with_rules(result: Tables | Codes, sets: int, seed: int) -> tuple[Tables | Codes, Changed]:
    """What was drawn, with rows that keep the rules of their schema; tables as they are.

    Rows are those of all sets, one set after the other. What the ledger is told of, and `verify`
    compares, are the rows that keep the rules.
    """
    from gibbous.encode.ruled_rows import ruled

    if isinstance(result, Tables) or not result.schema.rules:
        return result, ()
    rows = result.rows // sets
    each = [
        ruled(result.part(slice(at * rows, (at + 1) * rows)), seed=seed, set_index=at)
        for at in range(sets)
    ]
    return joined([one.codes for one in each]), tuple(one.changed for one in each)


def rules_of_receipt(schema: Schema, changed: Changed) -> dict[str, Any]:
    """The entry of a certificate, none without rules."""
    if not schema.rules:
        return {}
    return {
        "rules": [
            {"rule": rule.words(), "rows_changed": [one[at] for one in changed]}
            for at, rule in enumerate(schema.rules)
        ]
    }


def changed_words(rules: Sequence[Any], rows: Sequence[int]) -> list[tuple[str, str]]:
    """Each rule of a certificate, and the share of all rows that it changed."""
    total = max(1, sum(rows))
    return [
        (str(one["rule"]), f"{100 * sum(one['rows_changed']) / total:.1f} % of the rows")
        for one in rules
    ]
