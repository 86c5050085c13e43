"""What mechanisms share whose drawn rows of the full cross table are what costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gibbous.core.claim import pure
from gibbous.core.context import Context
from gibbous.core.errors import ParameterError, ResourceLimit
from gibbous.core.exact import exact
from gibbous.core.plan import Plan
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
    contexts: Sequence[Context] = (),
    warnings: tuple[str, ...] = (),
    **said: Any,
) -> Plan:
    """The plan of one file whose rows together cost epsilon.

    Args:
        contexts: what is counted; the full cross table when there is none.
        said: what, detail, published and errors of `_plans.row_plan`.
    """
    drawn_rows(mechanism, rows, sets)
    claim = pure(
        exact(mechanism.epsilon),
        unit="dataset",
        relation=mechanism.relation,
        source=f"docs/proofs/{mechanism.about.name}.md",
    )
    counted = contexts or (whole(schema),)
    return _plans.row_plan(
        mechanism,
        schema,
        rows,
        sets,
        claim=claim,
        units=1,
        contexts=counted,
        warnings=warnings,
        **said,
    )


def uniform_part(share: float) -> str:
    """A share of rows in words; never "100 %" where some follow the records.

    Args:
        share: in [0, 1].
    """
    return "more than 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


def prior_facts(
    posterior: Posterior, rows: int | None
) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
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
