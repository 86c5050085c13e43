"""Merging: the noisy table of a column with very many levels in, groups of its levels out.

A log-linear model looks at groups; levels are drawn within their group by the noisy fine table. What is
merged is decided on noisy numbers and the public schema alone, so nothing is paid for it. Counts of
the records are never looked at here: which levels are rare is itself confidential.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibbous.core.schema import Schema
from gibbous.core.tables import Merged
from gibbous.structure.smoothing import denoised

LEAST_GROUPS, USUAL_GROUPS, MOST_GROUPS = 128, 256, 1024  # of wide columns
FEW = 4.0  # a group holds this many standard deviations of the noise of one level, where it can
CLEAR = 8.0  # standard deviations of that noise by which a level is clear of it, see `most_groups`
ROOM = 1_000_000  # cells of all pairs up to which there may be more: chains have to fill them
WIDEST_GROUP = 0.25  # no group has to hold more than this share: at least two groups are left


def most_groups(
    sizes: Sequence[int], cells: int, signal: float = math.inf, clear: float = math.inf
) -> int:
    """Groups that a column is merged to at most; one of no more levels, or of LEAST_GROUPS, stays as it is.

    Args:
        sizes: levels of all columns.
        cells: >= 4: two merged columns have a table of at most so many.
        signal: rows over the noise of one level: that many levels at most can stand out of it.
        clear: levels of the column that do, by CLEAR. Twice as many groups may be more than
            USUAL_GROUPS: half of the groups are single levels, see `merged_levels`.
    """
    wide = [min(size, MOST_GROUPS) for size in sizes]
    pairs = (sum(wide) ** 2 - sum(size * size for size in wide)) // 2
    more = min(2.0 * clear, MOST_GROUPS if pairs <= ROOM else USUAL_GROUPS)
    standing_out = max(LEAST_GROUPS, min(signal / FEW, USUAL_GROUPS), more)
    return min(int(standing_out), math.isqrt(cells))


def model_sizes(schema: Schema, cells: int) -> tuple[int, ...]:
    """Codes of each column of the model at most: its levels, or as many groups as they are merged to."""
    most = most_groups(schema.sizes, cells)
    wide = {j for j, size in enumerate(schema.sizes) if size > max(LEAST_GROUPS, most)}
    apart = {j: int(kinds_of(schema, j).max()) + 1 for j in wide}
    return tuple(max(apart[j], most) if j in wide else n for j, n in enumerate(schema.sizes))


def merged_levels(
    counts: np.ndarray,
    sigma: float,
    rows: float,
    *,
    ordered: bool,
    alike: np.ndarray,
    most: int = MOST_GROUPS,
) -> Merged:
    """Groups of the levels of one column, and the share of each level within its group.

    A frequent level stays alone (of a column without order, half of `most` levels do, where they are
    well above the noise). Rare ones are joined to runs until a run is frequent enough: of an
    ordered column only neighbors, of another one in the order in which the schema lists them, which
    often puts related codes side by side.

    Args:
        counts: noisy, float64 (levels,).
        sigma: standard deviation of one cell's noise, in counts, > 0.
        rows: noisy number of records, >= 1.
        ordered: whether neighboring levels are alike.
        alike: int64 (levels,): only levels of the same number may be merged; see `kinds_of`.
        most: groups at most, where `alike` allows it.
    Returns:
        Groups numbered by their first level; shares > 0.
    """
    least = min(WIDEST_GROUP, max(2.0 / most, FEW * sigma / rows))
    while True:
        levels = level_shares(counts, sigma, rows, counts >= max(least * rows, FEW * sigma))
        alone = levels >= least
        if (
            not ordered
        ):  # neighbors say little of each other: the most frequent stand for themselves
            most_frequent = np.argsort(-counts, kind="stable")[: most // 2]
            alone[most_frequent[counts[most_frequent] >= FEW * sigma]] = True
        groups = runs(levels, alone, least, ordered=ordered, alike=alike)
        if groups.max() < most or least >= WIDEST_GROUP:
            held = np.bincount(groups, weights=levels)
            return Merged(groups, levels / held[groups])
        least = min(WIDEST_GROUP, 1.25 * least)


def level_shares(counts: np.ndarray, sigma: float, rows: float, frequent: np.ndarray) -> np.ndarray:
    """Shares of all levels, float64 (levels,), > 0: frequent ones as counted, others without the noise."""
    cells_of = np.maximum(counts.astype(np.float64), 1.0)
    rest = counts[~frequent]
    if len(rest):
        # What is left for them is known better from their sum than from the projected cells.
        total = min(max(float(rest.sum()), 1e-3 * rows), rows)
        cells = denoised(rest, sigma, [np.full(len(rest), total / len(rest))])
        cells_of[~frequent] = cells * (total / cells.sum())
    shares: np.ndarray = cells_of / cells_of.sum()
    return shares


def runs(
    shares: np.ndarray, alone: np.ndarray, least: float, *, ordered: bool, alike: np.ndarray
) -> np.ndarray:
    """Groups of levels, int64 (levels,), numbered by first level: some alone, the others joined to runs.

    A run is closed at the share `least`; where levels are ordered it holds neighbors alone. One that
    is left short joins the one before it, where there is one that it may join; see `merged_levels`.
    """
    group = np.full(len(shares), -1, dtype=np.int64)
    count = 0
    for members in _stretches(alone, ordered=ordered, alike=alike):
        first, held = count, 0.0
        for level in members:
            group[level] = count
            held += float(shares[level])
            if held >= least:
                count, held = count + 1, 0.0
        if held > 0.0 or count == first:
            if count > first:
                group[group == count] = count - 1
            else:
                count += 1
    group[alone] = count + np.arange(int(alone.sum()))
    _, firsts, back = np.unique(group, return_index=True, return_inverse=True)
    numbered: np.ndarray = np.argsort(np.argsort(firsts))[back].astype(np.int64)
    return numbered


def kinds_of(schema: Schema, column: int) -> np.ndarray:
    """Which levels of a column may be merged: the same number, int64 (levels,), for those that are.

    Missing and the catch-all level stay apart, and so do levels that a structural zero tells apart.
    """
    own = schema.columns[column]
    marks = [np.zeros(own.size, dtype=np.int64)]
    for code in (own.other_code, own.missing_code):
        if code is not None:
            marks[0][code] = code + 1
    for rule in schema.impossible:
        for name, codes in rule.where:
            if name == own.name:
                hit = np.zeros(own.size, dtype=np.int64)
                hit[list(codes)] = 1
                marks.append(hit)
    _, kinds = np.unique(np.stack(marks, axis=1), axis=0, return_inverse=True)
    numbered: np.ndarray = kinds.reshape(-1).astype(np.int64)
    return numbered


def _stretches(alone: np.ndarray, *, ordered: bool, alike: np.ndarray) -> list[np.ndarray]:
    """Levels that do not stand alone, split where a run must end."""
    rare = np.flatnonzero(~alone)
    if not ordered:
        return [rare[alike[rare] == kind] for kind in np.unique(alike[rare])]
    cuts = np.flatnonzero((np.diff(rare) > 1) | (np.diff(alike[rare]) != 0)) + 1
    return [part for part in np.split(rare, cuts) if len(part)]
