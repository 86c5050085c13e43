"""Small tables for the tests of several sets and of parts: three linked columns, no real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gibbous.contract.runs import release
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Tables

SIZES = (2, 3, 2)
SCHEMA = Schema(
    tuple(Column(f"x{j}", "nominal", levels=tuple(range(size))) for j, size in enumerate(SIZES))
)
MIXED = Schema(
    (
        Column("sex", "binary", levels=("f", "m")),
        Column("height", "numeric", edges=(100.0, 150.0, 170.0, 220.0), decimals=1),
        Column("weight", "numeric", edges=(20.0, 60.0, 150.0), integer=True, missing=True),
    )
)


def linked(rows: int, seed: int = 1) -> np.ndarray:
    """Codes (rows, 3): x1 leans on x0, x2 on x1."""
    rng = np.random.default_rng(seed)
    x0 = rng.integers(0, 2, rows)
    x1 = np.where(rng.random(rows) < 0.7, x0, rng.integers(0, 3, rows))
    x2 = np.where(rng.random(rows) < 0.7, x1 > 0, rng.integers(0, 2, rows))
    return np.stack([x0, x1, x2], axis=1).astype(np.int64)


def frame(rows: int, seed: int = 1) -> pl.DataFrame:
    """The same as values."""
    values = linked(rows, seed)
    return pl.DataFrame({f"x{j}": values[:, j] for j in range(3)})


def people(rows: int, seed: int = 2) -> pl.DataFrame:
    """Sex, height and weight, of which every tenth is missing; weight follows height."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, rows)
    height = np.round(rng.normal(160 + 12 * sex, 7).clip(100, 220), 1)
    weight = np.rint(height - 100 + rng.normal(0, 8, rows)).clip(20, 150)
    return pl.DataFrame(
        {
            "sex": np.where(sex == 1, "m", "f"),
            "height": height,
            "weight": [None if i % 10 == 0 else int(w) for i, w in enumerate(weight)],
        }
    )


def tables(mechanism: Any, rows: int = 800, sets: int = 1, schema: Schema = SCHEMA) -> Tables:
    """What a mechanism releases of the linked table."""
    found = release(mechanism, schema, linked(rows), None, sets=sets)
    assert isinstance(found, Tables)
    return found
