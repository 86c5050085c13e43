"""LASSO: paths of coefficients over the penalty, and errors on real records, as in park2013."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbous.core.extras import need
from gibbous.core.finding import Finding
from gibbous.evaluation.measure import NOTHING, Measured, Metric, Options, assemble, undefined
from gibbous.evaluation.tables import Side, Subject
from gibbous.evaluation.utility.model_rows import dummies, measured
from gibbous.evaluation.utility.train_and_test import one_thread, split, trained

PENALTIES = 20  # from the least that leaves no term in the real fit, down to SPAN of it
SPAN = 1e-3
SHOWN = 12  # terms in the detail of lasso_path
TERMS = 2000  # beyond, the dense Gram matrix takes minutes

_MODEL = (
    "Least squares with an L1 penalty (1 / (2 rows) |y - X b|^2 + penalty |b|_1) on all other columns, "
    "levels in dummy coding; target and terms are divided by their standard deviation in the real "
    "training records, so coefficients and penalties have no unit and compare across tables."
)
LASSO_PATH = Metric(
    name="lasso_path",
    title="LASSO path, distance to the real one",
    group="utility",
    better="lower",
    definition=(
        f"{_MODEL} Sum of |b_synthetic - b_real| over terms and penalties, over the sum of |b_real|. "
        "0: equal paths; 1: as far as no model at all."
    ),
    source="park2013, s VI-B and fig. 5",
    needs=("targets",),
)
LASSO_MSE = Metric(
    name="lasso_mse",
    title="LASSO, mean squared error on real records",
    group="utility",
    better="lower",
    definition=(
        f"{_MODEL} Mean squared error on real test records, in the target's unit squared, at the "
        "penalty where the model trained on real records has the least error."
    ),
    source="park2013, s VI-B and fig. 4",
    needs=("targets",),
)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """All that a LASSO fit needs of its rows: X'X / rows of centered terms, X'y / rows, means."""

    gram: np.ndarray
    cross: np.ndarray
    mean: np.ndarray
    target: float


METRICS = (LASSO_PATH, LASSO_MSE)


@one_thread()
def findings(
    subject: Subject, options: Options = NOTHING, *, penalties: int = PENALTIES
) -> list[Finding]:
    """lasso_path and lasso_mse of each target; nothing without targets.

    Numbers are taken as they are, days as days, ordinal and binary levels as 0, 1, 2, ... A nominal
    target of more than two levels has no LASSO, and other columns with more than TERMS levels are too
    many: the findings are then not defined, and say so.
    """
    return [f for target in options.targets for f in _findings(subject, target, penalties)]


def path(moments: Moments, penalties: np.ndarray) -> np.ndarray:
    """Coefficients over penalties, float64 (penalties, terms).

    The loss depends on the rows through the moments alone, so they are replaced by a square root of
    the Gram matrix: as many rows as terms.
    """
    linear = need("sklearn.linear_model", "evaluate")
    values, vectors = np.linalg.eigh(moments.gram)
    used = values > max(values.max(initial=0.0), 0.0) * 1e-12
    if not used.any():
        return np.zeros((len(penalties), len(moments.cross)))
    root = np.sqrt(values[used])
    rows = int(used.sum())
    design = np.sqrt(rows) * root[:, None] * vectors[:, used].T
    target = np.sqrt(rows) * (vectors[:, used].T @ moments.cross) / root
    _, solved, _ = linear.lasso_path(
        design,
        target,
        alphas=penalties,
        precompute=np.ascontiguousarray(moments.gram * rows),
        Xy=moments.cross * rows,
        tol=1e-6,
        max_iter=20_000,
    )
    return np.asarray(solved.T)


def moments_of(matrix: Any, target: np.ndarray) -> Moments:
    """Means and centered second moments of a sparse or dense design (rows, terms)."""
    rows = len(target)
    mean = np.asarray(matrix.sum(axis=0)).ravel() / rows
    product = matrix.T @ matrix
    gram = np.asarray(product.toarray() if hasattr(product, "toarray") else product) / rows
    cross = np.asarray(matrix.T @ target).ravel() / rows
    middle = float(target.mean())
    return Moments(gram - np.outer(mean, mean), cross - mean * middle, mean, middle)


def _findings(subject: Subject, target: str, count: int) -> list[Finding]:
    if subject.schema[target].kind == "nominal" and subject.schema[target].size > 2:
        return _undefined(subject, target, "the target has more than two levels without an order.")
    train, test, note = split(subject)
    others = [name for name in subject.schema.names if name != target]
    levels = sum(subject.schema[n].size - 1 for n in others if not subject.schema[n].binned)
    if levels > TERMS:
        why = f"the other columns have {levels} terms, and at most {TERMS} are fitted."
        return _undefined(subject, target, why)
    x_test, terms, y_test = _rows(test, target, others)
    x_real, _, y_real = _rows(train, target, others)
    if len(y_real) == 0 or len(y_test) == 0 or np.ptp(y_real) == 0:
        return _undefined(
            subject, target, "the real records have one value of the target, or none."
        )
    plain = moments_of(x_real, y_real)
    scale = np.sqrt(np.maximum(np.diagonal(plain.gram), 0.0))
    # A term that no real record has: its unit is its own indicator's.
    scale = np.where(scale > 1e-12, scale, 1.0)
    spread = float(y_real.std())
    real = _scaled(plain, scale, spread)
    top = float(np.abs(real.cross).max(initial=0.0)) or 1.0
    penalties = top * np.geomspace(1.0, SPAN, count)
    tables = {f"set {i}": one for i, one in enumerate(subject.sets, 1)} | trained(subject, train)
    paths, errors = {}, {}
    for name, table in tables.items():
        x, _, y = _rows(table, target, others)
        moments = real if name == "real" else _moments(x, y, scale, spread, real)
        paths[name] = path(moments, penalties)
        errors[name] = _errors(x_test, y_test, paths[name], moments, scale, spread)
    fitted = _Fitted(penalties, terms, paths, errors, len(subject.sets))
    return [_path_finding(fitted, target, note), _mse_finding(fitted, target, note)]


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    penalties: np.ndarray
    terms: tuple[str, ...]
    paths: Mapping[str, np.ndarray]
    errors: Mapping[str, np.ndarray]
    count: int

    @property
    def sets(self) -> list[str]:
        return list(self.paths)[: self.count]

    @property
    def beside(self) -> list[str]:
        return list(self.paths)[self.count :]


def _path_finding(fitted: _Fitted, target: str, note: str) -> Finding:
    real = fitted.paths["real"]
    whole = float(np.abs(real).sum())

    def apart(name: str) -> float:
        return float(np.abs(fitted.paths[name] - real).sum()) / whole if whole > 0 else math.nan

    mean = np.mean([fitted.paths[name] for name in fitted.sets], axis=0)
    reach = np.abs(real).sum(axis=0) + np.abs(mean).sum(axis=0)
    shown = np.sort(np.argsort(-reach, kind="stable")[:SHOWN])
    detail = [
        {
            "penalty": float(penalty),
            "term": fitted.terms[j],
            "real": float(real[i, j]),
            "synthetic": float(mean[i, j]),
        }
        for j in shown
        for i, penalty in enumerate(fitted.penalties)
    ]
    note += f" The detail has the {len(shown)} of {len(fitted.terms)} terms with the longest paths."
    if whole == 0:
        note += " Not defined: no term enters the real path."
    return assemble(
        LASSO_PATH,
        [Measured(apart(name), note=note) for name in fitted.sets],
        {name: apart(name) for name in fitted.beside},
        columns=(target,),
        detail=detail,
    )


def _mse_finding(fitted: _Fitted, target: str, note: str) -> Finding:
    best = int(np.argmin(fitted.errors["real"]))
    mean = np.mean([fitted.errors[name] for name in fitted.sets], axis=0)
    detail = [
        {"penalty": float(penalty), "synthetic": float(mean[i])}
        | {name: float(fitted.errors[name][i]) for name in fitted.beside}
        for i, penalty in enumerate(fitted.penalties)
    ]
    return assemble(
        LASSO_MSE,
        [Measured(float(fitted.errors[name][best]), note=note) for name in fitted.sets],
        {name: float(fitted.errors[name][best]) for name in fitted.beside},
        columns=(target,),
        detail=detail,
    )


def _undefined(subject: Subject, target: str, why: str) -> list[Finding]:
    return [undefined(m, len(subject.sets), f"Not defined: {why}", (target,)) for m in METRICS]


def _rows(
    table: Side, target: str, others: Sequence[str]
) -> tuple[Any, tuple[str, ...], np.ndarray]:
    values = measured(table, target)
    known = np.flatnonzero(~np.isnan(values))
    matrix, terms = dummies(table.take(known), others)
    return matrix, terms, values[known]


def _moments(x: Any, y: np.ndarray, scale: np.ndarray, spread: float, real: Moments) -> Moments:
    if len(y) == 0:  # a table without a target teaches nothing: the real mean, and no terms
        return Moments(0 * real.gram, 0 * real.cross, real.mean, real.target)
    return _scaled(moments_of(x, y), scale, spread)


def _scaled(moments: Moments, scale: np.ndarray, spread: float) -> Moments:
    return Moments(
        moments.gram / np.outer(scale, scale),
        moments.cross / (scale * spread),
        moments.mean / scale,
        moments.target / spread,
    )


def _errors(
    x: Any, y: np.ndarray, coefficients: np.ndarray, fit: Moments, scale: np.ndarray, spread: float
) -> np.ndarray:
    """Mean squared errors on test rows, float64 (penalties,), in the target's unit squared."""
    linear = np.asarray(x @ (coefficients / scale).T)
    predicted = fit.target + linear - coefficients @ fit.mean
    return np.asarray(np.mean((y[:, None] - spread * predicted) ** 2, axis=0))
