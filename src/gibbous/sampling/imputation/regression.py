"""Full conditionals: a multinomial regression of each column on all others, its penalty cross-validated."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np

from gibbous.core.extras import need, require
from gibbous.core.machine import usable_cores
from gibbous.core.stream import stream_key
from gibbous.sampling.imputation.records import Records, design, starts_of

Choice = Literal["min", "1se"]

FEWEST = 50
"""Records below which there is nothing to cross-validate with: columns are then independent."""

TUNED = 10_000
"""Records, drawn at random, that the penalty is chosen on; the regression itself takes all."""

LISTED = 1 << 18
"""Records up to which the solver sees each one; beyond, equal records share lines."""

LONG = 50_000
"""Lines from which a pass moves the coefficients so far that ten times the tolerance will do."""

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""1 / (total penalty), from the strongest penalty on: tried until the held-out loss rises."""

_SEED = 20260501  # of folds and of the solver's visiting order: public, and no source of noise


@dataclass(frozen=True, slots=True)
class Fit:
    """How the regressions are fitted.

    Attributes:
        mix: share of the absolute-value penalty: 0 is ridge, 1 is lasso.
        folds: of the cross-validation, >= 2.
        choice: "min" takes the penalty of the least held-out loss, "1se" the strongest one whose
            loss is within a standard error of it.
        tolerance: relative change of the coefficients at which the solver stops.
        passes: most passes of the solver over the records.
    """

    mix: float = 0.5
    folds: int = 5
    choice: Choice = "min"
    tolerance: float = 1e-3
    passes: int = 100


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Conditional:
    """P(v | rest) proportional to exp(base[v] + sum over columns c of table[starts[c] + rest[c], v]).

    Secret: it was fitted to records without noise.

    Attributes:
        others: int64 (columns,): positions of those it depends on.
        starts: int64 (columns,): first line of each in the table.
        table: float64 (levels of the others together, levels).
        base: float64 (levels,); -inf for a level that no record has.
        strength: 1 / (total penalty) that was chosen; nan where nothing was regressed.
    """

    target: int
    others: np.ndarray
    starts: np.ndarray
    table: np.ndarray
    base: np.ndarray
    strength: float = float("nan")

    def __repr__(self) -> str:
        return "<Conditional, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("what was fitted to confidential records is never pickled")

    @property
    def levels(self) -> int:
        """Number of codes of the target."""
        return len(self.base)


def installed() -> None:
    """Look for the solver before anything is paid; EngineFailure if scikit-learn or scipy is missing."""
    require(("sklearn", "scipy"), "evaluate")


def conditionals(records: Records, fit: Fit) -> tuple[Conditional, ...]:
    """One full conditional for each column with more than one level, in schema order.

    minimize  sum_i n_i (-log P(v_i | rest_i)) + (1 / strength) (mix |b|_1 + (1 - mix) |b|^2 / 2)

    over distinct rows i with n_i records; indicators of all levels, nominal and ordered alike; the
    intercept is not penalized. Separated levels are harmless: the penalty keeps every coefficient
    finite. A level that no record has gets probability 0, a column in which records hold one level
    that level, a table without records the uniform law, and a table of fewer than FEWEST records
    the columns' own margins.

    Source:
        [park2014, s3.5 and s4.3]; Friedman, Hastie, Tibshirani (2010), glmnet; the solver is SAGA
        (Defazio, Bach, Lacoste-Julien 2014) of scikit-learn.
    """
    targets = [j for j, size in enumerate(records.sizes) if size > 1]
    if records.total < FEWEST:
        return tuple(marginal(j, records.margin(j)) for j in targets)
    slowest_first = sorted(targets, key=lambda j: -records.sizes[j])
    with warnings.catch_warnings():
        # Whether a solver stops early depends on records: it is nobody's to hear.
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(usable_cores()) as pool:
            found = list(pool.map(lambda j: conditional(records, j, fit), slowest_first))
    return tuple(sorted(found, key=lambda one: one.target))


def conditional(records: Records, target: int, fit: Fit) -> Conditional:
    """The full conditional of one column, with the penalty that cross-validation chooses."""
    held, others = records.margin(target), records.others(target)
    if np.count_nonzero(held) < 2 or not others:
        return marginal(target, held)
    sample = records.sampled(TUNED, _SEED)
    strength = _strength(design(records, others), records.codes[target], sample, fit)
    return regressed(records, target, strength, fit)


