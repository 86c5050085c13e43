"""Constructed records with numbers, and runs of a mechanism on them without files or ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.number_grid import from_grid, grid_of
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.stream import stream_key, uniforms
from gibbous.core.tables import Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy.curator import Curator
from gibbous.sampling.cells.cell_index import bins_of
from gibbous.sampling.cells.deviates import normals

SEX = Column("sex", "binary", levels=("f", "m"))
AREA = Column("area", "nominal", levels=("north", "east", "west"))
AGE = Column("age", "numeric", edges=(0, 40, 100), integer=True)
COST = Column("cost", "numeric", edges=(0.0, 100.0, 500.0), decimals=1, missing=True)
MIXED = Schema((SEX, AREA, AGE, COST))


def secret(schema: Schema, values: Any, numbers: dict[int, Any] | None = None) -> Codes:
    """Secret codes with numbers; codes of numeric columns follow from their numbers (NaN: missing)."""
    table = np.array(values, dtype=np.int64).reshape(-1, len(schema)).copy()
    kept = []
    for place, given in (numbers or {}).items():
        column, found = schema.columns[place], np.asarray(given, dtype=np.float64)
        table[:, place] = bins_of(column, np.nan_to_num(found))
        if column.missing_code is not None:
            table[np.isnan(found), place] = column.missing_code
        kept.append((place, np.nan_to_num(found)))
    by_column = np.ascontiguousarray(table.astype(schema.code_dtype()).T)
    return Codes(schema, by_column.T, secret=True, numbers=tuple(kept))


def people(rows: int, seed: int = 1) -> Codes:
    """MIXED records: age by sex, cost by area and age, one in five without a cost."""
    key = [stream_key(seed, j) for j in range(6)]
    sex = (uniforms(key[0], 0, rows) < 0.4).astype(np.int64)
    area = np.searchsorted([0.5, 0.8], uniforms(key[1], 0, rows), side="right")
    places = np.arange(rows, dtype=np.uint64)
    age = np.clip(np.rint(45 + 12 * sex + 9 * normals(places, key[2])), 0, 100)
    cost = 150 + 60 * area + 2 * (age - 45) + 30 * normals(places, key[3])
    cost = np.clip(np.round(cost, 1), 0, 500)
    cost[uniforms(key[4], 0, rows) < 0.2] = np.nan
    values = np.stack([sex, area, np.zeros(rows), np.zeros(rows)], axis=1)
    return secret(MIXED, values, {2: age, 3: cost})


def curator(mechanism: Any, records: Codes, budget: Claim | None = None, sets: int = 1) -> Curator:
    """An open curator over the records."""
    total = budget or mechanism.plan(records.schema, None, sets).total
    engine = LocalEngine.from_codes(records)
    return Curator(engine, total, records.schema, relation=mechanism.relation)


def ran(mechanism: Any, records: Codes, sets: int = 1) -> tuple[Tables, Curator]:
    """One run, with the closed curator."""
    held = curator(mechanism, records, sets=sets)
    try:
        tables = mechanism.run(held, None, sets)
    finally:
        held.close()
    assert isinstance(tables, Tables)
    return tables, held


def person(schema: Schema, most: int) -> Schema:
    """The same schema, with persons of up to `most` rows as the privacy unit."""
    return replace(schema, unit=Unit("person", "who", most))


def on_grid(column: Column, steps: Any) -> np.ndarray:
    """Numbers at whole steps of the column's grid."""
    return from_grid(np.asarray(steps), grid_of(column))
