"""Perturbed multiple imputation: each fitted probability with a floor under every level, paid by the row."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, param, share
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.mechanisms.imputation import FOLDS, combinations, regression_bytes
from gibbous.mechanisms.limits import budget
from gibbous.mechanisms.pegs import composed
from gibbous.perturb.add import Add
from gibbous.sampling.imputation.imputed_rows import PARTS, ImputedRows
from gibbous.sampling.imputation.regression import Choice, Fit


@mechanism
class PerturbedImputation:
    """Draw every row anew from regressions whose probabilities have alpha added to each level.

    Guarantee:
        Pure epsilon-DP for each drawn row, between any two tables whatever; a file of N rows costs
        N epsilon. Claimed by the paper: epsilon per row. Proven here: the same, passes counted, and
        for units of any number of rows (docs/proofs/perturbed_imputation.md).
        Audited: contract, with draws that forget alpha as saboteur.
    Source:
        [park2014, s3.5]. Fitting, penalty choice and cross-validation on the records are free: a
        draw hides everything that it was computed from.
    """

    about: ClassVar[About] = About(
        name="perturbed_imputation",
        title="Perturbed multiple imputation",
        paper="park2014, s3.5",
        unit="row",
        kind="pure",
        releases="rows",
        claimed="epsilon per row",
        proven="epsilon per row between any two tables, passes counted; N rows cost N epsilon",
        audited="rows of the running code against the total of the file; alpha forgotten is caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="Cost of one drawn row.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    sweeps: int = param(1, at_least(1), help="Passes a row; each takes its share of epsilon.")
    mix: float = param(0.5, share, help="Penalty: 0 is ridge, 1 is lasso, between is elastic net.")
    folds: int = param(5, FOLDS, help="Of the penalty's cross-validation.")
    choice: Choice = param("min", help="Penalty of the least held-out loss, or the 1-se rule.")

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon times rows times sets."""
        count, floor = _plans.paid_rows(self, rows, sets), self._floor(schema)
        alpha = float(floor.alpha / PARTS)
        weight = 1 / (1 + max(schema.sizes) * alpha)
        errors = (
            ("alpha, added to the probability of each level", alpha),
            ("weight of the regression in a draw of the widest column", weight),
            # Both ends of a law may move at once, so neither relation has the smaller range.
            composed(floor, count * self._draws(schema), "replace_one", 1, of=PARTS),
        )
        what = f"{count} rows, each {self.sweeps} x {_plans.redrawn(schema)} draws"
        detail = f"added to the probability of each level: alpha = {alpha:.6g}"
        plan = _plans.row_plan(
            self,
            rows,
            sets,
            spend=Spend(what, _plans.total(self), detail),
            units=count,
            contexts=(combinations(schema),),
            published=f"epsilon = {self.epsilon:g} per row, read as the guarantee of the file",
            outlook=(errors, ()),
        )
        return replace(plan, memory_bytes=regression_bytes(schema, count))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: fit, then draw rows * sets rows with cryptographic words."""
        contexts, fit = (combinations(curator.schema),), Fit(self.mix, self.folds, self.choice)
        draw = ImputedRows(self._floor(curator.schema), self.sweeps, fit)
        return curator.draw(contexts, draw, _plans.paid_rows(self, rows, sets))

    def _draws(self, schema: Schema) -> int:
        """Draws a row."""
        return self.sweeps * _plans.redrawn(schema)

    def _floor(self, schema: Schema) -> Add:
        """alpha * PARTS virtual records among PARTS: two laws differ in at most all of them."""
        return Add.within(exact(self.epsilon) / self._draws(schema), PARTS)
