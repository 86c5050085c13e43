"""Compiled kernels on margins: counting rows into them, raking weights to one, closing rows to all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbous.core.kernel import kernel
from gibbous.sampling.loglinear.step_tables import (
    AT_OTHER,
    AT_OWN,
    AT_RULE,
    LEVELS,
    OTHERS,
    RULES,
    WIDTH,
    Flat,
)

Array = np.ndarray
U = np.uint64
ONE = U(1)


@kernel()
def find_cells(state: Array, low: int, terms: Array, places: Array) -> None:
    """Cell of each of the rows low..low+len(places) in a margin; terms: (column, stride) of each axis."""
    rows, first = U(len(places)), U(low)
    for i in range(rows):
        places[i] = 0
    for t in range(U(len(terms))):
        column, step = U(terms[t, 0]), np.uint32(terms[t, 1])
        for i in range(rows):
            places[i] += np.uint32(state[column, first + i]) * step


@kernel()
def count(state: Array, cliques: Array, terms: Array, places: Array, counts: Array) -> None:
    """Add all rows to the counts of every clique.

    Args:
        cliques: int64 (cliques, 3): offset in `counts`, first term, number of terms.
        terms: int64 (terms, 2): column, stride.
        places: uint32: room for a block of rows.
        counts: int64, of all cliques.
    """
    for start in range(0, state.shape[1], len(places)):
        cells = places[: min(state.shape[1] - start, len(places))]
        for c in range(len(cliques)):
            at, begin = U(cliques[c, 0]), cliques[c, 1]
            find_cells(state, start, terms[begin : begin + cliques[c, 2]], cells)
            for i in range(U(len(cells))):
                counts[at + U(cells[i])] += 1


class Raking(NamedTuple):
    """What a sample is raked to: margins one after the other, in arrays of all their cells.

    Attributes:
        cliques: int64 (cliques, 3): first cell, first term, number of terms.
        terms: int64 (terms, 2): column, stride.
        low, high: shares, float64 (cells,): a margin between them is met.
        theta: float64 (cells,): before the step.
        change: float64 (cells,): what was added to theta so far; changed in place.
        share: float64 (cells,): room; then each margin before its last step.
        ratio: float64 (cells,): room.
        damp: float64 (cliques,), > 0: cells whose shares are small beside it move little.
        ridge: float64 (cliques,), >= 0: what is met is share + ridge x theta = its nearest goal.
        places: uint32 (chains,): room.
        moved: float64 (1,): how far the pass moved theta, on average, where it moved most.
    """

    cliques: Array
    terms: Array
    low: Array
    high: Array
    theta: Array
    change: Array
    share: Array
    ratio: Array
    damp: Array
    ridge: Array
    places: Array
    moved: Array


@kernel(inline="always")
def _solved(
    share: float, goal: float, damp: float, ridge: float, theta: float, bound: float
) -> float:
    """The d in [-bound, bound] with (share + damp) e^d + ridge (theta + d) = goal + damp."""
    low, high = -bound, bound
    d = min(max((goal - share - ridge * theta) / (share + damp + ridge), low), high)
    for _ in range(30):
        rest = (share + damp) * np.exp(d) + ridge * (theta + d) - goal - damp
        if rest > 0.0:
            high = d
        else:
            low = d
        slope = (share + damp) * np.exp(d) + ridge
        new = d - rest / slope
        if not low < new < high:
            new = (low + high) / 2.0
        if abs(new - d) < 1e-6:
            return float(new)
        d = new
    return float(d)


@kernel()
def rake(
    state: Array, raking: Raking, weights: Array, total: float, bound: float, first: int
) -> float:
    """Weigh the chains so that each clique's weighted margin meets its goal, one after the other.

    Args:
        weights: float64 (chains,); changed in place.
        total: sum of the weights.
        bound: most that |change| of a cell may become.
        first: 1: cells without chains move now; 0: they do not.
    Returns:
        The sum of the new weights.
    """
    chains, places, cells = U(state.shape[1]), raking.places, len(raking.low)
    raking.moved[0] = 0.0
    for c in range(len(raking.cliques)):
        at, begin, length = raking.cliques[c, 0], raking.cliques[c, 1], raking.cliques[c, 2]
        end = raking.cliques[c + 1, 0] if c + 1 < len(raking.cliques) else cells
        low, high = raking.low[at:end], raking.high[at:end]
        theta, change = raking.theta[at:end], raking.change[at:end]
        share, ratio, moved = raking.share[at:end], raking.ratio[at:end], 0.0
        damp, ridge = raking.damp[c], raking.ridge[c]
        find_cells(state, 0, raking.terms[begin : begin + length], places)
        for k in range(len(share)):
            share[k] = 0.0
        for i in range(chains):
            share[places[i]] += weights[i]
        for k in range(len(share)):
            share[k] /= total
            ratio[k] = 1.0
            if share[k] == 0.0 and not first:
                continue
            goal = min(max(share[k], low[k]), high[k])
            d = _solved(share[k], goal, damp, ridge, theta[k] + change[k], bound)
            new = min(max(change[k] + d, -bound), bound)
            ratio[k] = np.exp(new - change[k])
            moved += share[k] * abs(new - change[k])
            change[k] = new
        total = 0.0
        for i in range(chains):
            weights[i] *= ratio[places[i]]
            total += weights[i]
        raking.moved[0] = max(raking.moved[0], moved)
    return total


class Goals(NamedTuple):
    """Margins that rows are closed to, each once for each of its columns, that column's axis last.

    Attributes:
        first_use: int64 (columns + 1,): rows of `uses` of each column.
        uses: int64 (uses, 4): goal, offset in `short`, first term, number of terms.
        terms: int64 (terms, 2): other column, stride.
        first_copy: int64 (goals + 1,): rows of `copies` of each goal.
        copies: int64 (copies, 2): the column whose axis is last, the use.
        weights: float32 (goals,).
    """

    first_use: Array
    uses: Array
    terms: Array
    first_copy: Array
    copies: Array
    weights: Array


@kernel(inline="always")
def _bar(state: Array, row: np.uint64, step: Array, flat: Flat, gain: Array) -> None:
    """Levels that a structural zero rules out gain nothing ever."""
    rules, others, hits = flat.rules, flat.others, flat.hits
    for r in range(U(step[AT_RULE]), U(step[AT_RULE] + step[RULES])):
        own, first = U(rules[r, AT_OWN]), U(rules[r, AT_OTHER])
        applies = True
        for o in range(first, first + U(rules[r, OTHERS])):
            applies = applies and hits[U(others[o, 1]) + U(state[U(others[o, 0]), row])] != 0
        if applies:
            for v in range(U(step[LEVELS])):
                if hits[own + v] != 0:
                    gain[v] = np.float32(-np.inf)


@kernel()
def _run_of(codes: Array, goals: Goals, use: int | np.uint64) -> np.uint64:
    """Where the run of levels of a use begins for a row of codes."""
    place, begin = U(goals.uses[use, 1]), U(goals.uses[use, 2])
    for t in range(begin, begin + U(goals.uses[use, 3])):
        place += U(codes[U(goals.terms[t, 0])]) * U(goals.terms[t, 1])
    return place


@kernel()
def _gains(codes: Array, j: int, goals: Goals, short: Array, gain: Array) -> np.float32:
    """What each level of column j brings, its own one included; returns the weights of its goals."""
    plus = np.float32(0.0)
    for v in range(U(len(gain))):
        gain[v] = np.float32(0.0)
    for use in range(U(goals.first_use[j]), U(goals.first_use[j + 1])):
        weight = goals.weights[U(goals.uses[use, 0])]
        at = _run_of(codes, goals, use)
        for v in range(U(len(gain))):
            gain[v] += weight * np.float32(short[at + v])
        plus += weight
    gain[U(codes[j])] += plus
    return plus


@kernel()
def _move(codes: Array, j: int, level: int, goals: Goals, short: Array) -> None:
    """Give a row another level of column j, and tell every copy of its goals."""
    own = codes[j]
    for use in range(U(goals.first_use[j]), U(goals.first_use[j + 1])):
        goal = U(goals.uses[use, 0])
        for c in range(U(goals.first_copy[goal]), U(goals.first_copy[goal + ONE])):
            last, twin = U(goals.copies[c, 0]), U(goals.copies[c, 1])
            codes[j] = own
            short[_run_of(codes, goals, twin) + U(codes[last])] += np.int32(1)
            codes[j] = level
            short[_run_of(codes, goals, twin) + U(codes[last])] -= np.int32(1)


@kernel()
def close(
    state: Array,
    columns: Array,
    goals: Goals,
    short: Array,
    flat: Flat,
    keep: float,
    gain: Array,
    codes: Array,
) -> int:
    """One pass over all rows: move a value where that brings their margins nearer.

    Args:
        state: (columns, rows) codes; changed in place.
        columns: that may change.
        short: int32: rows that each cell lacks, a copy for each column of a goal, that column's axis
            last and padded to WIDTH; kept up to date.
        flat: of it the structural zeros.
        keep: how much nearer a move has to bring them, in shares of what it costs to move a value
            between cells that lack nothing (the sum of the weights).
        gain, codes: float32 (widest step,) and int64 (columns,): room.
    Returns:
        The number of values moved.
    """
    moved = 0
    for i in range(state.shape[1]):
        row = U(i)
        for j in range(U(state.shape[0])):
            codes[j] = state[j, row]
        for j in columns:
            step = flat.steps[j]
            own, level = codes[j], codes[j]
            plus = _gains(codes, j, goals, short, gain[: step[WIDTH]])
            if step[RULES]:
                _bar(state, row, step, flat, gain)
            most = gain[own] + np.float32(keep) * plus
            for v in range(step[LEVELS]):
                if gain[v] > most:
                    level, most = v, gain[v]
            if level != own:
                moved += 1
                _move(codes, j, level, goals, short)
                state[j, i] = level
    return moved