def regressed(records: Records, target: int, strength: float, fit: Fit) -> Conditional:
    """The regression of one column on the others at a given penalty.

    Args:
        records: with two levels of the target at least, and another column of two levels.
        strength: 1 / (total penalty).
        fit: all but folds and choice are used.
    """
    others = records.others(target)
    lines, weights, unit = records.listed(LISTED)
    rough = 10.0 if len(lines) > LONG else 1.0
    model = _solver(fit, target).set_params(C=strength * unit, tol=rough * fit.tolerance)
    model.fit(design(records, others)[lines], records.codes[target][lines], sample_weight=weights)
    table, base = _expanded(model, records.sizes[target])
    starts = starts_of(records.sizes, others)[:-1]
    return Conditional(target, np.array(others, dtype=np.int64), starts, table, base, strength)


def marginal(target: int, held: np.ndarray) -> Conditional:
    """The column's own distribution, whatever the rest; uniform where there is no record."""
    none = np.zeros(0, dtype=np.int64)
    with np.errstate(divide="ignore"):
        base = np.log(held / held.sum()) if held.any() else np.zeros(len(held))
    return Conditional(target, none, none, np.zeros((0, len(held))), base)


def _strength(features: Any, values: np.ndarray, sample: np.ndarray, fit: Fit) -> float:
    """The strength that predicts held-out records best, or the "1se" one."""
    fold = np.arange(len(sample)) % fit.folds
    runs = [
        run
        for k in range(fit.folds)
        if (run := _Fold(features, values, sample[fold != k], sample[fold == k], fit)).usable
    ]
    losses: list[np.ndarray] = []
    for strength in STRENGTHS if runs else STRENGTHS[:1]:
        losses.append(np.array([run.loss(strength) for run in runs]))
        if len(losses) > 1 and losses[-1].mean() > losses[-2].mean():
            break
    return _chosen(losses, fit.choice)


def _chosen(losses: Sequence[np.ndarray], choice: Choice) -> float:
    if not losses[0].size:
        return STRENGTHS[0]
    means = np.array([loss.mean() for loss in losses])
    best = int(means.argmin())
    if choice == "min" or losses[best].size < 2:
        return STRENGTHS[best]
    spread = losses[best].std(ddof=1) / np.sqrt(losses[best].size)
    return STRENGTHS[int(np.argmax(means <= means[best] + spread))]


class _Fold:
    """One training part with a solver that starts where it last stopped, and its held-out part."""

    def __init__(
        self, features: Any, values: np.ndarray, train: np.ndarray, test: np.ndarray, fit: Fit
    ) -> None:
        self._x, self._y = features[train], values[train]
        known = np.isin(values[test], self._y)  # a level unknown here is missed by every strength
        self._test_x, self._test_y = features[test[known]], values[test[known]]
        # Losses of neighboring strengths differ by less than a finer fit would change them.
        rough = replace(fit, tolerance=10 * fit.tolerance)
        self._model = _solver(rough, 0).set_params(warm_start=True)
        self.usable = bool(len(self._test_y)) and len(np.unique(self._y)) > 1

    def loss(self, strength: float) -> float:
        """Mean negative log probability of the held-out records."""
        self._model.set_params(C=strength).fit(self._x, self._y)
        at = np.searchsorted(self._model.classes_, self._test_y)
        logs = self._model.predict_log_proba(self._test_x)
        return float(-logs[np.arange(len(at)), at].mean())


def _solver(fit: Fit, stream: int) -> Any:
    linear = need("sklearn.linear_model", "evaluate")
    model = linear.LogisticRegression(
        solver="saga",
        l1_ratio=fit.mix,
        max_iter=fit.passes,
        tol=fit.tolerance,
        random_state=stream_key(_SEED, stream) >> 33,
    )
    if linear.LogisticRegression().l1_ratio is None:  # before 1.8 the penalty had a name as well
        model.set_params(penalty="elasticnet")
    return model


def _expanded(model: Any, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (features, levels) and intercepts, with levels that no record has at -inf."""
    classes, slopes, intercept = model.classes_, model.coef_, model.intercept_
    if len(classes) == 2:  # one line stands for the second class against the first
        slopes, intercept = np.vstack([0 * slopes, slopes]), np.append(0.0, intercept)
    table, base = np.zeros((slopes.shape[1], levels)), np.full(levels, -np.inf)
    table[:, classes], base[classes] = slopes.T, intercept
    return table, base
