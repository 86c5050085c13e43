"""Noisy-table PeGS: conditionals chosen and noised once, then rows for free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.claim import Measure, Relation
from gibbous.core.context import Context
from gibbous.core.exact import exact
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
from gibbous.core.params import Rule, at_least, check, one_of, param, probability
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Table, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms._budget import Budget, budget_of
from gibbous.mechanisms.limits import budget
from gibbous.structure.choice import (
    Caution,
    Margins,
    Network,
    choose_network,
    expected_cells,
    network_picks,
)
from gibbous.structure.contexts import Given, conditional, named, tidy, topological
from gibbous.structure.contexts import margins as one_ways
from gibbous.structure.reconcile import fitted_margins
from gibbous.structure.sensitive import Sensitive, as_texts, likeliest, sensitive_of, stated

SMALL = 128  # cells of a table of columns of middling size, up to which more contexts are tried
part = Rule(lambda v: 0 < v < 0.5, "> 0 and < 0.5")


@answering_class
@dataclass(frozen=True, slots=True)
class NoisyPegs:
    """Buy noisy 1-way tables, choose context columns, release each conditional once with noise.

    The chosen contexts form an order of the columns, so one pass draws a row; contexts given by name
    may form cycles, and rows are then drawn by Gibbs passes in schema order. A column named in `diverse`
    is the context of none, and each conditional it is drawn from is mixed with the uniform law until
    it is l-diverse: of the noisy tables, hence at no cost.

    Guarantee:
        (epsilon, delta)-DP for everything released, by zero-concentrated composition, add/remove or
        replace one; any number of rows and sets is free. No paper claims this mechanism: it is
        park2014's sampler with the noise on the tables. Proven here: docs/proofs/noisy_pegs.md.
        With `diverse`: given all other values of its row, and the tables, the drawn value of such a
        column has entropy >= ln l. That bounds no attacker (docs/proofs/noisy_diverse.md).
        Audited: contract, with half the noise and an undivided budget as saboteurs; `gibbous audit`,
        for both claims, with unmixed laws as saboteur.
    Source:
        [park2014, s3] for disintegrate and synthesize; [sbhg, s3] for releasing tables; noise and
        choice: Canonne, Kamath and Steinke (2020), Zhang et al. (2014), McKenna et al. (2021).
    """

    about: ClassVar[About] = About(
        name="noisy_pegs",
        title="Noisy-table PeGS",
        paper="park2014, s3, corrected (this project)",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="nothing: the paper perturbs draws, and its file of N rows costs N epsilon",
        proven="(epsilon, delta) for all tables and choices together; any number of rows; both relations",
        audited="noisy cells of the running code; half the noise and undivided budgets are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    delta: float = param(1e-6, probability, help="Keep it well under 1/records.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    parents: int | None = param(
        None,
        at_least(0),
        unit="columns",
        help="Most context columns a column; fewer where noise wins. None: 3, or 6 of binary ones.",
    )
    margins: float = param(0.2, part, unit="share of rho", help="Spent on the 1-way tables.")
    choice: float = param(0.1, part, unit="share of rho", help="Spent on choosing context columns.")
    cells: int = param(1 << 16, at_least(1), help="Largest conditional table, in cells.")
    sweeps: int = param(10, at_least(1), help="Passes a row where given contexts form cycles.")
    contexts: Given = param((), help="Public context columns by name; nothing is then chosen.")
    diverse: tuple[str, ...] = param((), help="Columns to be drawn l-diverse, each with its l.")
    criterion: Literal["entropy", "max_probability"] = param(
        "entropy",
        one_of("entropy", "max_probability"),
        help="Of diverse columns: entropy of at least ln l, or no value likelier than 1/l.",
    )

    def __post_init__(self) -> None:
        tidy(self)
        if isinstance(self.diverse, Mapping | list | tuple | str):
            object.__setattr__(self, "diverse", as_texts(self.diverse))
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        split = self._split(schema)
        ones, cell = (noise.info().scale for noise in (split.ones_noise, split.tables_noise()))
        bought = (
            (
                f"{len(schema)} one-way tables",
                split.margins,
                f"gaussian noise, sigma {ones:.6g} counts",
            ),
            (
                f"at most {split.picks} picks of context columns",
                split.choice,
                "exponential mechanism",
            ),
            (
                f"at most {split.most} conditional tables",
                split.tables,
                f"gaussian noise, sigma {cell:.6g} counts or less",
            ),
        )
        size = sorted(schema.sizes)[len(schema) // 2]
        plan = _plans.table_plan(
            self,
            rows,
            sets,
            contexts=one_ways(schema),
            more_cells=expected_cells(schema, self._most(schema) if split.most else 0, self.cells),
            spends=[split.budget.spend(what, part, how) for what, part, how in bought if part],
            published="none: the paper's own sampler costs epsilon for each row",
            outlook=_plans.noise_errors(
                split.ones_noise.info(), rows, one_way=size * ones, two_way=size * size * cell
            ),
        )
        return self._with_diversity(plan, schema)

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: 1-way tables, then the choice of contexts, then their tables with what is left."""
        schema = curator.schema
        split = self._split(schema, curator.measure)
        ones = curator.noisy_counts(one_ways(schema), split.ones_noise)
        network, acyclic = self._network(curator, split, ones)
        given = [j for j in network.order if network.parents[j]]
        tables: tuple[Table, ...] = ()
        if split.most:
            given = given or list(network.order)  # nothing is worth a table: margins once more
            contexts = [self._conditional(schema, j, network.parents[j]) for j in given]
            noise = split.tables_noise(len(given), unused=split.unused(network.paid))
            tables = curator.noisy_counts(contexts, noise)
        by_column = dict(zip(given, tables, strict=True))
        recipe = Recipe(
            "ancestral" if acyclic else "gibbs",
            tuple(range(len(schema))),
            sweeps=1 if acyclic else self.sweeps,
            kappa=1.0,
            fit="rake",
            diverse=self._sensitive(schema),
            criterion=self.criterion,
        )
        items = tuple(by_column.get(j, ones[j]) for j in network.order)
        return Tables(schema, items, recipe, tuple(ones[j] for j in sorted(by_column)))

    def _network(
        self, curator: CuratorLike, split: _Split, ones: Sequence[Table]
    ) -> tuple[Network, bool]:
        """The contexts, and whether their order lets one pass draw a row."""
        schema = curator.schema
        if not split.picks:
            parents = named(schema, self.contexts)
            order = topological(parents)
            return Network(order or tuple(range(len(schema))), parents), order is not None
        known = Tables(schema, tuple(ones), Recipe("ancestral", ()))
        network = choose_network(
            curator,
            Margins(fitted_margins(schema.sizes, ones), max(1.0, known.noisy_rows())),
            self._most(schema),
            epsilon=split.pick_epsilon,
            accounting=split.budget.measure,
            caution=Caution(split.tables_noise().info().scale, max_cells=self.cells),
            leaves=dict(self._sensitive(schema)),
        )
        return network, True

    def _most(self, schema: Schema) -> int:
        """Most context columns: every further one takes picks, and pays where its tables are small."""
        if self.parents is not None:
            return self.parents
        middle = sorted(schema.sizes)[len(schema) // 2]
        return max(3, int(math.log(SMALL) / math.log(max(middle, 2)) + 1e-9) - 1)

    def _sensitive(self, schema: Schema) -> Sensitive:
        given = named(schema, self.contexts) if self.contexts else ()
        return sensitive_of(schema, self.diverse, given)

    def _with_diversity(self, plan: Plan, schema: Schema) -> Plan:
        """The plan with what is promised of drawn values, and with what that leaves open."""
        sensitive = self._sensitive(schema)
        said = stated(schema, sensitive, self.criterion, self.relation)
        worst = tuple(
            (
                f"q*: largest probability of one drawn value of {schema.names[column]!r}",
                likeliest(schema.sizes[column], least, self.criterion),
            )
            for column, least in sensitive
        )
        return replace(
            plan,
            beside=said,
            errors=(*plan.errors, *worst),
            warnings=(*plan.warnings, *((_NOT_OF_RECORDS,) if said else ())),
        )

    def _conditional(self, schema: Schema, target: int, parents: Sequence[int]) -> Context:
        room = max(1, self.cells // schema.sizes[target])
        return conditional(schema, target, parents, max_keys=room)

    def _split(self, schema: Schema, measure: Measure | None = None) -> _Split:
        """What is not chosen or counted goes to the rest."""
        free = sum(size > 1 for size in schema.sizes)
        if self.contexts:
            picks, most = 0, sum(bool(parents) for parents in named(schema, self.contexts))
        else:
            picks = network_picks(free, self._most(schema))
            most = max(0, free - 1) if self._most(schema) else 0
        share = exact(self.choice) if picks else Fraction(0)
        budget = budget_of(self, schema, most or len(schema), choice=share, measure=measure)
        whole = budget.whole
        choice = whole * budget.choices(share)
        ones = whole * exact(self.margins) if most else whole
        return _Split(budget, len(schema), picks, most, ones, choice, whole - ones - choice)


_NOT_OF_RECORDS = (
    "diverse bounds how certain a drawn value is, not what an attacker concludes about a record: only "
    "epsilon and delta bound that. The noisy tables are published too, and are not diverse."
)


@dataclass(frozen=True, slots=True)
class _Split:
    """How the budget is divided: what `plan` prints and `run` spends.

    Attributes:
        picks: most picks; 0 where contexts are public, or there is nothing to choose from.
        most: most conditional tables.
        margins, choice, tables: rho of each, or mu squared.
    """

    budget: Budget
    columns: int
    picks: int
    most: int
    margins: Fraction
    choice: Fraction
    tables: Fraction

    @property
    def ones_noise(self) -> Noise:
        """Of the 1-way tables."""
        return self.budget.noise(self.margins, self.columns)

    def tables_noise(self, tables: int = 0, *, unused: Fraction = Fraction(0)) -> Noise:
        """Of so many conditional tables, or of as many as there can be."""
        if not self.most:
            return self.ones_noise
        return self.budget.noise(self.tables + unused, tables or self.most)

    @property
    def pick_epsilon(self) -> Fraction:
        """Of one pick, by bounded range."""
        return self.budget.pick_epsilon(self.choice / self.picks)

    def unused(self, paid: int) -> Fraction:
        """What is left of the share for choosing: how many picks were made is public."""
        if not self.choice:
            return self.choice
        return self.choice - paid * self.budget.pick_price(self.pick_epsilon)
