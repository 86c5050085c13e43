"""What modips measures of a schema, and each statistic's part of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from gibbous.core.context import Context
from gibbous.core.moment import Moment, moment
from gibbous.core.recode import Groups, recoded_schema
from gibbous.core.schema import Schema
from gibbous.privacy.calibrate.dips import equal_split, optimal_split
from gibbous.synthesize.cells.layout import cell_context, cell_sizes, numeric_columns

Split = Literal["optimal", "equal", "nonsplit"]
Covariance = Literal["pooled", "cells"]


def coarsening(schema: Schema) -> dict[int, Groups]:
    """Public maps under which a numeric column has one code for a number, and one for missing."""
    found = {}
    for place in numeric_columns(schema):
        column = schema.columns[place]
        if column.bins > 1:
            found[place] = Groups((np.arange(column.size) >= column.bins).astype(np.int64))
    return found


def moments(schema: Schema, covariance: Covariance) -> tuple[Moment, ...]:
    """Sums of each numeric column, then of each square and each product of two.

    Args:
        schema: public, before the coarsening: it has the same bounds.
        covariance: "cells" sums products in every cell; "pooled" over all records that have the
            first factor.
    """
    coarse = recoded_schema(schema, coarsening(schema))
    numbers, cells = numeric_columns(schema), cell_context(schema)
    sizes = cell_sizes(schema)
    found = [moment(coarse, cells, (one,)) for one in numbers]
    for place, one in enumerate(numbers):
        whole = Context((one,), (), (sizes[one],), ())
        context = cells if covariance == "cells" else whole
        found += [moment(coarse, context, (one, other)) for other in numbers[place:]]
    return tuple(found)


def weights(sums: Sequence[Moment]) -> tuple[Fraction, ...]:
    """Sensitivity of the counts, then of each moment, with the range of a column as the unit."""
    return (Fraction(1), *(Fraction(1, 2 ** len(one.factors)) for one in sums))


def divided(
    budget: Fraction, sensitivities: Sequence[Fraction], split: Split, noise: str
) -> tuple[Fraction, ...]:
    """Parts of a budget, epsilon (laplace) or rho (gaussian), one a statistic; at most all of it.

    "equal" gives each the same. "nonsplit" gives noise of one scale, in units of the ranges, to all.
    "optimal" makes the sum of the variances smallest: epsilon in proportion to s^(2/3), rho to s.
    """
    if split == "equal":
        return equal_split(budget, len(sensitivities))
    if split == "optimal" and noise == "laplace":
        return optimal_split(budget, sensitivities)
    power = 2 if split == "nonsplit" and noise == "gaussian" else 1
    shares = [s**power for s in sensitivities]
    whole = sum(shares, Fraction(0))
    return tuple(budget * share / whole for share in shares)
