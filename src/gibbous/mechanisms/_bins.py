"""Bins of numeric columns in histograms: of the schema, by a rule from public facts, or paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.exact import exact
from gibbous.core.keywords import did_you_mean
from gibbous.core.moment import moment
from gibbous.core.number_grid import grid_of
from gibbous.core.protocols import CuratorLike
from gibbous.core.recode import Edges, recoded_schema
from gibbous.core.schema import Column, Schema
from gibbous.mechanisms import _plans
from gibbous.privacy.noise import geometric_for, moment_geometric_for
from gibbous.structure.bin_counts import (
    NORMAL_QUARTILES,
    equal_edges,
    freedman_diaconis,
    quantile_edges,
    scott,
    spread_from_sums,
    sturges,
)
from gibbous.structure.contexts import margins

BinRule = Literal["schema", "sturges", "scott", "freedman_diaconis", "quantiles"]
Spreads = tuple[tuple[str, float], ...]
"""Public spreads written down by name: ((column, spread), ...)."""

ONE_CELL = Context((), (), (), ())
PURCHASES = 3  # of each column: its noisy bins, its sum, its sum of squares
NARROW = 256  # bins of the public grid on which noisy quantiles are read


@dataclass(frozen=True, slots=True)
class Bins:
    """A rule for the bins of all numeric and date columns of a histogram.

    Attributes:
        rule: "schema" keeps the declared bins; "quantiles" puts about as many records in each, and
            is bought only; the others give equal widths.
        records: n of the rule, public; None where it is not given.
        spreads: public standard deviations, for freedman_diaconis interquartile ranges.
        most: largest number of bins of one column.
    """

    rule: BinRule
    records: int | None
    spreads: Spreads
    most: int

    def columns(self, schema: Schema) -> tuple[int, ...]:
        """Positions of the columns that get new bins."""
        if self.rule == "schema":
            return ()
        return tuple(j for j, c in enumerate(schema) if c.binned and c.edges[0] < c.edges[-1])

    def public(self, schema: Schema) -> dict[int, Edges]:
        """New edges from public facts alone.

        Raises:
            PrivacyRefused: a spread is missing, or quantiles: they would be read off the records.
            ParameterError: the number of records, or a named column, is missing.
        """
        places = self.columns(schema)
        if not places:
            return {}
        if self.rule == "quantiles":
            raise _raw_quantiles()
        rows, given = self._rows(), self._given(schema)
        names = [schema.columns[j].name for j in places]
        if self.rule != "sturges" and (raw := [name for name in names if name not in given]):
            raise _raw_spread(self.rule, raw)
        found = {}
        for j in places:
            column = schema.columns[j]
            spread = given.get(column.name, 0.0)
            found[j] = Edges(equal_edges(column, self.count(column, spread, rows, len(places))))
        return found

    def widest(self, schema: Schema) -> Schema:
        """The schema with `most` bins in every column: what a paid scale may lead to."""
        edges = {j: Edges(equal_edges(schema.columns[j], self.most)) for j in self.columns(schema)}
        return recoded_schema(schema, edges)

    def count(self, column: Column, spread: float, rows: float, dimensions: int) -> int:
        """Bins of one column."""
        width = float(exact(column.edges[-1]) - exact(column.edges[0]))
        if self.rule == "sturges":
            return sturges(rows, self.most)
        rule = scott if self.rule == "scott" else freedman_diaconis
        return rule(width, spread, rows, self.most, dimensions)

    def bought(self, curator: CuratorLike, budget: Fraction) -> dict[int, Edges]:
        """Spend: noisy bins, sums and sums of squares of each column; n and spread follow from them.

        Sturges' rule needs n alone, and quantiles narrower bins: neither buys sums.

        Args:
            budget: epsilon of all columns together.
        Returns:
            New edges, marked as discovered.
        """
        if self.rule == "quantiles":
            return self._quantiles(curator, budget)
        schema, places = curator.schema, self.columns(curator.schema)
        each = budget if self.rule == "sturges" else budget / PURCHASES
        noise = geometric_for(each, len(places), curator.relation, _plans.most_rows(schema))
        counts = curator.noisy_counts([margins(schema)[j] for j in places], noise)
        held = [
            float(table.cells.values.ravel()[: schema.columns[j].bins].sum())
            for j, table in zip(places, counts, strict=True)
        ]
        spreads = [0.0] * len(places)
        if self.rule != "sturges":
            spreads = self._spreads(curator, (budget - each) / (2 * len(places)), held)
        found = {}
        for j, rows, spread in zip(places, held, spreads, strict=True):
            column = schema.columns[j]
            bins = self.count(column, spread, float(self.records or rows), len(places))
            found[j] = Edges(equal_edges(column, bins), "discovered")
        return found

    def _quantiles(self, curator: CuratorLike, budget: Fraction) -> dict[int, Edges]:
        """Spend: noisy counts on a public grid of narrow bins of each column; cut points follow."""
        places = self.columns(curator.schema)
        grid = {j: Edges(equal_edges(curator.schema.columns[j], NARROW)) for j in places}
        view = curator.recoded(grid)
        noise = geometric_for(budget, len(places), curator.relation, _plans.most_rows(view.schema))
        bought = view.noisy_counts([margins(view.schema)[j] for j in places], noise)
        found = {}
        for j, table in zip(places, bought, strict=True):
            counts = table.cells.values.ravel()[: view.schema.columns[j].bins]
            bins = sturges(float(self.records or counts.sum()), self.most)
            found[j] = Edges(quantile_edges(grid[j].edges, counts, bins), "discovered")
        return found

    def _spreads(
        self, curator: CuratorLike, budget: Fraction, held: Sequence[float]
    ) -> list[float]:
        """Spend: sums and sums of squares, each for `budget`; the spread of each column."""
        schema, places = curator.schema, self.columns(curator.schema)
        most, relation = _plans.most_rows(schema), curator.relation
        moments = [moment(schema, ONE_CELL, factors) for j in places for factors in ((j,), (j, j))]
        noises = [moment_geometric_for(budget, one, relation, most) for one in moments]
        sums = [float(t.cells.values.sum()) for t in curator.noisy_moments(moments, noises)]
        grids = [grid_of(schema.columns[j]) for j in places]
        unit = NORMAL_QUARTILES if self.rule == "freedman_diaconis" else 1.0
        return [
            unit * spread_from_sums(rows, first, second, grid)
            for rows, first, second, grid in zip(held, sums[::2], sums[1::2], grids, strict=True)
        ]

    def _rows(self) -> float:
        if self.records is None:
            raise ParameterError(
                "RECORDS",
                f"bins={self.rule!r} was asked for without a number of records.",
                "The rule needs a public n, or a scale that is paid for.",
                "Give records=, or the number of rows.",
            )
        return float(self.records)

    def _given(self, schema: Schema) -> dict[str, float]:
        for name, _ in self.spreads:
            if name not in schema.names:
                raise ParameterError(
                    "SPREADS",
                    f"spreads= names column {name!r}, which the schema does not have.",
                    f"Columns are {', '.join(schema.names[:20])}.",
                    did_you_mean(name, schema.names, "Check the spelling."),
                )
        return dict(self.spreads)


def tidy_spreads(mechanism: Any) -> None:
    """Bring a `spreads` field into its frozen form: a mapping or lists are accepted.

    Raises:
        ParameterError: it has another form, or a spread is not above 0.
    """
    given = mechanism.spreads
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
        frozen = tuple((str(name), float(value)) for name, value in pairs)
        if any(not np.isfinite(value) or value <= 0 for _, value in frozen):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            "PARAM",
            f"spreads of {type(mechanism).__name__} has the wrong form.",
            "It names a public spread > 0 for each numeric column.",
            "For example spreads={'income': 25_000}, on the command line --set 'spreads={income = 25000}'.",
        ) from None
    object.__setattr__(mechanism, "spreads", frozen)


def _raw_quantiles() -> PrivacyRefused:
    return PrivacyRefused(
        "RAWSCALE",
        "bins='quantiles' was asked for without paying for them.",
        "Quantiles of the records are values of records: no epsilon covers that.",
        "Use perturbed_histogram with scale='paid', declare public cut points in the schema, or take "
        "bins='sturges', which needs the number of records alone.",
    )


def _raw_spread(rule: str, names: Sequence[str]) -> PrivacyRefused:
    listed = ", ".join(map(repr, names))
    return PrivacyRefused(
        "RAWSCALE",
        f"bins={rule!r} was asked for without a public spread of column {listed}.",
        "Read off the records it would make the number of bins a statistic without noise, which one "
        "changed value can move: no epsilon covers that.",
        "Give spreads={'" + names[0] + "': ...} from public knowledge (on the command line --set "
        f"'spreads={{{names[0]} = ...}}'), take scale='paid', or bins='sturges', which needs no spread.",
    )
