"""PrivBayes: a network chosen pick by pick, its tables with noise, rows drawn down the network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.about import About
from gibbous.core.claim import Claim, Relation, approximate, pure, zcdp
from gibbous.core.context import Context
from gibbous.core.exact import exact, root_down
from gibbous.core.keywords import answering_class
from gibbous.core.params import Rule, at_least, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms.limits import budget
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.noise import gaussian_for, geometric_for
from gibbous.structure.choice import Network
from gibbous.structure.contexts import conditional
from gibbous.structure.contexts import margins as one_ways
from gibbous.structure.greedy import choose_greedy

PROOF = "docs/proofs/privbayes.md"
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
    parents: int = param(2, at_least(0), unit="columns", help="Most parents of a column.")
    choice: float = param(0.3, part, unit="share", help="Of the budget, spent on the network.")
    usefulness: float = param(
        4.0, ratio, help="Least mean count of a cell over the noise scale of its table."
    )

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        tables = self._most_tables(schema)
        noise = self._noise(schema, "tables", tables)
        picks = self._picks(schema)
        spends = [
            Spend("the noisy number of records", self._price(schema, "count"), "one 1-way table")
        ]
        if picks:
            spends.append(
                Spend(
                    f"{picks} picks of a column and its parents",
                    self._price(schema, "choice"),
                    "exponential mechanism",
                )
            )
        detail = f"{noise.info().law} noise, scale {noise.info().scale:.6g} counts or less"
        spends.append(
            Spend(f"at most {tables} tables of the network", self._price(schema, "tables"), detail)
        )
        cells = self._room(schema, rows or _plans.USUAL_ROWS)
        errors, warnings = _plans.noise_errors(
            noise.info(),
            rows,
            one_way=math.sqrt(noise.info().variance * cells) * 4,
            two_way=math.sqrt(noise.info().variance) * min(cells, 256),
        )
        return _plans.table_plan(
            self,
            schema,
            rows,
            sets,
            total=self._total(),
            contexts=one_ways(schema),
            more_cells=picks * min(cells, MAX_CELLS) * len(schema),
            spends=tuple(spends),
            published=f"epsilon = {self.epsilon:g}, replace one, number of records public",
            errors=errors,
            warnings=(*warnings, *_plans.unused_delta(self)),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: the number of records, then the network, then its tables."""
        schema = curator.schema
        column = min(range(len(schema)), key=lambda j: schema.sizes[j])
        count = curator.noisy_counts((one_ways(schema)[column],), self._noise(schema, "count", 1))
        known = Tables(schema, count, Recipe("ancestral", ()))
        network = self._network(curator, max(1, known.noisy_rows()))
        contexts = prefix_joined(schema, network)
        items = curator.noisy_counts(contexts, self._noise(schema, "tables", len(contexts)))
        recipe = Recipe("ancestral", tuple(range(len(items))), kappa=1.0, fit="rake")
        return Tables(schema, items, recipe, count)

    def _network(self, curator: CuratorLike, rows: int) -> Network:
        schema = curator.schema
        picks = self._picks(schema)
        if not picks:
            return Network(tuple(range(len(schema))), ((),) * len(schema))
        share = self._shares(schema)["choice"]
        pure_picks = self.noise == "laplace"
        return choose_greedy(
            curator,
            self.parents,
            epsilon=share / picks if pure_picks else root_down(8 * share / picks),
            accounting="pure" if pure_picks else "zcdp",
            max_cells=self._room(schema, rows),
            most=CANDIDATES,
        )

    def _room(self, schema: Schema, rows: int) -> int:
        """Most cells of a table: `usefulness` times the noise scale is a mean cell."""
        scale = float(self._noise(schema, "tables", self._most_tables(schema)).info().scale)
        return max(1, min(MAX_CELLS, int(rows / (self.usefulness * scale))))

    def _picks(self, schema: Schema) -> int:
        free = sum(size > 1 for size in schema.sizes)
        return max(0, free - 1) if self.parents else 0

    def _most_tables(self, schema: Schema) -> int:
        return max(1, sum(size > 1 for size in schema.sizes))

    def _total(self) -> Claim:
        epsilon, delta = exact(self.epsilon), exact(self.delta)
        if self.noise == "laplace":
            return pure(epsilon, relation=self.relation, source=PROOF)
        return approximate(epsilon, delta, relation=self.relation, source=PROOF)

    def _shares(self, schema: Schema) -> dict[str, Fraction]:
        """The budget divided: epsilon with laplace noise, rho with gaussian noise."""
        epsilon, delta = exact(self.epsilon), exact(self.delta)
        whole = epsilon if self.noise == "laplace" else rho_from_approx(epsilon, delta)
        count = whole * COUNT
        choice = whole * exact(self.choice) if self._picks(schema) else Fraction(0)
        return {"count": count, "choice": choice, "tables": whole - count - choice}

    def _price(self, schema: Schema, name: str) -> Claim:
        share = self._shares(schema)[name]
        make = pure if self.noise == "laplace" else zcdp
        return make(share, relation=self.relation, source=PROOF)

    def _noise(self, schema: Schema, name: str, tables: int) -> Noise:
        share, most = self._shares(schema)[name], _plans.most_rows(schema)
        make = geometric_for if self.noise == "laplace" else gaussian_for
        return make(share, tables, self.relation, most)


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
