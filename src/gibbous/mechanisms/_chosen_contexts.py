"""Contexts of draws that cost: public ones, or context columns that are picked and paid for first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from gibbous.core.claim import Relation, pure
from gibbous.core.context import Context
from gibbous.core.errors import ParameterError
from gibbous.core.exact import down, exact
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.privacy.noise import Geometric, geometric_for
from gibbous.structure.choice import Caution, Margins, choose_network, network_picks
from gibbous.structure.contexts import conditional, given_or_ring, hashed, margins
from gibbous.structure.reconcile import fitted_margins

PROOF = "docs/proofs/noisy_pegs.md"


@dataclass(frozen=True, slots=True)
class Contexts:
    """Which contexts a mechanism draws from: what `plan` prints and `run` spends.

    Half of `choice` buys 1-way tables with geometric noise, half all picks of noisy_pegs' network.

    Guarantee:
        choice-DP, whatever is picked; docs/proofs/noisy_pegs.md, steps 1 and 2 under pure composition.

    Attributes:
        public: the contexts where nothing is chosen; () otherwise.
        choice: epsilon of the choice, beside what the rows cost; 0 where nothing is chosen.
        alpha: virtual records that a cell of the chosen tables gets.
    """

    schema: Schema
    relation: Relation
    parents: int
    public: tuple[Context, ...]
    choice: Fraction
    alpha: float

    @classmethod
    def of(cls, mechanism: Any, schema: Schema, alpha: float) -> Contexts:
        """The contexts of a mechanism with `choice`, `contexts` and `parents`.

        Raises:
            ParameterError: contexts are public and are to be chosen.
        """
        if mechanism.choice is not None and mechanism.contexts:
            raise ParameterError(
                "CHOICE",
                f"Both contexts and choice of {type(mechanism).__name__} were given.",
                "Contexts are public and free, or chosen from the records and paid.",
                "Leave one of them out.",
            )
        free = sum(size > 1 for size in schema.sizes)
        chosen = mechanism.choice is not None and network_picks(free, mechanism.parents) > 0
        return cls(
            schema,
            mechanism.relation,
            mechanism.parents,
            () if chosen else given_or_ring(schema, mechanism.contexts, mechanism.parents),
            exact(mechanism.choice) if chosen else Fraction(0),
            alpha,
        )

    def largest(self) -> tuple[Context, ...]:
        """What is counted at most, from the schema alone."""
        sizes = self.schema.sizes
        widest = sorted(range(len(sizes)), key=lambda c: -sizes[c])
        parents = [[c for c in widest if c != j][: self.parents] for j in range(len(sizes))]
        return self.public or hashed(self.schema, parents)

    def added_to(self, plan: Plan) -> Plan:
        """The plan of the draws, with what the choice costs before them."""
        if not self.choice:
            return plan
        half = pure(self.choice / 2, unit="dataset", relation=self.relation, source=PROOF)
        ones = f"geometric noise, scale {self._ones_noise().info().scale:.6g} counts"
        spends = (
            Spend(f"{len(self.schema)} one-way tables", half, ones),
            Spend(f"at most {self._picks} picks of context columns", half, "exponential mechanism"),
        )
        total = replace(plan.total.then(half).then(half), source=plan.total.source)
        return replace(plan, total=total, spends=(*spends, *plan.spends))

    def chosen(self, curator: CuratorLike) -> Sequence[Context]:
        """Spend: the contexts, in an order in which one pass redraws each column after its parents."""
        if not self.choice:
            return self.public
        schema = self.schema
        ones = curator.noisy_counts(margins(schema), self._ones_noise())
        rows = max(1.0, Tables(schema, ones, Recipe("ancestral", ())).noisy_rows())
        network = choose_network(
            curator,
            Margins(fitted_margins(schema.sizes, ones), rows),
            self.parents,
            epsilon=down(self.choice / 2 / self._picks),
            accounting="pure",
            caution=Caution(noise=self.alpha),
        )
        return [conditional(schema, j, network.parents[j]) for j in network.order]

    @property
    def _picks(self) -> int:
        return network_picks(sum(size > 1 for size in self.schema.sizes), self.parents)

    def _ones_noise(self) -> Geometric:
        most = _plans.most_rows(self.schema)
        return geometric_for(self.choice / 2, len(self.schema), self.relation, most)
