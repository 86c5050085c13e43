"""First rows: goals in; a tree of pairs out, and rows drawn along it, near the model before any sweep."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from gibbous.core.stream import stream_key
from gibbous.core.tables import LogLinear
from gibbous.sampling.loglinear.chains import (
    AGAIN,
    ATTEMPTS,
    START,
    code_dtype,
    make_possible,
    uniforms_at,
)
from gibbous.sampling.structural_zeros import Rule


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """One draw: a column given the one before it in the tree.

    Attributes:
        column: that is drawn.
        parent: given column, or -1.
        both: shares of the two, float64 (parent levels, levels); of a column alone (1, levels).
        sums: float64 (parent levels x levels,): parent code + running shares, increasing; one search
            finds parent and level at once.
    """

    column: int
    parent: int
    both: np.ndarray
    sums: np.ndarray


def tree(model: LogLinear) -> tuple[Link, ...]:
    """The tree of pairs that tells most: a largest spanning tree by mutual information.

    Columns that no goal pairs with another are drawn alone; without any goal, uniformly.

    Source:
        [Chow and Liu 1968].
    """
    ones, pairs = _margins_of(model)
    edges: list[list[tuple[float, tuple[int, int]]]] = [[] for _ in model.sizes]
    for pair, both in pairs.items():
        edge = (-_information(both), pair)
        for column in pair:
            edges[column].append(edge)
    links: list[Link] = []
    left, near = set(range(len(model.sizes))), list[tuple[float, tuple[int, int]]]()
    while left:
        while near and left.isdisjoint(near[0][1]):
            heappop(near)
        if not near:
            column = min(left)
            both, parent = ones[column][None, :], -1
        else:
            pair = near[0][1]
            column, parent = (pair[1], pair[0]) if pair[0] not in left else pair
            both = pairs[pair] if pair[0] == parent else pairs[pair].T
        links.append(Link(column, parent, both, _running(both, ones[column])))
        left.discard(column)
        for edge in edges[column]:
            heappush(near, edge)
    return tuple(links)


def first_rows(
    sizes: tuple[int, ...],
    links: tuple[Link, ...],
    rules: tuple[Rule, ...],
    numbers: np.ndarray,
    given: Mapping[int, np.ndarray],
    *seed: int,
) -> np.ndarray:
    """Rows drawn along a tree; impossible ones are drawn again, in the end uniformly.

    Args:
        sizes: number of codes of each column.
        links: the tree.
        rules: structural zeros in codes of the model.
        numbers: of the rows in their streams, uint64 (rows,).
        given: codes of columns that are not drawn, each (rows,).
        seed: what the streams are keyed by.
    Returns:
        (columns, rows) codes.
    """
    dtype = code_dtype(sizes)

    def drawn(chosen: np.ndarray, *kind: int, flat: bool = False) -> np.ndarray:
        state = np.empty((len(sizes), len(chosen)), dtype=dtype)
        for column, codes in given.items():
            state[column] = codes[chosen]
        for link in links:
            if link.column in given:
                continue
            key = stream_key(seed[0], *seed[1:], *kind, link.column)
            points = uniforms_at(numbers[chosen], key)
            if flat:
                state[link.column] = (points * sizes[link.column]).astype(dtype)
                continue
            at = 0 if link.parent < 0 else state[link.parent].astype(np.float64)
            place = np.searchsorted(link.sums, at + points, side="right")
            state[link.column] = (place % sizes[link.column]).astype(dtype)
        return state

    def again(attempt: int, bad: np.ndarray) -> np.ndarray:
        return drawn(bad, AGAIN, attempt, flat=attempt > ATTEMPTS // 2)

    return make_possible(rules, drawn(np.arange(len(numbers)), START), again)


def _margins_of(model: LogLinear) -> tuple[list[np.ndarray], dict[tuple[int, int], np.ndarray]]:
    """1-way and 2-way shares of the goals, those of the smallest goal that has them."""
    ones: dict[int, np.ndarray] = {}
    pairs: dict[tuple[int, int], np.ndarray] = {}
    for goal in sorted(model.goals, key=lambda goal: (len(goal.columns), goal.columns)):
        shares = np.maximum(goal.shares, 0.0)
        axes = range(len(goal.columns))
        for k, column in enumerate(goal.columns):
            ones.setdefault(column, shares.sum(axis=tuple(a for a in axes if a != k)))
        for k, m in itertools.combinations(axes, 2):
            pair = (goal.columns[k], goal.columns[m])
            pairs.setdefault(pair, shares.sum(axis=tuple(a for a in axes if a not in (k, m))))
    every = [ones.get(column, np.ones(size)) for column, size in enumerate(model.sizes)]
    return [one if one.sum() > 0 else np.ones(len(one)) for one in every], pairs


def _information(both: np.ndarray) -> float:
    p = both / max(float(both.sum()), 1e-300)
    apart = p.sum(axis=0, keepdims=True) * p.sum(axis=1, keepdims=True)
    held = p > 0
    return float((p[held] * np.log(p[held] / apart[held])).sum())


def _running(both: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Parent code + running shares of each parent's levels; the margin where a parent has none."""
    rows = np.where(both.sum(axis=1, keepdims=True) > 0, both, margin)
    sums = np.cumsum(rows, axis=1)
    sums /= sums[:, -1:]
    sums[:, -1] = 1.0
    return (sums + np.arange(len(sums))[:, None]).ravel()
