"""Paid facts: names and a privacy unit in; kinds, levels, bounds and bins bought; then a method on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.core.claim import Relation, zcdp
from gibbous.core.codes import Codes
from gibbous.core.column import Column
from gibbous.core.discovery import Discovery
from gibbous.core.errors import PrivacyRefused
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Mechanism
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Table, Tables
from gibbous.encode.cell_text import CLASSES, classes, lenient_codes, plain_text, whole_text
from gibbous.mechanisms import _inner
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.noise import Gaussian, Thresholded, gaussian_for, selecting_for
from gibbous.privacy.text_curator import TextCurator
from gibbous.structure.bought_columns import (
    Outline,
    bounded_column,
    cut_column,
    grid_column,
    levels_column,
    nothing_column,
    outline,
    stated_column,
)
from gibbous.structure.contexts import margins

PROOF = "docs/proofs/discovery.md"
TAILS = Fraction(1, 4)
"""Of delta: for texts that one unit alone has."""
SHARES = {"kinds": 0.12, "levels": 0.45, "bounds": 0.23, "cuts": 0.2}
"""Of the rho of discovery, each for the columns that need it."""


@dataclass(frozen=True, slots=True)
class Discovering:
    """A method on a schema that is bought first, with a share of the method's own budget.

    One release, one total: (epsilon, delta) of the method. A quarter of delta pays for texts that one
    unit alone has; of rho, `known.share` buys kinds, levels, bounds and cut points, in this order, and
    the method works with the rest. What follows from noisy tables, and which columns are asked
    next, costs nothing.

    Guarantee:
        (epsilon, delta)-DP of the method's total, for the schema and the method together, by
        zero-concentrated composition; add/remove or replace one. Proven: docs/proofs/discovery.md.
    Raises:
        PrivacyRefused: the method has no such budget.

    Attributes:
        method: as it would run with a schema, at the whole budget.
        known: what is public.
    """

    method: Mechanism
    known: Discovery

    @property
    def about(self) -> About:
        """The card of the method inside."""
        return self.method.about

    @property
    def relation(self) -> Relation:
        """That of the method inside."""
        found: Relation = getattr(self.method, "relation", "add_remove")
        return found

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: the total of the method inside at the whole budget.

        Args:
            schema: the placeholder of `Discovery.schema`, or what was bought.
        """
        parts, total = self.parts(rows, sets), self._known(rows, sets).total
        inside = parts.method.plan(schema, rows, sets)
        source = f"{PROOF}; {total.source}"
        return replace(
            inside,
            params=inside.params | {"discovery": self.known.to_json()},
            claim=replace(total, unit=inside.claim.unit, source=source),
            total=replace(total, source=source),
            spends=(*parts.spends(), *inside.spends),
            errors=(
                *inside.errors,
                ("texts of fewer rows than about this are no level", float(parts.threshold)),
            ),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Spend: the schema first, then the method inside on it with what is left."""
        parts = self.parts(rows, sets)
        if not isinstance(curator, TextCurator):  # a rehearsal, which has no records
            return parts.method.run(curator, rows, sets)
        schema, usual = bought_schema(curator, self.known, parts)
        return parts.method.run(_under(curator, schema, usual), rows, sets)

    def parts(self, rows: int | None = None, sets: int = 1) -> Parts:
        """How the budget is divided; the same for all data.

        Raises:
            PrivacyRefused: the method's purchases are not zero-concentrated within (epsilon, delta).
        """
        total, share = self._known(rows, sets).total, exact(self.known.share)
        tails = total.delta * TAILS
        rho = rho_from_approx(total.epsilon, total.delta - tails)
        rest = rho * (1 - share) / rho_from_approx(total.epsilon, total.delta)
        epsilon = _inner.share_of_rho(total.epsilon, total.delta, rest)
        method = replace(self.method, epsilon=epsilon)  # type: ignore[type-var]
        unit = self.known.unit
        columns = len(self.known.names) - (unit.column is not None)
        return Parts(rho * share, tails, columns, self.relation, unit.max_rows, method)

    def _known(self, rows: int | None, sets: int) -> Plan:
        known = self.method.plan(self.known.schema(), rows, sets)
        if not _inner.gaussian(known) or not hasattr(self.method, "epsilon"):
            raise PrivacyRefused(
                "DISCOVERY",
                f"The schema was to be bought for {self.about.name}, whose noise is not priced in rho.",
                "A share of one budget pays for the schema: of a method with Gaussian noise.",
                "Use adaptive_gibbs (the default), or declare a schema.",
            )
        return known


@dataclass(frozen=True, slots=True)
class Parts:
    """The budget of discovery, and the method on the rest.

    Attributes:
        rho: of everything that is bought before the method.
        tails: delta of texts that one unit alone has.
        columns: that are looked at.
        relation, max_rows: of the run.
        method: at what is left.
    """

    rho: Fraction
    tails: Fraction
    columns: int
    relation: Relation
    max_rows: int
    method: Mechanism

    def noise(self, what: str, columns: int) -> Gaussian:
        """Noise for one table a column."""
        return gaussian_for(self._rho(what), columns, self.relation, self.max_rows)

    def selecting(self, columns: int) -> Thresholded:
        """Noise for the texts of so many columns, and the threshold above which they are kept."""
        return selecting_for(
            self._rho("levels"), self.tails, columns, self.relation, self.max_rows
        )

    @property
    def threshold(self) -> int:
        """The threshold where all columns are asked for their texts."""
        return self.selecting(self.columns).threshold

    def spends(self) -> tuple[Spend, ...]:
        """The purchases, at the noise that they have where they are made of all columns."""
        words = {
            "kinds": "kinds, missing cells and decimals of",
            "levels": "levels of",
            "bounds": "bounds of numbers and days of",
            "cuts": "cut points of numbers and days of",
        }
        found = []
        for what, text in words.items():
            noise = self.noise(what, self.columns)
            claim = zcdp(self._rho(what), relation=self.relation, source=PROOF)
            detail = f"gaussian noise, sigma {noise.info().scale:.6g} counts or less"
            if what == "levels":
                claim = replace(claim, delta=self.tails)
                detail += f", kept above {self.threshold} or less"
            found.append(Spend(f"{text} {self.columns} columns", claim, detail))
        return tuple(found)

    def _rho(self, what: str) -> Fraction:
        return self.rho * exact(SHARES[what])


def bought_schema(
    curator: TextCurator, known: Discovery, parts: Parts
) -> tuple[Schema, dict[str, int]]:
    """Spend: kinds, levels, bounds and cut points, each with its share of `parts`.

    Returns:
        The schema, and for each column the code of cells that have no other place.
    """
    plans, columns = _outlined(curator, known, parts), dict[str, Column]()
    for name, levels in known.levels:
        columns[name] = stated_column(plans[name], levels)
    usual = _with_levels(curator, known, parts, plans, columns)
    numbers = [
        plan
        for name, plan in plans.items()
        if name not in columns and (plan.kind != "levels" or plan.integer)
    ]
    if numbers:
        columns |= _with_bounds(curator, parts, numbers)
    names = [name for name in plans if name in columns]
    left = tuple(name for name in plans if name not in columns)
    if not names:
        names, left = [left[0]], left[1:]
        columns[names[0]] = nothing_column(names[0])
    schema = Schema(tuple(columns[name] for name in names), known.unit, ignore=left)
    return schema, {c.name: usual.get(c.name, c.bins // 2) for c in schema}


def _outlined(curator: TextCurator, known: Discovery, parts: Parts) -> dict[str, Outline]:
    names = [name for name in known.names if name != known.unit.column]
    schema = Schema(tuple(Column(name, "nominal", CLASSES) for name in names), known.unit)
    noise = parts.noise("kinds", len(names))
    view = curator.coded(schema, classes)
    tables = [_cells(table) for table in view.noisy_counts(margins(schema), noise)]
    sigma, rows = float(noise.sigma), max(0.0, float(np.mean([t.sum() for t in tables])))
    stated = dict.fromkeys(known.numeric, "numeric") | dict.fromkeys(known.date, "date")
    stated |= {name: "levels" for name, _ in known.levels}
    return {
        name: outline(name, counts, sigma=sigma, rows=rows, stated=stated.get(name, ""))
        for name, counts in zip(names, tables, strict=True)
    }


def _with_levels(
    curator: TextCurator,
    known: Discovery,
    parts: Parts,
    plans: Mapping[str, Outline],
    columns: dict[str, Column],
) -> dict[str, int]:
    """Add the columns of levels; the codes of their most usual ones are returned."""
    asked = [
        name
        for name, plan in plans.items()
        if name not in columns and (plan.kind == "levels" or (plan.integer and not plan.stated))
    ]
    if not asked:
        return {}
    noise, whole = parts.selecting(len(asked)), {n for n in asked if plans[n].integer}

    def written(name: str, texts: Any) -> Any:
        return whole_text(texts) if name in whole else plain_text(texts)

    usual = {}
    for name, kept in zip(asked, curator.noisy_texts(asked, noise, written), strict=True):
        column = levels_column(plans[name], kept, noise.info().scale)
        if column is not None:
            columns[name] = column
            texts = [str(level) for level in column.levels]
            usual[name] = max(range(len(texts)), key=lambda code: kept[texts[code]])
    return usual


def _with_bounds(
    curator: TextCurator, parts: Parts, plans: list[Outline]
) -> dict[str, Column]:
    """Columns of numbers and days: bounds first, then bins."""
    grids = Schema(tuple(map(grid_column, plans)), curator.schema.unit)
    noise = parts.noise("bounds", len(plans))
    view = _under(curator, grids, {})
    tables = view.noisy_counts(margins(grids), noise)
    bounded = [
        bounded_column(plan, _cells(table)[:-1], float(noise.sigma))
        for plan, table in zip(plans, tables, strict=True)
    ]
    narrow = [column for column in bounded if column.binned]
    found = {column.name: column for column in bounded}
    if narrow:
        schema = Schema(tuple(narrow), curator.schema.unit)
        noise = parts.noise("cuts", len(narrow))
        tables = _under(curator, schema, {}).noisy_counts(margins(schema), noise)
        for column, table in zip(narrow, tables, strict=True):
            found[column.name] = cut_column(column, _cells(table), float(noise.sigma))
    return found


def _under(curator: TextCurator, schema: Schema, usual: Mapping[str, int]) -> CuratorLike:
    return curator.coded(
        schema, lambda texts, column: lenient_codes(texts, column, usual.get(column.name, 0))
    )


def _cells(table: Table) -> np.ndarray:
    assert isinstance(table.cells, Dense)
    return table.cells.values.ravel().astype(np.float64)
