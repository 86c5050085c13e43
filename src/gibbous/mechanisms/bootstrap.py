"""Each column by the Bayesian bootstrap of its own margin, columns apart: no protection."""

from __future__ import annotations

from typing import ClassVar

from gibbous.core.codes import Codes
from gibbous.core.method_card import About
from gibbous.core.params import mechanism
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.sampling.gibbs_rows import BootstrapRows
from gibbous.structure.contexts import margins


@mechanism
class Bootstrap:
    """Draw every column from its own margin, with Bayesian bootstrap weights for each set.

    Guarantee:
        None: a level that one record holds may appear. Claimed by the paper: none.
        Audited: nothing to audit.
    Source:
        [park2014, table 1]; Rubin (1981); docs/proofs/bootstrap.md.
    """

    about: ClassVar[About] = About(
        name="bootstrap",
        title="Bayesian bootstrap of the margins",
        paper="park2014, table 1",
        unit="dataset",
        kind="none",
        releases="rows",
        claimed="none",
        proven="none: a level of one record may appear",
        audited="not applicable",
    )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Needs only: there is no cost that could be stated."""
        return _plans.unprotected_plan(
            self,
            rows,
            sets,
            contexts=margins(schema),
            what="rows of the exact margins",
            warning="This method has no guarantee, and it keeps no relation between columns.",
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets rows, set after set."""
        total = _plans.paid_rows(self, rows, sets)
        return curator.draw(margins(curator.schema), BootstrapRows(sets), total)
