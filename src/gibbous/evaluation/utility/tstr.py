"""Train on synthetic rows, test on real ones: gradient boosting for one target column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbous.core.extras import need
from gibbous.core.finding import Finding
from gibbous.core.schema import Column
from gibbous.evaluation.measure import NOTHING, Measured, Metric, Options, Z, assemble
from gibbous.evaluation.tables import Side, Subject, number, sampled
from gibbous.evaluation.utility.train_and_test import one_thread, split, trained

ROUNDS = 100  # of boosting
TREES = 250  # at most: a target of many levels has one tree a level and round
CATEGORIES = 255  # levels of one column that the library takes; rarer ones share the last
ROWS = 50_000  # trained on, at most

_TEXT = (
    "of histogram gradient boosting (all other columns as features) trained on synthetic rows and "
    "tested on real records; beside it what the same model reaches when trained on real records."
)
AUC = Metric(
    name="tstr",
    title="Train on synthetic, test on real: AUC",
    group="utility",
    better="higher",
    definition=(
        f"Area under the ROC curve {_TEXT} Two levels: of the second one; more: mean over the levels "
        "that the test has, each against the rest. In [0, 1]; 0.5 for guessing."
    ),
    source="Esteban, Hyland, Raetsch 2017 (TSTR); DeLong 1988 for the interval",
    interval_of="95 %, over test records (DeLong), given the trained model",
    needs=("targets",),
)
R2 = Metric(
    name="tstr",
    title="Train on synthetic, test on real: R2",
    group="utility",
    better="higher",
    definition=f"R2 {_TEXT} At most 1; 0 for the mean of the test records.",
    source="Esteban, Hyland, Raetsch 2017 (TSTR)",
    interval_of="95 %, over test records (delta method), given the trained model",
    needs=("targets",),
)


@dataclass(frozen=True, slots=True)
class Score:
    """A score on test records (NaN if not defined), its standard error, and (code, records, AUC) a level."""

    value: float
    error: float
    levels: tuple[tuple[int, int, float], ...] = ()

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


METRICS = (AUC, R2)


@one_thread()
def findings(
    subject: Subject, options: Options = NOTHING, *, rows: int = ROWS, rounds: int = ROUNDS
) -> list[Finding]:
    """One finding a target column, trained on at most `rows` by seed; none without targets."""
    return [_finding(subject, target, rows, rounds) for target in options.targets]


def _finding(subject: Subject, target: str, rows: int, rounds: int) -> Finding:
    train, test, note = split(subject)
    column = subject.schema[target]
    metric = R2 if column.binned else AUC
    others = [name for name in subject.schema.names if name != target]
    beside = trained(subject, train)
    tables = [*subject.sets, *beside.values()]
    scores = []
    for table in tables:
        used = table.take(sampled(table.rows, rows, subject.seed, 31))
        scores.append(_score(used, test, column, others, rounds, subject.seed))
    sets, null = scores[: len(subject.sets)], scores[len(subject.sets) :]
    if max(t.rows for t in tables) > rows:
        note += f" Trained on at most {rows} rows, drawn by seed."
    if column.binned and (gone := test.rows - len(_known(test, target))):
        note += f" {gone} of them have no value of the target and are left out."
    if not null[0].defined:
        note += " Not defined: the test records have one level or value of the target, or none."
    references = {name: score.value for name, score in zip(beside, null, strict=True)}
    measured = [Measured(s.value, _interval(s, column), note=note) for s in sets]
    detail = _detail(column, sets[0], null[0])
    return assemble(metric, measured, references, columns=(target,), detail=detail)


def _score(
    train: Side, test: Side, column: Column, others: Sequence[str], rounds: int, seed: int
) -> Score:
    if column.binned:
        known = train.take(_known(train, column.name))
        tested = test.take(_known(test, column.name))
        return r2(
            _values(tested, column.name), _regress(known, tested, column, others, rounds, seed)
        )
    j = train.schema.index(column.name)
    labels = test.codes.by_column[j].astype(np.int64)
    return macro_auc(labels, _classify(train, test, column, others, rounds, seed))


def macro_auc(labels: np.ndarray, scores: np.ndarray) -> Score:
    """Mean over levels of the area under the ROC curve of one level against the rest.

    Args:
        labels: codes (rows,).
        scores: float64 (rows, codes): the higher, the likelier.
    Returns:
        The mean over the levels that some, but not all, rows have; of the second level alone where
        there are two columns. The error is DeLong's: the spread of what each row adds.
    """
    present = np.bincount(labels, minlength=scores.shape[1])
    scorable = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    scored = [level for level in scorable if 0 < present[level] < len(labels)]
    if not scored:
        return Score(math.nan, math.nan)
    areas = [auc(labels == level, scores[:, level]) for level in scored]
    influence = np.mean([part for _, part in areas], axis=0)
    error = float(np.sqrt(np.sum(influence**2))) / len(labels)
    levels = tuple(
        (int(level), int(present[level]), value)
        for level, (value, _) in zip(scored, areas, strict=True)
    )
    return Score(float(np.mean([value for value, _ in areas])), error, levels)


def auc(positive: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Area under the ROC curve, ties counted half, and the influence of each row.

    Args:
        positive: bool (rows,), with both values.
        scores: float64 (rows,).
    Returns:
        (area, influence (rows,)): the variance of the area is sum(influence^2) / rows^2, DeLong's
        with divisors n in place of n - 1.
    Source:
        DeLong, DeLong, Clarke-Pearson 1988; fast ranks by Sun and Xu 2014.
    """
    rank = need("scipy.stats", "evaluate").rankdata
    ones, rows = int(positive.sum()), len(positive)
    zeros = rows - ones
    overall = rank(scores)
    within = np.empty(rows)
    within[positive] = rank(scores[positive])
    within[~positive] = rank(scores[~positive])
    # Of a positive row: share of negative rows below it; of a negative row: of positive rows above.
    placed = np.where(positive, (overall - within) / zeros, 1.0 - (overall - within) / ones)
    area = float(placed[positive].mean())
    weight = np.where(positive, rows / ones, rows / zeros)
    return area, weight * (placed - area)


