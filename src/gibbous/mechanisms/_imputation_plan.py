"""What the plans of the two imputation methods share: the joint table, refusals before data, memory."""

from __future__ import annotations

from math import prod

from gibbous.core.context import Context
from gibbous.core.cores import usable_cores
from gibbous.core.errors import ResourceLimit
from gibbous.core.params import at_least
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.structure.contexts import joint
from gibbous.synthesize.imputation.draw import WIDEST
from gibbous.synthesize.imputation.fit import installed

FOLDS = at_least(2)


def context(schema: Schema) -> Context:
    """The joint table that regressions are fitted to, as the combinations that occur.

    Raises:
        ResourceLimit: a row has more than 126 bits, or a column more levels than a regression takes.
        EngineFailure: the solver is not installed.
    """
    widest = max(schema, key=lambda column: column.size)
    if widest.size > WIDEST:
        raise ResourceLimit(
            "LEVELS",
            f"Column {widest.name!r} has {widest.size} levels.",
            f"A column of a multinomial regression has at most {WIDEST} here.",
            "Group its levels in the schema, or use noisy_pegs.",
        )
    found = joint(schema, "seen")
    installed()
    return found


def memory(schema: Schema, rows: int | None) -> int:
    """Bytes at the peak: distinct rows, their designs, the solver's gradients, a core each; drawn rows.

    The number of records is not known: the rows asked for, or a million, stand for it. Regressions see
    each combination of levels once, so that more of them than there are never count.
    """
    records = max(rows or 0, _plans.USUAL_ROWS)
    distinct = min(records, prod(schema.sizes))
    each = 4 * len(schema) + 8 + usable_cores() * (12 * len(schema) + 16 * max(schema.sizes))
    return distinct * each + (rows or 0) * 4 * len(schema)
