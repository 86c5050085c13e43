"""Counts (secret) and Tables (public): the same shapes on the two sides of the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from gibbous.core.context import Context
from gibbous.core.schema import Schema
from gibbous.core.secret import Secret

if TYPE_CHECKING:
    from gibbous.core.cell_model import CellModel


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
class Counts(Secret):
    """n[key, level] of the confidential records. Secret: cannot be printed, pickled, logged or saved."""

    context: Context
    cells: Cells

    def occupied(self) -> Sparse:
        """The cells that records are in; as secret as the counts."""
        cells = self.cells
        if isinstance(cells, Sparse):
            held = cells.values > 0
            return Sparse(cells.keys[held], cells.levels[held], cells.values[held])
        keys, levels = np.nonzero(cells.values > 0)
        return Sparse(keys, levels, cells.values[keys, levels])

    def wipe(self) -> None:
        """Set all to zero, in case that a score or a draw kept them."""
        cells = self.cells
        places = (cells.keys, cells.levels) if isinstance(cells, Sparse) else ()
        for array in (cells.values, *places):
            if array.flags.writeable:
                array.fill(0)


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
        rate = -1.0 / self.scale
        return 2 * math.exp(rate) / math.expm1(rate) ** 2  # 1 - exp(rate) is 0 from scale 2^53 on


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


@dataclass(frozen=True, slots=True, eq=False)
class KnownCounts:
    """Noisy counts of the codes of one column that were paid for before a method runs. Public.

    Attributes:
        values: float64 (levels,), in rows.
        variances: float64 (levels,), of the noise; inf where a code was not counted.
    """

    values: np.ndarray
    variances: np.ndarray


NONE_MORE: Mapping[int, KnownCounts] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Levels of one column that a model does not tell apart. Public.

    Attributes:
        groups: int64 (levels,): group of each level, 0..groups - 1, each used.
        shares: float64 (levels,): share of each level within its group; >= 0, each group sums to 1.
    """

    groups: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """A margin that the rows of a model are brought to. Public.

    Attributes:
        columns: positions, increasing.
        shares: float64, an axis a column; >= 0, sum 1.
        weight: of its squared error, in rows, beside those of other goals; > 0.
    """

    columns: tuple[int, ...]
    shares: np.ndarray
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LogLinear:
    """P(x) proportional to exp(sum over cliques c of theta_c[x_c]), and margins of its rows. Public.

    Attributes:
        sizes: number of codes of each column of the model: levels, or groups of a merged column.
        cliques: column positions, increasing within a clique.
        theta: one array a clique, float64, an axis a column; natural logarithms.
        goals: margins that fresh rows start from and are closed to (structural zeros hold first).
        merged: per column, how levels were merged; None where they were not; () for no column.
            Levels merged together are alike in every structural zero.
        blocks: pairs of columns that say nearly the same, and are redrawn together now and then:
            one by one, each would hold the other where it is. Changes speed of mixing, not the law.
        closed: number of rows that are closed to the goals together; rows are cut from such blocks.
        gap: how far the model is from the measured tables it was fitted to: mean total variation
            distance of their margins before rows are closed; None where nobody looked.
    """

    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    theta: tuple[np.ndarray, ...]
    goals: tuple[Goal, ...] = ()
    merged: tuple[Merged | None, ...] = ()
    blocks: tuple[tuple[int, int], ...] = ()
    closed: int = 4096
    gap: float | None = None

    def __post_init__(self) -> None:
        if len(self.cliques) != len(self.theta):
            raise ValueError("each clique has its theta")
        if self.merged and len(self.merged) != len(self.sizes):
            raise ValueError("merged has one entry a column")
        tables = [*zip(self.cliques, self.theta, strict=True)]
        for columns, table in tables + [(goal.columns, goal.shares) for goal in self.goals]:
            if not columns or list(columns) != sorted(set(columns)):
                raise ValueError("the columns of a clique increase")
            if table.shape != tuple(self.sizes[column] for column in columns):
                raise ValueError("a table has an axis a column, as long as its size")

    def __repr__(self) -> str:
        return f"<LogLinear of {len(self.sizes)} columns: {len(self.cliques)} cliques, {self.cells} cells>"

    @property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return sum(theta.size for theta in self.theta)


