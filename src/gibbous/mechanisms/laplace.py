"""Laplace sanitizer: integer noise on every cell of the full cross table, once."""

from __future__ import annotations

from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.method_card import About
from gibbous.core.params import mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _cross, _plans
from gibbous.mechanisms._budget import budget_of
from gibbous.mechanisms.limits import budget
from gibbous.structure.contexts import joint


@mechanism
class Laplace:
    """Release the full cross table with two-sided geometric noise in every cell; rows are free.

    A numeric or date column takes part with its public bins, a missing value with a code of its own;
    rows are uniform within their bin.

    Guarantee:
        Pure epsilon-DP for the table, add/remove or replace one. Claimed by the paper: epsilon with
        sensitivity 1 and exactly n rows published, which mixes two relations. Proven here:
        sensitivity 1 (add/remove) or 2 (replace one) (docs/proofs/laplace.md). Audited: contract.
    Source:
        [bowen2016, s3.1.1]; integer noise: Ghosh, Roughgarden and Sundararajan (2009).
    """

    about: ClassVar[About] = About(
        name="laplace",
        title="Laplace sanitizer",
        paper="bowen2016, s3.1.1",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="epsilon, with sensitivity 1 and n rows published",
        proven="epsilon for the table; scale 1/epsilon (add/remove) or 2/epsilon (replace one)",
        audited="noisy cells of the running code; half the noise and leaked zeros are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    fit: _cross.Fit = param("clip", help=_cross.FIT_HELP)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data.

        Raises:
            ResourceLimit: the cross table has too many cells; the figure is named.
        """
        _cross.check_cells("laplace", schema)
        whole = budget_of(self, schema)
        info = whole.noise(whole.whole).info()
        detail = f"geometric noise, scale {info.scale:.6g} counts"
        return _plans.table_plan(
            self,
            rows,
            sets,
            contexts=(joint(schema),),
            spends=(whole.spend("the full cross table", whole.whole, detail),),
            published=f"epsilon = {self.epsilon:g}",
            outlook=_cross.expected_errors(schema, info, rows),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: count the cross table once and add noise once."""
        schema = curator.schema
        whole = budget_of(self, schema)
        items = curator.noisy_counts((joint(schema),), whole.noise(whole.whole))
        return Tables(schema, items, Recipe("ancestral", (0,), fit=self.fit))
