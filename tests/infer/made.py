"""Small releases for the tests of inference: made records, every kind of table and of paid rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Recipe, Table, Tables

SCHEMA = gb.Schema(
    (
        Column("ill", "binary", levels=("no", "yes")),
        Column("sex", "binary", levels=("f", "m")),
        Column("age", "numeric", edges=tuple(range(0, 91, 10))),
        Column("region", "nominal", levels=("north", "south", "west", "sea"), missing=True),
    )
)
METHODS: dict[str, Any] = {
    "noisy_pegs": gb.NoisyPegs(epsilon=4, delta=1e-6),
    "sbhg": gb.Sbhg(epsilon=4, delta=1e-6),
    "laplace": gb.Laplace(epsilon=2),
    "loud": gb.Laplace(epsilon=0.1),  # much noise: six replicates show it
    "sba": gb.Sba(epsilon=4, delta=1e-6),
    "pegs": gb.Pegs(epsilon=1),
    "contingency": gb.Contingency(),
}


def records(rows: int = 1_500, seed: int = 1) -> pl.DataFrame:
    """Made records: illness follows sex and age; nobody lives in the sea."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, rows), rng.uniform(0, 90, rows)
    ill = rng.random(rows) < 1 / (1 + np.exp(2 - 0.8 * sex - 0.02 * age))
    region = np.array(["north", "south", "west", None])[rng.integers(0, 40, rows) % 4]
    return pl.DataFrame(
        {
            "ill": np.where(ill, "yes", "no"),
            "sex": np.where(sex == 1, "m", "f"),
            "age": age,
            "region": region.tolist(),
        }
    )


def release(method: str, sets: int = 3, out: Path | None = None, rows: int = 1_500) -> Any:
    """A release of the made records by one method, on a ledger of its own."""
    return gb.synthesize(
        records(rows),
        SCHEMA,
        METHODS[method],
        rows=rows,
        sets=sets,
        seed=7,
        out=out,
        ledger=gb.Ledger.ephemeral(),
        understand=True,
    )


def cross(counts: np.ndarray, scale: float, law: Any = "geometric") -> Tables:
    """A released full cross table of binary columns, with any counts."""
    columns = int(np.log2(counts.size))
    sizes = (2,) * columns
    schema = Schema(tuple(Column(f"c{j}", "binary", levels=("no", "yes")) for j in range(columns)))
    table = Table(
        Context(tuple(range(columns)), (), sizes, ()),
        Dense(counts.astype(np.int64).reshape(1, -1)),
        NoiseInfo(law, scale),
    )
    return Tables(schema, (table,), Recipe("ancestral", (0,)))


def share_of_first(codes: Codes) -> np.ndarray:
    """Share of `yes` in the first column, as an array of one estimate."""
    return np.array([codes.by_column[0].mean()])