Fallback = Literal["prefix", "nearest", "reject"]
Fit = Literal["clip", "rake"]
Criterion = Literal["entropy", "max_probability"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How rows are drawn from public tables: post-processing, part of the release, no cost.

    Attributes:
        draw: "ancestral" (each table's targets given columns drawn before), "gibbs", "loglinear"
            (Gibbs from `Tables.model`; the tables are what the model was fitted to), or "cells"
            (a cell of `Tables.model`, then numbers within it).
        order: positions in `Tables.items` in the order they are drawn; for gibbs one table a column,
            and this is the scan order.
        sweeps: Gibbs passes a row.
        kappa: strength, in counts, with which a key's own noisy counts are pulled to the noisy
            margin of its column; > 0 keeps the chain irreducible. 0 for none.
        fallback: what happens at a key the noisy table does not have: "prefix" backs off to the
            margin over the last parents, then to the column's margin; "nearest" takes the key with
            the fewest parents changed (Hamming) among those the noisy table has, of several the one
            with the most noisy counts; "reject" keeps the previous value.
        floor: noisy counts at or below it are read as 0.
        fit: "clip" reads negative counts as 0; "rake" first fits the dense tables together: each to
            the nearest non-negative table of the noisy total, then to the noisy 1-way margins
            (structure.reconcile).
        diverse: (column, l) of each column whose drawn conditionals are l-diverse: mixed with the
            uniform law as far as needed. Such a column is the context of none, and l is above 1.
        criterion: of these: entropy of at least ln l, or no level likelier than 1/l.
    """

    draw: Literal["ancestral", "gibbs", "loglinear", "cells"]
    order: tuple[int, ...]
    sweeps: int = 1
    kappa: float = 0.0
    fallback: Fallback = "prefix"
    floor: int = 0
    fit: Fit = "clip"
    diverse: tuple[tuple[int, float], ...] = ()
    criterion: Criterion = "entropy"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tables:
    """Everything a method releases under unit `artifact`: rows are free after it.

    Attributes:
        schema: public.
        items: the tables that rows are drawn from, in the order of the method.
        recipe: how.
        extra: further published tables (for example 1-way margins bought for structure).
        model: what rows are drawn from where the recipe says "loglinear" or "cells"; made from the
            tables alone.
        copies: tables of sets 1, 2, ... where every set was noised for itself; set 0 is drawn from
            this object's own. () where one noise serves all sets.
        parts: tables of random parts of the records; rows are then drawn from the parts, and `items`,
            `extra` and `model` are empty.
        shares: public share of the rows that each part gives; () for the noisy totals of the parts.
    """

    schema: Schema
    items: tuple[Table, ...]
    recipe: Recipe
    extra: tuple[Table, ...] = field(default=())
    model: LogLinear | CellModel | None = None
    copies: tuple[Tables, ...] = ()
    parts: tuple[Tables, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.parts and (self.items or self.extra or self.model is not None):
            raise ValueError("rows are drawn from tables or from parts, not from both")
        if any(copy.copies for copy in self.copies):
            raise ValueError("a copy has no copies")
        if self.shares and len(self.shares) != len(self.parts):
            raise ValueError("each part has its share")

    def __repr__(self) -> str:
        if self.parts:
            return f"<Tables: {len(self.parts)} parts of the records; {len(self.schema)} columns>"
        more = f" and {len(self.extra)} more" if self.extra else ""
        sets = f", for each of {len(self.copies) + 1} sets" if self.copies else ""
        return (
            f"<Tables: {len(self.items)} noisy tables to draw from{more}{sets}; "
            f"{len(self.schema)} columns>"
        )

    def of_set(self, index: int) -> Tables:
        """The tables that one synthetic set is drawn from; a set beyond the last copy starts again."""
        if any(part.copies for part in self.parts):
            return replace(self, parts=tuple(part.of_set(index) for part in self.parts))
        if not self.copies:
            return self
        place = index % (len(self.copies) + 1)
        return self.copies[place - 1] if place else replace(self, copies=())

    @property
    def noisings(self) -> int:
        """How many sets were noised for themselves; 1 where one noise serves all sets."""
        return max([len(self.copies) + 1, *(part.noisings for part in self.parts)])

    def published(self) -> tuple[Table, ...]:
        """Every table that is published: items and extra, of all copies and parts."""
        tables = self.items + self.extra
        for member in self.parts + self.copies:
            tables += member.published()
        return tables

    def noisy_rows(self) -> int:
        """Estimate of the number of records, >= 0: the mean over tables, added up over parts.

        The mean is by inverse variance, over the totals of the dense tables of all copies.
        """
        return max(0, round(self._rows()[0]))

    def noisy_rows_error(self) -> float:
        """Standard deviation of `noisy_rows` by the noise alone, in records."""
        return float(max(self._rows()[1], 1e-300) ** -0.5)

    def _rows(self) -> tuple[float, float]:
        """The estimate, and the precision that it has by the noise of its tables."""
        totals, weights = [], []
        for table in self.items + self.extra:
            values = table.cells.values
            totals.append(float(values.sum()))
            # A thresholded table loses small cells: it is used only when nothing else is there.
            lost = 1e-6 if isinstance(table.cells, Sparse) else 1.0
            weights.append(lost / (max(values.size, 1) * max(table.noise.variance, 1e-9)))
        if self.parts:
            each = [part._rows() for part in self.parts]
            totals.append(sum(max(0.0, total) for total, _ in each))
            weights.append(1.0 / sum(1.0 / max(weight, 1e-300) for _, weight in each))
        for total, weight in (copy._rows() for copy in self.copies):
            totals.append(total)
            weights.append(weight)
        if not totals or not sum(weights):
            return 0.0, 0.0
        return float(np.average(totals, weights=weights)), sum(weights)