def r2(truth: np.ndarray, predicted: np.ndarray) -> Score:
    """Share of the variance that is explained, with the error of the delta method."""
    if len(truth) < 2 or np.ptp(truth) == 0:
        return Score(math.nan, math.nan)
    loss = (truth - predicted) ** 2
    spread = (truth - truth.mean()) ** 2
    value = 1.0 - loss.mean() / spread.mean()
    influence = (loss - (1.0 - value) * spread) / spread.mean()
    return Score(float(value), float(np.sqrt(np.sum(influence**2))) / len(truth))


def _classify(
    train: Side, test: Side, column: Column, others: Sequence[str], rounds: int, seed: int
) -> np.ndarray:
    """Scores of every code of the target, float64 (test rows, codes); 0 for codes never trained on."""
    labels = train.codes.by_column[train.schema.index(column.name)].astype(np.int64)
    levels = np.unique(labels)
    out = np.zeros((test.rows, column.size))
    if len(levels) == 1 or not others:
        share = np.bincount(labels, minlength=column.size) / len(labels)
        return out + share
    model = need("sklearn.ensemble", "evaluate").HistGradientBoostingClassifier
    turns = rounds if len(levels) == 2 else max(1, min(rounds, TREES // len(levels)))
    before, after, marked = _features(train, test, others)
    fitted = _boosted(model, turns, marked, seed).fit(before, labels)
    out[:, fitted.classes_] = fitted.predict_proba(after)
    return out


def _regress(
    train: Side, test: Side, column: Column, others: Sequence[str], rounds: int, seed: int
) -> np.ndarray:
    values = _values(train, column.name)
    if len(values) == 0:
        low, high = float(column.edges[0]), float(column.edges[-1])
        return np.full(test.rows, (low + high) / 2)
    if np.ptp(values) == 0 or not others or test.rows == 0:
        return np.full(test.rows, values.mean())
    model = need("sklearn.ensemble", "evaluate").HistGradientBoostingRegressor
    before, after, marked = _features(train, test, others)
    return np.asarray(_boosted(model, rounds, marked, seed).fit(before, values).predict(after))


def _boosted(model: Any, rounds: int, marked: np.ndarray, seed: int) -> Any:
    # Without early stopping no draw is made, and every table gets the same number of rounds.
    return model(
        max_iter=rounds,
        early_stopping=False,
        categorical_features=marked,
        random_state=number(seed, 32),
    )


def _features(
    train: Side, test: Side, others: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places = [train.schema.index(name) for name in others]
    before, after = train.numbers[:, places].copy(), test.numbers[:, places].copy()
    marked = np.array([not train.schema[name].ordered for name in others])
    for k in np.flatnonzero(marked):
        ours = train.codes.by_column[places[k]].astype(np.int64)
        theirs = test.codes.by_column[places[k]].astype(np.int64)
        count = np.bincount(ours, minlength=train.schema.sizes[places[k]])
        rank = np.empty(len(count))
        rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
        rank = np.minimum(rank, CATEGORIES - 1)
        before[:, k], after[:, k] = rank[ours], rank[theirs]
    return before, after, marked


def _values(table: Side, name: str) -> np.ndarray:
    return np.asarray(table.numbers[:, table.schema.index(name)])


def _known(table: Side, name: str) -> np.ndarray:
    return np.flatnonzero(~np.isnan(_values(table, name)))


def _interval(score: Score, column: Column) -> tuple[float, float] | None:
    if not score.defined:
        return None
    low, high = score.value - Z * score.error, score.value + Z * score.error
    return (low if column.binned else max(low, 0.0)), min(high, 1.0)


def _detail(column: Column, synthetic: Score, real: Score) -> list[dict[str, Any]]:
    if column.binned:
        return [{"level": "", "records": None, "real": real.value, "synthetic": synthetic.value}]
    labels, reached = column.labels(), {code: value for code, _, value in real.levels}
    return [
        {"level": labels[code], "records": count, "real": reached[code], "synthetic": value}
        for code, count, value in synthetic.levels
    ]
