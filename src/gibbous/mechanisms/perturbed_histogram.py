"""Perturbed histogram: noise on every bin, with a number of bins that tells nothing about records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.claim import Relation
from gibbous.core.exact import exact
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
from gibbous.core.params import Rule, at_least, check, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.recode import recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _cross, _plans
from gibbous.mechanisms._bins import BinRule, Bins, Spreads, tidy_spreads
from gibbous.mechanisms._budget import Budget, budget_of
from gibbous.mechanisms.limits import budget
from gibbous.structure.contexts import joint

MOMENT_RULES = ("scott", "freedman_diaconis")
part = Rule(lambda v: 0.001 <= v <= 0.9, "between 0.001 and 0.9")


@answering_class
@dataclass(frozen=True, slots=True)
class PerturbedHistogram:
    """Cut numeric columns into bins by a rule, count all columns jointly, add noise; rows are free.

    Guarantee:
        Pure epsilon-DP for the table, add/remove or replace one. Claimed by the paper: epsilon, with
        bins from the sample standard deviation. Proven here: epsilon with bins from public facts, or
        with a scale that a share of epsilon pays for (docs/proofs/perturbed_histogram.md); with the
        sample's own scale there is no finite epsilon. Audited: contract.
    Source:
        [bowen2016, eq. 4]; [Wasserman, Zhou 2010]; rules as in [Scott 2015].
    """

    about: ClassVar[About] = About(
        name="perturbed_histogram",
        title="Perturbed histogram",
        paper="bowen2016, eq. 4",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="epsilon, with bins from the sample standard deviation",
        proven="epsilon with public or paid bins; with the sample's own scale: infinity",
        audited="noisy bins of the running code; half the noise and leaked zeros are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    bins: BinRule = param("schema", help="Bins of numeric columns: the schema's, or a rule.")
    records: int | None = param(
        None,
        at_least(1),
        unit="records",
        help="Public n of the rule; if absent the number of rows, or with scale = paid the noisy number.",
    )
    spreads: Spreads = param(
        (), help="Public standard deviation by column (freedman_diaconis: interquartile range)."
    )
    scale: Literal["public", "paid"] = param(
        "public", help="Spreads given, or bought with a share of epsilon (quantiles: bought)."
    )
    scale_share: float = param(
        0.1, part, unit="share", help="Share of epsilon that buys the spreads."
    )
    most: int = param(64, at_least(1), unit="bins", help="Most bins of a column under a rule.")
    fit: _cross.Fit = param("clip", help=_cross.FIT_HELP)

    def __post_init__(self) -> None:
        tidy_spreads(self)
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data.

        Raises:
            PrivacyRefused: the rule needs a spread that would have to be read off the records.
            ResourceLimit: the cross table has too many cells; the figure is named.
        """
        split = self._split(schema, rows)
        rule = split.rule
        finest = rule.widest(schema) if split.scale else recoded_schema(schema, rule.public(schema))
        _cross.check_cells(self.about.name, finest)
        info = split.budget.noise(split.table).info()
        detail = f"geometric noise, scale {info.scale:.6g} counts"
        spends = [split.budget.spend("the histogram of all columns", split.table, detail)]
        if split.scale:
            what = "quantiles" if self.bins == "quantiles" else "the scale"
            what = f"{what} of numeric columns: {len(rule.columns(schema))}"
            sums = ", sums and sums of squares" if self.bins in MOMENT_RULES else ""
            spends.insert(0, split.budget.spend(what, split.scale, f"noisy bins{sums}"))
        errors, warnings = _cross.expected_errors(finest, info, rows)
        bins = max((finest.columns[j].bins for j in rule.columns(schema)), default=0)
        if bins:
            errors += (("most bins of a column", float(bins)),)
        plan = _plans.table_plan(
            self,
            rows,
            sets,
            contexts=(joint(finest),),
            spends=spends,
            published=f"epsilon = {self.epsilon:g}, whatever chose the bins",
            outlook=(errors, warnings),
        )
        return replace(plan, numbers=rule.columns(schema))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: buy the scale if asked to, then count the histogram once and add noise once."""
        split = self._split(curator.schema, rows)
        rule = split.rule
        edges = rule.bought(curator, split.scale) if split.scale else rule.public(curator.schema)
        view = curator.recoded(edges) if edges else curator
        items = view.noisy_counts((joint(view.schema),), split.budget.noise(split.table))
        return Tables(view.schema, items, Recipe("ancestral", (0,), fit=self.fit))

    def _split(self, schema: Schema, rows: int | None) -> _Split:
        budget, rule = budget_of(self, schema), self._rule(rows)
        whole = budget.whole
        if self.scale == "public" or not rule.columns(schema):
            return _Split(budget, rule, Fraction(0), whole)
        scale = whole * exact(self.scale_share)
        # A number of records that is bought comes before the number of rows.
        return _Split(budget, self._rule(None), scale, whole - scale)

    def _rule(self, rows: int | None) -> Bins:
        return Bins(self.bins, self.records or rows or None, self.spreads, self.most)


@dataclass(frozen=True, slots=True)
class _Split:
    """The budget, the rule of the bins, and epsilon of the scale (0: it is public) and of the table."""

    budget: Budget
    rule: Bins
    scale: Fraction
    table: Fraction
