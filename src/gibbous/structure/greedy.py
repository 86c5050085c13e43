"""PrivBayes' greedy network: column after column with the parents it depends on most, each pick paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from gibbous.core.claim import Measure, Relation
from gibbous.core.context import Context
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.structure.choice import Network
from gibbous.structure.clique_scores import dense

MOVED: dict[Relation, int] = {"add_remove": 2, "replace_one": 3}
"""How far one row moves a score, in counts."""
WIDE = 1 << 31  # records from which products of two counts need more than 63 bits

Option = tuple[int, tuple[int, ...]]
"""(column, parents)."""


def choose_greedy(
    curator: CuratorLike,
    parents: int,
    *,
    epsilon: Fraction,
    accounting: Measure,
    max_cells: int,
    most: int,
) -> Network:
    """Spend: starting from the first column, add the (column, parents) pair that depends most.

    Args:
        parents: most parents of a column.
        epsilon: of one pick; columns of more than one level, less one, are charged.
        accounting: see `Curator.choose`.
        max_cells: largest table of a column with its parents.
        most: most candidates of one pick of a size; where there would be more, parents stay fewer.
    Returns:
        The network; columns of one level come first and have no parents.
    Guarantee:
        Each pick is epsilon-DP and epsilon^2/8-zCDP: the score changes by at most 2 when one row is
        added or removed, 3 when one is replaced. docs/proofs/privbayes.md.
    Source:
        Zhang, Cormode, Procopiuc, Srivastava and Xiao (2017), PrivBayes, alg. 2 and score R.
    """
    schema = curator.schema
    free = [j for j, size in enumerate(schema.sizes) if size > 1]
    still = [j for j, size in enumerate(schema.sizes) if size == 1]
    chosen: dict[int, tuple[int, ...]] = {}
    order = free[:1]
    while len(order) < len(free):
        options = candidates(schema, order, free, parents, max_cells=max_cells, most=most)
        tables = [table(schema, option) for option in options]
        picked = curator.choose(
            tables,
            partial(scores, options, tables),
            sensitivity=MOVED[curator.relation],
            epsilon=epsilon,
            accounting=accounting,
        )
        column, chosen_parents = options[picked]
        order.append(column)
        chosen[column] = chosen_parents
    parents_of = tuple(chosen.get(j, ()) for j in range(len(schema)))
    return Network((*still, *order), parents_of, len(free) - 1 if free else 0)


def candidates(
    schema: Schema,
    order: Sequence[int],
    free: Sequence[int],
    parents: int,
    *,
    max_cells: int,
    most: int,
) -> list[Option]:
    """Every column that is not placed, with every maximal set of placed parents its table can hold.

    There is at least one option a column. `order`: columns that are placed; `free`: all of more than
    one level.
    """
    sets: list[set[Option]] = [{(j, ()) for j in free if j not in order}]
    while len(sets) <= parents:
        larger = {
            (j, (*places, c))
            for j, places in sets[-1]
            for c in order[order.index(places[-1]) + 1 if places else 0 :]
            if schema.sizes[j] * math.prod(schema.sizes[p] for p in (*places, c)) <= max_cells
        }
        if not larger or len(larger) > most:
            break
        sets.append(larger)
    fitting: set[Option] = set().union(*sets)
    # A set is maximal when no fitting set has one column more.
    wider = {(j, tuple(c for c in places if c != gone)) for j, places in fitting for gone in places}
    return sorted(fitting - wider)


def table(schema: Schema, option: Option) -> Context:
    """The joint table of a column and its parents, the same for every order of them."""
    columns = tuple(sorted((option[0], *option[1])))
    return Context(columns, (), tuple(schema.sizes[c] for c in columns), ())


def scores(
    options: Sequence[Option], tables: Sequence[Context], counts: Sequence[Counts]
) -> np.ndarray:
    """R of each option, float64 (options,): half the L1 distance from column and parents independent.

    In counts, of the secret counts of the joint tables.
    """
    distances = np.zeros(len(options))
    for place, ((column, _), context, secret) in enumerate(
        zip(options, tables, counts, strict=True)
    ):
        cube = dense(secret).astype(np.int64).reshape(context.target_sizes)
        axis = context.targets.index(column)
        joint = np.moveaxis(cube, axis, -1).reshape(-1, cube.shape[axis])
        rows = int(joint.sum())
        if rows >= WIDE:
            joint = joint.astype(object)
        if rows > 0:  # times 2 n, in whole numbers
            apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            distances[place] = int(np.abs(rows * joint - apart).sum()) / (2 * rows)
    return distances
