"""Rows drawn from the full contingency table as it is: no protection, the yardstick of utility."""

from __future__ import annotations

from typing import ClassVar

from gibbous.core.codes import Codes
from gibbous.core.errors import ResourceLimit
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.sampling.gibbs_rows import JointRows
from gibbous.sampling.log_linear_cells import MOST_CELLS
from gibbous.structure.contexts import joint


@mechanism
class Contingency:
    """Draw rows from the full cross table, as counted or as a log-linear model has it.

    Guarantee:
        None: every row is a record, or of a model that was fitted to records. Claimed by the paper:
        none. For studies on public data.
        Audited: nothing to audit.
    Source:
        [park2014, s2.1 and table 1]; docs/proofs/contingency.md.
    """

    about: ClassVar[About] = About(
        name="contingency",
        title="Resampled contingency table",
        paper="park2014, table 1",
        unit="dataset",
        kind="none",
        releases="rows",
        claimed="none",
        proven="none: every row is a record",
        audited="not applicable",
    )

    order: int = param(
        0,
        at_least(0),
        unit="columns",
        help="Largest interactions of a log-linear model; 0 for none.",
    )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Needs only: there is no cost that could be stated."""
        context = joint(schema, "seen")
        if context.parents:
            raise ResourceLimit(
                "JOINT",
                f"The full cross table has {schema.cells:.3g} cells.",
                "A cell number has at most 63 bits here.",
                "Use bootstrap, or a method that counts a few columns at a time.",
            )
        if self.order and schema.cells > MOST_CELLS:
            raise ResourceLimit(
                "JOINT",
                f"The full cross table has {schema.cells:,} cells.",
                f"A log-linear model is fitted to at most {MOST_CELLS:,} of them here.",
                "Leave order out, or use imputation, which fits each column given the others.",
            )
        return _plans.unprotected_plan(
            self,
            rows,
            sets,
            contexts=(context,),
            what="rows of a log-linear model" if self.order else "rows of the exact joint table",
            warning="This method has no guarantee: "
            + ("its model is fitted to the records." if self.order else "its rows are records."),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets rows with replacement."""
        contexts = (joint(curator.schema, "seen"),)
        return curator.draw(contexts, JointRows(self.order), _plans.paid_rows(self, rows, sets))
