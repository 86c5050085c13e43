"""Distribution functions by the exponential mechanism: one public candidate for each column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense
from gibbous.mechanisms import _drawn, _plans
from gibbous.mechanisms.limits import budget
from gibbous.sampling.public_rows import PublicRows
from gibbous.structure.cdf_grid import CdfGrid, cdf_grid, distances
from gibbous.structure.contexts import margins


@mechanism
class Cdf:
    """Choose a distribution function for each column from a public grid; draw columns apart.

    P is proportional to exp(epsilon_j u / 2) with u minus the Kolmogorov-Smirnov distance in counts.
    The budget is divided evenly by the columns. No relation between columns is kept.

    Guarantee:
        Pure epsilon-DP for all rows of all sets, whatever their number; add/remove or replace one.
        Claimed by the paper: epsilon over all candidate functions, "not a viable choice in
        practice". Proven here: epsilon over a public grid (docs/proofs/cdf.md). Audited: contract.
    Source:
        [bowen2016, eq. 7]; [Wasserman, Zhou 2010]; [McSherry, Talwar 2007].
    """

    about: ClassVar[About] = About(
        name="cdf",
        title="Distribution functions by the exponential mechanism",
        paper="bowen2016, eq. 7",
        unit="dataset",
        kind="pure",
        releases="rows",
        claimed="epsilon over all candidate functions; said to be unusable in practice",
        proven="epsilon over a public grid of functions, columns apart; rows are free",
        audited="rows of the running code; scores of real neighbors move by one at most",
        shared=True,
    )

    epsilon: float = param(1.0, budget, unit="nats", help="The whole budget, over all columns.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    groups: int = param(8, at_least(2), unit="groups", help="Most groups of codes of a function.")
    candidates: int = param(1 << 14, at_least(16), help="Most candidates of a column.")

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon, whatever the number of rows.

        Raises:
            ParameterError: rows is None or 0.
        """
        total = _drawn.drawn_rows(self, rows, sets)
        grids = [g for g in self._grids(schema) if g.size > 1]
        most = max((g.candidates for g in grids), default=1)
        each = self._each(schema)
        errors = (
            ("candidates of a column", float(most)),
            ("error of the grid itself, share", max((0.5 / g.steps for g in grids), default=0.0)),
            # exp(-epsilon t / 2) times the number of candidates bounds the chance of a loss of t.
            (
                "distance beyond the best candidate's, counts, in 19 of 20 runs",
                2 * math.log(20 * most) / float(each),
            ),
        )
        return _drawn.file_plan(
            self,
            schema,
            rows,
            sets,
            what=f"distribution functions of {len(grids)} columns, {total} rows",
            detail=f"epsilon = {float(each):.6g} a column",
            outlook=(errors, ("Columns are drawn apart: no relation between them is kept.",)),
            contexts=margins(schema),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: one private choice a column; the rows then follow from what was chosen."""
        schema, total = curator.schema, _drawn.drawn_rows(self, rows, sets)
        weights = []
        for context, grid in zip(margins(schema), self._grids(schema), strict=True):
            if grid.size == 1:
                weights.append(np.ones(1, dtype=np.uint64))
                continue
            functions = grid.functions()
            chosen = curator.choose(
                (context,), _score(grid, functions), sensitivity=1, epsilon=self._each(schema)
            )
            weights.append(grid.weights(functions[chosen]))
        return curator.draw((), PublicRows(tuple(weights)), total)

    def _grids(self, schema: Schema) -> list[CdfGrid]:
        return [cdf_grid(size, self.groups, self.candidates) for size in schema.sizes]

    def _each(self, schema: Schema) -> Fraction:
        return exact(self.epsilon) / _plans.redrawn(schema)


def _score(grid: CdfGrid, functions: np.ndarray) -> Callable[[Sequence[Counts]], np.ndarray]:
    """Minus the distance in counts; one record moves it by at most 1, under both relations."""

    def score(counts: Sequence[Counts]) -> np.ndarray:
        cells = counts[0].cells
        assert isinstance(cells, Dense)
        return -distances(grid, functions, cells.values[0])

    return score
