"""Noisy tables made elsewhere in, the model and the rows of adaptive_gibbs out. No record is read."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.method_card import About
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, LogLinear, Recipe, Table, Tables
from gibbous.encode.noisy_tables import NoisyTables
from gibbous.mechanisms._adaptive_model import Known, begun, bought, concluded, finished, followed
from gibbous.sampling.loglinear.laws import outer
from gibbous.sampling.rule_zeros import with_zeros
from gibbous.structure.cliques import Clique, Limits
from gibbous.structure.smoothing import Components, added


@dataclass(frozen=True, slots=True)
class GivenTables:
    """Fit the model of adaptive_gibbs to noisy tables that somebody else made, and draw rows from it.

    Guarantee:
        What the maker of the tables states, for the tables and all rows together: rows are
        post-processing of them. Nothing is proven or charged here.
    """

    about: ClassVar[About] = About(
        name="given_tables",
        title="Noisy tables made elsewhere",
        paper="this project",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="what the maker of the tables states",
        proven="nothing of the tables; rows are post-processing of them, at no further price",
        audited="the price that is stated against the noise that is stated; no more can be, without records",
    )

    given: NoisyTables
    sweeps: int = 10

    @property
    def relation(self) -> Relation:
        """As stated."""
        return self.given.claim.relation

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """What is stated; there is no cost here."""
        given = self.given
        return Plan(
            self.about.name,
            {"maker": given.maker, "digest": given.digest, "sweeps": self.sweeps},
            rows,
            sets,
            claim=given.claim,
            total=given.claim,
            published=f"stated by {given.maker}: {given.claim.amount()}",
            cells=sum(table.context.cells for table in given.tables),
            memory_bytes=64 * sum(table.context.cells for table in given.tables),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Fit the model; the curator has no records and is asked nothing."""
        recipe = Recipe("loglinear", (), sweeps=self.sweeps)
        model = _model(self.given, curator.schema)
        return Tables(curator.schema, self.given.tables, recipe, model=model)


@functools.lru_cache(maxsize=1)  # a run rehearses its method before
def _model(given: NoisyTables, schema: Schema) -> LogLinear:
    drawn = with_zeros(schema)
    known = begun(bought(Known(drawn, drawn), given.tables), Limits())
    known = _measured(known, given.tables)
    return finished(concluded(known) if known.references else known)


def _measured(known: Known, tables: Sequence[Table]) -> Known:
    """With the cliques of the tables; nothing but independent columns is known to compare them with."""
    cliques = dict.fromkeys(table.context.columns for table in tables)
    if any(known.model.merged):
        entries = [_in_groups(known, table) for table in tables]
        known = followed(replace(known, components=added(Components(), entries)))
    references: dict[Clique, tuple[np.ndarray, ...]] = {}
    for clique in cliques:
        if len(clique) > 1:
            apart = known.rows * outer([known.shares[j] for j in clique])
            references[clique] = (apart, apart)
    return replace(known, references=references)


def _in_groups(known: Known, table: Table) -> tuple[tuple[int, ...], np.ndarray, float]:
    """Columns, counts and variance of a cell, with merged levels added up."""
    assert isinstance(table.cells, Dense)
    context, variance = table.context, max(table.noise.variance, 1e-6)
    values = table.cells.values.reshape(context.parent_sizes + context.target_sizes).astype(float)
    for axis, j in enumerate(context.columns):
        merged = known.model.merged[j]
        if merged is not None:  # noise adds up, too: the mean over groups
            levels = values.shape[axis]
            summed = np.zeros((int(merged.groups.max()) + 1, *np.delete(values.shape, axis)))
            np.add.at(summed, merged.groups, np.moveaxis(values, axis, 0))
            values = np.moveaxis(summed, 0, axis)
            variance *= levels / values.shape[axis]
    return context.columns, values, variance
