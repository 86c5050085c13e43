"""Counts (secret) and Tables (public): the same shapes on the two sides of the noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NoReturn

import numpy as np

from gibbous.core.context import Context
from gibbous.core.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dense:
    """Every cell: values int64 (keys, levels)."""

    values: np.ndarray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sparse:
    """Some cells, sorted by (key, level), unique; all others are absent.

    Attributes:
        keys, levels: uint64 (cells,).
        values: int64 (cells,).
    """

    keys: np.ndarray
    levels: np.ndarray
    values: np.ndarray


Cells = Dense | Sparse


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counts:
    """n[key, level] of the confidential records. Secret: cannot be printed, pickled, logged or saved."""

    context: Context
    cells: Cells

    def __repr__(self) -> str:
        return "<Counts, secret>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "<Counts, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("counts of confidential records are never pickled")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("counts of confidential records are never pickled")


@dataclass(frozen=True, slots=True)
class NoiseInfo:
    """The noise that is in a table, as published with it.

    Attributes:
        law: "geometric" (two-sided, P(g) proportional to exp(-|g|/scale)) or "gaussian" (discrete).
        scale: b, or sigma; in counts.
        threshold: cells are kept iff noisy > threshold; None when every cell is kept.
    """

    law: Literal["geometric", "gaussian"]
    scale: float
    threshold: int | None = None

    @property
    def variance(self) -> float:
        """Variance of one cell's noise, in counts squared."""
        if self.law == "gaussian":
            return self.scale**2
        q = float(np.exp(-1.0 / self.scale))
        return 2 * q / (1 - q) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One noisy table. Public.

    Attributes:
        context: what was counted.
        cells: noisy counts, possibly negative; as released, before any post-processing.
        noise: what was added.
    """

    context: Context
    cells: Cells
    noise: NoiseInfo


Fallback = Literal["prefix", "nearest", "reject"]
Fit = Literal["clip", "rake"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How rows are drawn from public tables: post-processing, part of the release, no cost.

    Attributes:
        draw: "ancestral" (each table's targets given columns drawn before) or "gibbs".
        order: positions in `Tables.items` in the order they are drawn; for gibbs one table a column,
            and this is the scan order.
        sweeps: Gibbs passes a row.
        kappa: strength, in counts, with which a key's own noisy counts are pulled to the noisy
            margin of its column; > 0 keeps the chain irreducible. 0 for none.
        fallback: what happens at a key the noisy table does not have: "prefix" backs off to the
            margin over the last parents, then to the column's margin; "nearest" takes the key with
            the fewest parents changed (Hamming) among those the noisy table has; "reject" keeps the
            previous value (sbhg alg. 3, on the noisy table).
        floor: noisy counts at or below it are read as 0.
        fit: "clip" reads negative counts as 0; "rake" first fits the dense tables together: each to
            the nearest non-negative table of the noisy total, then to the noisy 1-way margins
            (structure.reconcile).
    """

    draw: Literal["ancestral", "gibbs"]
    order: tuple[int, ...]
    sweeps: int = 1
    kappa: float = 0.0
    fallback: Fallback = "prefix"
    floor: int = 0
    fit: Fit = "clip"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tables:
    """Everything a method releases under unit `artifact`: rows are free after it.

    Attributes:
        schema: public.
        items: the tables that rows are drawn from, in the order of the method.
        recipe: how.
        extra: further published tables (for example 1-way margins bought for structure).
    """

    schema: Schema
    items: tuple[Table, ...]
    recipe: Recipe
    extra: tuple[Table, ...] = field(default=())

    def __repr__(self) -> str:
        more = f" and {len(self.extra)} more" if self.extra else ""
        return f"<Tables: {len(self.items)} noisy tables to draw from{more}; {len(self.schema)} columns>"

    def noisy_rows(self) -> int:
        """Estimate of the number of records: inverse-variance mean of the dense tables' totals, >= 0."""
        totals, weights = [], []
        for table in self.items + self.extra:
            values = table.cells.values
            totals.append(float(values.sum()))
            # A thresholded table loses small cells: it is used only when nothing else is there.
            lost = 1e-6 if isinstance(table.cells, Sparse) else 1.0
            weights.append(lost / (max(values.size, 1) * max(table.noise.variance, 1e-9)))
        if not totals:
            return 0
        return max(0, round(float(np.average(totals, weights=weights))))
