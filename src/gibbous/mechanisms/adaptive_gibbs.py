"""adaptive_gibbs: cliques chosen round by round, measured with noise, and a log-linear model of all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from gibbous.core.claim import Measure, Relation
from gibbous.core.exact import exact
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
from gibbous.core.params import Rule, at_least, check, param, probability
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms._adaptive_margins import (
    measure_at_once,
    measure_halves,
    measure_margins,
    reckoned,
    topped_up,
)
from gibbous.mechanisms._adaptive_model import Known, begun, changes, concluded, finished
from gibbous.mechanisms._adaptive_rounds import (
    CAREFUL,
    USUAL_SHARE,
    Split,
    at_once,
    measure_in_rounds,
    split_of,
)
from gibbous.mechanisms._budget import budget_of
from gibbous.mechanisms.limits import budget
from gibbous.sampling.rule_zeros import with_zeros
from gibbous.structure.cliques import context_of
from gibbous.structure.contexts import margins as one_ways
from gibbous.structure.emphasis import as_texts, emphasis_of

NOTHING = Fraction(1, 10**6)  # of rho: what rounding the noise of 1-way tables leaves
part = Rule(lambda v: 0 < v < 0.5, "> 0 and < 0.5")


@answering_class
@dataclass(frozen=True, slots=True)
class AdaptiveGibbs:
    """Buy noisy 1-way tables, then round by round the tables that the model is most wrong about.

    A log-linear model of any set of tables is fitted by persistent Gibbs chains; rows are drawn
    from it, and the few values that bring the rows' margins to the model's are changed.
    Of columns of more levels than can stand out of the noise (128 to 256) the model sees groups, made of
    the noisy 1-way tables.

    How the budget is divided is a rule of public and bought facts (rho from epsilon and delta). Where the
    table of all columns has no more cells than those of all pairs together, or, with geometric noise of all
    of epsilon, pairs in it have at most half the noise that rounds would leave and single columns no
    more, it is bought and nothing else: docs/decisions/037. Else a tenth of rho buys 1-way tables; let e
    be the 1-way error that 0.3 rho would leave at the noisy number of rows: 1-way tables are topped up
    to 0.3 (e / 0.0078)^0.23 of rho, or 0.5 (e / 0.072)^0.8 where that is more, at most nine tenths; where
    e >= 1, to all of it. For e from 0.072 to 0.35, a choice for a fiftieth of rho says whether columns
    are tied; if so, 1-way tables have a fifth of rho. At most
    a fiftieth buys, for each two ordered columns, how many rows are below and above the middles of both,
    where that tells their correlation to 0.04; margins of the rows follow it. The
    rest buys picks at 1 / (16 columns) of it each, of which the share `choice` pays for choosing. After
    a round that moved the model by less than 0.65 of the expected error, a pick costs four times as
    much, as long as a pick a column can be paid for; from round 40 on, twice as much each round. The
    last round spends what is left. A round takes
    a quarter as many picks as there are columns m, times m / 32 (at most 4) where m is above 32. From
    some 110 columns on each pick looks at one part of the candidates, so that those of a round look at
    about 2^19.

    With a `target`, a third of what follows the 1-way tables buys all its pairs before the rounds,
    and its tables count four times. `weights` say what else counts: a table counts for the product over
    the columns and pairs in it, from 0.01 to 100. Scores are multiplied by that, choices pay for the
    largest, and prices within a round are in proportion to its power 2/3. Both are public.

    Guarantee:
        (epsilon, delta)-DP for everything released, by zero-concentrated composition, add/remove or
        replace one, and epsilon-DP where one table is bought with geometric noise; any number of rows
        and sets is free. Proven here: docs/proofs/adaptive_gibbs.md.
        Audited: contract, with half the noise and an undivided budget as saboteurs; unpaid choices,
        an overspent last round, sensitivities of a weighted choice and of the look, and raw margins in
        tests/adaptive_gibbs.
    Source:
        This project, after McKenna et al. (2022) (AIM: choice, annealing), Xiao et al. (2023)
        (components), Cai et al. (2021) (PrivMRF), Zhang et al. (2021) (PrivSyn).
    """

    about: ClassVar[About] = About(
        name="adaptive_gibbs",
        title="Adaptive Gibbs",
        paper="this project, after AIM (McKenna et al. 2022)",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="nothing: no paper describes this mechanism",
        proven="(epsilon, delta) for all tables and choices together; any number of rows; both relations",
        audited="noisy cells of the running code; half the noise and undivided budgets are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    delta: float = param(1e-9, probability, help="Keep it well under 1/records.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    choice: float = param(
        0.05, part, unit="share of rho", help="Spent on choosing, of what follows."
    )
    cells: int = param(1_048_576, at_least(4), help="Largest table that is measured, in cells.")
    sweeps: int = param(10, at_least(1), help="Gibbs passes a fresh row; costs time, not privacy.")
    target: str | None = param(None, help="A column to be predicted; its tables come first.")
    weights: tuple[str, ...] = param((), help="What columns and pairs count for, 1 if not named.")

    def __post_init__(self) -> None:
        if isinstance(self.weights, Mapping | list | tuple):
            object.__setattr__(self, "weights", as_texts(self.weights))
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        split, columns = self._split(schema), len(schema)
        size, contexts = sorted(schema.sizes)[columns // 2], one_ways(schema)
        if split.at_once:  # single columns and pairs are sums of one table
            final, cells = split.budget.noise(split.rho).info(), math.prod(split.sizes)
            spread = math.sqrt(final.variance)
            one, two = (spread * math.sqrt(cells * min(cells, n)) for n in (size, size**2))
            how = "sigma" if final.law == "gaussian" else "scale"
            detail = f"{final.law} noise, {how} {final.scale:.6g} counts"
            spends = [split.budget.spend("the table of all columns", split.rho, detail)]
            contexts = (context_of(split.sizes, tuple(range(columns))),)
        else:
            ones = split.budget.noise(split.first, columns).info()
            detail = f"gaussian noise, sigma {ones.scale:.6g} counts"
            spends = [split.budget.spend(f"{columns} one-way tables", split.first, detail)]
            if split.first < split.rho:
                spends.append(
                    split.budget.spend(
                        "rounds: one-way tables, choices, tables",
                        split.rho - split.first,
                        _rounds(split),
                    )
                )
            usual = max(split.first, split.rho * exact(USUAL_SHARE))
            final = split.budget.noise(usual, columns).info()
            two_way = split.budget.noise(split.rho / 2, max(1, 3 * columns)).info()
            one, two = size * final.scale, size * size * two_way.scale
        plan = _plans.table_plan(
            self,
            rows,
            sets,
            contexts=contexts,
            spends=spends,
            published="nothing: no paper describes this mechanism",
            outlook=_plans.noise_errors(final, rows, one_way=one, two_way=two),
            more_cells=0 if split.at_once else min(split.two_way, split.limits.all_cells),
        )
        return replace(plan, memory_bytes=plan.memory_bytes + split.memory())

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: 1-way tables, then rounds of choices and tables, to the last fraction; or one table."""
        schema = curator.schema
        drawn = with_zeros(schema)  # what the rules make impossible is left out of the model, too
        split, known = self._split(schema, curator.measure), Known(drawn, drawn)
        if split.at_once:
            known = concluded(begun(measure_at_once(curator, known, split), split.limits))
            return self._released(schema, known)
        known, left = measure_margins(curator, known, split, price=split.first, left=split.rho)
        known = reckoned(known, curator.known_counts)
        known, left = topped_up(curator, known, split, left)
        known = begun(known, split.limits, split.pair_sigma(left))
        merged = changes(known.model.merged)
        view = curator.recoded(merged) if merged else curator
        if left > split.rho * NOTHING:
            known, left = measure_halves(view, known, split, left)
            known = concluded(measure_in_rounds(view, known, split, left))
        return self._released(schema, known)

    def _released(self, schema: Schema, known: Known) -> Tables:
        recipe = Recipe("loglinear", (), sweeps=self.sweeps)
        return Tables(schema, known.tables, recipe, model=finished(known))

    def _split(self, schema: Schema, measure: Measure | None = None) -> Split:
        choice = exact(self.choice)
        budget = budget_of(self, schema, len(schema), choice=choice, measure=measure)
        emphasis = emphasis_of(schema, self.target, self.weights)
        split = split_of(schema, budget, choice=choice, cells=self.cells, emphasis=emphasis)
        one = budget_of(self, schema, measure=measure, geometric=True)
        return at_once(split, one, decided=measure == "pure") or split


def _rounds(split: Split) -> str:
    """How many tables rounds buy, and with how much noise, in words."""
    low, high = split.sigmas()
    picks = " to ".join(map(str, sorted({split.picks(0), split.picks(CAREFUL)})))
    return (
        f"at most {split.most_rounds} rounds of {picks} tables, gaussian noise, "
        f"sigma {high:.6g} counts or less, never below {low:.6g}"
    )
