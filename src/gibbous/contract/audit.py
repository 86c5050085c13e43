"""Black-box audit: many runs on two neighboring tables bound the privacy loss from below.

The best event is found on one half of the runs and judged on the other half, with Clopper-Pearson
bounds; a mechanism that keeps its claim is flagged with probability at most `level` a pair.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from gibbous.contract.auditor.bounds import lower_bound, stated
from gibbous.contract.auditor.findings import Evidence
from gibbous.contract.cases import Neighbors
from gibbous.contract.runs import release
from gibbous.core.codes import Codes
from gibbous.core.protocols import Mechanism
from gibbous.core.tables import Dense, Tables

Features = Mapping[Hashable, Hashable]
Fits = dict[bytes, list[Features]]
"""What came out of the fits of a table, by its codes: of one mechanism, budget and number of rows."""
Z = 3.0  # standard errors
FEW = 4  # rows that are compared as a whole


def audit(
    mechanism: Mechanism,
    pair: Neighbors,
    *,
    runs: int,
    rows: int | None = None,
    level: float = 1e-4,
    run: Callable[..., Tables | Codes] = release,
    made: Fits | None = None,
) -> Evidence:
    """Audit one mechanism on one pair of neighbors.

    Args:
        mechanism: its plan's total claim is what is tested.
        runs: fits on each side, >= 100.
        level: false-alarm probability.
        made: fits of tables that pairs share, used and added to; each pair keeps its level and power.
    """
    plan = mechanism.plan(pair.schema, rows)
    made = {} if made is None else made
    samples = []
    for table in (pair.one, pair.two):
        fits = made.setdefault(table.tobytes(), [])
        more = range(len(fits), runs)
        fits += [features(run(mechanism, pair.schema, table, rows, plan)) for _ in more]
        samples.append(fits[:runs])
    epsilon, delta = stated(plan.total)
    half = runs // 2
    score = _likelihood_ratio(samples[0][:half], samples[1][:half])
    train = [np.array([score(x) for x in side[:half]]) for side in samples]
    test = [np.array([score(x) for x in side[half:]]) for side in samples]
    # Two directions, each at half the level.
    best, event = 0.0, "no event was learnt"
    for sign, words in (
        (1, "more likely with the first table"),
        (-1, "more likely with the second"),
    ):
        one, two = (0, 1) if sign == 1 else (1, 0)
        cut = _best_cut(sign * train[one], sign * train[two], delta, level / 2)
        hits = [int(np.sum(sign * test[i] >= cut)) for i in (one, two)]
        bound = lower_bound(hits[0], hits[1], len(test[0]), delta, level / 2)
        if bound > best:
            best, event = bound, f"score beyond {cut:.3g}, {words}"
    ceiling = lower_bound(len(test[0]), 0, len(test[0]), delta, level / 2)
    shown: dict[str, Any] = {"bound": best, "ceiling": ceiling, "level": level, "words": event}
    claimed: dict[str, Any] = {"claimed": epsilon, "delta": delta, "violated": best > epsilon}
    return Evidence("pairs", pair.name, pair.relation, runs, **claimed, **shown)


def features(output: Tables | Codes) -> Features:
    """An output as named discrete values: noisy cells (absent cells included), or what was drawn.

    A few rows are one value; many rows are counted, a level of a column at a time.
    """
    if isinstance(output, Codes):
        if output.rows <= FEW:
            return {"rows": output.values.tobytes()}
        return {
            (column, level): int(np.count_nonzero(output.values[:, column] == level))
            for column, size in enumerate(output.schema.sizes)
            for level in range(size)
        }
    # What a table is about must be public, so its shape is a feature like any other.
    values: dict[Hashable, Hashable] = {"levels": output.schema.sizes}
    tables = output.published()
    values["contexts"] = tuple(t.context for t in tables)
    met: Counter[Hashable] = Counter()
    for table in tables:
        met[table.context] += 1  # of several sets, or parts, one after the other
        name = (table.context, met[table.context])
        if isinstance(table.cells, Dense):
            for place, value in enumerate(table.cells.values.ravel().tolist()):
                values[name, divmod(place, table.context.levels)] = value
        else:
            places = zip(table.cells.keys.tolist(), table.cells.levels.tolist(), strict=True)
            for place_, value in zip(places, table.cells.values.tolist(), strict=True):
                values[name, place_] = value
    return values


def _likelihood_ratio(
    one: Sequence[Features], two: Sequence[Features]
) -> Callable[[Features], float]:
    """Naive Bayes: the sum over features of log ratios of frequencies, from training runs.

    A value counts only where the two frequencies differ by more than Z standard errors: without
    that, the many cells in which the tables agree would drown the one in which they differ.
    """
    names = set().union(*one[:200], *two[:200])
    grids = {name: _grid([x.get(name) for x in (*one, *two)]) for name in names}
    logs: dict[Hashable, dict[Hashable, float]] = {}
    for name in names:
        a = Counter(_group(x.get(name), grids[name]) for x in one)
        b = Counter(_group(x.get(name), grids[name]) for x in two)
        ratios = {
            value: math.log((a[value] + 1) / (b[value] + 1))
            for value in {*a, *b}
            if abs(a[value] - b[value]) > Z * math.sqrt(a[value] + b[value])
        }
        if ratios:
            logs[name] = ratios

    def score(x: Features) -> float:
        return sum(values.get(_group(x.get(n), grids[n]), 0.0) for n, values in logs.items())

    return score


def _grid(values: Sequence[Hashable]) -> np.ndarray | None:
    """One cut, at the median of many-valued numbers; None for few values.

    One cut a feature is estimated well from few runs, and where a record shifts several noisy cells
    the joint event (all of them above their cuts) is nearly the best one for two-sided geometric noise.
    """
    numbers = np.array([v for v in values if isinstance(v, int)], dtype=float)
    if len(np.unique(numbers)) <= 8:
        return None
    return np.array([np.floor(np.median(numbers)) + 0.5])


def _group(value: Hashable, grid: np.ndarray | None) -> Hashable:
    if grid is None or not isinstance(value, int):
        return value
    return int(np.searchsorted(grid, value, side="right"))


def _best_cut(one: np.ndarray, two: np.ndarray, delta: float, level: float) -> float:
    """The threshold whose event {score >= cut} gives the largest bound on the training half."""
    cuts = np.unique(np.concatenate([one, two]))
    if len(cuts) > 60:
        cuts = np.unique(np.quantile(cuts, np.linspace(0, 1, 60)))
    runs = len(one)
    bounds = [
        lower_bound(int(np.sum(one >= c)), int(np.sum(two >= c)), runs, delta, level) for c in cuts
    ]
    return float(cuts[int(np.argmax(bounds))])
