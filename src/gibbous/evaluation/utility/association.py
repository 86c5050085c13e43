"""Association of each pair of columns and correlation of numbers: real beside synthetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.finding import Finding
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.evaluation.measure import NOTHING, Metric, Options, undefined
from gibbous.evaluation.tables import Side, Subject
from gibbous.evaluation.utility.margin_scores import (
    GROUPS,
    INTERVAL_OF,
    Margin,
    Scored,
    chosen,
    groups_of,
    mean_finding,
    scored,
    unravelled,
)
from gibbous.evaluation.utility.train_and_test import references

Statistic = Literal["rank correlation", "correlation ratio", "Cramer's V"]

ASSOCIATION = Metric(
    name="association",
    title="Difference of pairwise associations",
    group="utility",
    better="lower",
    definition=(
        "Mean over pairs of columns of |real - synthetic association|. Two ordered or binary columns: "
        "Spearman's rank correlation of their codes (-1 to 1; rows with a missing or other value left "
        "out). Two columns one of which is nominal: Cramer's V with Bergsma's bias correction (0 to "
        "1), and beside an ordered column the correlation ratio of its ranks, with Kelley's bias "
        "correction (0 to 1). A column with one level that occurs has association 0. From 0 to 2."
    ),
    source="Bergsma (2013), J. Korean Stat. Soc. 42, 323-328; Kelley (1935), PNAS 21, 554-559",
    interval_of=INTERVAL_OF,
)
CORRELATION = Metric(
    name="correlation",
    title="Difference of correlations of numbers",
    group="utility",
    better="lower",
    definition=(
        "Mean over pairs of numeric and date columns of |real - synthetic Pearson correlation| of their "
        "values, rows with both values only; a column that does not vary has correlation 0. From 0 to 2."
    ),
    source="Pearson correlation",
    interval_of=INTERVAL_OF,
)
METRICS = (ASSOCIATION, CORRELATION)


def findings(subject: Subject, _: Options = NOTHING) -> list[Finding]:
    """association and correlation; NaN with a note where there are too few columns for a pair."""
    return [_association(subject), _correlation(subject)]


def statistic(first: Column, second: Column) -> Statistic:
    """What measures the association of two columns."""
    ranked = [column.kind != "nominal" for column in (first, second)]
    if all(ranked):
        return "rank correlation"
    ordered = first.ordered or second.ordered
    return "correlation ratio" if ordered else "Cramer's V"


def associations(tables: Sequence[Codes], *, seed: int = 0, intervals: int = 0) -> list[Scored]:
    """Association of each pair of columns, in the order of `chosen(columns, 2, ...)`: (pairs,)."""
    schema = tables[0].schema

    def measure(margin: Margin, _: Sparse, levels: np.ndarray, counts: np.ndarray) -> list[float]:
        return [pair(schema, margin, levels[n > 0], n[n > 0]) for n in counts]

    every = chosen(len(schema), 2, 0)
    return scored(tables[-1], tables, every, measure, seed=seed, intervals=intervals)


def pair(schema: Schema, margin: Margin, levels: np.ndarray, rows: np.ndarray) -> float:
    """Association of two columns from the cells that occur in their table, and the rows of each."""
    a, b = (schema.columns[c] for c in margin)
    kind = statistic(a, b)
    codes = unravelled(levels, (a.size, b.size))
    counts = rows.astype(np.float64)
    if kind == "Cramer's V":
        return cramer(codes[0], codes[1], counts)
    if kind == "rank correlation":
        keep = (codes[0] < a.bins) & (codes[1] < b.bins)
        return rank_correlation(codes[0][keep], codes[1][keep], counts[keep])
    if a.kind == "nominal":
        keep = codes[1] < b.bins
        return correlation_ratio(codes[0][keep], codes[1][keep], counts[keep])
    keep = codes[0] < a.bins
    return correlation_ratio(codes[1][keep], codes[0][keep], counts[keep])


def cramer(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> float:
    """Cramer's V with Bergsma's bias correction.

    Args:
        first, second: codes of the cells that occur, each cell once: int64 (cells,).
        counts: rows of each cell, > 0.
    Returns:
        0 to 1; 0 where a column has one level, or for fewer than two rows.
    """
    n = counts.sum()
    rows, columns = np.bincount(first, weights=counts), np.bincount(second, weights=counts)
    r, c = int((rows > 0).sum()), int((columns > 0).sum())
    if n < 2 or min(r, c) < 2:
        return 0.0
    phi2 = float((counts**2 / (rows[first] * columns[second])).sum()) - 1.0
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return min(1.0, math.sqrt(phi2 / least)) if least > 0 else 0.0


def rank_correlation(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> float:
    """Spearman's rank correlation, ties with their mean rank; arguments as for `cramer`."""
    if not len(counts):
        return 0.0
    x, y = midranks(first, counts), midranks(second, counts)
    x, y = x - np.average(x, weights=counts), y - np.average(y, weights=counts)
    scale = math.sqrt(float(counts @ x**2) * float(counts @ y**2))
    return float(np.clip((counts * x) @ y / scale, -1, 1)) if scale > 0 else 0.0


