"""The constructed tables of an audit: public schemas, crowds, canaries; nothing here is real data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gibbous.contract.auditor.canary_cells import Setup
from gibbous.contract.runs import relation_of
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import NoiseInfo, Tables

WIDE = 4096  # levels of the one column whose cells are all canaries
NARROW = 128  # the same where there is a delta: it strikes a whole run, so runs are kept small
MANY = 4  # columns of the table in which a canary is in several tables
FEW = 8  # levels of a column where all combinations may be counted, or rows are paid
CELLS = 20_000  # of all tables of several columns together
LONGEST = 128  # rows of one block
CLEAR = 13.0  # scales above the threshold that a crowd has


def setups(mechanism: Mechanism) -> Iterator[Setup]:
    """The tables with canaries that fit a mechanism, those that show most first.

    Of a method whose tables have a threshold, crowds lift the canaries above it.
    """
    relation = relation_of(mechanism)
    if mechanism.about.releases == "rows":
        for name, number in (("one column", 1), ("three columns", 3)):
            schema = schema_of(number, FEW)
            rows = free_rows(mechanism, schema)
            yield _with_canaries(f"{name}, {FEW} levels", schema, relation, rows=rows)
        return
    pure = mechanism.plan(schema_of(1, 2), None).total.kind == "pure"
    levels = WIDE if pure else NARROW
    one = schema_of(1, levels)
    if mechanism.plan(one, None).cells <= 4 * levels:
        yield _with_canaries(f"one column, {levels} levels, canaries alone", one, relation)
    several = _several(mechanism)
    columns = f"{len(several)} columns, {several.sizes[0]} levels"
    yield _with_canaries(f"{columns}, canaries alone", several, relation)


def crowded(setup: Setup, laws: set[NoiseInfo]) -> Setup | None:
    """The setup with crowds that lift each canary's cells above the thresholds that were seen."""
    stated = [law for law in laws if law.threshold is not None]
    if not stated:
        return None
    crowd = max(int((law.threshold or 0) + CLEAR * law.scale) + 2 for law in stated)
    base = np.concatenate([setup.base, np.repeat(_everybody(setup), crowd, axis=0)])
    name = setup.name.replace("canaries alone", f"canaries in crowds of {crowd}")
    return replace(setup, name=name, base=base)


def laws_of(output: Tables | Codes) -> set[NoiseInfo]:
    """The noise that the tables of an output state."""
    return {t.noise for t in output.published()} if isinstance(output, Tables) else set()


def schema_of(columns: int, levels: int) -> Schema:
    """`columns` nominal columns with the same number of levels each."""
    names = tuple(f"v{i}" for i in range(levels))
    return Schema(tuple(Column(f"x{j}", "nominal", levels=names) for j in range(columns)))


def free_rows(mechanism: Mechanism, schema: Schema) -> int:
    """The most rows (up to a limit) that cost no more than one: the length of a block."""
    one = mechanism.plan(schema, 1).total
    rows = 1
    while rows < LONGEST and mechanism.plan(schema, rows + 1).total == one:
        rows += 1
    return rows


def _several(mechanism: Mechanism) -> Schema:
    """Several columns with as many levels as leave the tables small; FEW where no plan says so."""
    for levels in (64, 32, 16):
        schema = schema_of(MANY, levels)
        try:
            if mechanism.plan(schema, None).cells <= CELLS:
                return schema
        except GibbousError:
            continue
    return schema_of(MANY, FEW)


def _with_canaries(
    name: str, schema: Schema, relation: Relation, *, rows: int | None = None
) -> Setup:
    """Canary i has level i (or, when it is replaced, level i or i + half) in every column."""
    levels = schema.sizes[0]
    everybody = np.repeat(np.arange(levels)[:, None], len(schema), axis=1)
    base = np.zeros((0, len(schema)), dtype=np.int64)
    if relation == "add_remove":
        return Setup(name, schema, base, everybody, rows=rows)
    half = levels // 2
    return Setup(name, schema, base, everybody[:half], everybody[half : 2 * half], rows=rows)


def _everybody(setup: Setup) -> np.ndarray:
    if setup.outside is None:
        return setup.inside
    return np.concatenate([setup.inside, setup.outside])
