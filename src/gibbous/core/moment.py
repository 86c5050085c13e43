"""Moments: sums of products of numbers within the cells of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gibbous.core.claim import Relation
from gibbous.core.context import Context
from gibbous.core.number_grid import grid_of
from gibbous.core.schema import Schema


@dataclass(frozen=True, slots=True)
class Moment:
    """For each cell of a dense context, the sum over its records of the product of grid numbers.

    A record with a missing value in a factor adds 0.

    Attributes:
        context: the cells.
        factors: positions of one or two numeric columns; the same twice for squares.
        bound: largest |product| of one record, from the public grids.
    """

    context: Context
    factors: tuple[int, ...]
    bound: int

    def l1(self, relation: Relation, max_rows: int) -> int:
        """Most that one privacy unit of `max_rows` rows changes the sums, added over the cells."""
        return self.bound * max_rows * (1 if relation == "add_remove" else 2)

    def l2_squared(self, relation: Relation, max_rows: int) -> int:
        """The same, squared changes added over the cells.

        Under replace_one a record that stays in its cell changes a signed sum by up to twice the
        bound, and a sum of squares by the bound; one that moves changes two sums by the bound.
        """
        moved = 1 if relation == "add_remove" else 2 if self.squares and max_rows == 1 else 4
        return moved * (self.bound * max_rows) ** 2

    @property
    def squares(self) -> bool:
        """Whether it is a sum of squares, which is never negative."""
        return len(self.factors) == 2 and self.factors[0] == self.factors[1]


def moment(schema: Schema, context: Context, factors: Sequence[int]) -> Moment:
    """A moment of one or two numeric or date columns in the cells of a dense context.

    Raises:
        UsageError: a factor has no bounds.
    """
    if context.support != "dense" or len(factors) not in (1, 2):
        raise ValueError("a moment has a dense context and one or two factors")
    halves = [grid_of(schema.columns[place]).half for place in factors]
    return Moment(context, tuple(factors), math.prod(halves))
