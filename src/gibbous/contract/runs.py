"""Runs of a mechanism on codes in memory: engine, curator, run, close; what every check uses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, get_args, get_type_hints

import numpy as np

from gibbous.contract.cases import secret
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.params import build, describe
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism, Progress, Words64, silent
from gibbous.core.request import Privacy
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Sparse, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.privacy.spend import curator_of

ROWS = 12  # rows asked of methods that pay by the row


class ContractError(AssertionError):
    """A mechanism broke the contract; the text says which part and why."""


def must(condition: bool, otherwise: str) -> None:
    """Part of a check: what holds of a mechanism that keeps the contract; ContractError if it does not."""
    if not condition:
        raise ContractError(otherwise)


def relation_of(mechanism: Mechanism) -> Relation:
    relation: Relation = getattr(mechanism, "relation", "add_remove")
    return relation


def default(kind: type[Any], **given: object) -> Any:
    """An instance with defaults, and with `given` where the class has such a parameter."""
    known = {p.name for p in describe(kind)}
    return build(kind, {k: v for k, v in given.items() if k in known})


def relations(kind: type[Any]) -> tuple[Relation, ...]:
    """Neighbor relations that the mechanism's `relation` parameter offers."""
    if "relation" not in {p.name for p in describe(kind)}:
        return ("add_remove",)
    return get_args(get_type_hints(kind)["relation"]) or ("add_remove", "replace_one")


def rows_for(mechanism: Mechanism) -> int | None:
    """Output rows to ask for: the noisy number where rows are free, ROWS where they are paid."""
    return None if mechanism.about.releases == "tables" else ROWS


def curated(
    mechanism: Mechanism,
    codes: Codes,
    plan: Plan,
    *,
    words: Words64 = entropy.words,
    progress: Progress = silent,
) -> AbstractContextManager[Curator]:
    """A curator of constructed codes, closed at the end: what every check runs a mechanism with."""
    engine = LocalEngine.from_codes(codes, threads=1)  # random parts are asked one by one
    return curator_of(
        Privacy(codes.schema, mechanism), plan, engine, words=words, progress=progress
    )


def release(
    mechanism: Mechanism,
    schema: Schema,
    values: np.ndarray,
    rows: int | None,
    plan: Plan | None = None,
    *,
    sets: int = 1,
    words: Words64 = entropy.words,
) -> Tables | Codes:
    """Run a mechanism on a table of codes and close the curator.

    Args:
        values: (rows, columns) codes; not modified.
        plan: its total is what is reserved; None for the mechanism's own.
    """
    plan = plan or mechanism.plan(schema, rows, sets)
    with curated(mechanism, secret(schema, values), plan, words=words) as curator:
        return mechanism.run(curator, rows, sets)


def described(output: Tables | Codes) -> tuple[object, ...]:
    """Everything that a mechanism's output says, comparable: shapes, contexts, noise, recipe, bytes."""
    if isinstance(output, Codes):
        return (output.values.shape, output.values.tobytes())
    cells: list[object] = []
    for table in output.published():
        arrays = [table.cells.values]
        if isinstance(table.cells, Sparse):
            arrays += [table.cells.keys, table.cells.levels]
        cells += [table.context, table.noise, *((a.shape, a.tobytes()) for a in arrays)]
    return (output.recipe, output.noisy_rows(), *cells)


def exact_counts(
    schema: Schema, values: np.ndarray, contexts: Sequence[Context]
) -> tuple[Counts, ...]:
    engine = LocalEngine.from_codes(secret(schema, values))
    try:
        return engine.tally(contexts)
    finally:
        engine.close()
