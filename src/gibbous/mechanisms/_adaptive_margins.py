"""What adaptive_gibbs buys before its rounds: 1-way tables, a look whether columns are tied."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from gibbous.core.exact import exact
from gibbous.core.protocols import CuratorLike
from gibbous.core.recode import Groups
from gibbous.core.tables import Counts, KnownCounts
from gibbous.mechanisms._adaptive_model import Known, bought, followed
from gibbous.mechanisms._adaptive_rounds import LOOK, LOUD_ERROR, Split
from gibbous.privacy.calibrate.scales import steps
from gibbous.sampling.loglinear.laws import outer
from gibbous.structure.clique_scores import (
    expected_errors,
    gaps,
    whole,
)
from gibbous.structure.cliques import (
    Clique,
    context_of,
    pairs,
)
from gibbous.structure.contexts import margins as one_ways
from gibbous.structure.known_counts import with_known_counts
from gibbous.structure.rank_moments import contrast, halves

TIED, BLURRED = 0.45, 0.35
"""Columns are tied whose pairs are on average further from independence than TIED of the way from where
chance takes independent records to where columns are of which each tells the other. That is looked for
where pairs would get less, up to a 1-way error of BLURRED."""
HALVES = Fraction(1, 50)  # of rho at most: on which side of the middles of two columns rows are
SIDES_TOLD, SIDES_BLURRED = 0.005, 0.04  # standard deviations of a correlation of the sides
PARTS = 8  # of the price of a column's 1-way table: so finely it is divided where some was bought before
TIED_SHARE = Fraction(1, 5)  # of rho, on 1-way tables of few records in tied columns


def measure_margins(
    curator: CuratorLike,
    known: Known,
    split: Split,
    *,
    price: Fraction,
    left: Fraction,
    columns: Sequence[int] | None = None,
) -> tuple[Known, Fraction]:
    """Spend: 1-way tables (of all columns if none are named) at a price, or what is left; nothing at 0."""
    contexts, price = one_ways(split.schema), min(price, left)
    own = range(len(contexts)) if columns is None else columns
    if price <= 0:
        return known, left
    noise = split.budget.noise(price, len(own))
    known = bought(known, curator.noisy_counts([contexts[j] for j in own], noise))
    return known, left - split.budget.cost(noise, len(own))


def reckoned(known: Known, counts: Mapping[int, KnownCounts]) -> Known:
    """With what was bought of columns before: free."""
    return followed(replace(known, components=with_known_counts(known.components, counts)))


def topped_up(
    curator: CuratorLike, known: Known, split: Split, left: Fraction
) -> tuple[Known, Fraction]:
    """Spend: more of the 1-way tables; less where records are few and a look shows tied columns.

    A column that was counted before is bought for as many `PARTS` of its price as bring it to where the
    others come.
    """
    price, error = split.top_up(known.rows), split.one_way_error(known.rows)
    limits = split.limits  # levels are not merged yet, but memory was planned for what they will be
    most = min(limits.all_cells, split.two_way)
    looked = pairs(known.schema.sizes, replace(limits, all_cells=most))
    if price and looked and LOUD_ERROR < error <= BLURRED:
        left -= split.budget.pick_price(split.budget.pick_epsilon(split.rho * LOOK))
        if tied(curator, known, looked, split):
            price, known = split.rho * TIED_SHARE - split.first, replace(known, tied=True)
    price = min(price, left)
    for part, columns in parts_of(curator, known, split, price).items():
        own = price * part * Fraction(len(columns), len(split.schema))
        known, left = measure_margins(curator, known, split, price=own, left=left, columns=columns)
    return known, left


def parts_of(
    curator: CuratorLike, known: Known, split: Split, price: Fraction
) -> dict[Fraction, list[int]]:
    """Columns by the part of an equal share of a price that each needs, of those that need any."""
    found: dict[Fraction, list[int]] = {}
    tables = len(split.schema)
    if price <= 0:
        return found
    noise, first = (split.budget.noise(one, tables).info() for one in (price, split.first))
    for j in range(tables):
        part = Fraction(1)
        if j in curator.known_counts:
            ahead = known.components.found[(j,)].precision - 1 / first.variance
            part = Fraction(max(0, round(PARTS * (1 - ahead * noise.variance))), PARTS)
        if part:
            found.setdefault(part, []).append(j)
    return found


def tied(curator: CuratorLike, known: Known, looked: Sequence[Clique], split: Split) -> bool:
    """Spend: a choice of two: whether tables are on average further from independence than TIED says.

    Guarantee:
        Of bounded range: one row moves each L1 distance from a public table by at most 1 (2 when it is
        replaced), hence their mean. docs/proofs/adaptive_gibbs.md, 2b.
    """
    apart = [whole(known.rows * outer([known.shares[j] for j in one]).ravel()) for one in looked]
    chance = float(expected_errors(apart, 0.0, 0.0, [0.0] * len(apart)).mean())
    falling = [np.sort(shares)[::-1] for shares in known.shares]
    alike = [sum(p * q for p, q in zip(falling[a], falling[b], strict=False)) for a, b in looked]
    least = TIED * 2.0 * known.rows * (1.0 - math.fsum(alike) / len(alike)) + (1 - TIED) * chance

    def score(counts: Sequence[Counts]) -> np.ndarray:
        far = math.fsum(gaps(counts, apart)) / len(apart) - least
        return np.array([far, -far])

    picked = curator.choose(
        [context_of(known.schema.sizes, one) for one in looked],
        score,
        sensitivity=steps(curator.relation),
        epsilon=split.budget.pick_epsilon(split.rho * LOOK),
        accounting=split.budget.measure,
    )
    return picked == 0


def measure_halves(
    curator: CuratorLike, known: Known, split: Split, left: Fraction
) -> tuple[Known, Fraction]:
    """Spend: of each two ordered columns, how many rows are below and above the middles of both.

    As much as tells a correlation of the sides to SIDES_TOLD, at most HALVES of rho; nothing where
    that would not tell it to SIDES_BLURRED. The middles are those of noisy shares.
    """
    columns = known.seen.columns
    cuts = {
        j: halves(known.shares[j], column.bins)
        for j, column in enumerate(columns)
        if column.ordered and column.bins > 2
    }
    pairs_of = list(itertools.combinations(cuts, 2))
    if not pairs_of:
        return known, left
    price = min(split.rho * HALVES, left)
    told = 2 * split.budget.noise(price, len(pairs_of)).info().scale / known.rows
    if told > SIDES_BLURRED:
        return known, left
    noise = split.budget.noise(price * exact(min(1.0, (told / SIDES_TOLD) ** 2)), len(pairs_of))
    view = curator.recoded({j: Groups(sides) for j, sides in cuts.items()})
    tables = view.noisy_counts([context_of(view.schema.sizes, one) for one in pairs_of], noise)
    found: dict[Clique, tuple[float, float]] = {}
    for pair, table in zip(pairs_of, tables, strict=True):
        shape = tuple(view.schema.sizes[j] for j in pair)
        weights = [contrast(known.shares[j], cuts[j])[:n] for j, n in zip(pair, shape, strict=True)]
        product = np.multiply.outer(*weights).ravel()
        error = noise.info().scale * math.sqrt(float(np.square(product).sum()))
        both = float((product * table.cells.values.ravel()).sum())
        found[pair] = both / known.rows, error / known.rows
    return replace(known, halves=found), left - split.budget.cost(noise, len(pairs_of))


def measure_at_once(curator: CuratorLike, known: Known, split: Split) -> Known:
    """Spend: the table of all columns, with everything. It is compared with independent columns, as is
    every pair in it.
    """
    sizes = known.sizes
    everything = tuple(range(len(sizes)))
    noise = split.budget.noise(split.rho)
    known = bought(known, curator.noisy_counts([context_of(sizes, everything)], noise))
    known = reckoned(known, curator.known_counts)
    cliques = [one for one in (*pairs(sizes, split.limits), everything) if len(one) > 1]
    apart = {one: known.rows * outer([known.shares[j] for j in one]) for one in cliques}
    return replace(known, references={one: (table,) for one, table in apart.items()})
