"""Multinomial-Dirichlet synthesizer: each set from its own draw of Dirichlet probabilities."""

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
from gibbous.privacy.calibrate.dirichlet import dirichlet_alpha
from gibbous.sampling.urn_rows import UrnRows


@mechanism
class Dirichlet:
    """Draw cell probabilities from Dirichlet(n + alpha), then m rows with them; anew for each set.

    With one column of two levels it is the beta-binomial synthesizer.

    Guarantee:
        Pure epsilon-DP for all rows of all sets, add/remove or replace one, m public. Claimed by the
        paper: epsilon with alpha = n / (e^epsilon - 1). Proven here: the same with m rows drawn in
        place of n, and epsilon / sets for each set (docs/proofs/dirichlet.md). Audited: contract,
        with a tenth of alpha as saboteur.
    Source:
        [bowen2016, s3.1.2]; [onthemap, thm. 4.1]; Abowd and Vilhuber (2008).
    """

    about: ClassVar[About] = About(
        name="dirichlet",
        title="Multinomial-Dirichlet synthesizer",
        paper="bowen2016, s3.1.2",
        unit="dataset",
        kind="pure",
        releases="rows",
        claimed="epsilon with alpha = n / (e^epsilon - 1), the budget divided by the sets",
        proven="epsilon = ln(1 + m / alpha) a set of m rows, exactly attained; sets add up",
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
        posterior = self.posterior(schema, total // sets, sets)
        outlook = _drawn.prior_facts(posterior, rows)
        each = "" if sets == 1 else f", each of {sets} sets with epsilon / {sets}"
        return _drawn.file_plan(
            self,
            schema,
            rows,
            sets,
            what=f"{total} rows from Dirichlet probabilities",
            detail=f"alpha = {outlook[0][0][1]:.6g} virtual records a cell{each}",
            outlook=outlook,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: draw rows * sets rows, set after set."""
        schema, total = curator.schema, _drawn.drawn_rows(self, rows, sets)
        draw = UrnRows(self.posterior(schema, total // sets, sets), sets)
        return curator.draw((_drawn.whole(schema),), draw, total)

    def posterior(self, schema: Schema, rows: int, sets: int) -> Posterior:
        """Virtual records beside those of the table, from public facts: the law of so many rows a set."""
        each = exact(self.epsilon) / sets
        alpha = dirichlet_alpha(each, rows, _plans.most_rows(schema))
        return Posterior(alpha, schema.cells)
