"""Rows drawn from the full contingency table as it is: no protection, the yardstick of utility."""

from __future__ import annotations

from typing import ClassVar

from gibbous.core.codes import Codes
from gibbous.core.errors import ResourceLimit
from gibbous.core.method_card import About
from gibbous.core.params import mechanism
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.sampling.gibbs_rows import JointRows
from gibbous.structure.contexts import joint


@mechanism
class Contingency:
    """Resample records from the full cross table.

    Guarantee:
        None: every row is a record. Claimed by the paper: none. For studies on public data.
        Audited: nothing to audit.
    Source:
        [park2014, table 1]; docs/proofs/contingency.md.
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
        return _plans.unprotected_plan(
            self,
            rows,
            sets,
            contexts=(context,),
            what="rows of the exact joint table",
            warning="This method has no guarantee: its rows are records.",
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets records with replacement."""
        contexts = (joint(curator.schema, "seen"),)
        return curator.draw(contexts, JointRows(), _plans.paid_rows(self, rows, sets))
