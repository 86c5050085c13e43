"""Regression fits that say which coefficients exist: OLS, logit and multinomial logit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbous.core.extras import need
from gibbous.evaluation.multinomial import multinomial
from gibbous.evaluation.utility.design import estimable
from gibbous.evaluation.utility.model_rows import Rows

BLOWN = 100  # standard error over that of the term alone, where Newton's steps do not end
EXACT = 1e-20  # residual share of the squares that counts as no residual


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients of one table.

    Attributes:
        estimate: float64 (coefficients,), NaN where a coefficient does not exist.
        se: their standard errors.
        rows: used.
        dropped: rows left out for missing numbers.
        note: why coefficients are missing; empty if none is.
    """

    estimate: np.ndarray
    se: np.ndarray
    rows: int
    dropped: int
    note: str = ""


def fit(family: str, rows: Rows, *, levels: int = 2, base: int = 0) -> Fit:
    """Fit one table.

    Args:
        family: ols, logit (of code 1) or multinomial (each code against the base).
        rows: design and target.
        levels: codes of the target (logit, multinomial).
        base: the code that the others are compared with (multinomial).
    Returns:
        Coefficients in the order of `rows.terms`; multinomial: all terms of the first other code,
        then of the next. Missing are terms that are constant zero or a combination of earlier ones,
        codes that the table lacks, terms whose rows determine the outcome (separation: the estimate
        is infinite), and everything where the fit fails.
    """
    equations = levels - 1 if family == "multinomial" else 1
    terms = rows.matrix.shape[1]
    blank = np.full((equations, terms), np.nan)
    used = len(rows.target)
    keep = estimable(rows.matrix) if used else np.zeros(terms, dtype=bool)
    notes = []
    if not keep.all():
        notes.append(f"{int((~keep).sum())} terms are constant zero or follow from others")
    if used == 0 or not keep.any():
        return Fit(blank.ravel(), blank.ravel(), used, rows.dropped, "no rows to fit")
    # Terms of one size: Newton's steps and the checks below do not depend on units.
    size = np.sqrt(np.mean(rows.matrix[:, keep] ** 2, axis=0))
    matrix = rows.matrix[:, keep] / size
    estimate, se = blank.copy(), blank.copy()
    if family == "ols":
        solution = _ols(rows.target, matrix)
        equation = [0]
    else:
        codes = rows.target.astype(np.int64)
        equation, solution = _discrete(family, codes, matrix, levels, base)
        if len(equation) < equations:
            notes.append("levels of the target are absent")
    if solution is None:
        return Fit(blank.ravel(), blank.ravel(), used, rows.dropped, "the fit does not exist")
    coefficients, errors, infinite = solution
    if infinite:
        notes.append(f"{infinite} coefficients are infinite (separation)")
    places = np.ix_(np.array(equation, dtype=np.int64), np.flatnonzero(keep))
    estimate[places], se[places] = coefficients / size, errors / size
    return Fit(estimate.ravel(), se.ravel(), used, rows.dropped, "; ".join(notes))


_Solution = tuple[np.ndarray, np.ndarray, int] | None


def _ols(target: np.ndarray, matrix: np.ndarray) -> _Solution:
    models = need("statsmodels.api", "evaluate")
    free = len(target) - matrix.shape[1]
    result = models.OLS(target, matrix, hasconst=False).fit(method="qr")
    estimate, se = np.asarray(result.params), np.full(matrix.shape[1], np.nan)
    if free > 0 and result.ssr > EXACT * float(np.sum(target**2)):
        se = np.asarray(result.bse)
    return estimate[None, :], se[None, :], 0


def _discrete(
    family: str, codes: np.ndarray, matrix: np.ndarray, levels: int, base: int
) -> tuple[list[int], _Solution]:
    """(equations that exist, what was found): logit has one, multinomial one a code but the base."""
    count = np.bincount(codes, minlength=levels)
    others = [1] if family == "logit" else [code for code in range(levels) if code != base]
    first = 0 if family == "logit" else base
    present = [code for code in others if count[code]]
    if not present or not count[first]:
        return [], None
    recoded = np.zeros(len(codes), dtype=np.int64)
    for place, code in enumerate(present, 1):
        recoded[codes == code] = place
    return [others.index(code) for code in present], _newton(recoded, matrix)


def _newton(codes: np.ndarray, matrix: np.ndarray) -> _Solution:
    try:
        fitted = multinomial(matrix, codes, int(codes.max()) + 1)
    except np.linalg.LinAlgError:
        return None
    estimate, se = fitted.estimate, fitted.se
    share = np.bincount(codes)[1:] / len(codes)
    alone = np.sqrt(1.0 / (share * (1.0 - share)))[:, None] / np.sqrt((matrix**2).sum(axis=0))
    # An infinite coefficient grows by about one a step, so the steps never end; one that is large or
    # poorly known ends after a few.
    blown = not fitted.ended
    gone = ~np.isfinite(estimate) | ~np.isfinite(se) | blown & (se > BLOWN * alone)
    if blown and not gone.any():
        return None
    return np.where(gone, np.nan, estimate), np.where(gone, np.nan, se), int(gone.sum())
