"""A formula and a schema in, a checked model out: which columns it needs and what its response means."""

from __future__ import annotations

from typing import Literal, get_args

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.model_formula import Formula, read_formula

Family = Literal["gaussian", "binomial", "multinomial", "poisson"]
FAMILIES: tuple[Family, ...] = get_args(Family)
FUNCTIONS = ("C", "I", "exp", "log", "log10", "log2", "sqrt")
"""What a formula may call: functions of one row, so that a coefficient means the same in every set."""


def parse(formula: str, family: str, schema: Schema) -> Formula:
    """Check a formula against a schema.

    Args:
        formula: "response ~ terms", for example "y ~ a + b * c"; names with signs in backticks.
        family: gaussian, binomial, multinomial or poisson.
        schema: of the release.
    Raises:
        UsageError: no such family or column, a formula that cannot be read, or a response that does
            not fit the family.
    """
    if family not in FAMILIES:
        raise UsageError(
            "FAMILY",
            f"There is no family {family!r}.",
            f"Families are {', '.join(FAMILIES)}.",
            "Correct family.",
        )
    model = read_formula(formula, schema, family, FUNCTIONS, unknown="COLUMN")
    _check_response(model)
    return model


def outcome(model: Formula) -> Column | None:
    """The response if it is a column with levels; None if it is a number."""
    return None if model.column is None or model.column.binned else model.column


def outcomes(model: Formula) -> tuple[str, ...]:
    """Levels of the response that a model distinguishes, without missing; empty for numbers."""
    column = outcome(model)
    return () if column is None else labels(column)


def labels(column: Column) -> tuple[str, ...]:
    """Readable labels of a column's codes, without missing."""
    shown = column.labels()
    return shown[:-1] if column.missing else shown


def _check_response(model: Formula) -> None:
    column, family = outcome(model), model.family
    if family in ("gaussian", "poisson"):
        numeric = column is None or (
            column.other is None and all(isinstance(v, int | float) for v in column.levels)
        )
        if not numeric:
            raise _misfit(model, "is not a number", "a numeric column, or levels that are numbers")
        return
    if column is None:
        raise _misfit(model, "is not a column with levels", "a binary, nominal or ordinal column")
    levels = len(outcomes(model))
    if levels < 2 or (family == "binomial" and levels != 2):
        raise _misfit(
            model,
            f"has {levels} levels",
            "exactly two levels (the second one is the success)"
            if family == "binomial"
            else "two levels or more",
        )


def _misfit(model: Formula, what: str, fitting: str) -> UsageError:
    return UsageError(
        "RESPONSE",
        f"The response {model.target!r} {what}, and the family is {model.family}.",
        f"This family takes {fitting}.",
        "Choose another family (gaussian, binomial, multinomial, poisson) or another response.",
    )


def require() -> None:
    """Fail early, with the line that installs them, where the libraries for models are missing.

    Raises:
        EngineFailure: formulaic, pandas, scipy or statsmodels is not installed.
    """
    for name in ("formulaic", "pandas", "scipy", "statsmodels"):
        need(name, "evaluate")
