"""One table of rows and a model in, coefficients and their variances out; NaN where the rows have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.schema import Column, Schema
from gibbous.evaluation.inference.combining_rules import Floats
from gibbous.evaluation.inference.references import labels, references_of, reordered
from gibbous.evaluation.model_fits import Law, alike, solved
from gibbous.evaluation.model_formula import Formula, model_matrix, read_formula

if TYPE_CHECKING:
    import polars as pl

NAMED = 5  # coefficients of one fate that a remark names
Family = Literal["gaussian", "binomial", "multinomial", "poisson"]
FAMILIES: tuple[Family, ...] = get_args(Family)
FUNCTIONS = ("C", "I", "exp", "log", "log10", "log2", "sqrt")
"""What a formula may call: functions of one row, so that a coefficient means the same in every set."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Coefficients of one table.

    Attributes:
        estimates, variances: float64 (coefficients,); NaN where the table does not determine them.
        absent: coefficients without any row that shows them (a level that does not occur), or with
            fewer rows than terms.
        separated: coefficients without a finite estimate, because the terms predict the response.
        dropped: rows left out for missing values.
    """

    estimates: Floats
    variances: Floats
    names: tuple[str, ...]
    absent: tuple[str, ...] = ()
    separated: tuple[str, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """What is fitted: design (rows, terms), response, weight of each row."""

    design: np.ndarray
    terms: tuple[str, ...]
    response: np.ndarray
    weights: np.ndarray
    dropped: int


def fit(model: Formula, codes: Codes, frame: pl.DataFrame | None = None) -> Fitted:
    """Fit a model to one table.

    Args:
        frame: the same rows with values; only numeric and date columns are read from it.
    Returns:
        Coefficients in the same order for every table of this schema.
    Raises:
        UsageError: the formula cannot be computed, or no row is complete.
    """
    data = _data(model, codes, frame)
    names = data.terms
    if model.family == "multinomial":
        names = tuple(f"{level}: {term}" for level in outcomes(model)[1:] for term in data.terms)
    kept, estimable = _independent(data.design)
    count = len(outcomes(model)) if model.family == "multinomial" else 0
    estimates = np.full((max(count - 1, 1), len(data.terms)), np.nan)
    variances, flat = estimates.copy(), np.zeros(estimates.shape, dtype=bool)
    enough = data.weights.sum() > len(kept) > 0
    if enough:
        law = cast("Law", model.family)
        done = solved(law, data.design[:, kept], data.response, classes=count, weights=data.weights)
        estimates[:, kept], variances[:, kept] = done.estimate, done.variance
        flat[:, kept] = done.infinite
    unknown = ~np.broadcast_to(estimable, estimates.shape)
    undefined = unknown | flat | ~np.isfinite(variances)
    estimates[undefined], variances[undefined] = np.nan, np.nan
    separated = flat & ~unknown & enough
    absent = undefined & ~separated
    return Fitted(
        estimates.reshape(-1),
        variances.reshape(-1),
        names,
        absent=tuple(n for n, no in zip(names, absent.reshape(-1), strict=True) if no),
        separated=tuple(n for n, no in zip(names, separated.reshape(-1), strict=True) if no),
        dropped=data.dropped,
    )


def remarks(each: Sequence[Fitted]) -> tuple[str, ...]:
    """What happened in which set, in words; coefficients of one fate in one sentence."""
    said = []
    for what, why in (
        (
            "absent",
            "a level or combination does not occur, too few rows show it, or others say the same",
        ),
        ("separated", "the terms predict the response without error: no finite estimate"),
    ):
        hit: dict[str, list[int]] = {}
        for number, one in enumerate(each, 1):
            for name in getattr(one, what):
                hit.setdefault(name, []).append(number)
        alike: dict[tuple[int, ...], list[str]] = {}
        for name, numbers in hit.items():
            alike.setdefault(tuple(numbers), []).append(name)
        for sets, names in alike.items():
            said.append(f"{_few(names)}: not estimated in {_which(sets, len(each))} ({why}).")
    if dropped := sum(one.dropped for one in each):
        said.append(f"{dropped:,} rows of all sets have missing values and were left out.")
    return tuple(said)


def _independent(design: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns that span the design, and which coefficients it determines."""
    from scipy.linalg import qr

    size = np.sqrt((design**2).sum(axis=0))
    scaled = design / np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    null = vectors[:, values < 1e-10 * max(float(values[-1]), 1e-300)]
    rank = design.shape[1] - null.shape[1]
    _, order = qr(scaled, mode="r", pivoting=True)
    estimable: np.ndarray = np.abs(null).max(axis=1, initial=0.0) < 1e-6
    return np.sort(order[:rank]), estimable


