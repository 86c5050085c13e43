"""Laws of log-linear models: theta said once, and small models whose every row can be listed."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear.chains import Chains, code_dtype, impossible_rows, margins
from gibbous.sampling.structural_zeros import Rule

MOST_CELLS, MOST_AXES = 1 << 16, 32
MOST_SAID = 1 << 20  # cells, where a table of the model says the share of every row
LARGEST = 64.0  # spread of theta within a clique


def listable(sizes: Sequence[int], cliques: Collection[tuple[int, ...]] = ()) -> bool:
    """Whether all rows of a model can be listed, in an array of an axis a column.

    Args:
        sizes: number of codes of each column.
        cliques: of the model. Where one holds all columns, more rows are listed: no step sums over them.
    """
    said = any(len(clique) == len(sizes) for clique in cliques)
    return math.prod(sizes) <= (MOST_SAID if said else MOST_CELLS) and len(sizes) <= MOST_AXES


def every_row(sizes: Sequence[int]) -> np.ndarray:
    """All rows, the last column fastest: (columns, cells) codes."""
    state = np.indices(tuple(sizes)).reshape(len(sizes), -1)
    return np.ascontiguousarray(state, dtype=code_dtype(sizes))


def law(model: LogLinear, rules: tuple[Rule, ...]) -> np.ndarray:
    """Probability of every row, float64, an axis a column; 0 where it is impossible.

    Where every row is impossible, all have the same.
    """
    total = np.zeros(model.sizes)
    for clique, theta in zip(model.cliques, model.theta, strict=True):
        shape = [size if column in clique else 1 for column, size in enumerate(model.sizes)]
        total += theta.reshape(shape)
    possible = ~impossible_rows(rules, every_row(model.sizes)).reshape(model.sizes)
    if not possible.any():
        return np.full(model.sizes, 1.0 / total.size)
    shares = np.where(possible, np.exp(total - total[possible].max()), 0.0)
    normalized: np.ndarray = shares / shares.sum()
    return normalized


def outer(shares: Sequence[np.ndarray]) -> np.ndarray:
    """The table of independent columns."""
    return functools.reduce(np.multiply.outer, shares)


def shares_of(
    model: LogLinear, chains: Chains, cliques: Sequence[tuple[int, ...]]
) -> list[np.ndarray]:
    """Margins of a model: exact where its rows can be listed, else of the chains."""
    if not listable(model.sizes, model.cliques):
        counts = margins(chains, model.sizes, cliques) if cliques else ()
        return [one / chains.count for one in counts]
    exact, axes = law(model, chains.rules), range(len(model.sizes))
    return [exact.sum(axis=tuple(set(axes).difference(clique))) for clique in cliques]


def draw_law(shares: np.ndarray, points: np.ndarray, given: Mapping[int, np.ndarray]) -> np.ndarray:
    """Rows drawn from a law, given some columns.

    Args:
        shares: probability of every row, an axis a column.
        points: uniforms in [0, 1), float64 (rows,).
        given: codes of columns that are not drawn, each (rows,).
    Returns:
        (columns, rows) codes. Rows whose given columns are impossible take the first free codes.
    """
    fixed = sorted(given)
    free = [column for column in range(shares.ndim) if column not in given]
    cases = [shares.shape[column] for column in fixed]
    table = shares.transpose(fixed + free).reshape(math.prod(cases), -1)
    sums = np.cumsum(table, axis=1)
    case = np.zeros(len(points), dtype=np.int64)
    for column in fixed:
        case = case * shares.shape[column] + given[column].astype(np.int64)
    state = np.empty((shares.ndim, len(points)), dtype=code_dtype(shares.shape))
    if free:
        held, cell = np.unique(case), np.zeros(len(points), dtype=np.int64)
        for one in held:
            rows = case == one
            place = np.searchsorted(sums[one], points[rows] * sums[one, -1], side="right")
            cell[rows] = np.minimum(place, table.shape[1] - 1)
        codes = np.unravel_index(cell, [shares.shape[column] for column in free])
        for column, own in zip(free, codes, strict=True):
            state[column] = own
    for column in fixed:
        state[column] = given[column]
    return state


def balanced(model: LogLinear) -> LogLinear:
    """The same distribution, theta without what cliques can push to and fro between them.

    What several cliques say about the columns that they share is added up: it goes to the clique of
    just these columns, or is shared evenly where there is none. Targets that contradict each other
    would otherwise drive theta apart without end.
    """
    theta = list(model.theta)
    for own, members in _shared(model.cliques, model.sizes):
        means = [np.add.reduce(theta[one.at], axis=one.summed) / one.cells for one in members]
        said = sum(means)
        even = 0.0 if own is not None else said / len(members)
        for one, mean in zip(members, means, strict=True):
            part = said if one.at == own else even
            theta[one.at] = theta[one.at] + (part - mean).reshape(one.shape)
    return replace(model, theta=tuple(centered(one) for one in theta))


@dataclass(frozen=True, slots=True)
class _Member:
    """A clique that holds a set of shared columns.

    Attributes:
        at: its position.
        summed: its axes of other columns.
        cells: of those axes.
        shape: of what is said about the shared columns, to be added to its theta.
    """

    at: int
    summed: tuple[int, ...]
    cells: int
    shape: tuple[int, ...]


Shared = tuple[tuple[int | None, tuple[_Member, ...]], ...]


@functools.lru_cache(maxsize=8)
def _shared(cliques: tuple[tuple[int, ...], ...], sizes: tuple[int, ...]) -> Shared:
    """Sets of columns that two cliques have in common, large ones first: their clique, who holds them."""
    held: dict[int, set[int]] = {}
    for at, clique in enumerate(cliques):
        for column in clique:
            held.setdefault(column, set()).add(at)
    found: dict[tuple[int, ...], list[int]] = {}
    for near in held.values():
        for a, b in itertools.combinations(sorted(near), 2):
            columns = tuple(sorted(set(cliques[a]) & set(cliques[b])))
            if columns not in found:
                found[columns] = sorted(set.intersection(*(held[column] for column in columns)))
    place = {clique: at for at, clique in enumerate(cliques)}
    return tuple(
        (place.get(columns), tuple(_member(at, cliques[at], columns, sizes) for at in members))
        for columns, members in sorted(found.items(), key=lambda one: (-len(one[0]), one[0]))
    )


def _member(
    at: int, clique: tuple[int, ...], shared: tuple[int, ...], sizes: tuple[int, ...]
) -> _Member:
    summed = tuple(axis for axis, column in enumerate(clique) if column not in shared)
    shape = tuple(sizes[column] if column in shared else 1 for column in clique)
    return _Member(at, summed, math.prod(sizes[clique[axis]] for axis in summed), shape)


def centered(theta: np.ndarray) -> np.ndarray:
    """Theta with mean 0 and nothing further than LARGEST below its largest entry, without drift.

    Only what is far below is cut: cells of share 0 sink with each step, and must not take the
    others' contrasts with them.
    """
    raised = np.maximum(theta, theta.max() - LARGEST)
    found: np.ndarray = raised - raised.sum() / raised.size
    return found
