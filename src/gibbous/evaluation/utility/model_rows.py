"""Rows of tables for models: designs from the schema alone, and formulas that are checked before they run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from gibbous.core.errors import ResourceLimit
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.model_formula import Formula, model_matrix, read_formula
from gibbous.evaluation.tables import Side, sampled

Family = Literal["ols", "logit", "multinomial"]
FUNCTIONS = ("C", "I", "center", "exp", "log", "log10", "log2", "poly", "scale")
CELLS = 60_000_000  # of a design matrix, 8 bytes each; a fit holds about three such arrays
GROUPS = 8  # of one column; the missing value is one more
TERMS = 300  # of a propensity model
COLLINEAR = 1e-9  # share of a column's squared length that must be left by the columns before it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """The rows of one table that a formula can use.

    Attributes:
        matrix: float64 (rows, terms); no terms where the first table has no rows to learn them from.
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
    Returns:
        The formula; its family is ols for a number, a date or an expression, logit for two levels,
        multinomial for more.
    Raises:
        UsageError: it is not a formula, names no column of the schema, or calls something else.
    """
    formula = read_formula(text, schema, "", FUNCTIONS, unknown="NOCOLUMN")
    return replace(formula, family=_family(formula.column))


def rows(formula: Formula, table: Side, spec: Any = None) -> Rows:
    """Design matrix and target of one table.

    Categories come with all levels of the schema, so a level that a table lacks is a column of
    zeros. What a function learns (the center, the scale, a polynomial's basis) is learned from the
    first table and used for the others.

    Args:
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


def propensity_design(
    tables: Sequence[Side], *, seed: int, groups: int = GROUPS, terms: int = TERMS
) -> np.ndarray:
    """Main effects of every column and products of pairs, for tables put on top of each other.

    A numeric, date or ordinal column has a linear term and groups of about equal size; a nominal one
    has its most frequent levels and a rest. Groups are cut on all tables together, without regard to
    which row is real. Each pair of columns has one product: of the standardized value of an ordered
    column, of the indicator of the most frequent level of another one.

    Args:
        terms: at most so many columns; main effects come first, with at least two groups a column.
    Returns:
        float64 (rows, terms): centered, without constant and collinear columns, without intercept.
    """
    schema = tables[0].schema
    rows = sum(t.rows for t in tables)
    groups = max(2, min(groups, terms // max(2 * len(schema), 1)))
    numbers = np.concatenate([t.numbers for t in tables])
    codes = np.concatenate([t.codes.values for t in tables])
    blocks, scores = [], []
    for j, column in enumerate(schema):
        members = _groups(column, numbers[:, j], codes[:, j], groups)
        score = _score(column, numbers[:, j], codes[:, j])
        blocks.append(_dummies(members))
        if column.ordered:
            blocks.append(score[:, None])
        scores.append(score)
    main = np.concatenate(blocks, axis=1) if blocks else np.empty((rows, 0))
    pairs = list(combinations(range(len(schema)), 2))
    room = max(0, terms - main.shape[1])
    chosen = [pairs[i] for i in sampled(len(pairs), room, seed, 21)] if room else []
    products = [scores[a] * scores[b] for a, b in chosen]
    matrix = np.column_stack([main, *products])
    matrix -= matrix.mean(axis=0)
    scale = np.sqrt(np.mean(matrix**2, axis=0))
    matrix = matrix[:, scale > COLLINEAR] / scale[scale > COLLINEAR]
    return np.asarray(matrix[:, estimable(matrix)])


def estimable(matrix: np.ndarray) -> np.ndarray:
    """Which columns are not linear combinations of the columns before them: bool (terms,).

    A Cholesky factorization of the scaled Gram matrix, from left to right, that leaves out every
    column with (nearly) nothing left; constant zero columns are left out.
    """
    length = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    known = length > 0
    unit = np.where(known, length, 1.0)
    gram = (matrix.T @ matrix) / np.outer(unit, unit)
    terms = len(gram)
    factor = np.zeros((terms, terms))
    keep = np.zeros(terms, dtype=bool)
    for j in range(terms):
        left = gram[j, j] - factor[j] @ factor[j]
        if not known[j] or left < COLLINEAR:
            factor[:, j] = 0.0
            continue
        keep[j] = True
        factor[j:, j] = (gram[j:, j] - factor[j:] @ factor[j]) / np.sqrt(left)
    return keep


def dummies(table: Side, columns: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Dummy coding by the schema's levels, sparse: the same columns for every table.

    Returns:
        (matrix, terms): float64 scipy CSR (rows, terms). A nominal, ordinal or binary column has one
        term a code but the first; a numeric or date column has its value as share of its bounds
        (missing values: the middle, and a term that says so).
    """
    from scipy import sparse

    rows = np.arange(table.rows)
    blocks: list[Any] = []
    terms: list[str] = []
    for name in columns:
        j = table.schema.index(name)
        column = table.schema[name]
        if column.binned:
            low = 0.0 if column.kind == "date" else float(column.edges[0])
            width = float(column.edges[-1] - column.edges[0]) or 1.0
            value = (measured(table, name) - low) / width
            gone = np.isnan(value)
            blocks.append(sparse.csr_array(np.where(gone, 0.5, value)[:, None]))
            terms.append(name)
            if column.missing:
                blocks.append(sparse.csr_array(gone.astype(float)[:, None]))
                terms.append(f"{name}=(missing)")
            continue
        code = table.codes.by_column[j].astype(np.int64)
        ones = (np.ones(table.rows), (rows, code))
        full = sparse.csr_array(ones, shape=(table.rows, column.size))
        blocks.append(full[:, 1:])
        terms += [f"{name}={label}" for label in column.labels()[1:]]
    if not blocks:
        return sparse.csr_array((table.rows, 0)), ()
    return sparse.csr_array(sparse.hstack(blocks, format="csr")), tuple(terms)


def measured(table: Side, name: str) -> np.ndarray:
    """Values of a numeric column, days since the lower bound of a date, codes of levels; NaN missing."""
    column = table.schema[name]
    values: np.ndarray = table.numbers[:, table.schema.index(name)]
    return values - float(column.edges[0]) if column.kind == "date" else values


def _groups(column: Column, numbers: np.ndarray, codes: np.ndarray, groups: int) -> np.ndarray:
    if not column.ordered:
        count = np.bincount(codes, minlength=column.size)
        rank = np.empty(column.size, dtype=np.int64)
        rank[np.argsort(-count, kind="stable")] = np.arange(column.size)
        return np.asarray(np.minimum(rank[codes], groups - 1))
    gone = np.isnan(numbers)
    if gone.all():
        return np.zeros(len(numbers), dtype=np.int64)
    inner = np.arange(1, groups) / groups
    cuts = np.unique(np.quantile(numbers[~gone], inner, method="inverted_cdf"))
    return np.asarray(np.where(gone, len(cuts) + 1, np.searchsorted(cuts, numbers, side="left")))


def _score(column: Column, numbers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if not column.ordered:
        count = np.bincount(codes, minlength=column.size)
        value = (codes == int(count.argmax())).astype(np.float64)
    else:
        gone = np.isnan(numbers)
        middle = float(numbers[~gone].mean()) if not gone.all() else 0.0
        value = np.where(gone, middle, numbers)
    value = value - value.mean()
    spread = float(np.sqrt(np.mean(value**2)))
    return np.asarray(value / (spread or 1.0))


def _dummies(members: np.ndarray) -> np.ndarray:
    count = np.bincount(members)
    others = [g for g in np.flatnonzero(count) if g != count.argmax()]
    marked: np.ndarray = members[:, None] == np.array(others, dtype=members.dtype)[None, :]
    return marked.astype(np.float64)
