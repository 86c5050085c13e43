"""Planting: target margins in; the tree of them that tells most as a model, and chains drawn from it, out.

A tree is met exactly and drawn from exactly, whatever its columns say about each other. A fit that
begins there has only to learn what the tree leaves out, so that columns which determine each other,
among which single draws hardly move, are right from the first step on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gibbous.core.tables import Goal, LogLinear
from gibbous.sampling.loglinear.chains import Chains, independent
from gibbous.sampling.loglinear.fit import Target, with_cliques
from gibbous.sampling.loglinear.tree_rows import first_rows, tree

LEAST = 1e-12  # share of a cell
MOST = 16.0  # of |theta|


def planted(
    model: LogLinear, chains: Chains, targets: Sequence[Target], count: int | None = None
) -> tuple[LogLinear, Chains]:
    """A model that meets the targets of one tree, and chains in its equilibrium.

    Args:
        model: for its sizes and merged levels.
        chains: for their number, structural zeros and seed.
        targets: one for each column, and of more columns.
        count: of the chains that are drawn; None: as many as there are.
    Returns:
        The model, with a theta (of 0, where the tree leaves it out) for each target, and chains.
    Source:
        [Chow and Liu 1968].
    """
    ones = {t.columns[0]: t.shares for t in targets if len(t.columns) == 1}
    goals = tuple(Goal(target.columns, target.shares) for target in targets)
    fresh = independent([ones[j] for j in range(len(model.sizes))], model.merged)
    fresh = with_cliques(replace(fresh, goals=goals), [target.columns for target in targets])
    links = tree(fresh)
    edges = {
        (min(one.column, one.parent), max(one.column, one.parent)): (
            one.both if one.parent < one.column else one.both.T
        )
        for one in links
        if one.parent >= 0
    }
    fresh = with_cliques(fresh, sorted(edges))
    theta = [
        _told(edges[clique]) if clique in edges else before
        for clique, before in zip(fresh.cliques, fresh.theta, strict=True)
    ]
    numbers = np.arange(count or chains.count, dtype=np.uint64)
    state = first_rows(model.sizes, links, chains.rules, numbers, {}, chains.seed, chains.done)
    fresh = replace(fresh, theta=tuple(theta), goals=())
    return fresh, replace(chains, state=np.ascontiguousarray(state))


def _told(both: np.ndarray) -> np.ndarray:
    """Logarithm of the joint shares over those of independent columns."""
    shares = np.maximum(both, LEAST) / np.maximum(both, LEAST).sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    told: np.ndarray = np.clip(np.log(shares / apart), -MOST, MOST)
    return told