def correlation_ratio(groups: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> float:
    """Square root of the share of the variance of ranks that lies between groups, bias corrected.

    Args:
        groups: codes of a nominal column; codes: of an ordered one; of each cell that occurs.
        counts: rows of each cell.
    """
    n = counts.sum()
    sizes = np.bincount(groups, weights=counts)
    k = int((sizes > 0).sum())
    if k < 2 or n <= k:
        return 0.0
    rank = midranks(codes, counts)
    rank = rank - np.average(rank, weights=counts)
    total = float(counts @ rank**2)
    if total <= 0:
        return 0.0
    sums = np.bincount(groups, weights=counts * rank)
    between = float((sums[sizes > 0] ** 2 / sizes[sizes > 0]).sum()) / total
    return math.sqrt(max(0.0, 1.0 - (1.0 - min(1.0, between)) * (n - 1) / (n - k)))


def midranks(codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mean rank of the rows that share a code, for each cell: float64 (cells,)."""
    margin = np.bincount(codes, weights=counts)
    return np.asarray((np.cumsum(margin) - margin / 2 + 0.5)[codes])


def correlations(
    side: Side, columns: Sequence[int], *, seed: int = 0, jackknife: bool = False
) -> Scored:
    """Pearson correlation of each pair of numeric columns, pairs in lexicographic order: (pairs,)."""
    every = chosen(len(columns), 2, 0)
    numbers = side.numbers[:, list(columns)].T
    split = jackknife and side.rows >= 2 * GROUPS
    group = groups_of(side.rows, GROUPS, seed) if split else np.zeros(side.rows, dtype=np.int64)
    values = np.empty(len(every))
    deleted = np.empty((len(every), GROUPS))
    for m, (i, j) in enumerate(every):
        both = ~(np.isnan(numbers[i]) | np.isnan(numbers[j]))
        x, y = (v - v.mean() if len(v) else v for v in (numbers[i][both], numbers[j][both]))
        sums = np.array(
            [
                np.bincount(group[both], weights=w, minlength=GROUPS)
                for w in (np.ones(len(x)), x, y, x * x, y * y, x * y)
            ]
        )
        total = sums.sum(axis=1, keepdims=True)
        values[m] = _pearson(total)[0]
        deleted[m] = _pearson(total - sums)
    return Scored(values, deleted if split else None)


def _pearson(sums: np.ndarray) -> np.ndarray:
    # Columns of: rows, sums of x, y, xx, yy, xy.
    n, x, y, xx, yy, xy = sums
    n = np.maximum(n, 1)
    u, v = np.maximum(xx - x * x / n, 0), np.maximum(yy - y * y / n, 0)
    # What rounding leaves of a column that does not vary is no variance.
    scale = np.where((u > 1e-12 * xx) & (v > 1e-12 * yy), np.sqrt(u) * np.sqrt(v), 0)
    ratio = np.divide(xy - x * y / n, scale, out=np.zeros(len(n)), where=scale > 0)
    return np.asarray(np.clip(ratio, -1, 1))


def _association(subject: Subject) -> Finding:
    schema, cut = subject.schema, len(subject.sets)
    every = chosen(len(schema), 2, 0)
    null = references(subject)
    kinds = [statistic(schema.columns[i], schema.columns[j]) for i, j in every]
    scores: list[Scored] = []
    if every:
        codes = [table.codes for table in (*subject.sets, *null.values(), subject.real)]
        scores = associations(codes, seed=subject.seed, intervals=cut)
    return _finding(ASSOCIATION, schema.names, scores, cut, tuple(null), kinds)


def _correlation(subject: Subject) -> Finding:
    columns = [j for j, column in enumerate(subject.schema) if column.binned]
    names, cut = [subject.schema.names[j] for j in columns], len(subject.sets)
    every = chosen(len(columns), 2, 0)
    null = references(subject) if every else {}
    scores: list[Scored] = []
    if every:
        tables = [*subject.sets, *null.values(), subject.real]
        scores = [
            correlations(one, columns, seed=subject.seed, jackknife=t < cut)
            for t, one in enumerate(tables)
        ]
    return _finding(CORRELATION, names, scores, cut, tuple(null), ["correlation"] * len(every))


def _finding(
    metric: Metric,
    names: Sequence[str],
    scores: Sequence[Scored],
    cut: int,
    references: Sequence[str],
    kinds: Sequence[str],
) -> Finding:
    # scores: of the sets, of the references, and of the real records.
    if not scores:
        kind = "numeric or date columns" if metric is CORRELATION else "columns"
        note = f"Not defined: a pair needs two {kind}, and there are {len(names)}."
        return undefined(metric, cut, note)
    *others, last = scores
    real = last.values
    apart = [
        Scored(
            np.abs(real - one.values),
            None if one.deleted is None else np.abs(real[:, None] - one.deleted),
        )
        for one in others
    ]
    detail: list[dict[str, Any]] = [
        {
            "first": names[i],
            "second": names[j],
            "statistic": kinds[m],
            "real": float(real[m]),
            "synthetic": float(others[0].values[m]),
        }
        for m, (i, j) in enumerate(chosen(len(names), 2, 0))
    ]
    null = dict(zip(references, apart[cut:], strict=True))
    return mean_finding(metric, apart[:cut], null, high=2.0, detail=detail)
