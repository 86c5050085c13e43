"""Stability-based hashed Gibbs sampler: noisy hashed conditionals, then free sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from gibbous.core.claim import Relation, pure
from gibbous.core.context import Context
from gibbous.core.exact import down, exact
from gibbous.core.keywords import answering_class
from gibbous.core.method_card import About
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
    from noisy margins, columns apart; a column whose key has no surviving cell keeps its value, or is
    drawn from fewer context columns.

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
    fallback: Literal["reject", "prefix"] = param(
        "reject", one_of("reject", "prefix"), help="At a key that did not survive: see its page."
    )
    kappa: float = param(
        0.0, at_least(0), unit="counts", help="Pull of a key's counts to its column's noisy margin."
    )

    def __post_init__(self) -> None:
        tidy(self)
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: noise and threshold for all tables together."""
        split, total, p = self._split(schema), _plans.total(self), len(schema)
        info = split.noise.info()
        contexts = split.contexts or _hashed(schema, ring(p, self.parents))
        kind = "scale" if info.law == "geometric" else "sigma"
        tables = Spend(
            f"{p} hashed tables, cells that occur",
            replace(total, epsilon=split.tables),
            f"{info.law} noise, {kind} {info.scale:.6g} counts; threshold {info.threshold} counts",
        )
        errors, warnings = _outlook(info, contexts, rows)
        if split.contexts and not self.contexts and self.parents:
            warnings += (
                "Context columns are the neighbors in schema order: name better ones in contexts=.",
            )
        paper, sizes = 1 + 2 / self.epsilon * math.log(1 / self.delta), schema.sizes
        return _plans.table_plan(
            self,
            rows,
            sets,
            contexts=(*contexts, *(() if split.contexts else margins(schema))),
            spends=(*self._choice_spends(split), tables),
            published=f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, replace one, for all "
            f"tables, with the noise of one (threshold {paper:.1f} counts)",
            outlook=(errors, warnings),
            # The largest pick counts one column with each of the others at once.
            more_cells=0 if split.contexts else max(a * (sum(sizes) - a) for a in sizes),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend: choose contexts if they are not public, then release all tables at once."""
        schema = curator.schema
        split = self._split(schema)
        contexts, extra = (split.contexts, ()) if split.contexts else self._chosen(curator, split)
        items = curator.noisy_counts(contexts, split.noise)
        recipe = Recipe(
            "gibbs",
            tuple(range(len(schema))),
            sweeps=self.sweeps,
            kappa=self.kappa,
            fallback=self.fallback,
        )
        return Tables(schema, items, recipe, extra)

    def counted(self, schema: Schema) -> Iterator[Sequence[Context]]:
        """What is counted together after the 1-way tables: the largest choice, from the schema alone."""
        if self._split(schema).contexts:
            return
        sizes = schema.sizes
        widest = max(range(len(sizes)), key=lambda j: sizes[j] * (sum(sizes) - sizes[j]))
        yield [pair(schema, widest, c) for c in range(len(sizes)) if c != widest]
        largest = sorted(range(len(sizes)), key=lambda c: -sizes[c])
        yield _hashed(
            schema, [[c for c in largest if c != j][: self.parents] for j in range(len(sizes))]
        )

    def _chosen(
        self, curator: CuratorLike, split: _Split
    ) -> tuple[tuple[Context, ...], tuple[Table, ...]]:
        schema = curator.schema
        extra = curator.noisy_counts(margins(schema), split.ones_noise)
        known = Tables(schema, extra, Recipe("ancestral", ()))
        parents = choose_hashed(
            curator,
            Margins(fitted_margins(schema.sizes, extra), max(1.0, known.noisy_rows())),
            self.parents,
            epsilon=down(split.choice / split.picks),
            accounting="pure",
            max_cells=EXACT,
        )
        return _hashed(schema, parents), extra

    def _choice_spends(self, split: _Split) -> tuple[Spend, ...]:
        if split.contexts:
            return ()
        half = pure(split.choice, relation=self.relation, source="docs/proofs/noisy_pegs.md")
        detail = f"geometric noise, scale {split.ones_noise.info().scale:.6g} counts"
        return (
            Spend(f"{len(split.schema)} one-way tables", half, detail),
            Spend(f"{split.picks} picks of context columns", half, "exponential mechanism"),
        )

    def _split(self, schema: Schema) -> _Split:
        whole, most = exact(self.epsilon), _plans.most_rows(schema)
        several = sum(size > 1 for size in schema.sizes) > 2  # of two there is one choice
        half, contexts = whole * exact(self.choice) / 2, tuple[Context, ...]()
        if not (self.choice > 0 and self.parents > 0 and not self.contexts and several):
            parents = ring(len(schema), self.parents)
            contexts = _hashed(schema, named(schema, self.contexts) if self.contexts else parents)
            half = Fraction(0)
        tables = whole - 2 * half
        given = (tables, exact(self.delta), len(schema), self.relation, most)
        kinds = {"gaussian": stable_gaussian_for, "geometric": stable_geometric_for}
        offered = [make(*given) for name, make in kinds.items() if self.noise in ("auto", name)]
        noise = min(offered, key=lambda noise: noise.info().threshold or 0)
        return _Split(schema, self.relation, contexts, half, self.parents, tables, noise)


@dataclass(frozen=True, slots=True)
class _Split:
    """How epsilon is divided: what `plan` prints and `run` spends.

    Attributes:
        contexts: of the hashed tables, where they are public; () where they are chosen.
        choice: epsilon of the 1-way tables, and once more of all picks together.
        tables: epsilon of the hashed tables.
        noise: of the hashed tables.
    """

    schema: Schema
    relation: Relation
    contexts: tuple[Context, ...]
    choice: Fraction
    parents: int
    tables: Fraction
    noise: Noise

    @property
    def picks(self) -> int:
        """Picks of context columns."""
        return picks(_plans.redrawn(self.schema), self.parents)

    @property
    def ones_noise(self) -> Noise:
        """Of the 1-way tables."""
        most = _plans.most_rows(self.schema)
        return geometric_for(self.choice, len(self.schema), self.relation, most)


def _hashed(schema: Schema, parents: Sequence[Sequence[int]]) -> tuple[Context, ...]:
    return hashed(schema, parents, support="seen", max_keys=EXACT)


def _outlook(info: NoiseInfo, contexts: Sequence[Context], rows: int | None) -> _plans.Outlook:
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
