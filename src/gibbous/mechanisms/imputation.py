"""Multiple imputation by full conditionals: elastic-net regressions of each column, no protection."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import ClassVar

from gibbous.core.cell_model import Draws
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import ResourceLimit
from gibbous.core.machine import usable_cores
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, param, share
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.sampling.imputation.imputed_rows import WIDEST, ImputedRows
from gibbous.sampling.imputation.regression import Choice, Fit, installed
from gibbous.structure.contexts import joint

FOLDS = at_least(2)


@mechanism
class Imputation:
    """Draw every row anew: a uniform seed row, then passes over the columns' regressions.

    Guarantee:
        None: a regression can tell what one record holds. Claimed by the paper: none.
        Audited: nothing to audit.
    Source:
        [park2014, s2.1 and s4.3]; draws: Rubin and Schenker (1986); docs/proofs/imputation.md.
    """

    about: ClassVar[About] = About(
        name="imputation",
        title="Multiple imputation",
        paper="park2014, s2.1",
        unit="dataset",
        kind="none",
        releases="rows",
        claimed="none",
        proven="none: a regression can tell what one record holds",
        audited="not applicable",
    )

    sweeps: int = param(10, at_least(1), help="Passes a row, from a uniform seed row on.")
    mix: float = param(0.5, share, help="Penalty: 0 is ridge, 1 is lasso, between is elastic net.")
    folds: int = param(5, FOLDS, help="Of the penalty's cross-validation.")
    choice: Choice = param("min", help="Penalty of the least held-out loss, or the 1-se rule.")
    draws: Draws = param("fitted", help="posterior: each set from a fit to records drawn anew.")

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Needs only: there is no cost that could be stated."""
        total = _plans.paid_rows(self, rows, sets)
        plan = _plans.unprotected_plan(
            self,
            rows,
            sets,
            contexts=(combinations(schema),),
            what="rows of fitted regressions",
            warning="This method has no guarantee: its regressions are fitted to the records.",
        )
        return replace(plan, memory_bytes=regression_bytes(schema, total))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets rows."""
        contexts = (combinations(curator.schema),)
        fit, own = Fit(self.mix, self.folds, self.choice), sets if self.draws == "posterior" else 0
        draw = ImputedRows(None, self.sweeps, fit, own)
        return curator.draw(contexts, draw, _plans.paid_rows(self, rows, sets))


def combinations(schema: Schema) -> Context:
    """The joint table that regressions are fitted to, as the combinations that occur.

    Raises:
        ResourceLimit: a row has more than 126 bits, or a column more levels than a regression takes.
        EngineFailure: the solver is not installed.
    """
    widest = max(schema, key=lambda column: column.size)
    if widest.size > WIDEST:
        raise ResourceLimit(
            "LEVELS",
            f"Column {widest.name!r} has {widest.size} levels.",
            f"A column of a multinomial regression has at most {WIDEST} here.",
            "Group its levels in the schema, or use noisy_pegs.",
        )
    context = joint(schema, "seen")
    installed()
    return context


def regression_bytes(schema: Schema, rows: int | None) -> int:
    """Bytes at the peak: distinct rows, their designs, the solver's gradients, a core each; drawn rows.

    The number of records is not known: the rows asked for, or a million, stand for it. Regressions see
    each combination of levels once, so that more of them than there are never count.
    """
    records = max(rows or 0, _plans.USUAL_ROWS)
    distinct = min(records, prod(schema.sizes))
    each = 4 * len(schema) + 8 + usable_cores() * (12 * len(schema) + 16 * max(schema.sizes))
    return distinct * each + (rows or 0) * 4 * len(schema)
