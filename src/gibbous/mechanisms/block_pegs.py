"""Block PeGS with reset: a whole block of rows for the price of one, each key used at most once."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import at_least, check, mechanism, param
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.mechanisms._chosen_contexts import Contexts
from gibbous.mechanisms.limits import budget
from gibbous.perturb.add import LARGEST, Add
from gibbous.privacy.calibrate.gibbs import block_alpha
from gibbous.sampling.gibbs_rows import ResetBlocks
from gibbous.structure.contexts import Choice, tidy
from gibbous.structure.public_prior import Prior, ratios_of, tidy_prior


@mechanism
class BlockPegs:
    """Draw rows in chains of `block`; a conditional is uniform from its first visit to the block's end.

    Guarantee:
        Pure epsilon-DP for each block, add/remove or replace one; a file of N rows costs
        ceil(N / block) epsilon. Claimed by the paper: epsilon per block, with the reset after each
        row and the alpha of one row. Proven here: the same under add/remove with the reset at the
        visit, and a larger alpha under replace one (docs/proofs/block.md).
        Audited: contract, with the reset left out as saboteur.
    Source:
        [park2014, s3.4].
    """

    about: ClassVar[About] = About(
        name="block_pegs",
        title="Block PeGS with reset",
        paper="park2014, s3.4",
        unit="block",
        kind="pure",
        releases="rows",
        claimed="epsilon per block of any length",
        proven="epsilon per block with the reset at the visit; ceil(N / block) blocks a file",
        audited="rows of the running code against the total of the file; reset left out is caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="Cost of one block of rows.")
    block: int = param(10, at_least(1), unit="rows", help="Rows a block.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    parents: int = param(2, at_least(0), unit="columns", help="Context columns a column.")
    sweeps: int = param(1, at_least(1), help="Passes a row; they use up keys, not epsilon.")
    contexts: Choice = param(
        (), help="Public columns by name; ordered, lsh or minhash; empty for the ring."
    )

    prior: Prior = param(
        (), help="Public counts of a column's levels; virtual records are in proportion."
    )
    choice: float | None = param(
        None, budget, unit="nats", help="Cost of chosen context columns, once; None: public ones."
    )
    seed_budget: float | None = param(
        None, budget, unit="nats", help="Cost of margins to draw seed rows by; None: uniform ones."
    )

    def __post_init__(self) -> None:
        tidy(self)
        tidy_prior(self)
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon times the number of blocks."""
        blocks = -(-_plans.paid_rows(self, rows, sets) // self.block)
        alpha = float(self._add(schema).alpha)
        chosen = Contexts.of(self, schema, alpha)
        contexts = chosen.largest()
        ratios_of(schema, self.prior)
        fewest = min(c.keys for c in contexts if c.levels == max(c.levels for c in contexts))
        warnings: tuple[str, ...] = ()
        if self.block * self.sweeps > fewest:
            warnings = (
                (
                    f"A block makes {self.block * self.sweeps} visits to a table of {fewest} keys: "
                    "most of its draws are uniform. Use shorter blocks or more context columns."
                ),
            )
        least = "alpha of the level with the fewest" if self.prior else "alpha"
        detail = (
            f"virtual records added to each level: {least} = {alpha:.6g}; "
            "a key is uniform after its first visit"
        )
        claim = replace(_plans.total(self), source="docs/proofs/block.md")
        plan = _plans.row_plan(
            self,
            rows,
            sets,
            spend=Spend(f"{blocks} blocks of {self.block} rows", claim, detail),
            units=blocks,
            contexts=contexts,
            published=f"epsilon = {self.epsilon:g} per block, read as the guarantee of the file",
            outlook=((("alpha, virtual records a level", alpha),), warnings),
        )
        return chosen.added_to(plan)

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: draw rows * sets rows, block after block."""
        add = self._add(curator.schema)
        start = Contexts.of(self, curator.schema, float(add.alpha))
        contexts, seeds = start.chosen(curator), start.pool(curator)
        own = tuple((j, replace(add, ratios=r)) for j, r in ratios_of(curator.schema, self.prior))
        draw = ResetBlocks(add, self.block, self.sweeps, own, seeds)
        return curator.draw(contexts, draw, _plans.paid_rows(self, rows, sets))

    def _add(self, schema: Schema) -> Add:
        """The least alpha under which all tables together cost epsilon a block."""
        sizes = [size for size in schema.sizes if size > 1] or [2]
        most = _plans.most_rows(schema)
        budget = min(exact(self.epsilon), LARGEST * len(sizes) * most)
        return Add(block_alpha(budget, sizes, self.relation, most))
