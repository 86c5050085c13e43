"""Constructed tables, and a run of the mechanism that keeps its curator's books."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from gibbous.contract.cases import secret
from gibbous.core.claim import Kind, Relation
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.tables import Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.curator import Curator


def schema_of(*sizes: int, max_rows: int = 1) -> Schema:
    """Nominal columns of the given sizes."""
    schema = Schema(
        tuple(
            Column(f"c{j}", "nominal", levels=tuple(f"v{v}" for v in range(size)))
            for j, size in enumerate(sizes)
        )
    )
    return replace(schema, unit=Unit("person", "who", max_rows)) if max_rows > 1 else schema


def chain_rows(sizes: tuple[int, ...], rows: int, seed: int = 0) -> np.ndarray:
    """Rows in which each column follows the one before it four times out of five."""
    rng = np.random.default_rng(seed)
    values = np.empty((rows, len(sizes)), dtype=np.int64)
    values[:, 0] = rng.integers(0, sizes[0], rows)
    for j in range(1, len(sizes)):
        keep = rng.random(rows) < 0.8
        values[:, j] = np.where(keep, values[:, j - 1] % sizes[j], rng.integers(0, sizes[j], rows))
    return values


def ran(
    method: AdaptiveGibbs, schema: Schema, values: np.ndarray, relation: Relation = "add_remove"
) -> tuple[Tables, Curator]:
    """A run, and the curator that was asked."""
    curator = Curator(
        LocalEngine.from_codes(secret(schema, values)),
        method.plan(schema, None).total,
        schema,
        relation=relation,
    )
    try:
        return method.run(curator, None), curator
    finally:
        curator.close()


def rounds_of(*sizes: int) -> int:
    """Cells of a table at most, by which the table of all columns is too large to be bought at once."""
    return math.prod(sizes) - 1


def paid(curator: Curator, kind: Kind = "gdp") -> Fraction:
    """Everything on the curator's books: squares of mu, or epsilons."""
    assert all(claim.kind == kind for claim in curator.spent)
    return sum((claim.price for claim in curator.spent), Fraction(0))
