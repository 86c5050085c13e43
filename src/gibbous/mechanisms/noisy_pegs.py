"""Noisy-table PeGS: conditionals chosen and noised once, then rows for free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gibbous.core.about import About
from gibbous.core.claim import Claim, Relation, approximate, zcdp
from gibbous.core.context import Context
from gibbous.core.exact import exact, root_down
from gibbous.core.keywords import answering_class
from gibbous.core.params import Rule, at_least, check, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Table, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms.limits import budget
from gibbous.privacy.calibrate import rho_from_approx
from gibbous.privacy.noise import gaussian_for
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

PROOF = "docs/proofs/noisy_pegs.md"
part = Rule(lambda v: 0 < v < 0.5, "> 0 and < 0.5")


@answering_class
@dataclass(frozen=True, slots=True)
class NoisyPegs:
    """Buy noisy 1-way tables, choose context columns, release each conditional once with noise.

    The chosen contexts form an order of the columns, so one pass draws a row; contexts given by name
    may form cycles, and rows are then drawn by Gibbs passes in schema order.

    Guarantee:
        (epsilon, delta)-DP for everything released, by zero-concentrated composition, add/remove or
        replace one; any number of rows and sets is free. No paper claims this mechanism: it is
        park2014's sampler with the noise on the tables. Proven here: docs/proofs/noisy_pegs.md.
        Audited: contract, with half the noise and an undivided budget as saboteurs.
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
    parents: int = param(
        3,
        at_least(0),
        unit="columns",
        help="Most context columns a column; fewer where noise wins.",
    )
    margins: float = param(0.2, part, unit="share of rho", help="Spent on the 1-way tables.")
    choice: float = param(0.1, part, unit="share of rho", help="Spent on choosing context columns.")
    cells: int = param(1 << 16, at_least(1), help="Largest conditional table, in cells.")
    sweeps: int = param(10, at_least(1), help="Passes a row where given contexts form cycles.")
    contexts: Given = param((), help="Public context columns by name; nothing is then chosen.")

    def __post_init__(self) -> None:
        tidy(self)
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        total = approximate(
            exact(self.epsilon), exact(self.delta), relation=self.relation, source=PROOF
        )
        most = self._most_tables(schema)
        ones, cell = (
            self._noise(schema, "margins", len(schema)),
            self._noise(schema, "tables", most),
        )
        bought = {
            "margins": f"{len(schema)} one-way tables, gaussian noise, sigma {_sigma(ones):.6g} counts",
            "choice": f"at most {self._picks(schema)} picks of context columns, exponential mechanism",
            "tables": f"at most {most} conditional tables, gaussian noise, sigma {_sigma(cell):.6g} "
            "counts or less",
        }
        spends = tuple(
            Spend(words.split(", ")[0], self._price(rho), words.split(", ", 1)[1])
            for name, words in bought.items()
            if (rho := self._rho(schema)[name])
        )
        size = sorted(schema.sizes)[len(schema) // 2]
        errors, warnings = _plans.noise_errors(
            ones.info(), rows, one_way=size * _sigma(ones), two_way=size * size * _sigma(cell)
        )
        return _plans.table_plan(
            self,
            schema,
            rows,
            sets,
            total=total,
            contexts=one_ways(schema),
            more_cells=expected_cells(schema, self.parents if most else 0, self.cells),
            spends=spends,
            published="none: the paper's own sampler costs epsilon for each row",
            errors=errors,
            warnings=warnings,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: 1-way tables, then the choice of contexts, then their tables with what is left."""
        schema = curator.schema
        ones = curator.noisy_counts(one_ways(schema), self._noise(schema, "margins", len(schema)))
        network, acyclic = self._network(curator, ones)
        given = [j for j in network.order if network.parents[j]]
        bought: tuple[Table, ...] = ()
        if self._most_tables(schema):
            given = given or list(network.order)  # nothing is worth a table: margins once more
            contexts = [self._conditional(schema, j, network.parents[j]) for j in given]
            noise = self._noise(schema, "tables", len(given), unused=self._unused(schema, network))
            bought = curator.noisy_counts(contexts, noise)
        by_column = dict(zip(given, bought, strict=True))
        recipe = Recipe(
            "ancestral" if acyclic else "gibbs",
            tuple(range(len(schema))),
            sweeps=1 if acyclic else self.sweeps,
            kappa=1.0,
            fit="rake",
        )
        items = tuple(by_column.get(j, ones[j]) for j in network.order)
        return Tables(schema, items, recipe, tuple(ones[j] for j in sorted(by_column)))

    def _network(self, curator: CuratorLike, ones: Sequence[Table]) -> tuple[Network, bool]:
        """The contexts, and whether their order lets one pass draw a row."""
        schema = curator.schema
        if not self._picks(schema):
            parents = named(schema, self.contexts)
            order = topological(parents)
            return Network(order or tuple(range(len(schema))), parents), order is not None
        known = Tables(schema, tuple(ones), Recipe("ancestral", ()))
        tables = self._noise(schema, "tables", self._most_tables(schema))
        network = choose_network(
            curator,
            Margins(fitted_margins(schema.sizes, ones), max(1.0, known.noisy_rows())),
            self.parents,
            epsilon=self._pick_epsilon(schema),
            caution=Caution(_sigma(tables), max_cells=self.cells),
        )
        return network, True

    def _conditional(self, schema: Schema, target: int, parents: Sequence[int]) -> Context:
        room = max(1, self.cells // schema.sizes[target])
        return conditional(schema, target, parents, max_keys=room)

    def _picks(self, schema: Schema) -> int:
        """Most picks; 0 where contexts are public, or there is nothing to choose from."""
        free = sum(size > 1 for size in schema.sizes)
        return 0 if self.contexts else network_picks(free, self.parents)

    def _pick_epsilon(self, schema: Schema) -> Fraction:
        return root_down(8 * self._rho(schema)["choice"] / self._picks(schema))

    def _unused(self, schema: Schema, network: Network) -> Fraction:
        """What is left of the share for choosing: how many picks were made is public."""
        choice = self._rho(schema)["choice"]
        return choice - network.paid * self._pick_epsilon(schema) ** 2 / 8 if choice else choice

    def _most_tables(self, schema: Schema) -> int:
        if self.contexts:
            return sum(bool(parents) for parents in named(schema, self.contexts))
        free = sum(size > 1 for size in schema.sizes)
        return max(0, free - 1) if self.parents else 0

    def _rho(self, schema: Schema) -> dict[str, Fraction]:
        """The concentrated budget, divided: what is not chosen or counted goes to the rest."""
        whole = rho_from_approx(exact(self.epsilon), exact(self.delta))
        choice = whole * exact(self.choice) if self._picks(schema) else Fraction(0)
        ones = whole * exact(self.margins) if self._most_tables(schema) else whole
        return {"margins": ones, "choice": choice, "tables": whole - ones - choice}

    def _noise(
        self, schema: Schema, part: str, tables: int, *, unused: Fraction = Fraction(0)
    ) -> Noise:
        if not tables:
            return self._noise(schema, "margins", len(schema))
        most = _plans.most_rows(schema)
        return gaussian_for(self._rho(schema)[part] + unused, tables, self.relation, most)

    def _price(self, rho: Fraction) -> Claim:
        return zcdp(rho, relation=self.relation, source=PROOF)


def _sigma(noise: Noise) -> float:
    return noise.info().scale
