"""Perturbed Gibbs sampler: each row drawn from exact conditionals with virtual records added."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
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
from gibbous.perturb.add import Add
from gibbous.privacy.calibrate.gibbs import pegs_alpha_published, pegs_zcdp
from gibbous.privacy.calibrate.zcdp import epsilon_from_zcdp
from gibbous.sampling.gibbs_rows import GibbsRows
from gibbous.structure.contexts import Choice, tidy
from gibbous.structure.public_prior import Prior, ratios_of, tidy_prior

DELTA = Fraction(1, 10**6)


@mechanism
class Pegs:
    """Draw every row anew: a public uniform seed row, then `sweeps` passes over the columns.

    Guarantee:
        Pure epsilon-DP for each drawn row, add/remove or replace one; a file of N rows costs
        N epsilon. Claimed by the paper: epsilon per row, for any number of passes.
        Proven here: the same for one pass, and with alpha recomputed for more (docs/proofs/pegs.md).
        Audited: contract, with draws from unperturbed counts as saboteur.
    Source:
        [park2014, s3, eq. 6, and s3.3 for `prior`]. Context columns are public: ranking them on the
        records is refused.
    """

    about: ClassVar[About] = About(
        name="pegs",
        title="Perturbed Gibbs sampler",
        paper="park2014, s3",
        unit="row",
        kind="pure",
        releases="rows",
        claimed="epsilon per row, whatever the number of passes",
        proven="epsilon per row and pass-adjusted alpha; N rows cost N epsilon; both relations",
        audited="rows of the running code against the total of the file",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="Cost of one drawn row.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    parents: int = param(2, at_least(0), unit="columns", help="Context columns a column.")
    sweeps: int = param(1, at_least(1), help="Passes a row; each takes its share of epsilon.")
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
        """Cost before data: epsilon times rows times sets."""
        count, add = _plans.paid_rows(self, rows, sets), self._add(schema)
        alpha = float(add.alpha)
        errors = (
            ("alpha, virtual records a level", alpha),
            (
                "records that outweigh the prior in a key of the widest column",
                max(schema.sizes) * alpha,
            ),
            *(
                (
                    f"virtual records in a key of {schema.names[column]!r}",
                    alpha * sum(ratios) / min(ratios),
                )
                for column, ratios in ratios_of(schema, self.prior)
            ),
            composed(add, count * self._draws(schema), self.relation, _plans.most_rows(schema)),
        )
        what = f"{count} rows, each {self.sweeps} x {_plans.redrawn(schema)} draws"
        least = "alpha of the level with the fewest" if self.prior else "alpha"
        detail = f"virtual records added to each level: {least} = {alpha:.6g}"
        contexts = Contexts.of(self, schema, alpha)
        plan = _plans.row_plan(
            self,
            rows,
            sets,
            spend=Spend(what, _plans.total(self), detail),
            units=count,
            contexts=contexts.largest(),
            published=f"epsilon = {self.epsilon:g} per row, read as the guarantee of the file; "
            f"alpha = {pegs_alpha_published(self.epsilon, len(schema)):.6g}",
            outlook=(errors, ()),
        )
        return contexts.added_to(plan)

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: draw rows * sets rows with cryptographic words."""
        add = self._add(curator.schema)
        start = Contexts.of(self, curator.schema, float(add.alpha))
        contexts, seeds = start.chosen(curator), start.pool(curator)
        own = tuple((j, replace(add, ratios=r)) for j, r in ratios_of(curator.schema, self.prior))
        draw = GibbsRows(add, self.sweeps, own=own, seeds=seeds)
        return curator.draw(contexts, draw, _plans.paid_rows(self, rows, sets))

    def _draws(self, schema: Schema) -> int:
        """Draws a row."""
        return self.sweeps * _plans.redrawn(schema)

    def _add(self, schema: Schema) -> Add:
        """The perturbation under which a draw costs its share of epsilon."""
        return Add.within(exact(self.epsilon) / self._draws(schema), _plans.most_rows(schema))


def composed(add: Add, draws: int, relation: Relation, most: int, of: int = 1) -> tuple[str, float]:
    """What draws of a file cost together, as (name, value).

    Args:
        most: rows of a privacy unit.
        of: records that one record of the counts stands for.
    """
    epsilon = 0.0
    if add.effective is not None and draws:
        rho = pegs_zcdp(add.effective / of, draws, relation, most)
        epsilon = float(epsilon_from_zcdp(rho, DELTA))
    return "epsilon of the whole file at delta 1e-6, composed by zCDP", epsilon
