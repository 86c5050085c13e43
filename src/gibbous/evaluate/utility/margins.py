"""Total variation distance of k-way margins, k = 1..4, with a jackknife interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.finding import Finding
from gibbous.core.schema import Schema
from gibbous.core.tables import Sparse
from gibbous.evaluate.measure import NOTHING, Measured, Metric, Options, assemble
from gibbous.evaluate.tables import Subject
from gibbous.evaluate.utility.chosen import Margin, chosen
from gibbous.evaluate.utility.collect import references
from gibbous.evaluate.utility.counted import cells, grouped, located
from gibbous.evaluate.utility.jackknife import GROUPS, INTERVAL_OF, TOO_FEW, Scored

LEVELS = 40  # of one column that are shown beside each other
_WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}


def _metric(order: int) -> Metric:
    taken = "all" if order <= 2 else "100 (or all, if fewer)"
    return Metric(
        name=f"tv{order}",
        title=f"Distance of {_WORDS[order]}-way margins",
        group="utility",
        better="lower",
        definition=(
            f"Total variation distance of {_WORDS[order]}-way margins: half the sum over cells of "
            "|real share - synthetic share|, the share of synthetic rows that would have to move "
            f"for the margin to be the real one; mean over {taken} margins of {order} "
            f"column{'s' if order > 1 else ''}. From 0 to 1."
        ),
        source="Levin, Peres (2017), Markov Chains and Mixing Times, prop. 4.2",
        interval_of=INTERVAL_OF,
    )


METRICS = tuple(_metric(order) for order in _WORDS)


def findings(subject: Subject, options: Options = NOTHING) -> list[Finding]:
    """tv1 .. tv4: one finding an order; orders above the number of columns are left out."""
    sets = [one.codes for one in subject.sets]
    null = {name: table.codes for name, table in references(subject).items()}
    out = []
    for order, metric in enumerate(METRICS, 1):
        margins = chosen(len(subject.schema), order, subject.seed)
        if not margins or (options.only and metric.name not in options.only):
            continue
        tables = [*sets, *null.values()]
        scores = scored(subject.real.codes, tables, margins, seed=subject.seed, intervals=len(sets))
        mine = dict(zip(null, scores[len(sets) :], strict=True))
        out.append(_finding(subject, order, margins, scores[: len(sets)], mine))
    return out


def scored(
    real: Codes,
    others: Sequence[Codes],
    margins: Sequence[Margin],
    *,
    seed: int = 0,
    intervals: int = 0,
) -> list[Scored]:
    """Distances of tables from the real one.

    Args:
        real, others: tables of one schema, each with at least one row.
        margins: the columns of each margin, at least one.
        seed: of the groups of the jackknife.
        intervals: how many of the first tables get a jackknife.
    Returns:
        One Scored a table.
    """
    tallies = []
    sizes: list[np.ndarray | None] = []
    for place, table in enumerate(others):
        if place < intervals and table.rows >= 2 * GROUPS:
            wider = grouped(table, GROUPS, seed)
            sizes.append(np.bincount(wider.by_column[-1], minlength=GROUPS))
            tallies.append(cells(wider, margins, given=(len(table.schema),)))
        else:
            sizes.append(None)
            tallies.append(cells(table, margins))
    values = np.empty((len(others), len(margins)))
    deleted = np.empty((len(others), len(margins), GROUPS))
    # All tables advance together, so that only one batch of each is held.
    for m, (mine, *theirs) in enumerate(zip(cells(real, margins), *tallies, strict=True)):
        for t, (other, size) in enumerate(zip(theirs, sizes, strict=True)):
            if size is None:
                values[t, m] = distance(mine, other, real.rows, others[t].rows)
            else:
                values[t, m], deleted[t, m] = jackknifed(mine, other, real.rows, size)
    return [Scored(values[t], None if size is None else deleted[t]) for t, size in enumerate(sizes)]


def distance(real: Sparse, other: Sparse, real_rows: int, rows: int) -> float:
    """Total variation distance of two margins: 1 - sum over common cells of the lesser share."""
    places, hit = located(real.levels, other.levels)
    shares = np.minimum(real.values[places[hit]] / real_rows, other.values[hit] / rows)
    return max(0.0, 1.0 - float(shares.sum()))


def jackknifed(
    real: Sparse, other: Sparse, real_rows: int, sizes: np.ndarray
) -> tuple[float, np.ndarray]:
    """The distance, and what it is without each group of rows.

    Args:
        other: keys are groups.
        sizes: rows of each group; all groups together are more than each of them.
    Returns:
        The distance, and float64 (groups,).
    """
    places, hit = located(real.levels, other.levels)
    places, group, part = places[hit], other.keys[hit].astype(np.int64), other.values[hit]
    share = real.values / real_rows
    whole = np.bincount(places, weights=part, minlength=len(share))
    rows = int(sizes.sum())
    left = rows - sizes
    common = {n: float(np.minimum(share, whole / n).sum()) for n in {rows, *left.tolist()}}
    # Only cells that a group has change when it is left out, beyond the number of rows.
    mine, n = share[places], left[group]
    change = np.minimum(mine, (whole[places] - part) / n) - np.minimum(mine, whole[places] / n)
    each = np.array([common[n] for n in left.tolist()])
    each += np.bincount(group, weights=change, minlength=len(sizes))
    return max(0.0, 1.0 - common[rows]), 1.0 - each


def _finding(
    subject: Subject,
    order: int,
    margins: Sequence[Margin],
    sets: Sequence[Scored],
    null: Mapping[str, Scored],
) -> Finding:
    names = subject.schema.names
    note = _note(order, len(margins), subject, bare=sets[0].deleted is None)
    measured = [Measured(one.mean, one.interval(), note=note) for one in sets]
    if order == 1:
        detail = overlays(subject.schema, subject.real.codes, subject.sets[0].codes)
    else:
        detail = _rows(names, margins, sets[0], null)
    means = {name: one.mean for name, one in null.items()}
    return assemble(METRICS[order - 1], measured, means, detail=detail)


def _note(order: int, taken: int, subject: Subject, *, bare: bool) -> str:
    total = math.comb(len(subject.schema), order)
    words = []
    if taken < total:
        words.append(f"{taken} of {total} margins, chosen by seed {subject.seed}.")
    if bare:
        words.append(TOO_FEW)
    return " ".join(words)


def _rows(
    names: Sequence[str], margins: Sequence[Margin], first: Scored, null: Mapping[str, Scored]
) -> list[dict[str, Any]]:
    keys = ("first", "second", "third", "fourth")
    return [
        {
            **{key: names[c] for key, c in zip(keys, margin, strict=False)},
            "distance": float(first.values[m]),
            **{name: float(one.values[m]) for name, one in null.items()},
        }
        for m, margin in enumerate(margins)
    ]


def overlays(schema: Schema, real: Codes, synthetic: Codes) -> list[dict[str, Any]]:
    """Share of each level on both sides, column by column, for charts.

    Columns with more than LEVELS levels show the largest of the real ones in code order, and the rest
    as one row.
    """
    every = chosen(len(schema), 1, 0)
    out = []
    for (j,), mine, theirs in zip(every, cells(real, every), cells(synthetic, every), strict=True):
        column = schema.columns[j]
        shares = np.zeros((2, column.size))
        shares[0, mine.levels.astype(np.int64)] = mine.values / real.rows
        shares[1, theirs.levels.astype(np.int64)] = theirs.values / synthetic.rows
        kept = np.arange(column.size)
        if column.size > LEVELS:
            kept = np.sort(np.argsort(-shares[0], kind="stable")[: LEVELS - 1])
        labels = column.labels()
        rows = [(labels[k], shares[0, k], shares[1, k]) for k in kept]
        if len(kept) < column.size:
            rest = 1.0 - shares[:, kept].sum(axis=1)
            rows.append((f"{column.size - len(kept)} other levels", rest[0], rest[1]))
        out += [
            {"column": column.name, "level": name, "real": float(a), "synthetic": float(b)}
            for name, a, b in rows
        ]
    return out
