"""Model formulas under a schema: checked before they are computed, one design for every table."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from gibbous.core.errors import ResourceLimit, UsageError
from gibbous.core.extras import need
from gibbous.core.schema import Column, Schema
from gibbous.evaluate.expressions import Unfit, names_in
from gibbous.evaluate.tables import Side
from gibbous.evaluate.utility.collect import check_columns
from gibbous.evaluate.utility.design import measured

Family = Literal["ols", "logit", "multinomial"]
FAMILIES: tuple[Family, ...] = get_args(Family)
FUNCTIONS = ("C", "I", "center", "exp", "log", "log10", "log2", "poly", "scale")
CELLS = 60_000_000  # of a design matrix, 8 bytes each; a fit holds about three such arrays


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A checked formula.

    Attributes:
        text: as given.
        target: the column on the left, or the expression with it.
        column: the target's column where it stands alone; None for an expression of it.
        family: ols, logit or multinomial.
        used: the columns it needs, in the order of the schema, the target's included.
        parsed: formulaic's own object.
    """

    text: str
    target: str
    column: Column | None
    family: Family
    used: tuple[str, ...]
    parsed: Any = field(repr=False)


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


def parse(text: str, schema: Schema, family: Family | None = None) -> Formula:
    """Check a formula against the schema; nothing in it is computed.

    Args:
        text: for example "stay ~ age + sex"; names with spaces in backticks. Functions: C, I,
            center, exp, log, log10, log2, poly, scale.
        schema: of the tables.
        family: ols, logit or multinomial; None takes what fits the target: ols for a number, a date
            or an expression, logit for two levels, multinomial for more.
    Raises:
        UsageError: it is no formula, names no column of the schema, calls something else, or the
            family does not fit the target.
    """
    formulaic = need("formulaic", "evaluate")
    try:
        parsed = formulaic.Formula(text)
        left, right = list(parsed.lhs), list(parsed.rhs)
        factors = [*_exprs(left), *_exprs(right)]
    except (formulaic.errors.FormulaicError, AttributeError, SyntaxError, TypeError):
        raise _bad(text, "is not a formula with one target") from None
    names = {name for expr in factors for name in _names(text, expr, schema)}
    check_columns(schema, sorted(names), f"name in the formula {text!r}:")
    if len(left) != 1 or len(left[0].factors) != 1:
        raise _bad(text, "has more than one target")
    target = str(next(iter(left[0].factors)).expr).strip("`")
    column = schema[target] if target in schema.names else None
    used = tuple(name for name in schema.names if name in names)
    if target in {name for expr in _exprs(right) for name in _names(text, expr, schema)}:
        raise _bad(text, "has its target on both sides")
    computed = _names(text, _exprs(left)[0], schema)
    if not computed:
        raise _bad(text, "has no column as target")
    if column is None and not all(schema[name].binned for name in computed):
        raise _bad(text, "computes with a target that has levels")
    return Formula(text, target, column, _family(text, column, family), used, parsed)


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
    formulaic = need("formulaic", "evaluate")
    check_size(formula, table)
    places = np.arange(table.rows)
    for name in formula.used:
        if table.schema[name].binned:
            places = places[~np.isnan(measured(table, name)[places])]
    if len(places) == 0 and spec is None:
        return Rows(np.empty((0, 0)), (), np.empty(0), table.rows, None)
    frame = _frame(formula, table, places)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a logarithm of 0 is a row that is dropped and counted
            matrix = (
                formulaic.model_matrix(
                    formula.parsed.rhs, frame, context={}, na_action="ignore", output="numpy"
                )
                if spec is None
                else spec.get_model_matrix(frame, context={})
            )
            target = _target(formula, table, places, frame)
    except (formulaic.errors.FormulaicError, TypeError, ValueError, ArithmeticError):
        raise _bad(formula.text, "cannot be computed for its columns") from None
    values = np.asarray(matrix, dtype=np.float64).reshape(len(places), -1)
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
        math.prod(_width(table.schema, formula.text, factor.expr) for factor in term.factors)
        for term in formula.parsed.rhs
    )
    if terms * table.rows > CELLS:
        raise ResourceLimit(
            "FORMULA",
            f"The formula {formula.text!r} has up to {terms} terms on {table.rows} rows.",
            f"At most {CELLS} numbers are held for one design.",
            "Leave out columns of many levels, or their products.",
        )


def _frame(formula: Formula, table: Side, places: np.ndarray) -> Any:
    pandas = need("pandas", "evaluate")
    columns: dict[str, Any] = {}
    for name in formula.used:
        column = table.schema[name]
        if column.binned:
            # Days since the first declared one: ordinals near 730,000 hide the intercept.
            columns[name] = measured(table, name)[places]
        else:
            codes = table.codes.by_column[table.schema.index(name)][places].astype(np.int64)
            columns[name] = pandas.Categorical.from_codes(codes, list(_labels(column)))
    return pandas.DataFrame(columns, index=range(len(places)))


def _target(formula: Formula, table: Side, places: np.ndarray, frame: Any) -> np.ndarray:
    if formula.column is not None and not formula.column.binned:
        codes = table.codes.by_column[table.schema.index(formula.column.name)][places]
        wanted: np.ndarray = codes.astype(np.float64)
        return wanted
    formulaic = need("formulaic", "evaluate")
    left = formulaic.model_matrix(
        formula.parsed.lhs, frame, context={}, na_action="ignore", output="numpy"
    )
    return np.asarray(left, dtype=np.float64).reshape(len(places), -1)[:, -1]


def _labels(column: Column) -> tuple[str, ...]:
    labels = column.labels()
    if len(set(labels)) == len(labels):
        return labels
    return tuple(f"{label} (code {code})" for code, label in enumerate(labels))


def _width(schema: Schema, text: str, expr: str) -> int:
    sizes = [schema[n].size for n in _names(text, expr, schema) if not schema[n].binned]
    return max(sizes, default=1)


def _family(text: str, column: Column | None, family: Family | None) -> Family:
    if family is not None and family not in FAMILIES:
        raise UsageError(
            "FAMILY",
            f"The family {family!r} is not known.",
            f"Families are {', '.join(FAMILIES)}.",
            "Leave it out: it follows from the target.",
        )
    if column is None or column.binned:
        fitting: tuple[Family, ...] = ("ols",)
    else:
        fitting = ("logit", "multinomial") if column.size == 2 else ("multinomial",)
    if family is not None and family not in fitting:
        raise UsageError(
            "FAMILY",
            f"The family {family!r} does not fit the target of {text!r}.",
            f"It takes {' or '.join(fitting)}: a number or a date has ols, two levels logit, more "
            "multinomial.",
            "Leave it out, or take another target.",
        )
    return family or fitting[0]


def _exprs(terms: list[Any]) -> list[str]:
    return [factor.expr for term in terms for factor in term.factors]


def _names(text: str, expr: str, schema: Schema) -> set[str]:
    """Columns of one factor, after a look at everything it would compute.

    Raises:
        UsageError: it holds more than columns, numbers, arithmetic and the known functions.
    """
    try:
        return names_in(expr, schema, FUNCTIONS)
    except Unfit as error:
        raise _bad(text, str(error)) from None


def _bad(text: str, what: str) -> UsageError:
    return UsageError(
        "FORMULA",
        f"The formula {text!r} {what}.",
        f"A formula is 'target ~ column + column', with {', '.join(FUNCTIONS)} and arithmetic; C is "
        "for columns of levels.",
        "Correct it; names with spaces stand in backticks.",
    )
