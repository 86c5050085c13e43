"""Noise on every pair of a flow table, without listing the pairs that nobody travels."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.errors import ResourceLimit
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import mechanism, param, positive
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms._budget import budget_of
from gibbous.mechanisms.limits import budget
from gibbous.privacy.noise import geometric_for
from gibbous.sampling.flows.grid import MOST, WholeGrid, survival, threshold_for
from gibbous.structure.contexts import joint


@mechanism
class FlowsLaplace:
    """Release the full cross table with geometric noise in every cell, small cells dropped; rows free.

    Guarantee:
        Pure epsilon-DP for the table, add/remove or replace one; no delta, no assumption on which
        columns are public. Cells without records are simulated by the law that noising them all
        would have (docs/proofs/flows_laplace.md). Audited: contract.
    Source:
        Geometric noise: Ghosh, Roughgarden and Sundararajan (2009); sparse simulation: Cormode,
        Procopiuc, Srivastava and Tran (2012).
    """

    about: ClassVar[About] = About(
        name="flows_laplace",
        title="Noise on a whole sparse grid",
        paper="onthemap, s2 (the older definition)",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="epsilon with noise in every cell; the paper thinks it unfit for sparse data",
        proven="epsilon for the table without listing its cells; both relations",
        audited="surviving cells of the running code; half the noise and leaked cells are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    false_cells: float = param(
        1000.0, positive, unit="cells", help="Empty cells that survive, about; sets the threshold."
    )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data.

        Raises:
            ResourceLimit: more than 2^40 cells.
        """
        if schema.cells > MOST:
            raise ResourceLimit(
                "GRID",
                f"The full cross table of {len(schema)} columns has {schema.cells:.4g} cells.",
                "flows_laplace simulates empty cells on at most 2^40.",
                "Use coarser or fewer columns, or sba.",
            )
        noise, whole = self._noise(schema), budget_of(self, schema)
        info, empty = noise.info(), float(survival(noise.base.scale, noise.threshold))
        lifted = schema.cells * empty
        warnings: tuple[str, ...] = ()
        if rows is None and lifted >= 1:
            warnings = (
                (
                    f"About {lifted:.3g} empty cells survive, and their noise counts as rows: give "
                    "the number of rows, or fewer false_cells."
                ),
            )
        detail = (
            f"geometric noise, scale {info.scale:.6g} counts; cells up to {info.threshold} dropped"
        )
        errors = ("cells that noise alone lifts above the threshold", lifted)
        return _plans.table_plan(
            self,
            rows,
            sets,
            contexts=(joint(schema, "seen"),),
            spends=(whole.spend("the full cross table, every cell", whole.whole, detail),),
            published="no figure: the paper calls this definition too strict for sparse tables",
            outlook=((*_plans.noise_facts(info), errors), warnings),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: count the cells that occur once, add noise to all cells once."""
        schema = curator.schema
        items = curator.noisy_counts((joint(schema, "seen"),), self._noise(schema))
        return Tables(schema, items, Recipe("ancestral", (0,)))

    def _noise(self, schema: Schema) -> WholeGrid:
        base = geometric_for(exact(self.epsilon), 1, self.relation, _plans.most_rows(schema))
        context = joint(schema, "seen")
        threshold = threshold_for(context.cells, Fraction(base.scale), self.false_cells)
        return WholeGrid(base, threshold, context.keys, context.levels)