def _data(model: Formula, codes: Codes, frame: pl.DataFrame | None) -> _Data:
    columns, complete = _columns(model, codes, frame)
    dropped = int(len(complete) - complete.sum())
    columns = {name: values[complete] for name, values in columns.items()}
    columns, weights = _together(columns)
    if not len(weights):
        raise UsageError(
            "NOROWS",
            f"No row of a set has values in all of {', '.join(model.columns)}.",
            "Rows with missing values are left out.",
            "Leave out a column that is missing throughout.",
        )
    matrix = _matrix(model.parsed.rhs, model, columns)
    design = np.asarray(matrix, dtype=np.float64).reshape(len(weights), -1)
    terms = tuple(map(str, matrix.model_spec.column_names))
    return _Data(design, terms, _response(model, columns), weights, dropped)


def _columns(
    model: Formula, codes: Codes, frame: pl.DataFrame | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Needed columns, numbers as float64 and levels as codes; and which rows miss none."""
    import polars as pl

    complete = np.ones(codes.rows, dtype=bool)
    columns: dict[str, np.ndarray] = {}
    for name in model.columns:
        column = model.schema[name]
        values = codes.by_column[model.schema.index(name)]
        if column.missing_code is not None:
            complete &= values != column.missing_code
        if column.binned:
            assert frame is not None, "numbers are read from the frame"
            series = frame[name]
            series = series.cast(pl.Int32) if column.kind == "date" else series
            columns[name] = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
            complete &= ~np.isnan(columns[name])
            continue
        columns[name] = reordered(column, values, model.references.get(name))
    return columns, complete


def _together(columns: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Equal rows once, with their number: most fits on numbers without decimals are of few rows."""
    first, place = alike(np.stack(list(columns.values()), axis=1).astype(np.float64))
    count = np.bincount(place, minlength=len(first)).astype(np.float64)
    return {name: values[first] for name, values in columns.items()}, count


def _matrix(terms: Any, model: Formula, columns: Mapping[str, np.ndarray]) -> Any:
    levels = {n: levels_of(model, n) for n in columns if not model.schema[n].binned}
    matrix = model_matrix(model, terms, columns, levels)
    if not np.isfinite(np.asarray(matrix, dtype=np.float64)).all():
        raise _unusable(model)
    return matrix


def _response(model: Formula, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    column = outcome(model)
    if column is None:
        numbers = np.asarray(_matrix(model.parsed.lhs, model, columns), dtype=np.float64)
        if numbers.ndim != 2 or numbers.shape[1] != 1:
            raise _unusable(model)
        if model.family == "poisson" and (numbers < 0).any():
            raise _unusable(model)
        return numbers[:, 0]
    codes = columns[column.name]
    if model.family in ("gaussian", "poisson"):
        return np.asarray(np.array([float(v) for v in column.levels])[codes])
    return np.asarray(codes, dtype=np.float64)


def _unusable(model: Formula) -> UsageError:
    return UsageError(
        "FORMULA",
        f"The formula {model.text!r} cannot be computed on the rows.",
        "Terms are columns, functions of numeric columns that are finite everywhere (log of 0 is not), "
        "and their products; a poisson response is >= 0.",
        "Correct the formula.",
    )


def _few(names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more coefficients"


def _which(numbers: Sequence[int], sets: int) -> str:
    if len(numbers) == 1:
        return f"set {numbers[0]}"
    if len(numbers) == sets:
        return "any set"
    return f"sets {', '.join(map(str, numbers))}"


def parse(
    formula: str, family: str, schema: Schema, reference: Mapping[str, str] | None = None
) -> Formula:
    """Check a formula against a schema.

    Args:
        formula: "response ~ terms", for example "y ~ a + b * c"; names with signs in backticks.
        family: gaussian, binomial, multinomial or poisson.
        reference: column -> the level that its others are compared with; by default its first.
    Raises:
        UsageError: no such family, column or level, a formula that cannot be read, or a response that
            does not fit the family.
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
    number = model.target if family in ("gaussian", "poisson") else None
    compared = [schema[n] for n in model.columns if n != number and not schema[n].binned]
    return replace(model, references=references_of(compared, reference or {}))


def outcome(model: Formula) -> Column | None:
    """The response if it is a column with levels; None if it is a number."""
    return None if model.column is None or model.column.binned else model.column


def outcomes(model: Formula) -> tuple[str, ...]:
    """Levels of the response that a model distinguishes, without missing; empty for numbers."""
    column = outcome(model)
    return () if column is None else levels_of(model, column.name)


def levels_of(model: Formula, name: str) -> tuple[str, ...]:
    """Labels of a column without missing, that which the others are compared with first."""
    return labels(model.schema[name], model.references.get(name))


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
