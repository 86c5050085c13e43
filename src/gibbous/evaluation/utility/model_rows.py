"""Model formulas under a schema: checked before they are computed, one design for every table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.model_formula import Formula, model_matrix, read_formula
from gibbous.evaluation.tables import Side
from gibbous.evaluation.utility.design import measured

Family = Literal["ols", "logit", "multinomial"]
FUNCTIONS = ("C", "I", "center", "exp", "log", "log10", "log2", "poly", "scale")
CELLS = 60_000_000  # of a design matrix, 8 bytes each; a fit holds about three such arrays


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """The rows of one table that a formula can use.

    Attributes:
        matrix: float64 (rows, terms); no terms where the first table has no rows to learn them from.
        terms: names of the columns of `matrix`; the same for every table.
        target: float64 (rows,): values, or codes of the target's levels.
        dropped: rows left out because a number that the formula needs is missing or not finite.
        spec: how the matrix was made, for the next table.
    """

    matrix: np.ndarray
    terms: tuple[str, ...]
    target: np.ndarray
    dropped: int
    spec: Any


def parse(text: str, schema: Schema) -> Formula:
    """Check a formula against the schema; nothing in it is computed.

    Args:
        text: for example "stay ~ age + sex"; names with spaces in backticks. Functions: C, I,
            center, exp, log, log10, log2, poly, scale.
        schema: of the tables.
    Returns:
        The formula; its family is ols for a number, a date or an expression, logit for two levels,
        multinomial for more.
    Raises:
        UsageError: it is no formula, names no column of the schema, or calls something else.
    """
    formula = read_formula(text, schema, "", FUNCTIONS, unknown="NOCOLUMN")
    return replace(formula, family=_family(formula.column))


def rows(formula: Formula, table: Side, spec: Any = None) -> Rows:
    """Design matrix and target of one table.

    Categories come with all levels of the schema, so a level that a table lacks is a column of
    zeros. What a function learns (the center, the scale, a polynomial's basis) is learned from the
    first table and used for the others.

    Args:
        formula: a checked formula.
        table: a table.
        spec: of the first table's Rows; None for the first table.
    Raises:
        UsageError: a function cannot be computed for its column.
        ResourceLimit: the design is too large.
    """
    check_size(formula, table)
    schema = table.schema
    # Days since the first declared one: ordinals near 730,000 hide the intercept.
    columns = {
        name: measured(table, name)
        if schema[name].binned
        else table.codes.by_column[schema.index(name)]
        for name in formula.columns
    }
    known = np.ones(table.rows, dtype=bool)
    for name in formula.columns:
        if schema[name].binned:
            known &= ~np.isnan(columns[name])
    if not known.any() and spec is None:
        return Rows(np.empty((0, 0)), (), np.empty(0), table.rows, None)
    columns = {name: values[known] for name, values in columns.items()}
    levels = {name: _labels(schema[name]) for name in columns if not schema[name].binned}
    matrix = model_matrix(formula, formula.parsed.rhs if spec is None else spec, columns, levels)
    if formula.target in levels:
        target = columns[formula.target].astype(np.float64)
    else:
        left = model_matrix(formula, formula.parsed.lhs, columns, levels)
        target = np.asarray(left, dtype=np.float64).reshape(len(left), -1)[:, -1]
    values = np.asarray(matrix, dtype=np.float64).reshape(len(target), -1)
    fine = np.isfinite(values).all(axis=1) & np.isfinite(target)
    terms = tuple(str(name) for name in matrix.model_spec.column_names)
    dropped = table.rows - int(fine.sum())
    return Rows(values[fine], terms, target[fine], dropped, matrix.model_spec)


def check_size(formula: Formula, table: Side) -> None:
    """Refuse a design that would not fit; nothing is computed.

    Raises:
        ResourceLimit: terms, as the schema bounds them, times rows are more than CELLS.
    """
    terms = sum(
        math.prod(_width(formula, factor.expr) for factor in term.factors)
        for term in formula.parsed.rhs
    )
    if terms * table.rows > CELLS:
        raise ResourceLimit(
            "FORMULA",
            f"The formula {formula.text!r} has up to {terms} terms on {table.rows} rows.",
            f"At most {CELLS} numbers are held for one design.",
            "Leave out columns of many levels, or their products.",
        )


def _labels(column: Column) -> tuple[str, ...]:
    labels = column.labels()
    if len(set(labels)) == len(labels):
        return labels
    return tuple(f"{label} (code {code})" for code, label in enumerate(labels))


def _width(formula: Formula, factor: str) -> int:
    columns = [formula.schema[name] for name in formula.columns_of(factor)]
    return max((column.size for column in columns if not column.binned), default=1)


def _family(column: Column | None) -> Family:
    """What fits the target: ols for a number, a date or an expression, logit for two levels."""
    if column is None or column.binned:
        return "ols"
    return "logit" if column.size == 2 else "multinomial"
