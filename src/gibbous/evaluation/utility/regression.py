"""Regression coefficients by formula: how far synthetic ones are, and how far their intervals overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbous.core.errors import ResourceLimit
from gibbous.core.finding import Finding
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.measure import (
    NOTHING,
    Measured,
    Metric,
    Options,
    Z,
    assemble,
    mean_of_known,
    undefined,
)
from gibbous.evaluation.model_fits import solved
from gibbous.evaluation.model_formula import Formula
from gibbous.evaluation.tables import Side, Subject, sampled
from gibbous.evaluation.utility.model_rows import Rows, check_size, estimable, parse, rows
from gibbous.evaluation.utility.train_and_test import references

EXACT = 1e-20  # residual share of the squares that counts as no residual
MULTINOMIAL_ROWS = 20_000  # rows x classes x terms: more would take minutes and say little more
_MODELS: Mapping[str, str] = {
    "ols": "ordinary least squares",
    "logit": "logistic regression",
    "multinomial": "multinomial logistic regression",
}

COEFFICIENTS = Metric(
    name="coefficients",
    title="Regression coefficients, mean standardized difference",
    group="utility",
    better="lower",
    definition=(
        "Mean over coefficients of |b_synthetic - b_real| / se_real, in standard errors of the real "
        "fit; b_synthetic is the mean over the sets. 0: equal. Coefficients that do not exist on "
        "either side are left out and counted in the note."
    ),
    source="Snoke et al. 2018, s3 (standardized difference)",
    needs=("formulas",),
)
CI_OVERLAP = Metric(
    name="ci_overlap",
    title="Regression coefficients, overlap of 95 % intervals",
    group="utility",
    better="higher",
    definition=(
        "Mean over coefficients of the average of two shares: of the real interval that the synthetic "
        "one covers, and of the synthetic that the real one covers; 0 where they do not meet, or where "
        "the synthetic coefficient does not exist. In [0, 1]. The synthetic interval is the one an "
        "analyst of the rows alone would state (unified rule without the variance of the noise, which "
        "`gibbous infer` adds): for m sets of N rows from n records it is sqrt(N/n + 1/m) as wide as one "
        "set's own, so equal estimates with N = n reach "
        "(1 + 1 / sqrt(1 + 1/m)) / 2, not 1."
    ),
    source="Karr, Kohnen, Oganian, Reiter, Sanil 2006; intervals by the unified combining rule",
    needs=("formulas",),
)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Coefficients with intervals, float64 (coefficients,) each, NaN where one does not exist."""

    estimate: np.ndarray
    se: np.ndarray
    low: np.ndarray
    high: np.ndarray


METRICS = (COEFFICIENTS, CI_OVERLAP)


