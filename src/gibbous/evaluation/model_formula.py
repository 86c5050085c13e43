"""Model formulas under a schema: read by formulaic, checked before anything in them is computed.

formulaic evaluates factors as Python, and a formula may come from a stranger: every factor is arithmetic on
columns, numbers and named functions, or the formula is refused.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.keywords import did_you_mean
from gibbous.core.schema import Column, Schema

_QUOTED = re.compile(r"`([^`]*)`")
_NODES = (
    ast.Expression,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.Pow,
    ast.UnaryOp,
    ast.USub,
    ast.UAdd,
    ast.Constant,
    ast.keyword,
)
_STEEPEST = 10  # power


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A checked formula.

    Attributes:
        text: as given.
        family: of the model, as the caller names it.
        target: the column on the left, or the expression with it.
        column: the target's column where it stands alone; None for an expression of it.
        columns: names of the columns that it needs, in the order of the schema, the target's included.
        parsed: formulaic's own object, with the sides `lhs` and `rhs`.
        references: column -> the level that its others are compared with; the first of the others.
    """

    text: str
    family: str
    target: str
    column: Column | None
    columns: tuple[str, ...]
    functions: tuple[str, ...]
    schema: Schema
    parsed: Any = field(repr=False)
    references: Mapping[str, str] = field(default_factory=dict)

    def refused(self, why: str) -> UsageError:
        """The error for this formula; `why` goes on from "cannot be used: it"."""
        return _refused(self.text, why, self.functions)

    def columns_of(self, factor: str) -> set[str]:
        """Columns that a factor reads."""
        return _columns(factor, self.schema, self.functions)


def read_formula(
    text: str, schema: Schema, family: str, functions: tuple[str, ...], *, unknown: str
) -> Formula:
    """Check a formula against the schema; nothing in it is computed.

    Args:
        text: "target ~ terms", for example "stay ~ age + sex"; names with spaces in backticks.
        family: of the model; not checked here.
        unknown: name of the error for a column that does not exist.
    Raises:
        UsageError: it is not a formula, names no column of the schema, or calls something else.
    """
    formulaic = need("formulaic", "evaluate")
    if "{" in _QUOTED.sub("", text):
        raise _refused(text, "holds '{', which is more than arithmetic on columns", functions)
    try:
        parsed = formulaic.Formula(text)
        left, right = (
            [f.expr for t in side for f in t.factors] for side in (parsed.lhs, parsed.rhs)
        )
    except (formulaic.errors.FormulaicError, AttributeError, SyntaxError, TypeError):
        raise _refused(text, "is not a formula with one target", functions) from None
    if not all(side.strip() for side in text.split("~")):
        raise _refused(text, "is not a formula with one target and terms", functions)
    try:
        of_target, of_terms = (
            {name for factor in side for name in _columns(factor, schema, functions)}
            for side in (left, right)
        )
    except _Forbidden as error:
        raise _refused(text, str(error), functions) from None
    absent = sorted(name for name in of_target | of_terms if name not in schema.names)
    if absent:
        raise UsageError(
            unknown,
            f"The formula {text!r} names {', '.join(map(repr, absent))}, which is not a column.",
            f"Columns are {', '.join(schema.names)}.",
            did_you_mean(absent[0], schema.names, "Names with signs or spaces stand in backticks."),
        )
    target = left[0].strip("`")
    column = schema[target] if target in schema.names else None
    why = ""
    if len(left) != 1:
        why = "has more than one target"
    elif not right:
        why = "has no terms"
    elif of_target & of_terms:
        why = f"has its target ({', '.join(sorted(of_target & of_terms))}) on both sides"
    elif not of_target:
        why = "has no column as target"
    elif column is None and not all(schema[name].binned for name in of_target):
        why = "computes with a target that has levels"
    if why:
        raise _refused(text, why, functions)
    columns = tuple(name for name in schema.names if name in of_target | of_terms)
    return Formula(text, family, target, column, columns, functions, schema, parsed)


