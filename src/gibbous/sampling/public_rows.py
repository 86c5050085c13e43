"""Rows from public weights, column by column, with words of the operating system; they cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Claim, Relation, pure
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.protocols import Words64
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.sampling.exact_draws import accumulate, draw_levels
from gibbous.sampling.structural_zeros import possible, uniform_rows

PATIENCE = 100  # attempts at a possible row before it is drawn uniformly


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """Independent columns from weights that were released before. Impossible rows are drawn again.

    Guarantee:
        Post-processing: no record is looked at, and the price is 0.

    Attributes:
        weights: a column each, uint64 (levels,); each sums to more than 0.
    """

    weights: tuple[np.ndarray, ...]

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """Nothing; ValueError if counts were asked for, which would have to be paid."""
        if contexts:
            raise ValueError("public rows look at no counts")
        return pure(Fraction(0), unit="dataset", relation=relation, source="post-processing")

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows."""
        sums = [accumulate(one[None, :]) for one in self.weights]

        def fresh(count: int) -> np.ndarray:
            slots = np.zeros(count, dtype=np.int64)
            drawn = [draw_levels(one, slots, words) for one in sums]
            return np.stack(drawn).astype(schema.code_dtype())

        def again(attempt: int, bad: np.ndarray) -> np.ndarray:
            # Columns apart may leave nothing but impossible rows: those become uniform ones.
            return fresh(len(bad)) if attempt <= PATIENCE else uniform_rows(schema, len(bad), words)

        state = possible(schema, fresh(rows), again)
        return Codes(schema, state.T)
