"""What mechanisms share whose drawn rows of the full cross table are what costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.plan import Plan, Spend
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.perturb.posterior import MOST_DRAWS, Posterior
from gibbous.structure.contexts import joint


def drawn_rows(mechanism: Any, rows: int | None, sets: int) -> int:
    """Rows of all sets, at least one.

    Raises:
        ParameterError: the number is not given, or 0: an empty file would be paid for.
        ResourceLimit: more than an urn holds.
    """
    total = _plans.paid_rows(mechanism, rows, sets)
    if total < 1:
        raise ParameterError(
            "ROWS",
            f"{mechanism.about.name} was asked for {rows} rows in {sets} sets.",
            f"{_plans.pays(mechanism)}, and there is at least one.",
            "Give --rows 1 or more.",
        )
    if total > MOST_DRAWS:
        raise ResourceLimit(
            "ROWS",
            f"{mechanism.about.name} was asked for {total:,} rows.",
            f"It draws at most {MOST_DRAWS:,}.",
            "Ask for fewer rows, or use laplace, whose rows are free after its table.",
        )
    return total


def whole(schema: Schema) -> Context:
    """The cells of the full cross table that occur; the drawing alone sees them."""
    return joint(schema, "seen")


def file_plan(
    mechanism: Any,
    schema: Schema,
    rows: int | None,
    sets: int,
    *,
    what: str,
    detail: str,
    outlook: _plans.Outlook,
    contexts: Sequence[Context] = (),
) -> Plan:
    """The plan of one file whose rows together cost epsilon.

    Args:
        contexts: what is counted; the full cross table when there is none.
    """
    drawn_rows(mechanism, rows, sets)
    return _plans.row_plan(
        mechanism,
        rows,
        sets,
        spend=Spend(what, _plans.total(mechanism), detail),
        units=1,
        contexts=contexts or (whole(schema),),
        published=f"epsilon = {mechanism.epsilon:g}",
        outlook=outlook,
    )


def uniform_part(share: float) -> str:
    """A share of rows in words; never "100 %" where some follow the records.

    Args:
        share: in [0, 1].
    """
    return "more than 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


def prior_facts(posterior: Posterior, rows: int | None) -> _plans.Outlook:
    """How much of a row is prior, as (name, value), and a warning where it is more than half.

    Args:
        rows: stands for the number of records.
    """
    alpha = posterior.effective
    virtual = float("inf") if alpha is None else float(alpha * posterior.cells)
    share = virtual / (virtual + (rows or 1)) if alpha is not None else 1.0
    facts = (
        ("alpha, virtual records a cell", float(alpha) if alpha is not None else virtual),
        ("virtual records in all", virtual),
        ("share of uniform rows, with as many records as rows", share),
    )
    if share <= 0.5:
        return facts, ()
    return facts, (
        (
            f"With as many records as rows, {uniform_part(share)} of the rows are uniform over the "
            "cells, and more of both do not change that. Use laplace, fewer rows, or fewer and "
            "coarser columns."
        ),
    )
