"""Stability-based histogram: noise and a threshold on the cells that occur, so any cross table fits."""

from __future__ import annotations

import math
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import mechanism, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms.limits import budget
from gibbous.privacy.noise import stable_geometric_for
from gibbous.structure.contexts import joint


@mechanism
class Sba:
    """Release the cells of the cross table whose noisy count exceeds a threshold; rows are free.

    Guarantee:
        (epsilon, delta)-DP for the table, add/remove or replace one. Claimed by the paper: the same
        with a threshold that spends half of delta. Proven here: delta from the exact tail of the
        integer noise (docs/proofs/sba.md). Audited: contract, with the threshold forgotten as
        saboteur.
    Source:
        [sbhg, alg. 2]; Korolova et al. (2009).
    """

    about: ClassVar[About] = About(
        name="sba",
        title="Stability-based histogram",
        paper="sbhg, alg. 2",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="(epsilon, delta), replace one, threshold 1 + (2/epsilon) ln(1/delta)",
        proven="(epsilon, delta) with the exact tail of the integer noise; both relations",
        audited="surviving cells of the running code; a forgotten threshold is caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    delta: float = param(1e-6, probability, help="Keep it well under 1/records.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        info = self._noise(schema).info()
        warning = (
            f"Only combinations held by more than about {info.threshold} records survive: with many "
            "columns nearly all mass is lost. sbhg and noisy_pegs count a few columns at a time."
        )
        detail = (
            f"geometric noise, scale {info.scale:.6g} counts; threshold {info.threshold} counts"
        )
        published = 1 + 2 / self.epsilon * math.log(1 / self.delta)
        return _plans.table_plan(
            self,
            rows,
            sets,
            contexts=(joint(schema, "seen"),),
            spends=(Spend("the full cross table, cells that occur", _plans.total(self), detail),),
            published=f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, replace one, "
            f"threshold {published:.1f} counts",
            outlook=(_plans.noise_facts(info), (warning,)),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: count the cells that occur once, add noise once, keep what exceeds the threshold."""
        schema = curator.schema
        items = curator.noisy_counts((joint(schema, "seen"),), self._noise(schema))
        return Tables(schema, items, Recipe("ancestral", (0,)))

    def _noise(self, schema: Schema) -> Noise:
        return stable_geometric_for(
            exact(self.epsilon), exact(self.delta), 1, self.relation, _plans.most_rows(schema)
        )
