"""Smoothed histogram: rows from the histogram mixed with the uniform law, the mixture set by the budget."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import at_least, check, mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.recode import Edges, recoded_schema
from gibbous.core.schema import Schema
from gibbous.mechanisms import _drawn, _plans
from gibbous.mechanisms._bins import BinRule, Bins, Spreads, tidy_spreads
from gibbous.mechanisms.limits import budget
from gibbous.perturb.smoothed import Smoothed
from gibbous.privacy.calibrate.dirichlet import smoothed_share
from gibbous.sampling.urn_rows import SmoothedRows


@mechanism
class SmoothedHistogram:
    """Draw each row from a record's cell with probability 1 - lambda, else uniformly over all cells.

    The law is fixed, so m sets of N rows are N m rows of one law, and are priced as such.

    Guarantee:
        Pure epsilon-DP for all rows, add/remove or replace one, their number public. Claimed by the
        paper: epsilon for n rows, bins from the sample standard deviation. Proven here: epsilon for
        any number of rows, with public bins (docs/proofs/smoothed_histogram.md); attained when there
        are as many records as `records`. Audited: contract, with a tenth of lambda as saboteur.
    Source:
        [bowen2016, eq. 5 and 6]; [Wasserman, Zhou 2010].
    """

    about: ClassVar[About] = About(
        name="smoothed_histogram",
        title="Smoothed histogram",
        paper="bowen2016, eq. 5 and 6",
        unit="dataset",
        kind="pure",
        releases="rows",
        claimed="epsilon for n rows, with bins from the sample standard deviation",
        proven="epsilon for any number of rows with public bins, exactly attained",
        audited="rows of the running code; lambda at a tenth is caught; exact law by enumeration",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget: all rows.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    bins: BinRule = param("schema", help="Bins of numeric columns: the schema's, or a rule.")
    records: int | None = param(
        None, at_least(1), unit="records", help="Public number of records; that of rows if absent."
    )
    spreads: Spreads = param(
        (), help="Public standard deviation by column (freedman_diaconis: interquartile range)."
    )
    most: int = param(64, at_least(1), unit="bins", help="Most bins of a column under a rule.")

    def __post_init__(self) -> None:
        tidy_spreads(self)
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon, whatever the number of rows; lambda grows with it instead.

        Raises:
            ParameterError: rows is None or 0.
            PrivacyRefused: the rule needs a spread that would have to be read off the records.
        """
        total = _drawn.drawn_rows(self, rows, sets)
        rule, edges = self._rule(rows), self._edges(schema, rows)
        view = recoded_schema(schema, edges) if edges else schema
        smoothed = self._smoothed(view, rows, total)
        share = float(smoothed.effective)
        warnings: tuple[str, ...] = ()
        if share > 0.5:
            warnings = (
                (
                    f"{_drawn.uniform_part(share).capitalize()} of the rows are uniform over "
                    f"{view.cells:.4g} cells, and more records with as many more rows do not change "
                    "that. Use laplace or "
                    "perturbed_histogram, or fewer and coarser columns."
                ),
            )
        if sets > 1:
            warnings += (
                (
                    f"{sets} sets of one fixed law say nothing about the synthesis and cost as many "
                    "rows: the paper releases one set."
                ),
            )
        plan = _drawn.file_plan(
            self,
            schema,
            rows,
            sets,
            what=f"{total} rows from the smoothed histogram",
            detail=f"lambda = {share:.6g}, made for {smoothed.records} records",
            outlook=(
                (("lambda, share of uniform rows", share), ("cells", float(view.cells))),
                warnings,
            ),
        )
        published = f"{plan.published}, whatever chose the bins"
        return replace(plan, published=published, numbers=rule.columns(schema))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: draw the rows."""
        total = _drawn.drawn_rows(self, rows, sets)
        edges = self._edges(curator.schema, rows)
        view = curator.recoded(edges) if edges else curator
        draw = SmoothedRows(self._smoothed(view.schema, rows, total))
        return view.draw((_drawn.whole(view.schema),), draw, total)

    def _edges(self, schema: Schema, rows: int | None) -> dict[int, Edges]:
        return self._rule(rows).public(schema)

    def _rule(self, rows: int | None) -> Bins:
        return Bins(self.bins, self.records or rows, self.spreads, self.most)

    def _smoothed(self, schema: Schema, rows: int | None, total: int) -> Smoothed:
        records, most = self.records or rows or 1, _plans.most_rows(schema)
        share = smoothed_share(exact(self.epsilon), schema.cells, records, total, most)
        return Smoothed(share, schema.cells, records)
