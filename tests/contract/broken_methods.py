"""Broken methods that the auditor must see, as a third party might ship them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from gibbous.contract.saboteurs import Underpriced
from gibbous.core.claim import Claim, Relation, pure
from gibbous.core.method_card import About
from gibbous.core.params import check, param, positive
from gibbous.core.plan import Plan, Spend
from gibbous.core.schema import Schema
from gibbous.core.tables import Cells, Dense, NoiseInfo, Recipe, Tables
from gibbous.mechanisms._plans import most_rows
from gibbous.privacy.noise import Geometric, geometric_for
from gibbous.structure.contexts import joint, margins


def about(name: str) -> About:
    return About(
        name=name,
        title="A broken build",
        paper="none",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="epsilon",
        proven="nothing",
        audited="in tests",
    )


@dataclass(frozen=True, slots=True)
class Dearer:
    """Noise that is what it says, and tells a lower price than it has."""

    base: Geometric
    told: Fraction

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        return pure(self.told, relation=relation)

    def info(self) -> NoiseInfo:
        return self.base.info()

    def add(self, cells: Cells, *, progress: Any = None) -> Dense:
        return self.base.add(cells)


@dataclass(frozen=True, slots=True)
class Undivided:
    """Margins, each with the noise of the whole epsilon: p tables cost p epsilon.

    Guarantee:
        None; it says epsilon.
    Source:
        The fault F3.
    """

    about: ClassVar[About] = about("undivided")
    epsilon: float = param(1.0, positive, help="What it claims.")

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        total = pure(Fraction(self.epsilon))
        params = {"epsilon": self.epsilon}
        cells = sum(schema.sizes)
        spends = (Spend("margins", total),)
        return Plan("undivided", params, rows, sets, total, total, "", spends, cells)

    def run(self, curator: Any, rows: int | None, sets: int = 1) -> Tables:
        told = Fraction(self.epsilon)
        items = curator.noisy_counts(margins(curator.schema), Dearer(Geometric(1 / told), told))
        return Tables(curator.schema, items, Recipe("ancestral", tuple(range(len(items)))))


@dataclass(frozen=True, slots=True)
class SeenLevels:
    """Honest noise on the cross table of the levels that some record has.

    Guarantee:
        None; it says epsilon.
    Source:
        The mutant "levels from data".
    """

    about: ClassVar[About] = about("seen_levels")
    epsilon: float = param(1.0, positive, help="What it claims.")

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        total = pure(Fraction(self.epsilon))
        params = {"epsilon": self.epsilon}
        return Plan("seen_levels", params, rows, sets, total, total, "", cells=schema.cells)

    def run(self, curator: Any, rows: int | None, sets: int = 1) -> Tables:
        codes = curator._engine._look().values  # what no method may do
        kept = [np.unique(codes[:, j]) for j in range(codes.shape[1])]
        columns = tuple(
            replace(column, kind="nominal", levels=tuple(column.labels()[v] for v in seen))
            for column, seen in zip(curator.schema, kept, strict=True)
        )
        schema = Schema(columns)
        (whole,) = curator.noisy_counts(
            (joint(curator.schema),), Geometric(1 / Fraction(self.epsilon))
        )
        cells = whole.cells.values.reshape(curator.schema.sizes)[np.ix_(*kept)]
        context = joint(schema)
        table = replace(whole, context=context, cells=Dense(cells.reshape(context.keys, -1)))
        return Tables(schema, (table,), Recipe("ancestral", (0,)))


@dataclass(frozen=True, slots=True)
class NinetyPercent:
    """The Laplace sanitizer with nine tenths of the noise that its tables state.

    Guarantee:
        None; it says epsilon.
    Source:
        The mutant "noise at 90 % of its scale".
    """

    about: ClassVar[About] = about("ninety_percent")
    epsilon: float = param(1.0, positive, help="What it claims.")

    def __post_init__(self) -> None:
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        total = pure(Fraction(self.epsilon))
        params = {"epsilon": self.epsilon}
        return Plan("ninety_percent", params, rows, sets, total, total, "", cells=schema.cells)

    def run(self, curator: Any, rows: int | None, sets: int = 1) -> Tables:
        honest = geometric_for(self.epsilon, 1, "add_remove", most_rows(curator.schema))
        noise = Underpriced(honest, Fraction(9, 10))
        items = curator.noisy_counts((joint(curator.schema),), noise)
        return Tables(curator.schema, items, Recipe("ancestral", (0,)))


@dataclass(frozen=True, slots=True)
class Greedy(Undivided):
    """The same, with the true price: its run asks for p epsilon where its plan states epsilon.

    Guarantee:
        None; it is refused.
    Source:
        A plan that forgets the tables.
    """

    about: ClassVar[About] = about("greedy")

    def run(self, curator: Any, rows: int | None, sets: int = 1) -> Tables:
        noise = Geometric(1 / Fraction(self.epsilon))
        items = curator.noisy_counts(margins(curator.schema), noise)
        return Tables(curator.schema, items, Recipe("ancestral", tuple(range(len(items)))))


@dataclass(frozen=True, slots=True)
class OrderRead(Undivided):
    """Honest noise, and columns drawn in the order of their largest exact counts.

    Guarantee:
        None; it says epsilon.
    Source:
        A choice that was read off the records and not paid for.
    """

    about: ClassVar[About] = about("order_read")

    def run(self, curator: Any, rows: int | None, sets: int = 1) -> Tables:
        contexts = margins(curator.schema)
        noise = geometric_for(self.epsilon, len(contexts), "add_remove", 1)
        items = curator.noisy_counts(contexts, noise)
        exact = [counts.cells.values.max() for counts in curator._engine.tally(contexts)]
        return Tables(curator.schema, items, Recipe("ancestral", tuple(np.argsort(exact).tolist())))
