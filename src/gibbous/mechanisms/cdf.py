"""Distribution functions by the exponential mechanism: one of a public grid for each column."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _drawn, _plans
from gibbous.mechanisms.limits import budget
from gibbous.privacy.noise import geometric_for
from gibbous.sampling.cdf_rows import CdfRows
from gibbous.structure.cdf_grid import MOST_GROUPS, CdfGrid, cdf_grid
from gibbous.structure.contexts import margins

COUNT = Fraction(1, 20)  # of the budget: a noisy number of records says how fine the grids are


@mechanism
class Cdf:
    """Draw a distribution function for each column from a public grid; draw columns apart.

    P is proportional to exp(-epsilon_j d / 2), d being the Kolmogorov-Smirnov distance in counts,
    rounded up, over all non-decreasing functions of the grid. How fine it is follows from a noisy
    number of records. The budget is divided evenly by the columns. No relation between them is kept.

    Guarantee:
        Pure epsilon-DP for all rows of all sets, whatever their number; add/remove or replace one.
        Claimed by the paper: epsilon over all candidate functions, "not a viable choice in
        practice". Proven here: epsilon over all functions of a public grid (docs/proofs/cdf.md).
        Audited: contract.
    Source:
        [bowen2016, eq. 7]; [Wasserman, Zhou 2010]; [McSherry, Talwar 2007].
    """

    about: ClassVar[About] = About(
        name="cdf",
        title="Distribution functions by the exponential mechanism",
        paper="bowen2016, eq. 7",
        unit="dataset",
        kind="pure",
        releases="rows",
        claimed="epsilon over all candidate functions; said to be unusable in practice",
        proven="epsilon over all functions of a public grid, columns apart; rows are free",
        audited="rows of the running code; every law of small grids against brute force",
        shared=True,
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget, over all columns.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    groups: int = param(
        MOST_GROUPS,
        at_least(2),
        unit="groups",
        help="Most groups of codes of a function, up to 64.",
    )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon, whatever the number of rows.

        Raises:
            ParameterError: rows is None or 0.
        """
        total = _drawn.drawn_rows(self, rows, sets)
        grids = self._grids(schema, rows or 0)
        each = self._each(schema) / _plans.most_rows(schema)
        most = max((grid.log_functions for grid in grids), default=0.0)
        errors = (
            ("groups of a column, with as many records as rows", max(g.groups for g in grids)),
            ("error of steps, share", max((0.5 / g.steps for g in grids), default=0.0)),
            # exp(-epsilon t / 2) times the number of functions bounds the chance of a loss of t.
            (
                "distance beyond the nearest function's, counts, at most, in 19 of 20 runs",
                1 + 2 * (most + math.log(20)) / float(each),
            ),
        )
        return _drawn.file_plan(
            self,
            schema,
            rows,
            sets,
            what=f"distribution functions of {len(grids)} columns, {total} rows",
            detail=f"epsilon = {float(each):.6g} a column, and 5 % for a noisy number of records",
            outlook=(errors, ("Columns are drawn apart: no relation between them is kept.",)),
            contexts=margins(schema),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: a noisy number of records, then one draw of functions and rows."""
        schema, total = curator.schema, _drawn.drawn_rows(self, rows, sets)
        contexts = margins(schema)
        narrowest = min(range(len(schema)), key=lambda j: schema.sizes[j])
        noise = geometric_for(
            exact(self.epsilon) * COUNT, 1, self.relation, _plans.most_rows(schema)
        )
        table = curator.noisy_counts((contexts[narrowest],), noise)
        records = Tables(schema, table, Recipe("ancestral", ())).noisy_rows()
        grids = tuple(self._grids(schema, records))
        return curator.draw(contexts, CdfRows(grids, self._each(schema)), total)

    def _grids(self, schema: Schema, records: int) -> list[CdfGrid]:
        signal = float(self._each(schema)) * records / _plans.most_rows(schema)
        return [cdf_grid(size, signal, self.groups) for size in schema.sizes]

    def _each(self, schema: Schema) -> Fraction:
        return exact(self.epsilon) * (1 - COUNT) / _plans.redrawn(schema)
