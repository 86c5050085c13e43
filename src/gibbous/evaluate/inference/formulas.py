"""A formula and a schema in, a checked model out: which columns it needs and what its response means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.schema import Column, Schema
from gibbous.evaluate.expressions import Unfit, names_in

Family = Literal["gaussian", "binomial", "multinomial", "poisson"]
FAMILIES: tuple[Family, ...] = get_args(Family)
FUNCTIONS = ("C", "I", "exp", "log", "log10", "log2", "sqrt")
"""What a formula may call: functions of one row, so that a coefficient means the same in every set."""

_QUOTED = re.compile(r"`([^`]*)`")
_NAME = re.compile(r"[^\W\d]\w*")
_CALL = re.compile(r"([^\W\d]\w*)\s*\(")
_FOREIGN = re.compile(r"[{}\[\]|@;=!<>&\"'#%\\$?]|__|\blambda\b|[^\W\d]\s*\.|\.\s*[^\W\d]")


@dataclass(frozen=True, slots=True)
class Model:
    """A generalized linear model of a schema's columns.

    Attributes:
        formula: as written.
        family: law of the response.
        response: left side: a column, or a function of numeric ones.
        terms: right side.
        schema: public.
        needed: columns that it reads, in schema order.
    """

    formula: str
    family: Family
    response: str
    terms: str
    schema: Schema
    needed: tuple[str, ...]

    @property
    def left(self) -> str:
        """The left side as terms without an intercept."""
        return f"0 + {self.response}"

    @property
    def outcome(self) -> Column | None:
        """The response if it is a column with levels; None if it is a number."""
        name = self.response.strip("`")
        found = self.schema[name] if name in self.schema.names else None
        return None if found is None or found.binned else found

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Levels of the response that a model distinguishes, without missing; empty for numbers."""
        return labels(self.outcome) if self.outcome is not None else ()


def labels(column: Column) -> tuple[str, ...]:
    """Readable labels of a column's codes, without missing."""
    shown = column.labels()
    return shown[:-1] if column.missing else shown


def parse(formula: str, family: str, schema: Schema) -> Model:
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
    left, right = _sides(formula)
    names = [n for n in _names(formula) if n not in FUNCTIONS or n in schema.names]
    unknown = [n for n in dict.fromkeys(names) if n not in schema.names]
    if unknown:
        raise UsageError(
            "COLUMN",
            f"The formula names {', '.join(map(repr, unknown))}, which the release does not have.",
            f"Its columns are {', '.join(schema.names)}.",
            "Correct the formula; write a name with signs or spaces in backticks.",
        )
    needed = tuple(n for n in schema.names if n in names)
    if not _names(left):
        raise _unreadable(formula)
    both = [n for n in dict.fromkeys(_names(left)) if n in schema.names and n in _names(right)]
    if both:
        raise UsageError(
            "FORMULA",
            f"The formula {formula!r} has {', '.join(map(repr, both))} on both sides.",
            "A response that is a term of its own model is explained by itself.",
            "Leave it out of one side.",
        )
    model = Model(formula, family, left, right, schema, needed)
    _check_factors(model)
    _check_response(model)
    return model


def _check_factors(model: Model) -> None:
    """Refuse what would be computed beyond arithmetic on columns, as the library splits it."""
    formulaic = need("formulaic", "evaluate")
    for side in (model.left, model.terms):
        try:
            terms = list(formulaic.Formula(side))
        except (formulaic.errors.FormulaicError, AttributeError, SyntaxError, TypeError):
            raise _unreadable(model.formula) from None
        try:
            for term in terms:
                for factor in term.factors:
                    names_in(factor.expr, model.schema, FUNCTIONS)
        except Unfit as error:
            raise UsageError(
                "FORMULA",
                f"The formula {model.formula!r} {error}.",
                f"Factors are columns, arithmetic, and the functions {', '.join(FUNCTIONS)}; C is for "
                "columns of levels.",
                "Correct it.",
            ) from None


def _sides(formula: str) -> tuple[str, str]:
    bare = _QUOTED.sub("", formula)
    strange = _FOREIGN.search(re.sub(r"\d*\.\d+|\d+\.", "0", bare))
    calls = [name for name in _CALL.findall(bare) if name not in FUNCTIONS]
    if formula.count("~") != 1 or strange or calls:
        raise UsageError(
            "FORMULA",
            f"The formula {formula!r} cannot be used.",
            "It is 'response ~ terms' of columns with + - * : / ^ ( ) and the functions "
            f"{', '.join(FUNCTIONS)}.",
            'Write for example "y ~ a + b * c"; put a name with signs or spaces in backticks.',
        )
    left, _, right = formula.partition("~")
    if not left.strip() or not right.strip():
        raise _unreadable(formula)
    return left.strip(), right.strip()


def _names(formula: str) -> list[str]:
    quoted = _QUOTED.findall(formula)
    bare = re.sub(r"\b\d[\w.]*", " ", _QUOTED.sub(" ", formula))
    return quoted + _NAME.findall(bare)


def _unreadable(formula: str) -> UsageError:
    return UsageError(
        "FORMULA",
        f"The formula {formula!r} cannot be used.",
        "It is 'response ~ terms' of columns with + - * : / ^ ( ), 1 for no terms, and the functions "
        f"{', '.join(FUNCTIONS)}.",
        "Write for example 'y ~ a + b * c'; put a name with signs or spaces in backticks.",
    )


def _check_response(model: Model) -> None:
    outcome, family = model.outcome, model.family
    if family in ("gaussian", "poisson"):
        if outcome is not None and not _numeric(outcome):
            raise _misfit(model, "is not a number", "a numeric column, or levels that are numbers")
        return
    if outcome is None:
        raise _misfit(model, "is not a column with levels", "a binary, nominal or ordinal column")
    levels = len(model.outcomes)
    if levels < 2 or (family == "binomial" and levels != 2):
        raise _misfit(
            model,
            f"has {levels} levels",
            "exactly two levels (the second one is the success)"
            if family == "binomial"
            else "two levels or more",
        )


def _numeric(column: Column) -> bool:
    return column.other is None and all(isinstance(v, int | float) for v in column.levels)


def _misfit(model: Model, what: str, wanted: str) -> UsageError:
    return UsageError(
        "RESPONSE",
        f"The response {model.response!r} {what}, and the family is {model.family}.",
        f"This family takes {wanted}.",
        "Choose another family (gaussian, binomial, multinomial, poisson) or another response.",
    )


def require() -> None:
    """Fail early, with the line that installs them, where the libraries for models are missing.

    Raises:
        EngineFailure: formulaic, pandas, scipy or statsmodels is not installed.
    """
    for name in ("formulaic", "pandas", "scipy", "statsmodels"):
        need(name, "evaluate")
