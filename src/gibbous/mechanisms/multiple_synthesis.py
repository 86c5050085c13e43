"""Multiple synthesis without protection: sets from the posterior predictive law of exact statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from gibbous.core.cell_model import CellModel, NoisySum
from gibbous.core.claim import Claim, Relation, no_claim
from gibbous.core.codes import Codes, joined
from gibbous.core.context import Context
from gibbous.core.errors import ResourceLimit
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, param
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike, Words64
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.mechanisms import _plans
from gibbous.mechanisms._modips_statistics import Covariance, coarsening, moments
from gibbous.privacy.noise import Geometric
from gibbous.sampling.cells.cell_index import cell_context, numeric_columns
from gibbous.sampling.cells.cell_moments import fitted
from gibbous.sampling.cells.cell_rows import CellRows, ready_cells

MAX_CELLS = 1 << 22
NO_NOISE = Fraction(
    1, 10**6
)  # a scale at which a draw differs from 0 less often than once in e^1e6


@mechanism
class MultipleSynthesis:
    """Draw the parameters of every set from their posterior law given the records, then its rows.

    Cells of the categorical columns have Dirichlet shares; numbers are multivariate normal within a
    cell, with an inverse-Wishart covariance: the model of modips, without its noise.

    Guarantee:
        None: the posterior is that of the exact counts, means and covariances. Claimed by the paper:
        none. For studies on public data. Audited: nothing to audit.
    Source:
        [bowen2016, s4] (MS, the non-private baseline); Rubin (1993);
        docs/proofs/multiple_synthesis.md.
    """

    about: ClassVar[About] = About(
        name="multiple_synthesis",
        title="Multiple synthesis, without protection",
        paper="bowen2016, s4 (MS)",
        unit="dataset",
        kind="none",
        releases="rows",
        claimed="none",
        proven="none: exact counts, means and covariances decide the rows",
        audited="not applicable",
    )

    covariance: Covariance = param("pooled", help="One covariance for all cells, or one each.")
    prior: float = param(
        2 / 3, at_least(0), unit="records", help="Virtual records of the whole table."
    )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Needs only: there is no cost that could be stated.

        Raises:
            ResourceLimit: the categorical columns have too many cells.
        """
        cells, width = cell_context(schema), len(numeric_columns(schema))
        matrices = cells.cells if self.covariance == "cells" else 1
        numbers = cells.cells * (1 + width) + matrices * width**2
        if numbers > MAX_CELLS:
            raise ResourceLimit(
                "JOINT",
                f"The table of the categorical columns has {cells.cells:.4g} cells, and its model "
                f"{numbers:.4g} parameters.",
                f"multiple_synthesis draws at most {MAX_CELLS:,} for every set.",
                "Use coarser or fewer columns, or covariance='pooled'.",
            )
        plan = _plans.unprotected_plan(
            self,
            rows,
            sets,
            contexts=(cells, *(one.context for one in moments(schema, self.covariance))),
            what="rows of the posterior predictive law",
            warning="This method has no guarantee: exact statistics decide its rows.",
        )
        return replace(plan, numbers=numeric_columns(schema))

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets rows, set after set, each set from parameters of its own."""
        total = _plans.paid_rows(self, rows, sets)
        draw = PosteriorRows(self._model(curator), sets)
        return curator.draw((), draw, total)

    def _model(self, curator: CuratorLike) -> CellModel:
        schema, exact = curator.schema, Geometric(NO_NOISE)
        changes = coarsening(schema)
        coarse = curator.recoded(changes) if changes else curator
        sums = moments(schema, self.covariance)
        counts = coarse.noisy_counts((cell_context(schema),), exact)[0]
        tables = coarse.noisy_moments(sums, [exact] * len(sums)) if sums else ()
        known = tuple(NoisySum(one.factors, t) for one, t in zip(sums, tables, strict=True))
        return fitted(schema, counts, known, prior=self.prior, draws="posterior")


@dataclass(frozen=True, slots=True)
class PosteriorRows:
    """Rows of several sets, each from parameters drawn for it with the system's entropy.

    Guarantee:
        None.

    Attributes:
        model: fitted to exact statistics.
        sets: number of sets, of equal size.
    """

    model: CellModel
    sets: int

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """No claim."""
        return no_claim(unit="dataset", relation=relation, source="bowen2016, s4 (MS)")

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows; a fresh word seeds the streams of all sets."""
        ready, seed = ready_cells(schema, self.model), int(words(1)[0])
        each = [
            CellRows(ready, seed, index).rows(0, rows // self.sets, 1) for index in range(self.sets)
        ]
        return joined(each)


__all__ = ["MultipleSynthesis", "PosteriorRows"]
