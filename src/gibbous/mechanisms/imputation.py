"""Multiple imputation by full conditionals: elastic-net regressions of each column, no protection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from gibbous.core.about import About
from gibbous.core.claim import no_claim
from gibbous.core.codes import Codes
from gibbous.core.keywords import answering_class
from gibbous.core.params import at_least, check, param, share
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _imputation_plan, _plans
from gibbous.synthesize.imputation.draw import ImputedRows
from gibbous.synthesize.imputation.fit import Choice, Fit


@answering_class
@dataclass(frozen=True, slots=True)
class Imputation:
    """Draw every row anew: a uniform seed row, then passes over the columns' regressions.

    Guarantee:
        None: a regression can tell what one record holds. Claimed by the paper: none.
        Audited: nothing to audit.
    Source:
        [park2014, s2.1 and s4.3]; docs/proofs/imputation.md.
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
    folds: int = param(5, _imputation_plan.FOLDS, help="Of the penalty's cross-validation.")
    choice: Choice = param("min", help="Penalty of the least held-out loss, or the 1-se rule.")

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Needs only: there is no cost that could be stated."""
        total = _plans.paid_rows(self, rows, sets)
        context = _imputation_plan.context(schema)
        plan = _plans.row_plan(
            self,
            schema,
            rows,
            sets,
            claim=no_claim(unit="dataset", source=self.about.paper),
            units=total,
            contexts=(context,),
            what="rows of fitted regressions",
            detail="no noise",
            published="none",
            warnings=("This method has no guarantee: its regressions are fitted to the records.",),
        )
        return replace(plan, memory_bytes=_imputation_plan.memory(schema, total))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets rows."""
        contexts = (_imputation_plan.context(curator.schema),)
        draw = ImputedRows(None, self.sweeps, Fit(self.mix, self.folds, self.choice))
        return curator.draw(contexts, draw, _plans.paid_rows(self, rows, sets))
