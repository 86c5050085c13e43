"""Stability-based hashed Gibbs sampler: noisy hashed conditionals, then free sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.about import About
from gibbous.core.claim import Relation, approximate, pure
from gibbous.core.context import Context
from gibbous.core.exact import down, exact
from gibbous.core.keywords import answering_class
from gibbous.core.params import Rule, at_least, check, one_of, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Noise
from gibbous.core.schema import Schema
from gibbous.core.tables import NoiseInfo, Recipe, Table, Tables
from gibbous.mechanisms import _plans
from gibbous.mechanisms.limits import budget
from gibbous.privacy.noise import geometric_for, stable_gaussian_for, stable_geometric_for
from gibbous.structure.choice import Margins, choose_hashed, pair, picks
from gibbous.structure.contexts import Given, hashed, margins, named, ring, tidy
from gibbous.structure.reconcile import fitted_margins

EXACT = 1 << 62  # seen keys need no bound but the 63 bits of a key
below_one = Rule(lambda v: 0 <= v < 1, ">= 0 and < 1")


@answering_class
@dataclass(frozen=True, slots=True)
class Sbhg:
    """Release each hashed conditional once with thresholded noise, then run Gibbs for any number of rows.

    A part of epsilon buys noisy 1-way tables and the choice of context columns from them. Rows start
    from noisy margins, columns apart; a column whose key has no surviving cell keeps its value.

    Guarantee:
        (epsilon, delta)-DP for everything released, add/remove or replace one; rows are free.
        Claimed by the paper: (epsilon, delta), with the noise of one table for each of the p tables,
        contexts ranked and rows accepted on the raw records. Proven here: with noise and threshold
        for p tables at once, contexts paid or public, no row tested (docs/proofs/sbhg.md).
        Audited: contract, with half the noise, an undivided budget and a forgotten threshold.
    Source:
        [sbhg, alg. 3].
    """

    about: ClassVar[About] = About(
        name="sbhg",
        title="Stability-based hashed Gibbs sampler",
        paper="sbhg, alg. 3",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="(epsilon, delta), replace one, with the noise of a single table",
        proven="(epsilon, delta) for all tables together; both relations; contexts paid or public",
        audited="surviving cells of the running code; undivided budget and lost threshold are caught",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget of the release.")
    delta: float = param(1e-6, probability, help="Keep it well under 1/records.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    parents: int = param(1, at_least(0), unit="columns", help="Context columns a column.")
    sweeps: int = param(10, at_least(1), help="Gibbs passes a row; costs time, not privacy.")
    noise: Literal["auto", "gaussian", "geometric"] = param(
        "auto", one_of("auto", "gaussian", "geometric"), help="auto takes the lower threshold."
    )
    choice: float = param(
        0.2, below_one, unit="share of epsilon", help="Spent on choosing contexts; 0: public ring."
    )
    contexts: Given = param((), help="Public context columns by name; nothing is then chosen.")

    def __post_init__(self) -> None:
        tidy(self)
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: noise and threshold for all tables together."""
        total = approximate(
            exact(self.epsilon),
            exact(self.delta),
            relation=self.relation,
            source="docs/proofs/sbhg.md",
        )
        info = self._tables_noise(schema).info()
        p = len(schema)
        contexts = self._public(schema) or hashed(
            schema, ring(p, self.parents), support="seen", max_keys=EXACT
        )
        model = approximate(
            self._model(schema), exact(self.delta), relation=self.relation, source=total.source
        )
        kind = "scale" if info.law == "geometric" else "sigma"
        spends = (
            *self._choice_spends(schema),
            Spend(
                f"{p} hashed tables, cells that occur",
                model,
                f"{info.law} noise, {kind} {info.scale:.6g} counts; threshold {info.threshold} counts",
            ),
        )
        paper = 1 + 2 / self.epsilon * math.log(1 / self.delta)
        errors, warnings = _outlook(info, contexts, rows)
        if not self._chooses(schema) and not self.contexts and self.parents:
            warnings += (
                "Context columns are the neighbors in schema order: name better ones in contexts=.",
            )
        return _plans.table_plan(
            self,
            schema,
            rows,
            sets,
            total=total,
            contexts=(*contexts, *(margins(schema) if self._chooses(schema) else ())),
            spends=spends,
            published=f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, replace one, for all "
            f"tables, with the noise of one (threshold {paper:.1f} counts)",
            errors=errors,
            warnings=warnings,
            more_cells=self._choice_cells(schema),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: choose contexts if they are not public, then release all tables at once."""
        schema = curator.schema
        contexts = self._public(schema)
        extra: tuple[Table, ...] = ()
        if contexts is None:
            contexts, extra = self._chosen(curator)
        items = curator.noisy_counts(contexts, self._tables_noise(schema))
        recipe = Recipe(
            "gibbs",
            tuple(range(len(schema))),
            sweeps=self.sweeps,
            kappa=0.0,
            fallback="reject",
        )
        return Tables(schema, items, recipe, extra)

    def counted(self, schema: Schema) -> Iterator[Sequence[Context]]:
        """What is counted together after the 1-way tables: the largest choice, from the schema alone."""
        if not self._chooses(schema):
            return
        sizes = schema.sizes
        widest = max(range(len(sizes)), key=lambda j: sizes[j] * (sum(sizes) - sizes[j]))
        yield [pair(schema, widest, c) for c in range(len(sizes)) if c != widest]
        largest = sorted(range(len(sizes)), key=lambda c: -sizes[c])
        parents = [[c for c in largest if c != j][: self.parents] for j in range(len(sizes))]
        yield hashed(schema, parents, support="seen", max_keys=EXACT)

    def _chosen(self, curator: CuratorLike) -> tuple[tuple[Context, ...], tuple[Table, ...]]:
        schema = curator.schema
        half = self._spent_on_choice(schema) / 2
        noise = geometric_for(half, len(schema), self.relation, _plans.most_rows(schema))
        extra = curator.noisy_counts(margins(schema), noise)
        known = Tables(schema, extra, Recipe("ancestral", ()))
        parents = choose_hashed(
            curator,
            Margins(fitted_margins(schema.sizes, extra), max(1.0, known.noisy_rows())),
            self.parents,
            epsilon=down(half / picks(_plans.redrawn(schema), self.parents)),
            accounting="pure",
            max_cells=EXACT,
        )
        return hashed(schema, parents, support="seen", max_keys=EXACT), extra

    def _public(self, schema: Schema) -> tuple[Context, ...] | None:
        if self._chooses(schema):
            return None
        chosen: Sequence[Sequence[int]] = ring(len(schema), self.parents)
        if self.contexts:
            chosen = named(schema, self.contexts)
        return hashed(schema, chosen, support="seen", max_keys=EXACT)

    def _chooses(self, schema: Schema) -> bool:
        several = sum(size > 1 for size in schema.sizes) > 2  # of two there is one choice
        return self.choice > 0 and self.parents > 0 and not self.contexts and several

    def _choice_cells(self, schema: Schema) -> int:
        """Cells that the largest pick counts at once: one column with each of the others."""
        if not self._chooses(schema):
            return 0
        return max(a * (sum(schema.sizes) - a) for a in schema.sizes)

    def _spent_on_choice(self, schema: Schema) -> Fraction:
        share = exact(self.choice) if self._chooses(schema) else Fraction(0)
        return exact(self.epsilon) * share

    def _model(self, schema: Schema) -> Fraction:
        return exact(self.epsilon) - self._spent_on_choice(schema)

    def _choice_spends(self, schema: Schema) -> tuple[Spend, ...]:
        if not self._chooses(schema):
            return ()
        half = pure(
            self._spent_on_choice(schema) / 2,
            relation=self.relation,
            source="docs/proofs/noisy_pegs.md",
        )
        p = len(schema)
        noise = geometric_for(half.epsilon, p, self.relation, _plans.most_rows(schema)).info()
        return (
            Spend(f"{p} one-way tables", half, f"geometric noise, scale {noise.scale:.6g} counts"),
            Spend(
                f"{picks(_plans.redrawn(schema), self.parents)} picks of context columns",
                half,
                "exponential mechanism",
            ),
        )

    def _tables_noise(self, schema: Schema) -> Noise:
        given = (
            self._model(schema),
            exact(self.delta),
            len(schema),
            self.relation,
            _plans.most_rows(schema),
        )
        if self.noise == "geometric":
            return stable_geometric_for(*given)
        if self.noise == "gaussian":
            return stable_gaussian_for(*given)
        both = (stable_gaussian_for(*given), stable_geometric_for(*given))
        return min(both, key=lambda noise: noise.info().threshold or 0)


def _outlook(
    info: NoiseInfo, contexts: Sequence[Context], rows: int | None
) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
    """Expected error, and a warning where few cells will exceed the threshold."""
    errors = _plans.noise_facts(info)
    if not rows:
        return errors, ()
    typical = sorted(c.cells for c in contexts)[len(contexts) // 2]
    errors += (("records of a typical cell if all were equal", rows / typical),)
    if (info.threshold or 0) * typical <= 5 * rows:
        return errors, ()
    return errors, (
        (
            f"Noise dominates at {rows} rows: a cell needs more than {info.threshold} records "
            f"to survive, and a typical table has {typical} cells. Use fewer context columns, "
            "coarser levels, a larger epsilon, or noisy_pegs."
        ),
    )
