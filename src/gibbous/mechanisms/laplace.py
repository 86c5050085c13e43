"""Laplace sanitizer: integer noise on every cell of the full cross table, once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gibbous.core.about import About
from gibbous.core.claim import Relation, pure
from gibbous.core.errors import ResourceLimit
from gibbous.core.exact import exact
from gibbous.core.keywords import answering_class
from gibbous.core.params import check, param
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms.limits import budget
from gibbous.privacy.noise import geometric_for
from gibbous.structure.contexts import joint

MAX_CELLS = 1 << 24  # at 5 to 9 microseconds of vetted noise a cell: two minutes


@answering_class
@dataclass(frozen=True, slots=True)
class Laplace:
    """Release the full cross table with two-sided geometric noise in every cell; rows are free.

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

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data.

        Raises:
            ResourceLimit: the cross table has too many cells; the figure is named.
        """
        if schema.cells > MAX_CELLS:
            raise ResourceLimit(
                "JOINT",
                f"The full cross table of {len(schema)} columns has {schema.cells:.4g} cells.",
                f"laplace adds noise to every one of at most {MAX_CELLS:,}.",
                "Use coarser or fewer columns, or noisy_pegs, which counts a few at a time.",
            )
        total = pure(exact(self.epsilon), relation=self.relation, source="docs/proofs/laplace.md")
        info = self._noise(schema).info()
        sd = math.sqrt(info.variance)
        ways = sorted(schema.sizes)[len(schema) // 2]
        errors, warnings = _plans.noise_errors(
            info,
            rows,
            one_way=sd * math.sqrt(schema.cells * ways),
            two_way=sd * math.sqrt(schema.cells) * ways,
        )
        detail = f"geometric noise, scale {info.scale:.6g} counts"
        return _plans.table_plan(
            self,
            schema,
            rows,
            sets,
            total=total,
            contexts=(joint(schema),),
            spends=(Spend("the full cross table", total, detail),),
            published=f"epsilon = {self.epsilon:g}",
            errors=errors,
            warnings=warnings,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: count the cross table once and add noise once."""
        schema = curator.schema
        items = curator.noisy_counts((joint(schema),), self._noise(schema))
        return Tables(schema, items, Recipe("ancestral", (0,)))

    def _noise(self, schema: Schema) -> Noise:
        return geometric_for(exact(self.epsilon), 1, self.relation, _plans.most_rows(schema))
