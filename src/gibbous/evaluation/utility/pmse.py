"""Propensity: how well a model tells synthetic rows from real ones, beside what a resample scores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gibbous.core.extras import need
from gibbous.core.finding import Finding
from gibbous.core.schema import Schema
from gibbous.evaluation.measure import NOTHING, Measured, Metric, Options, assemble
from gibbous.evaluation.tables import Side, Subject, number, resampled, sampled
from gibbous.evaluation.utility.model_rows import propensity_design
from gibbous.evaluation.utility.train_and_test import one_thread, references

ROWS = 20_000  # of each side
RESAMPLES = 5  # for the null of the tree
TELLING = 0.5  # part of the largest pmse from which a column is named
LEAVES, LEAF = 100, 20  # of the tree: at most so many, each of at least so many rows
_PARTS = ("pmse", "null", "spread", "ratio", "terms")
RIDGE = 1e-4  # keeps a level that only one side has finite; the likelihood is not felt otherwise

_FORMULA = (
    "Mean over real and synthetic rows of (p - c)^2: p is the fitted probability that a row is "
    "synthetic, c the share of synthetic rows. 0: the model tells nothing apart; c(1 - c): everything."
)
_SOURCE = "Snoke, Raab, Nowok, Dibben, Slavkovic 2018, General and specific utility measures"
_LOGISTIC = "logistic regression on main effects and one product a pair of columns"
_TREE = f"classification tree of at most {LEAVES} leaves"

PMSE = Metric(
    name="pmse",
    title="Propensity score mean squared error, logistic",
    group="utility",
    better="lower",
    definition=f"{_FORMULA} Model: {_LOGISTIC}.",
    source=f"{_SOURCE}, eq. 1",
)
PMSE_RATIO = Metric(
    name="pmse_ratio",
    title="Propensity score mean squared error over its null, logistic",
    group="utility",
    better="near",
    definition=(
        "pmse divided by what rows drawn from the law of the real records score on average: "
        "k c (1 - c)(1 - f c) / N for k terms, N rows, f the share of the real records that is used "
        "(closed form). 1: as a resample of the records; below: nearer to them than a resample; "
        "1 / (1 - f c): as new records of the same population. Noise of a release counts as distance."
    ),
    source=f"{_SOURCE}, theorem 1, extended to samples of the records",
    ideal=1.0,
)
PMSE_TREE = Metric(
    name="pmse_tree",
    title="Propensity score mean squared error, tree",
    group="utility",
    better="lower",
    definition=f"{_FORMULA} Model: {_TREE}.",
    source=f"{_SOURCE}, s2",
)
PMSE_TREE_RATIO = Metric(
    name="pmse_tree_ratio",
    title="Propensity score mean squared error over its null, tree",
    group="utility",
    better="near",
    definition=(
        f"pmse_tree divided by its mean over {RESAMPLES} tables of as many rows, drawn from the real "
        "records with replacement by seed. 1: as a resample of the records."
    ),
    source=f"{_SOURCE}, s2; null by resampling",
    ideal=1.0,
)


@dataclass(frozen=True, slots=True)
class Propensity:
    """What one propensity model says of one pair of tables.

    Attributes:
        pmse: mean squared distance of the scores from c, in [0, c(1 - c)] at the training rows.
        null: what a resample of the real records scores on average; 0 where it is not told apart.
        terms: of the model, without intercept; leaves less one for a tree.
    """

    pmse: float
    null: float
    spread: float
    terms: int

    @property
    def ratio(self) -> float:
        """pmse over its null; NaN where the null is 0."""
        return self.pmse / self.null if self.null > 0 else math.nan


METRICS = (PMSE, PMSE_RATIO, PMSE_TREE, PMSE_TREE_RATIO)


@one_thread()
def findings(subject: Subject, _: Options = NOTHING, *, rows: int = ROWS) -> list[Finding]:
    """pmse and pmse_ratio of a logistic model and of a tree, on at most `rows` of each side, by seed."""
    tables = {f"set {i}": one for i, one in enumerate(subject.sets, 1)} | references(subject)
    seed = subject.seed
    real = subject.real.take(sampled(subject.real.rows, rows, seed, 22))
    used = {name: t.take(sampled(t.rows, rows, seed, 23)) for name, t in tables.items()}
    # The terms depend on both tables, so every table has a model, and a null, of its own.
    logistic = {
        name: by_logistic(
            propensity_design([real, table], seed=seed),
            real.rows,
            seen=real.rows / subject.real.rows,
        )
        for name, table in used.items()
    }
    sizes = {table.rows for table in used.values()}
    nulls = {size: _tree_null(subject.real, real, size, seed) for size in sizes}
    tree = {}
    for name, table in used.items():
        value, leaves = by_tree(_stacked(real, table), real.rows, seed)
        tree[name] = Propensity(value, *nulls[table.rows], leaves - 1)
    cut = max(t.rows for t in (subject.real, *tables.values())) > rows
    note = f"Of at most {rows} rows a side, drawn by seed." if cut else ""
    sets = len(subject.sets)
    told = _alone(subject.schema, _stacked(real, used["set 1"]), real.rows, seed)
    return [
        *_pair(PMSE, PMSE_RATIO, logistic, sets, note),
        *_pair(PMSE_TREE, PMSE_TREE_RATIO, tree, sets, f"{note} {told}".strip()),
    ]


def pmse_of(scores: np.ndarray, share: float) -> float:
    """Mean squared distance of propensity scores (rows,) from the share of synthetic rows."""
    return float(np.mean((scores - share) ** 2))


def expected(terms: int, real: int, synthetic: int, *, seen: float = 1.0) -> tuple[float, float]:
    """Mean and standard deviation of pmse for rows drawn from the law of the records.

    The sum of (p - c)^2 is, to first order, a quadratic form in the difference of the two tables'
    term means. Both tables fresh draws of one population: N pmse ~ c(1 - c) chi2(terms). Synthetic
    rows drawn given the records: the records' own sampling error is shared, which leaves the
    synthetic part, a share 1 - c of the variance. A sample of the records (a share f of them) has
    (1 - f) of its own error left, hence 1 - f c.

    Args:
        terms: without intercept.
        seen: share f of the records that is in the fit; 0 for records of another sample.
    Returns:
        (mean, standard deviation).
    Source:
        Snoke et al. 2018, theorem 1 (f = 1).
    """
    total = real + synthetic
    c = synthetic / total
    unit = c * (1.0 - c) * (1.0 - seen * c) / total
    return terms * unit, float(np.sqrt(2.0 * terms)) * unit


def by_logistic(matrix: np.ndarray, real: int, *, seen: float = 1.0) -> Propensity:
    """Fit a logistic model and compare it with the closed form.

    Args:
        matrix: float64 (rows, terms), the real rows first; no intercept, no collinear columns.
        real: how many rows are real.
    """
    rows, terms = matrix.shape
    label = np.arange(rows) >= real
    share = float(label.mean())
    mean, spread = expected(terms, real, rows - real, seen=seen)
    if terms == 0:
        return Propensity(0.0, 0.0, 0.0, 0)
    linear = need("sklearn.linear_model", "evaluate")
    model = linear.LogisticRegression(C=1.0 / RIDGE, solver="newton-cholesky", max_iter=50)
    with warnings.catch_warnings():
        # Where the tables are separable the fit creeps on; the scores have settled long before.
        warnings.simplefilter("ignore")
        scores = model.fit(matrix, label).predict_proba(matrix)[:, 1]
    return Propensity(pmse_of(scores, share), mean, spread, terms)


def by_tree(numbers: np.ndarray, real: int, seed: int) -> tuple[float, int]:
    """Fit a tree, (pmse, leaves), to float64 (rows, columns), NaN for missing, the real rows first."""
    trees = need("sklearn.tree", "evaluate")
    label = np.arange(len(numbers)) >= real
    model = trees.DecisionTreeClassifier(
        max_leaf_nodes=LEAVES, min_samples_leaf=LEAF, random_state=number(seed, 24)
    )
    scores = model.fit(numbers, label).predict_proba(numbers)[:, 1]
    return pmse_of(scores, float(label.mean())), int(model.get_n_leaves())


def _alone(schema: Schema, numbers: np.ndarray, real: int, seed: int) -> str:
    """The column that tells the tables apart by itself, in words; empty where none does half of it."""
    share = 1 - real / len(numbers)
    scores = [by_tree(numbers[:, [j]], real, seed)[0] for j in range(len(schema))]
    worst = int(np.argmax(scores))
    if scores[worst] < TELLING * share * (1 - share):
        return ""
    column = schema.columns[worst]
    text = f"By column {column.name} alone the tree scores {scores[worst]:.3g}."
    if not column.binned:
        return text
    return (
        f"{text} Synthetic numbers are spread over their bins: a value that is frequent among the "
        "records, such as 0, is not frequent among them, unless it has a bin of its own."
    )


def _tree_null(whole: Side, real: Side, size: int, seed: int) -> tuple[float, float]:
    """Mean and standard deviation of pmse over resamples of the records, `size` rows each."""
    values = []
    for turn in range(RESAMPLES):
        drawn = whole.take(resampled(whole.rows, size, seed, 25, turn))
        values.append(by_tree(_stacked(real, drawn), real.rows, seed)[0])
    return float(np.mean(values)), float(np.std(values, ddof=1))


def _stacked(real: Side, other: Side) -> np.ndarray:
    return np.concatenate([real.numbers, other.numbers])


def _pair(
    plain: Metric, ratio: Metric, scores: Mapping[str, Propensity], sets: int, note: str
) -> list[Finding]:
    detail = [
        {"table": name} | {part: getattr(s, part) for part in _PARTS} for name, s in scores.items()
    ]
    undefined = any(s.null <= 0 for s in scores.values())
    why = "No ratio where a resample is not told apart at all." if undefined else ""
    pair = []
    for metric, part, words in ((plain, "pmse", note), (ratio, "ratio", f"{note} {why}".strip())):
        values = {name: getattr(s, part) for name, s in scores.items()}
        own = [Measured(value, note=words) for value in list(values.values())[:sets]]
        null = dict(list(values.items())[sets:])
        pair.append(assemble(metric, own, null, detail=detail))
    return pair