def findings(subject: Subject, options: Options = NOTHING) -> list[Finding]:
    """coefficients and ci_overlap of each formula; nothing without formulas.

    Returns:
        Two findings a formula; not defined, with the reason in the note, where its design is too large
        or the real records have no row for it.
    Raises:
        UsageError: a formula is none, or does not fit the schema.
    """
    checked = [parse(text, subject.schema) for text in options.formulas]
    return [finding for formula in checked for finding in _findings(subject, formula)]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients of one table.

    Attributes:
        estimate: float64 (coefficients,), NaN where a coefficient does not exist.
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
        base: the code that the others are compared with (multinomial).
    Returns:
        Coefficients in the order of `rows.terms`; multinomial: all terms of the first other code,
        then of the next. Missing are terms that are constant zero or a combination of earlier ones,
        codes that the table lacks, terms whose rows determine the outcome (separation: the estimate
        is infinite), and everything where the fit fails.
    """
    equations = levels - 1 if family == "multinomial" else 1
    blank = np.full((equations, rows.matrix.shape[1]), np.nan)
    estimate, se, used = blank.copy(), blank.copy(), len(rows.target)
    keep = estimable(rows.matrix) if used else np.zeros(rows.matrix.shape[1], dtype=bool)
    notes = []
    if not keep.all():
        notes.append(f"{int((~keep).sum())} terms are constant zero or follow from others")
    if used == 0 or not keep.any():
        return Fit(blank.ravel(), blank.ravel(), used, rows.dropped, "no rows to fit")
    matrix = rows.matrix[:, keep]
    if family == "ols":
        done = solved("gaussian", matrix, rows.target)
        residual = rows.target - matrix @ done.estimate[0]
        free = used > matrix.shape[1] and residual @ residual > EXACT * rows.target @ rows.target
        done = done if free else replace(done, variance=np.full(done.variance.shape, np.nan))
    else:
        order = [base, *(code for code in range(levels) if code != base)]
        codes = np.argsort(order)[rows.target.astype(np.int64)]
        count = np.bincount(codes, minlength=levels)
        if not count[0] or not count[1:].any():
            return Fit(blank.ravel(), blank.ravel(), used, rows.dropped, "the fit does not exist")
        if not count.all():
            notes.append("levels of the target are absent")
        done = solved("multinomial", matrix, codes, classes=levels)
    if done.infinite.any():
        notes.append(f"{int(done.infinite.sum())} coefficients are infinite (separation)")
    estimate[:, keep] = np.where(done.infinite, np.nan, done.estimate)
    se[:, keep] = np.where(done.infinite, np.nan, np.sqrt(done.variance))
    return Fit(estimate.ravel(), se.ravel(), used, rows.dropped, "; ".join(notes))


def standardized(real: Estimates, synthetic: Estimates) -> np.ndarray:
    """|b_synthetic - b_real| / se_real, NaN where a part is missing."""
    known = np.isfinite(real.se) & (real.se > 0)
    scale = np.where(known, real.se, np.nan)
    return np.asarray(np.abs(synthetic.estimate - real.estimate) / scale)


def overlap(real: Estimates, synthetic: Estimates) -> np.ndarray:
    """Karr's overlap of two intervals in [0, 1]: 0 without a synthetic one, NaN without a real one."""
    shared = np.minimum(real.high, synthetic.high) - np.maximum(real.low, synthetic.low)
    shared = np.maximum(shared, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (shared / (real.high - real.low) + shared / (synthetic.high - synthetic.low)) / 2
    exists = np.isfinite(real.low) & (real.high > real.low)
    return np.where(exists, np.where(np.isfinite(value), value, 0.0), np.nan)


def _fewer(subject: Subject, formula: Formula) -> Subject:
    """A sample of each table by seed, where the model is too slow for all rows."""
    if formula.family != "multinomial":
        return subject

    def cut(table: Side, place: int) -> Side:
        if table.rows <= MULTINOMIAL_ROWS:
            return table
        return table.take(sampled(table.rows, MULTINOMIAL_ROWS, subject.seed, 21, place))

    return Subject(
        subject.schema,
        cut(subject.real, 0),
        tuple(cut(table, place + 2) for place, table in enumerate(subject.sets)),
        None if subject.holdout is None else cut(subject.holdout, 1),
        subject.seed,
        subject.references,
    )


def _findings(whole_subject: Subject, formula: Formula) -> list[Finding]:
    subject = _fewer(whole_subject, formula)
    try:
        for table in (subject.real, *subject.sets):
            check_size(formula, table)
    except ResourceLimit as error:
        return _undefined(formula, len(subject.sets), f"{error.wrong} {error.allowed} {error.fix}")
    first = rows(formula, subject.real)
    if len(first.target) == 0:
        return _undefined(formula, len(subject.sets), "No real record has all its numbers.")
    base, levels = _base(formula, first.target)

    def fitted(table: Side) -> Fit:
        return fit(formula.family, rows(formula, table, first.spec), levels=levels, base=base)

    real = fit(formula.family, first, levels=levels, base=base)
    sets = [fitted(table) for table in subject.sets]
    half = Z * real.se
    truth = Estimates(real.estimate, real.se, real.estimate - half, real.estimate + half)
    each = [_combined([one], real.rows) for one in sets]
    whole = _combined(sets, real.rows)
    beside = {
        name: _combined([fitted(table)], real.rows) for name, table in references(subject).items()
    }
    names = _names(formula, first.terms, base)
    note = _note(formula, real, sets, truth, whole)
    if subject is not whole_subject and whole_subject.real.rows > MULTINOMIAL_ROWS:
        note = f"At most {MULTINOMIAL_ROWS:,} rows of each table, drawn by seed. {note}".strip()
    detail = _detail(names, truth, whole)
    pair = []
    for metric, measure in ((COEFFICIENTS, standardized), (CI_OVERLAP, overlap)):
        finding = assemble(
            metric,
            [Measured(mean_of_known(measure(truth, one)), note=note) for one in each],
            {name: mean_of_known(measure(truth, one)) for name, one in beside.items()},
            columns=_columns(formula),
            detail=detail,
        )
        # Not the mean of the sets' values: sets are combined first, as an analyst would.
        pair.append(replace(finding, value=mean_of_known(measure(truth, whole))))
    return pair


def _undefined(formula: Formula, sets: int, why: str) -> list[Finding]:
    note = f"{formula.text}: not defined. {why}"
    return [undefined(metric, sets, note, _columns(formula)) for metric in METRICS]


def _columns(formula: Formula) -> tuple[str, ...]:
    return (formula.target, *(name for name in formula.columns if name != formula.target))


def _combined(sets: Sequence[Fit], records: int) -> Estimates:
    """The unified rule over sets; NaN where no set has the coefficient."""
    size = float(np.mean([one.rows for one in sets]))
    estimates = np.stack([one.estimate for one in sets])
    blank = np.full(estimates.shape[1], np.nan)
    if size == 0 or records == 0 or not np.isfinite(estimates).any():
        return Estimates(blank, blank, blank, blank)
    variances = np.stack([one.se**2 for one in sets])
    combined = combine(estimates, variances, rule="unified", rows=size, records=float(records))
    return Estimates(combined.estimate, combined.se, combined.low, combined.high)


def _base(formula: Formula, target: np.ndarray) -> tuple[int, int]:
    """The code to compare with (multinomial: the most frequent real one), and how many there are."""
    if formula.family != "multinomial" or formula.column is None:
        return 0, 2
    count = np.bincount(target.astype(np.int64), minlength=formula.column.size)
    return int(count.argmax()), formula.column.size


def _names(formula: Formula, terms: Sequence[str], base: int) -> list[tuple[str, str]]:
    """(level of the target, term) of each coefficient; no level but for a multinomial target."""
    if formula.family != "multinomial" or formula.column is None:
        return [("", term) for term in terms]
    levels = [label for code, label in enumerate(formula.column.labels()) if code != base]
    return [(level, term) for level in levels for term in terms]


def _detail(
    names: Sequence[tuple[str, str]], real: Estimates, synthetic: Estimates
) -> list[dict[str, Any]]:
    columns = {
        f"{side}{suffix}": getattr(estimates, part)
        for side, estimates in (("real", real), ("synthetic", synthetic))
        for part, suffix in (("estimate", ""), ("se", "_se"), ("low", "_low"), ("high", "_high"))
    }
    columns["standardized"] = standardized(real, synthetic)
    columns["overlap"] = overlap(real, synthetic)
    return [
        {"level": level, "term": term} | {name: float(each[i]) for name, each in columns.items()}
        for i, (level, term) in enumerate(names)
    ]


def _note(
    formula: Formula, real: Fit, sets: Sequence[Fit], truth: Estimates, whole: Estimates
) -> str:
    sentences = [f"{formula.text}, {_MODELS[formula.family]}."]
    lost = int((np.isfinite(truth.estimate) & ~np.isfinite(whole.estimate)).sum())
    none = int((~np.isfinite(truth.estimate)).sum())
    if none:
        sentences.append(f"{none} coefficients do not exist in the real records.")
    if lost:
        sentences.append(f"{lost} coefficients exist in the real records alone.")
    for name, one in [("Real", real), *((f"Set {i}", s) for i, s in enumerate(sets, 1))]:
        if one.note:
            sentences.append(f"{name}: {one.note}.")
        if one.dropped:
            sentences.append(f"{name}: {one.dropped} rows left out for missing numbers.")
    return " ".join(sentences)