def model_matrix(
    formula: Formula,
    terms: Any,
    columns: Mapping[str, np.ndarray],
    levels: Mapping[str, Sequence[str]],
) -> Any:
    """The matrix of one side of a formula, as formulaic makes it; numbers in it may not be finite.

    Args:
        terms: a side of `formula.parsed`, or the `model_spec` of the matrix of another table: what a
            function learned there (a center, a scale, a basis) is then used again.
        columns: values of numbers, codes of columns with levels, (rows,) each.
        levels: labels of the codes; every one becomes a column, whether it occurs or not.
    Raises:
        UsageError: a function cannot be computed for its column.
    """
    pandas, formulaic = need("pandas", "evaluate"), need("formulaic", "evaluate")
    rows = len(next(iter(columns.values()), ()))
    frame = pandas.DataFrame(
        {
            name: pandas.Categorical.from_codes(values.astype(np.int64), list(levels[name]))
            if name in levels
            else values
            for name, values in columns.items()
        },
        index=range(rows),
    )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # callers look for what is not finite
            return terms.get_model_matrix(
                frame, context={"sqrt": np.sqrt}, na_action="ignore", output="numpy"
            )
    except (formulaic.errors.FormulaicError, TypeError, ValueError, NameError, ArithmeticError):
        raise formula.refused("cannot be computed for its columns") from None


class _Forbidden(Exception):
    """A factor that is not computed; the message goes on from "it"."""


def _columns(factor: str, schema: Schema, functions: Sequence[str]) -> set[str]:
    """Names that a factor reads, known as columns or not, after a look at everything it would compute.

    Raises:
        _Forbidden: it holds more than names, numbers, arithmetic and these functions, a power that is
            not a small number, or a number or a date as category (its levels would be those of one
            table).
    """
    if factor in schema.names:
        return {factor}
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        return quoted.setdefault(match.group(1), f"quoted_{len(quoted)}_")

    try:
        parsed = ast.parse(_QUOTED.sub(stand_in, factor), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _Forbidden(f"holds {factor!r}, which is not an expression") from None
    original = {placeholder: name for name, placeholder in quoted.items()}
    nodes = list(ast.walk(parsed))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    if not all(isinstance(node, _NODES) and _small(node) for node in nodes):
        raise _Forbidden(f"holds {factor!r}, which is more than arithmetic on columns")
    if not all(isinstance(call, ast.Name) and call.id in functions for call in calls):
        raise _Forbidden(f"calls a function in {factor!r} that is not known")
    names = {
        original.get(node.id, node.id)
        for node in nodes
        if isinstance(node, ast.Name) and node not in calls
    }
    as_category = any(isinstance(call, ast.Name) and call.id == "C" for call in calls)
    if as_category and any(name in schema.names and schema[name].binned for name in names):
        raise _Forbidden(f"takes a number or a date as category in {factor!r}")
    return names


def _small(node: ast.AST) -> bool:
    """Whether it is neither a text nor a number that arithmetic makes huge: 9 ** 9 ** 9 is arithmetic."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return True
    power = node.right.value if isinstance(node.right, ast.Constant) else None
    # A number to a power to a power grows without end; a column does not, being of floats.
    ended = isinstance(node.left, ast.Constant) or any(
        isinstance(part, ast.Name) for part in ast.walk(node.left)
    )
    return ended and isinstance(power, int | float) and abs(power) <= _STEEPEST


def _refused(text: str, why: str, functions: Sequence[str]) -> UsageError:
    return UsageError(
        "FORMULA",
        f"The formula {text!r} cannot be used: it {why}.",
        "A formula is 'target ~ terms': columns with + - * : / ^ ( ), 1 for no terms, arithmetic, and "
        f"{', '.join(functions)}; C is for columns of levels.",
        'Write for example "y ~ a + b * c"; put a name with signs or spaces in backticks.',
    )
