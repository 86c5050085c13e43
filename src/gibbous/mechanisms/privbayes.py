"""PrivBayes: a network chosen pick by pick, its tables with noise, rows drawn down the network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.claim import Measure, Relation
from gibbous.core.context import Context
from gibbous.core.exact import exact
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
from gibbous.core.params import Rule, at_least, check, param, probability
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms._budget import Budget, budget_of
from gibbous.mechanisms.limits import budget
from gibbous.structure.choice import Network
from gibbous.structure.contexts import conditional
from gibbous.structure.contexts import margins as one_ways
from gibbous.structure.greedy import choose_greedy

CANDIDATES = 20_000  # of one pick
MAX_CELLS = 1 << 20
COUNT = Fraction(1, 50)  # share of the budget for the noisy number of records
part = Rule(lambda v: 0 < v < 0.9, "> 0 and < 0.9")
ratio = Rule(lambda v: v > 0, "> 0")


@answering_class
@dataclass(frozen=True, slots=True)
class Privbayes:
    """Choose a Bayesian network greedily, release its tables once with noise, draw rows down it.

    Guarantee:
        noise = "laplace": epsilon-DP; "gaussian": (epsilon, delta)-DP by zero-concentrated
        composition; add/remove or replace one, for everything released; rows are free. Claimed by
        the paper: epsilon-DP, replace one, with the number of records public. Proven here:
        docs/proofs/privbayes.md. Audited: contract, with half the noise and an undivided budget.
    Source:
        Zhang, Cormode, Procopiuc, Srivastava and Xiao (2017), PrivBayes, the baseline of [sbhg, s5];
        consistency: 1-way margins by inverse variance, then raking (structure.reconcile).
    """

    about: ClassVar[About] = About(
        name="privbayes",
        title="PrivBayes",
        paper="Zhang et al. 2017 (baseline of sbhg, s5)",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="epsilon, replace one, number of records public",
        proven="epsilon (laplace) or (epsilon, delta) (gaussian) for all tables and picks; both relations",
        audited="noisy cells of the running code; half the noise and undivided budgets are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    noise: Literal["laplace", "gaussian"] = param("laplace", help="gaussian needs delta.")
    delta: float = param(1e-6, probability, help="Used with noise = gaussian alone.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    parents: int = param(
        64, at_least(0), unit="columns", help="Most parents of a column; fewer where noise decides."
    )
    choice: float = param(0.3, part, unit="share", help="Of the budget, spent on the network.")
    usefulness: float = param(
        4.0, ratio, help="Least mean count of a cell over the noise scale of its table."
    )

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        split = self._split(schema)
        info = split.tables_noise().info()
        spends = [split.budget.spend("the noisy number of records", split.count, "one 1-way table")]
        if split.picks:
            what = f"{split.picks} picks of a column and its parents"
            spends.append(split.budget.spend(what, split.choice, "exponential mechanism"))
        what = f"at most {split.most} tables of the network"
        detail = f"{info.law} noise, scale {info.scale:.6g} counts or less"
        spends.append(split.budget.spend(what, split.tables, detail))
        cells = split.room(rows or _plans.USUAL_ROWS)
        errors, warnings = _plans.noise_errors(
            info,
            rows,
            one_way=math.sqrt(info.variance * cells) * 4,
            two_way=math.sqrt(info.variance) * min(cells, 256),
        )
        return _plans.table_plan(
            self,
            rows,
            sets,
            contexts=one_ways(schema),
            more_cells=split.picks * min(cells, MAX_CELLS) * len(schema),
            spends=spends,
            published=f"epsilon = {self.epsilon:g}, replace one, number of records public",
            outlook=(errors, (*warnings, *_plans.unused_delta(self))),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: the number of records, then the network, then its tables."""
        schema = curator.schema
        split = self._split(schema, curator.measure)
        column = min(range(len(schema)), key=lambda j: schema.sizes[j])
        noise = split.budget.noise(split.count)
        count = curator.noisy_counts((one_ways(schema)[column],), noise)
        known = Tables(schema, count, Recipe("ancestral", ()))
        network = self._network(curator, split, max(1, known.noisy_rows()))
        contexts = prefix_joined(schema, network)
        items = curator.noisy_counts(contexts, split.tables_noise(len(contexts)))
        recipe = Recipe("ancestral", tuple(range(len(items))), kappa=1.0, fit="rake")
        return Tables(schema, items, recipe, count)

    def _network(self, curator: CuratorLike, split: _Split, rows: int) -> Network:
        if not split.picks:
            columns = len(curator.schema)
            return Network(tuple(range(columns)), ((),) * columns)
        return choose_greedy(
            curator,
            self.parents,
            epsilon=split.budget.pick_epsilon(split.choice / split.picks),
            accounting=split.budget.measure,
            max_cells=split.room(rows),
            most=CANDIDATES,
        )

    def _split(self, schema: Schema, measure: Measure | None = None) -> _Split:
        free = sum(size > 1 for size in schema.sizes)
        picks, most = max(0, free - 1) if self.parents else 0, max(1, free)
        share = exact(self.choice) if picks else Fraction(0)
        budget = budget_of(self, schema, most, choice=share, measure=measure)
        whole = budget.whole
        count, choice = whole * COUNT, whole * budget.choices(share)
        return _Split(budget, self.usefulness, picks, most, count, choice, whole - count - choice)


@dataclass(frozen=True, slots=True)
class _Split:
    """How the budget is divided: what `plan` prints and `run` spends.

    Attributes:
        picks: of a column and its parents.
        most: most tables of the network.
        count, choice, tables: epsilon of each with laplace noise; rho, or mu squared, with gaussian.
    """

    budget: Budget
    usefulness: float
    picks: int
    most: int
    count: Fraction
    choice: Fraction
    tables: Fraction

    def tables_noise(self, tables: int = 0) -> Noise:
        """Of so many tables, or of as many as there can be."""
        return self.budget.noise(self.tables, tables or self.most)

    def room(self, rows: int) -> int:
        """Most cells of a table: `usefulness` times the noise scale is a mean cell."""
        scale = float(self.tables_noise().info().scale)
        return max(1, min(MAX_CELLS, int(rows / (self.usefulness * scale))))


def prefix_joined(schema: Schema, network: Network) -> tuple[Context, ...]:
    """The tables of a network: the longest prefix that is one joint table, then one a column.

    While a column has all columns before it as parents, the table of the last one holds them all:
    the budget is divided by fewer tables (PrivBayes, s4.1).
    """
    free = [j for j in network.order if schema.sizes[j] > 1]
    head = min(1, len(free))
    while head < len(free) and set(network.parents[free[head]]) == set(free[:head]):
        head += 1
    still = [j for j in network.order if schema.sizes[j] == 1]  # an axis of one level costs nothing
    first = tuple(sorted([*still, *free[:head]]))
    joint = Context(first, (), tuple(schema.sizes[c] for c in first), ())
    return (
        joint,
        *(conditional(schema, j, network.parents[j], max_keys=MAX_CELLS) for j in free[head:]),
    )
