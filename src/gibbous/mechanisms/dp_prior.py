"""DP-prior synthesizer: rows from the posterior mean of the cross table, its prior set by the budget."""

from __future__ import annotations

from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _drawn, _plans
from gibbous.mechanisms.limits import budget
from gibbous.perturb.posterior import Posterior
from gibbous.privacy.calibrate.dirichlet import prior_alpha
from gibbous.sampling.urn_rows import PriorRows


@mechanism
class DpPrior:
    """Draw each row with P = (n + alpha) / (N + C alpha), the same probabilities for all rows.

    Guarantee:
        Pure epsilon-DP for all rows of all sets, add/remove or replace one, their number public.
        Claimed by the paper: epsilon with alpha = 1 / (e^(epsilon / n) - 1) for n binary rows.
        Proven here: the same for any table, with the rows that are drawn in place of n
        (docs/proofs/dp_prior.md). Audited: contract, with a tenth of alpha as saboteur.
    Source:
        [bowen2016, s3.1.2], after McClure and Reiter (2012).
    """

    about: ClassVar[About] = About(
        name="dp_prior",
        title="DP-prior synthesizer",
        paper="bowen2016, s3.1.2",
        unit="dataset",
        kind="pure",
        releases="rows",
        claimed="epsilon with alpha = 1 / (e^(epsilon / n) - 1), one binary column, one set",
        proven="epsilon = m ln(1 + 1 / alpha) for m rows in all, exactly attained; any table",
        audited="rows of the running code; alpha at a tenth is caught; exact law by enumeration",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget: all rows of all sets.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon, whatever the number of rows; alpha grows with it instead.

        Raises:
            ParameterError: rows is None or 0.
        """
        total = _drawn.drawn_rows(self, rows, sets)
        outlook = _drawn.prior_facts(self.posterior(schema, total // sets, sets), rows)
        return _drawn.file_plan(
            self,
            schema,
            rows,
            sets,
            what=f"{total} rows from the posterior mean",
            detail=f"alpha = {outlook[0][0][1]:.6g} virtual records a cell",
            outlook=outlook,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: draw rows * sets rows; sets are parts of one file, so no set costs extra."""
        schema, total = curator.schema, _drawn.drawn_rows(self, rows, sets)
        draw = PriorRows(self.posterior(schema, total // sets, sets))
        return curator.draw((_drawn.whole(schema),), draw, total)

    def posterior(self, schema: Schema, rows: int, sets: int) -> Posterior:
        """Virtual records beside those of the table, from public facts: the law of so many rows a set."""
        alpha = prior_alpha(exact(self.epsilon), rows * sets, _plans.most_rows(schema))
        return Posterior(alpha, schema.cells)
