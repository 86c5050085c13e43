"""What draws that cost start from: contexts and seed rows, public ones or bought before the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

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
from gibbous.sampling.structural_zeros import Seeds
from gibbous.structure.choice import Caution, Margins, choose_network, network_picks
from gibbous.structure.contexts import conditional, given_or_ring, hashed, margins
from gibbous.structure.reconcile import fitted_margins

MOST = 1 << 40  # records of a level that weigh in a seed row: sums stay within 63 bits


@dataclass(frozen=True, slots=True)
class Contexts:
    """Which contexts and seed rows a mechanism draws from: what `plan` prints and `run` spends.

    Half of `choice` buys 1-way tables with geometric noise, half all picks of noisy_pegs' network.
    `seed_budget` buys 1-way tables: the pool of seed rows is all that they make likely, column by column.

    Guarantee:
        (choice + seed_budget)-DP, whatever is bought; docs/proofs/pegs.md.

    Attributes:
        public: the contexts where nothing is chosen; () otherwise.
        choice, seeds: epsilon of each, beside what the rows cost; 0 where nothing is bought.
        alpha: virtual records that a cell of the chosen tables gets.
    """

    schema: Schema
    relation: Relation
    parents: int
    public: tuple[Context, ...]
    choice: Fraction
    seeds: Fraction
    alpha: float

    @classmethod
    def of(cls, mechanism: Any, schema: Schema, alpha: float) -> Contexts:
        """What a mechanism with `choice`, `seed_budget`, `contexts` and `parents` starts from.

        Raises:
            ParameterError: contexts are public and are to be chosen; or seed rows would be paid for in
                vain, or would meet structural zeros.
        """
        if mechanism.choice is not None and mechanism.contexts:
            raise ParameterError(
                "CHOICE",
                f"Both contexts and choice of {type(mechanism).__name__} were given.",
                "Contexts are public and free, or chosen from the records and paid.",
                "Leave one of them out.",
            )
        if mechanism.seed_budget is not None and (
            mechanism.choice is not None or schema.impossible
        ):
            raise ParameterError(
                "SEEDS",
                f"seed_budget of {type(mechanism).__name__} was given with "
                f"{'[[impossible]] in the schema' if schema.impossible else 'choice'}.",
                "Chosen contexts leave no trace of a seed row, and seed rows have to be possible.",
                "Leave seed_budget out: seed rows are then uniform, and free.",
            )
        free = sum(size > 1 for size in schema.sizes)
        chosen = mechanism.choice is not None and network_picks(free, mechanism.parents) > 0
        return cls(
            schema,
            mechanism.relation,
            mechanism.parents,
            () if chosen else given_or_ring(schema, mechanism.contexts, mechanism.parents),
            exact(mechanism.choice) if chosen else Fraction(0),
            exact(mechanism.seed_budget or 0),
            alpha,
        )

    def largest(self) -> tuple[Context, ...]:
        """What is counted at most, from the schema alone."""
        sizes = self.schema.sizes
        widest = sorted(range(len(sizes)), key=lambda c: -sizes[c])
        parents = [[c for c in widest if c != j][: self.parents] for j in range(len(sizes))]
        return self.public or hashed(self.schema, parents)

    def added_to(self, plan: Plan) -> Plan:
        """The plan of the draws, with what is bought before them."""
        spends, total, tables = [], plan.total, f"{len(self.schema)} one-way tables"
        for epsilon, what in (
            (self.choice / 2, tables),
            (self.choice / 2, f"at most {self._picks} picks of context columns"),
            (self.seeds, f"{tables}, for seed rows"),
        ):
            if not epsilon:
                continue
            how = "exponential mechanism"
            if what.startswith(tables):
                how = f"geometric noise, scale {self._noise(epsilon).info().scale:.6g} counts"
            claim = pure(epsilon, unit="dataset", relation=self.relation, source=total.source)
            spends.append(Spend(what, claim, how))
            total = total.then(claim)
        total = replace(total, source=plan.total.source)
        return replace(plan, total=total, spends=(*spends, *plan.spends))

    def chosen(self, curator: CuratorLike) -> Sequence[Context]:
        """Spend: the contexts, in an order in which one pass redraws each column after its parents."""
        if not self.choice:
            return self.public
        schema = self.schema
        ones = curator.noisy_counts(margins(schema), self._noise(self.choice / 2))
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

    def pool(self, curator: CuratorLike) -> Seeds:
        """Spend: the weights that seed rows are drawn by; () for uniform ones."""
        if not self.seeds:
            return ()
        found = curator.noisy_counts(margins(self.schema), self._noise(self.seeds))
        counts = [np.clip(one.cells.values.ravel(), 0, MOST).tolist() for one in found]
        return tuple(map(tuple, counts))

    @property
    def _picks(self) -> int:
        return network_picks(sum(size > 1 for size in self.schema.sizes), self.parents)

    def _noise(self, epsilon: Fraction) -> Geometric:
        """Of all 1-way tables together."""
        most = _plans.most_rows(self.schema)
        return geometric_for(epsilon, len(self.schema), self.relation, most)
